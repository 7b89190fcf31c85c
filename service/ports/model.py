"""A language model: messages in; text and tool calls out, as they come."""

import secrets
import string
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Literal, Protocol

from msgspec import Struct
from msgspec.structs import replace

from service.domain.model import ReplyMemory, ToolCall, Usage
from service.domain.search import QueryWord
from service.domain.tool_values import NOWHERE, Span, ToolValue

CONTEXT_WINDOW_EXCEEDED = "context_window_exceeded"
REQUEST_TOO_LARGE = "request_too_large"
"""Code of a request that is larger than its provider accepts in a minute: it never passes as it is."""
MODEL_REPLY_BROKEN = "model_reply_broken"
"""Code of a reply that cannot be read."""
MODEL_TAKES_NO_TOOLS = "model_takes_no_tools"
MODEL_SENT_NOTHING = "model_sent_nothing"
"""Code of an empty stream, which some servers answer where a prompt does not fit."""


class SystemMessage(Struct, frozen=True, tag="system"):
    """Ours alone: nothing that a client or a document says ever goes into one."""

    text: str


class UserMessage(Struct, frozen=True, tag="user"):
    text: str
    purpose: Literal["request", "facts", "checks", "nudge", "round", "new-round", "note", "merge"] = "request"
    """``request``: a person wants something. Else the agent says what it knows, what its checks found, that the model
    is to go on, that a round begins on top of the last one's work or without it, what was left out, or that branches
    were merged.
    """
    words: str = ""
    """The person's own words, where the text has more around them; for a model that works on values."""


class AssistantMessage(Struct, frozen=True, tag="assistant"):
    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    memory: ReplyMemory | None = None
    """Parts of the reply that go back to the model that wrote it."""


class ToolMessage(Struct, frozen=True, tag="tool"):
    """The result of one call of the assistant message before it."""

    call_id: str
    name: str
    text: str
    is_error: bool = False
    value: ToolValue | None = None
    """The result for a model that works on values; None where the text was cut."""

    def lines(self, span: Span) -> list[str]:
        """Return the lines that a value says are in the text; none when it says ``NOWHERE``."""
        start, end = span
        return [] if span == NOWHERE else self.text[start:end].split("\n")


ModelMessage = SystemMessage | UserMessage | AssistantMessage | ToolMessage


class Tool(Struct, frozen=True):
    """A tool that the model may call."""

    name: str
    description: str
    parameters: dict[str, Any]
    """A JSON Schema of type object."""


CALL_ID_LENGTH = 9
_CALL_ID_CHARACTERS = string.ascii_letters + string.digits


def new_call_id() -> str:
    """Return an id for a tool call: nine letters and digits, since Mistral's templates accept no other form, and all
    others accept that one.
    """
    return "".join(secrets.choice(_CALL_ID_CHARACTERS) for _ in range(CALL_ID_LENGTH))


def with_unique_ids(calls: Iterable[ToolCall], taken: Iterable[str]) -> tuple[ToolCall, ...]:
    """Return the calls with ids that their conversation does not have yet: some providers repeat theirs."""
    seen = set(taken)
    apart = []
    for call in calls:
        unique = call if call.id and call.id not in seen else replace(call, id=new_call_id())
        seen.add(unique.id)
        apart.append(unique)
    return tuple(apart)


class Passage(Struct, frozen=True):
    """A numbered passage of documentation, for a model that works on passages rather than on a prompt's text."""

    number: int
    title: str
    heading: str
    url: str
    text: str
    """Markdown."""
    score: float
    """0 .. 1 within one search, the best being 1."""
    other_language: str = ""
    """The language of its text, where that is not the reader's: its page is not translated."""


class Grounding(Struct, frozen=True):
    """The question and the passages that a prompt was made from: the same facts as in its text, as values.

    A language model reads the prompt and never sees this; the builtin extractive model reads this and never the prompt.
    """

    question: str
    passages: tuple[Passage, ...]
    """Whole sections, up to about 1,500 tokens each and 12,000 together, in the order of the prompt: page after page,
    the best page first, the sections of a page in its own order. ``score`` and the numbers say how relevant they are.
    Many of them are there as neighbours of better ones.
    """
    words: tuple[QueryWord, ...] = ()
    """The question's words as the search read them."""
    sides: tuple[str, ...] = ()
    """The two things that the question compares; empty where it compares nothing."""
    language: str = ""
    """The reader's, such as ``de``; empty where it is to be read from the question."""
    in_conversation: "Grounding | None" = None
    """The same with words of the conversation, for a question that may be about what was said before: for where it has
    no answer alone.
    """


class Continuation(Struct, frozen=True):
    """A reply that was cut off: the model is to go on behind its last character."""

    text: str
    """The reply so far, as the model wrote it. A model that takes one gets it as the beginning of its own message."""
    instruction: str
    """The request that any other model gets behind it."""


class OutputSchema(Struct, frozen=True):
    """The form of a reply that is to be one JSON document.

    A model that cannot be held to it may still write prose around it, or something else.
    """

    name: str
    schema: dict[str, Any]
    """A JSON Schema of type object: all its properties required, no others allowed, no limits of size (providers refuse
    them).
    """


