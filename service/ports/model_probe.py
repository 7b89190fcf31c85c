"""Find out what a model can do, with a few small calls: a word, a stream, tools, the order of messages, a long prompt.

``docsmith doctor --ask-models`` and the commands that add a model call it. It costs some 10,000 tokens. Nothing is
recorded here: what a model's adapter learns by it about its server, it keeps itself.
"""

import asyncio
from collections.abc import Callable
from typing import Any, Literal

import msgspec
from msgspec import Struct

from service.domain.errors import ServiceError
from service.domain.model import ToolCall, Usage, decoded_arguments
from service.ports import probe_prompts
from service.ports.model import (
    CONTEXT_WINDOW_EXCEEDED,
    AssistantMessage,
    Model,
    ModelEnd,
    ModelMessage,
    ModelRequest,
    ModelText,
    SystemMessage,
    Tool,
    ToolMessage,
    UserMessage,
    open_reply,
)
from service.ports.prompts import Prompts

PROMPTS = Prompts(probe_prompts.__name__)

Ability = Literal["word", "stream", "tool_call", "two_calls", "roles", "long_prompt"]
ABILITIES: tuple[Ability, ...] = ("word", "stream", "tool_call", "two_calls", "roles", "long_prompt")
Verdict = Literal["works", "fails", "unknown"]
"""``unknown``: not tried, since the model did not answer at all, or was busy."""

CALL_SECONDS = 120.0
"""For one call: a large model on a small machine takes long to read a prompt."""
LONG_PROMPT_TOKENS = 8_000
"""Tokens of the long prompt, or three quarters of a smaller window: about what the first prompt of an answer has."""
_CHARACTERS_PER_TOKEN = 4
_REPLY_TOKENS = 512
"""Models that think first need more than the few words that are asked for."""


class Tried(Struct, frozen=True):
    """One ability of a model, as it was found."""

    ability: Ability
    verdict: Verdict
    says: str
    """The finding, and what will not work without it, in a sentence for people."""
    mend: str = ""
    """The setting or the option to change; empty where there is nothing to do."""


class Probe(Struct, frozen=True):
    """The abilities of a model, as they were found."""

    model: str
    tried: tuple[Tried, ...]
    """In the order in which they were tried, each ability once."""
    usage: Usage = Usage()
    """Tokens and cost of the calls that ended."""

    def find(self, ability: Ability) -> Tried:
        return next(one for one in self.tried if one.ability == ability)

    @property
    def answers(self) -> bool:
        """Return whether the assistant can use the model."""
        return self.find("word").verdict == "works"

    @property
    def can_edit(self) -> bool:
        """Return whether the agent can use the model."""
        return self.answers and self.find("tool_call").verdict == "works"


async def probe_model(
    model: Model, *, seconds: float = CALL_SECONDS, on_tried: Callable[[Tried], None] | None = None
) -> Probe:
    """Return what the model can do; failures are in it, not raised.

    ``seconds``: the most for each call. ``on_tried``: called as soon as each ability is known.
    """
    probing = _Probing(model, seconds, on_tried)
    await probing.run()
    return Probe(model.name, tuple(probing.tried), probing.usage)


def not_answering(reason: str) -> tuple[Tried, ...]:
    """Return the findings about a model that does not answer."""
    rest = ABILITIES[1:]
    return (
        Tried("word", "fails", f"It does not answer: {reason}", _MODEL),
        *(Tried(ability, "unknown", "Not tried, since it does not answer.") for ability in rest),
    )


class _Reply(Struct):
    texts: list[str]
    end: ModelEnd

    @property
    def text(self) -> str:
        return "".join(self.texts)


