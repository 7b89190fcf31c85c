"""Messages in the form that litellm accepts, which is OpenAI's, with marks for what a provider is to cache."""

import re
from typing import Any, assert_never

import msgspec

from service.adapters.models.memory import unpack
from service.domain.model import ToolCall, decoded_arguments
from service.ports.model import (
    AssistantMessage,
    Continuation,
    ModelMessage,
    SystemMessage,
    ToolMessage,
    UserMessage,
)


def in_openai_form(message: ModelMessage, *, owner: str = "", refused: frozenset[str] = frozenset()) -> dict[str, Any]:
    """Return a message. ``owner``: whose memory goes back; ``refused``: the parts that the server refuses."""
    match message:
        case SystemMessage(text=text):
            return {"role": "system", "content": text}
        case UserMessage(text=text):
            return {"role": "user", "content": text}
        case ToolMessage(call_id=call_id, name=name, text=text):
            named = {} if "tool_names" in refused else {"name": _name(name)}
            return {"role": "tool", "tool_call_id": call_id, **named, "content": text}
        case AssistantMessage():
            return _said(message, owner, refused)
        case _:
            assert_never(message)


_THOUGHTS = ("reasoning_content", "reasoning")
"""Plain thoughts: wanted with calls alone (DeepSeek's docs, "Thinking mode"), and refused without by some."""


def _said(message: AssistantMessage, owner: str, refused: frozenset[str]) -> dict[str, Any]:
    said: dict[str, Any] = {"role": "assistant", "content": message.text}
    calls = [_tool_call(call) for call in message.tool_calls]
    if calls:
        said |= {"content": message.text or None, "tool_calls": calls}
    memory = message.memory
    collected = unpack(memory) if memory is not None and memory.owner == owner and "memory" not in refused else None
    if collected is not None:
        said |= {name: value for name, value in collected.message.items() if calls or name not in _THOUGHTS}
        for call, extra in zip(calls, collected.calls, strict=False):
            call |= extra
    if calls and "calls_without_memory" in refused:
        said.setdefault("reasoning_content", " ")
    return said


def continued(begun: Continuation, *, takes_prefill: bool) -> list[dict[str, Any]]:
    """Return the messages behind all others that have a model go on with what it wrote.

    ``prefix`` is what DeepSeek and Mistral ask for (their docs, "Chat Prefix Completion"); litellm takes it out for the
    others. Anthropic refuses a prefilled message that ends with white space.
    """
    text = begun.text.rstrip()
    if takes_prefill:
        return [{"role": "assistant", "content": text, "prefix": True}]
    return [{"role": "assistant", "content": text}, {"role": "user", "content": begun.instruction}]


def mark_for_cache(messages: list[dict[str, Any]]) -> None:
    """Have Anthropic keep what a loop with tools sends again each time. Four marks, the most that it takes:

    tools and system message; the instructions, which stay when what follows is shortened; the prompt of the call
    before, which is found again even when more than the twenty blocks that it looks back were added since; and the end.

    Reading them back costs a tenth, writing them a quarter more (Anthropic's docs, "Prompt caching"), so it pays from
    the second call on; without tools there is none. Other providers keep prefixes without a mark.
    """
    replies = [at for at, message in enumerate(messages) if message["role"] == "assistant"]
    first = next((at for at in replies if messages[at].get("tool_calls")), len(messages))
    ends = {0, first - 1, (replies[-1] if replies else len(messages)) - 1, len(messages) - 1}
    for message in (messages[at] for at in sorted(ends) if at >= 0):
        mark = {"type": "ephemeral"}
        if message["role"] == "tool":
            message["cache_control"] = mark
        elif message["role"] != "assistant" and message["content"]:
            message["content"] = [{"type": "text", "text": message["content"], "cache_control": mark}]


def _tool_call(call: ToolCall) -> dict[str, Any]:
    """Return the call as the model made it. Arguments that are no JSON object would be refused: they become one."""
    arguments = call.arguments
    try:
        decoded_arguments(arguments, dict[str, Any])
    except msgspec.DecodeError:
        arguments = msgspec.json.encode({"not_json": arguments}).decode()
    return {"id": call.id, "type": "function", "function": {"name": _name(call.name), "arguments": arguments}}


def _name(name: str) -> str:
    """A tool's name; of one that a model invented, what providers take (OpenAI and Anthropic: 64 of these characters).

    Else the next request would be refused for what the model wrote in the last one, and the model would not see its
    error.
    """
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)[:64] or "_"