class ModelRequest(Struct, frozen=True):
    messages: tuple[ModelMessage, ...]
    tools: tuple[Tool, ...] = ()
    max_output_tokens: int = 8192
    grounding: Grounding | None = None
    continuation: Continuation | None = None
    """What is written already; the reply is what follows. It may begin with words of it that the model repeats."""
    output_schema: OutputSchema | None = None
    reports_waits: bool = False
    """Whether the reply has a ``ModelWaiting`` before each wait that a person would notice."""
    is_cut: bool = False
    """Whether a reply that goes past ``max_output_tokens``, thoughts and calls included, by an estimate of its text, is
    ended there: some servers ignore a limit, and all charge for what they send.
    """
    before_retry: Callable[[], Awaitable[None]] | None = None
    """Awaited before a provider is asked again, or the next one is asked, after a failure; what it raises ends the
    reply. A call is paid for, and minutes may have passed.
    """
    on_usage: Callable[[Usage], None] | None = None
    """Called when the reply is closed before its end, with what it has used, where the provider has said so by then."""
    on_text: Callable[[str], bool] | None = None
    """Takes text of the reply and returns True, or leaves it and returns False; text that is left, or never offered, is
    a ``ModelText``. The first text of a reply always is, so those around a model know that its reply has begun. Each
    generator that a text comes through costs about as much as reading it, and there are ten of them.
    """


def without_prompt(request: ModelRequest) -> ModelRequest:
    """Return what is still of use of a request whose reply has begun: a prompt is large, and some replies take long."""
    return replace(request, messages=(), grounding=None)


class ModelText(Struct, frozen=True):
    """Text to append."""

    text: str


class ModelWaiting(Struct, frozen=True):
    """The provider is busy or away: the call is made again after a wait. Nothing of the reply has come yet."""

    seconds: float


class ModelEnd(Struct, frozen=True):
    """The last chunk of every reply that did not fail."""

    reason: Literal["stop", "tool_calls", "length", "refused", "unknown"]
    """``unknown``: the provider says why in a word that is not known, so it may be no end of the work."""
    tool_calls: tuple[ToolCall, ...]
    """Complete, in the order in which the model made them."""
    usage: Usage
    model: str
    """The model really used, such as ``anthropic/claude-sonnet-4-5-20250929`` or ``builtin/editor``."""
    memory: ReplyMemory | None = None
    """Parts of the reply that have to come back with it; None when there are none."""
    said: str = ""
    """The provider's word for a reason that is unknown."""
    unsure: bool = False
    """Whether the reply shows the nearest passages, which may answer, and says that it is not sure."""


ModelChunk = ModelText | ModelWaiting | ModelEnd


class Price(Struct, frozen=True):
    """The price of a model, in US dollars for a million tokens."""

    input_usd: float
    output_usd: float

    @property
    def is_free(self) -> bool:
        return not self.input_usd and not self.output_usd

    def of(self, input_tokens: float, output_tokens: float) -> float:
        """Return the price of a call, in US dollars."""
        return (input_tokens * self.input_usd + output_tokens * self.output_usd) / 1_000_000


FREE = Price(0.0, 0.0)


class Model(Protocol):
    @property
    def name(self) -> str:
        """``provider/model``, for people and for events."""

    async def window_tokens(self) -> int | None:
        """Return how many tokens a prompt and its reply may have together; None where there is no limit to consider."""

    async def price(self) -> Price | None:
        """Return the price of the model; None when it is not known."""

    def reply(self, request: ModelRequest) -> AsyncIterator[ModelChunk]:
        """One reply: texts as they come, then one ``ModelEnd``. Closing the iterator ends the call at the provider.

        Failures before the first chunk have been retried, where that may help, before they are raised.

        Raises:
            Unavailable: overloaded, rate limited (``RateLimited``), without quota (``QuotaUsedUp``), cut off or down.
            Forbidden: the provider refuses our key (``code`` ``model_key_refused``).
            Invalid: the provider refuses the request (``code`` ``model_refused_request``); the prompt is too long for
                the model (``code`` ``context_window_exceeded``).
        """


class ModelAround:
    """The facts of another model, for a model that passes its calls on to it."""

    def __init__(self, model: Model) -> None:
        self._model = model

    @property
    def name(self) -> str:
        return self._model.name

    async def window_tokens(self) -> int | None:
        return await self._model.window_tokens()

    async def price(self) -> Price | None:
        return await self._model.price()


@asynccontextmanager
async def open_reply(model: Model, request: ModelRequest) -> AsyncIterator[AsyncIterator[ModelChunk]]:
    """Begin a call; leaving the block ends it, at the provider too."""
    chunks = model.reply(request)
    del request  # a prompt is large, and the model need not keep it
    try:
        yield chunks
    finally:
        if isinstance(chunks, AsyncGenerator):
            await chunks.aclose()


class Models(Protocol):
    """The models that the settings name."""

    def for_agent(self, alias: str) -> Model:
        """The model behind an alias of the settings; the agent's default for ``""``.

        Raises:
            NotFound: the settings have no model of this alias (``code`` ``unknown_model``).
        """

    def for_assistant(self) -> Model: ...

    def for_planning(self) -> Model | None:
        """Return the model that plans the search before an answer; None where none does."""

    async def refused(self) -> Mapping[str, Sequence[str]]:
        """Return the parts of requests that each model's server refuses, by alias."""

    def builtin_for_assistant(self) -> Model:
        """Return the builtin model, which costs nothing, whatever the settings name."""