class _Probing:
    def __init__(self, model: Model, seconds: float, on_tried: Callable[[Tried], None] | None) -> None:
        self._model, self._seconds, self._on_tried = model, seconds, on_tried
        self.tried: list[Tried] = []
        self.usage = Usage()

    async def run(self) -> None:
        counted = await self._asked([UserMessage(PROMPTS.text("count"))])
        if isinstance(counted, ServiceError):
            for one in not_answering(str(counted)):
                self._note(one.ability, one.verdict, one.says, one.mend)
            return
        self._note_word(counted)
        tool = PROMPTS.tool(_NAME, _PARAMETERS)
        called = await self._asked([UserMessage(PROMPTS.text("one_call", tool=_NAME))], tool)
        self._note_calls(called)
        if isinstance(called, ServiceError):
            self._note("two_calls", "fails", "It takes no tools.")
            self._note_roles(await self._asked(_conversation()[:3]))
        else:
            self._note_two_calls(await self._asked([UserMessage(PROMPTS.text("two_calls", tool=_NAME))], tool))
            self._note_roles(await self._asked(_conversation(), tool))
        await self._try_long_prompt()

    async def _asked(self, messages: list[ModelMessage], *tools: Tool) -> _Reply | ServiceError:
        texts: list[str] = []
        request = ModelRequest(tuple(messages), tools, max_output_tokens=_REPLY_TOKENS)
        try:
            async with asyncio.timeout(self._seconds), open_reply(self._model, request) as chunks:
                async for chunk in chunks:
                    if isinstance(chunk, ModelText):
                        texts.append(chunk.text)
                    elif isinstance(chunk, ModelEnd):
                        self.usage += chunk.usage
                        return _Reply(texts, chunk)
        except TimeoutError:
            return ServiceError(f"no reply within {self._seconds:g} s")
        except ServiceError as error:
            return error
        return ServiceError("the reply has no end")

    def _note(self, ability: Ability, verdict: Verdict, says: str, mend: str = "") -> None:
        self.tried.append(Tried(ability, verdict, says, mend))
        if self._on_tried is not None:
            self._on_tried(self.tried[-1])

    def _note_word(self, reply: _Reply) -> None:
        if not reply.text.strip():
            self._note("word", "fails", "It writes nothing.", _EMPTY)
            self._note("stream", "unknown", "Not tried, since it writes nothing.")
            return
        self._note("word", "works", "It answers.")
        if len(reply.texts) > 1:
            self._note("stream", "works", f"Its text comes as it is written, {len(reply.texts)} pieces.")
        else:
            says = "Its text comes in one piece at the end, so readers wait for the whole answer."
            self._note("stream", "fails", says, "Turn streaming on at the server or the proxy before it.")

    def _note_calls(self, reply: _Reply | ServiceError) -> None:
        if isinstance(reply, ServiceError):
            self._note("tool_call", "fails", f"It takes no tools: {reply}. {_NO_TOOLS}", _PARSER)
        elif any(_fits(call) for call in reply.end.tool_calls):
            self._note("tool_call", "works", "It calls tools.")
        elif _NAME in reply.text:
            self._note("tool_call", "fails", f"It writes its calls as text. {_NO_TOOLS}", _PARSER)
        else:
            self._note("tool_call", "fails", f"It answers in words where it should call a tool. {_NO_TOOLS}", _PARSER)

    def _note_two_calls(self, reply: _Reply | ServiceError) -> None:
        if isinstance(reply, ServiceError):
            self._note("two_calls", "unknown", f"Two calls at once were not answered: {reply}")
        elif len(reply.end.tool_calls) > 1 and all(map(_fits, reply.end.tool_calls)):
            self._note("two_calls", "works", "It makes several calls in one reply.")
        elif len(reply.end.tool_calls) > 1:
            self._note("two_calls", "fails", "Its calls are mixed up when it makes two at once.", _PARSER)
        else:
            self._note("two_calls", "fails", "It makes one call at a time; jobs take more steps for the same work.")

    def _note_roles(self, reply: _Reply | ServiceError) -> None:
        if isinstance(reply, ServiceError):
            says = f"It refuses the order of messages that jobs and answers have: {reply}"
            self._note("roles", "fails", says, "Look at the server's chat template.")
        else:
            self._note("roles", "works", "It accepts the order of messages that jobs and answers have.")

    async def _try_long_prompt(self) -> None:
        try:
            window = await self._model.window_tokens()
        except ServiceError:
            window = None
        tokens = LONG_PROMPT_TOKENS if window is None else min(LONG_PROMPT_TOKENS, window * 3 // 4 - _REPLY_TOKENS)
        filler = "The quick brown fox jumps over the lazy dog. "
        long = filler * max(1, tokens * _CHARACTERS_PER_TOKEN // len(filler))
        reply = await self._asked([UserMessage(PROMPTS.text("long", word=_WORD, filler=long.strip()))])
        mend = f"Set context_tokens of the model below {max(tokens, 2_048)}, or start the server with a larger window."
        if isinstance(reply, ServiceError):
            is_known = reply.code == CONTEXT_WINDOW_EXCEEDED
            why = f"A prompt of about {tokens:,} tokens is too long for it" if is_known else f"It fails: {reply}"
            self._note("long_prompt", "fails", f"{why.rstrip('.')}.", mend)
        elif _WORD in reply.text.lower():
            self._note("long_prompt", "works", f"It reads a prompt of about {tokens:,} tokens from its beginning.")
        else:
            says = f"It does not know the beginning of a prompt of about {tokens:,} tokens: the server may cut it."
            self._note("long_prompt", "fails", says, mend)


def _fits(call: ToolCall) -> bool:
    try:
        return call.name == _NAME and "city" in decoded_arguments(call.arguments, dict[str, Any])
    except msgspec.DecodeError:
        return False


def _conversation() -> list[ModelMessage]:
    """Return the order of messages that jobs and answers have."""
    return [
        SystemMessage(PROMPTS.text("system")),
        UserMessage("Today is Monday."),
        UserMessage("How is the weather in Paris?"),
        AssistantMessage("", (ToolCall("a1B2c3D4e", _NAME, '{"city":"Paris"}'),)),
        ToolMessage("a1B2c3D4e", _NAME, "sunny"),
        UserMessage("Answer now."),
    ]


_NAME = "look_up_weather"
_PARAMETERS = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
_WORD = "juniper"
_MODEL = "Look at its model, address and key: api_base and api_key_env in its [models] section, or on the page Models."
_EMPTY = (
    "Look at the server's log, and set context_tokens in its [models] section to the window that it was started with."
)
_NO_TOOLS = "Jobs of the agent do not work with it; the assistant answers from the first search."
_PARSER = (
    "Use a model with tools, and start its server with its parser of tool calls, such as --enable-auto-tool-choice and"
    " --tool-call-parser of vLLM, or --jinja of llama.cpp."
)
