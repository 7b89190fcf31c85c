"""Parts of requests that servers refuse, by their words, and requests without them.

| Refused | Words of | The other way |
|---|---|---|
| tools | Ollama, vLLM, llama.cpp, OpenRouter | the assistant answers without; a job fails with that reason |
| ``stream_options`` | Mistral, older servers | left out |
| ``max_tokens`` or ``max_completion_tokens`` | OpenAI, Azure; older servers | the other name |
| the system role | Gemma's templates | the text in the first message of the user |
| a user's message behind a tool's result | Mistral's templates | a word of the assistant between them |
| several calls in one message | Llama's templates | one message for each |
| ``temperature``, ``reasoning_effort``, a schema | thinking models, small servers | left out |
| thoughts that are sent back | DeepSeek's older models | left out |
| calls without thoughts | DeepSeek, Moonshot | an empty one |
| a name at a tool's result | strict servers | left out |
| ids of calls | Mistral's templates | nine letters and digits of each |

Sources: vllm-project/vllm#6862, BerriAI/litellm#6323, ollama/ollama#6027, OpenHands/software-agent-sdk#1083,
langchain-ai/langchain#37713.
"""

import hashlib
import re
from collections.abc import Sequence

from msgspec.structs import replace

from service.domain.errors import Invalid, ServiceError
from service.domain.model_capabilities import Capability
from service.ports.model import (
    CALL_ID_LENGTH,
    AssistantMessage,
    ModelMessage,
    ModelRequest,
    SystemMessage,
    ToolMessage,
    UserMessage,
)

_LOOKED_AT = 4_000
_NOT = (
    r"(?:not (?:be )?(?:support|allow|permit|accept)|unsupported|unrecogni[sz]ed|unknown|unexpected"
    r"|extra (?:input|field)|invalid|does(?:n't| not) (?:support|accept)|not available|unavailable|deprecated"
    r"|forbidden)"
)
_WORDS: tuple[tuple[Capability, str], ...] = (
    ("calls_without_memory", r"reasoning_content[^.]{0,80}(?:must|missing|required|passed back)"),
    ("calls_without_memory", r"(?:missing|must)[^.]{0,80}reasoning_content"),
    (
        "memory",
        rf"(?:reasoning_content|reasoning_details|reasoning_items|extra_content|thinking_blocks)[^.]{{0,80}}{_NOT}",
    ),
    (
        "memory",
        rf"{_NOT}[^.]{{0,80}}(?:reasoning_content|reasoning_details|reasoning_items|extra_content|thinking_blocks)",
    ),
    ("max_tokens", r"max_tokens[^.]{0,80}(?:use|instead)[^.]{0,20}max_completion_tokens"),
    ("max_tokens", rf"[\"'`]max_tokens[\"'`][^.]{{0,60}}{_NOT}"),
    ("max_completion_tokens", rf"max_completion_tokens[^.]{{0,80}}{_NOT}"),
    ("max_completion_tokens", rf"{_NOT}[^.]{{0,80}}max_completion_tokens"),
    ("stream_options", rf"stream_options[^.]{{0,80}}{_NOT}"),
    ("stream_options", rf"{_NOT}[^.]{{0,80}}stream_options"),
    ("parallel_calls", r"single tool.calls? at once|only (?:one|a single) tool call|parallel_tool_calls"),
    ("tools", r"does not support (?:tools?|function)|tool (?:use|calling|choice) (?:is )?not supported"),
    ("tools", r"tools? (?:param )?(?:requires?|is not supported|are not supported)|support tool use"),
    (
        "tools",
        r"enable-auto-tool-choice|function calling is not (?:supported|enabled)|[\"'`]tools[\"'`][^.]{0,40}" + _NOT,
    ),
    ("system_role", r"system (?:role|message|prompt)s? (?:is |are )?not (?:be )?(?:support|allow)|role [\"'`]?system"),
    ("system_role", r"only (?:user,? (?:and )?assistant|user and model)[^.]{0,20}roles?|developer instruction is not"),
    ("message_order", r"must alternate|roles? should alternate|unexpected role|after role|expected last role"),
    ("message_order", r"conversation roles|order of (?:the )?messages|last message (?:must|should|role)"),
    ("temperature", rf"(?:temperature|top_p)[^.]{{0,80}}(?:{_NOT}|only the default)"),
    ("temperature", rf"{_NOT}[^.]{{0,60}}(?:temperature|top_p)"),
    ("reasoning_effort", rf"reasoning_effort[^.]{{0,80}}{_NOT}|{_NOT}[^.]{{0,60}}reasoning_effort"),
    ("reasoning_effort", r"does not support (?:thinking|reasoning)"),
    ("output_schema", rf"(?:response_format|json_schema)[^.]{{0,80}}{_NOT}"),
    ("output_schema", rf"{_NOT}[^.]{{0,60}}(?:response_format|json_schema)"),
    ("call_ids", r"tool.call.id[^.]{0,120}(?:length (?:of )?9|a-z)"),
    ("tool_names", rf"{_NOT}[^.]{{0,80}}\bmessages?\b[^.]{{0,40}}\bname\b"),
    ("tool_names", rf"messages?[^a-z]{{1,12}}(?:tool[^a-z]{{1,4}})?name[^.]{{0,60}}{_NOT}"),
)
_PATTERNS = tuple((capability, re.compile(words, re.IGNORECASE)) for capability, words in _WORDS)

BETWEEN = "I have read this."
"""Between a tool's result and a user's message, for servers that refuse the one behind the other."""


class PartRefused(Invalid):
    """A server refuses a part of a request, which may be sent another way."""

    def __init__(self, capabilities: Sequence[Capability], otherwise: ServiceError) -> None:
        super().__init__(str(otherwise), code=otherwise.code)
        self.capabilities = capabilities
        self.otherwise = otherwise


def refused_parts(words: str) -> tuple[Capability, ...]:
    """Return the parts of a request that a provider's words may refuse, the likeliest first; without doubles."""
    words = words[:_LOOKED_AT]
    return tuple(dict.fromkeys(capability for capability, pattern in _PATTERNS if pattern.search(words)))


def is_used(capability: str, request: ModelRequest, *, has_temperature: bool, has_effort: bool) -> bool:
    """Return whether a request has a part."""
    messages = request.messages
    match capability:
        case "tools":
            return bool(request.tools)
        case "system_role":
            return any(isinstance(message, SystemMessage) for message in messages)
        case "message_order":
            return any(map(_is_behind_result, messages, messages[1:]))
        case "parallel_calls":
            return bool(request.tools)
        case "temperature":
            return has_temperature
        case "reasoning_effort":
            return has_effort
        case "output_schema":
            return request.output_schema is not None
        case "memory":
            return any(isinstance(message, AssistantMessage) and message.memory for message in messages)
        case "calls_without_memory":
            return any(isinstance(message, AssistantMessage) and message.tool_calls for message in messages)
        case "tool_names" | "call_ids":
            return any(isinstance(message, ToolMessage) for message in messages)
        case _:
            return True


def _is_behind_result(before: ModelMessage, message: ModelMessage) -> bool:
    return isinstance(before, ToolMessage) and isinstance(message, UserMessage)


def arranged(messages: Sequence[ModelMessage], refused: frozenset[str]) -> tuple[ModelMessage, ...]:
    """Return the messages in an order that all servers accept: no two of the user, or of the assistant, in a row.

    ``refused``: parts that the server refuses besides.
    """
    if "system_role" in refused:
        messages = [UserMessage(each.text) if isinstance(each, SystemMessage) else each for each in messages]
    if "call_ids" in refused:
        messages = [_with_short_ids(each) for each in messages]
    if "parallel_calls" in refused:
        messages = _one_call_each(messages)
    found: list[ModelMessage] = []
    for message in messages:
        last = found[-1] if found else None
        if isinstance(last, UserMessage) and isinstance(message, UserMessage):
            found[-1] = replace(last, text=f"{last.text}\n\n{message.text}")
        elif _are_words(last) and _are_words(message):
            assert isinstance(last, AssistantMessage)
            found[-1] = replace(last, text=f"{last.text}\n\n{message.text}")
        else:
            if "message_order" in refused and last is not None and _is_behind_result(last, message):
                found.append(AssistantMessage(BETWEEN))
            found.append(message)
    return tuple(found)


def _with_short_ids(message: ModelMessage) -> ModelMessage:
    match message:
        case AssistantMessage(tool_calls=calls) if calls:
            return replace(message, tool_calls=tuple(replace(call, id=_short_id(call.id)) for call in calls))
        case ToolMessage(call_id=call_id):
            return replace(message, call_id=_short_id(call_id))
        case _:
            return message


def _short_id(call_id: str) -> str:
    is_short = len(call_id) == CALL_ID_LENGTH and call_id.isalnum() and call_id.isascii()
    return call_id if is_short else hashlib.sha256(call_id.encode(errors="replace")).hexdigest()[:CALL_ID_LENGTH]


def _are_words(message: ModelMessage | None) -> bool:
    return isinstance(message, AssistantMessage) and not message.tool_calls and message.memory is None


def _one_call_each(messages: Sequence[ModelMessage]) -> list[ModelMessage]:
    """Return the messages with one call in each of the assistant's, and its result behind it."""
    results = {message.call_id: message for message in messages if isinstance(message, ToolMessage)}
    found: list[ModelMessage] = []
    for message in messages:
        if isinstance(message, AssistantMessage) and len(message.tool_calls) > 1:
            for number, call in enumerate(message.tool_calls):
                found.append(replace(message, text="" if number else message.text, tool_calls=(call,)))
                if call.id in results:
                    found.append(results.pop(call.id))
        elif not isinstance(message, ToolMessage) or message.call_id in results:
            found.append(message)
    return found
