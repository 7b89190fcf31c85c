"""The two streams that nearly all providers speak, from bytes to texts; sans-I/O. The third: ``responses``.

Why not litellm's own reader: it costs 250 to 345 ms of CPU per 1,000 tokens, this 4 to 16. litellm still makes the
request. Facts that the readers respect:

- Both protocols put one whole JSON document on each ``data:`` line, so lines are enough and events need no assembling;
  a document over several lines is put together all the same, and an answer that is one document is one reply.
- OpenAI (API reference, "Chat completions: streaming"): tool calls come in pieces joined by ``index``; the usage chunk
  comes after the one with ``finish_reason`` and has no choices; ``[DONE]`` ends. Servers that imitate it leave out
  ``index`` or ``[DONE]``, repeat index 0 with a new id, send comments (``: OPENROUTER PROCESSING``), put an ``error``
  into a chunk, send content as parts, or the whole ``message`` in place of a ``delta``.
- Anthropic (docs, "Streaming messages"): ``message_start`` has the input tokens, ``message_delta`` the stop reason and
  the output tokens so far, ``message_stop`` ends; ``ping`` anywhere; ``error`` events such as ``overloaded_error``
  after a status of 200. Its ``input_tokens`` leaves out what the cache wrote and read.

A chunk in the documented form is read by its types. Any other is read field by field (``fields``): what cannot be read
of its usage, ids or reasoning is left out, and the reply goes on. Once the end of a reply is there, nothing that comes
behind it ends the reply in a failure.
"""

from collections.abc import Iterator
from typing import Any, Protocol

import msgspec
from msgspec import UNSET, Struct, UnsetType

from service.adapters.models.end_reasons import EndReason, end_reason
from service.adapters.models.failures import failure_in_stream
from service.adapters.models.fields import (
    UnreadableError,
    count_of,
    index_of,
    json_of,
    list_of,
    name_of,
    object_of,
    text_of,
    texts_of,
    whole_characters,
)
from service.adapters.models.lines import CONTENT, TEXT, Lines, Payloads, Repeated, broken, decode_text
from service.adapters.models.memory import Collected, MemoryCollector
from service.adapters.models.tool_calls import ToolCalls, is_object
from service.domain.errors import Unavailable
from service.domain.model import ToolCall
from service.ports.model import MODEL_SENT_NOTHING

MAX_CHOICES = 8
"""Choices of one chunk that are read; one is asked for."""
MAX_CALLS_AT_ONCE = 250
"""Calls of one chunk that are read."""
PAUSE = ""
"""An empty text: a reader may stop here and go on later, so that others have their turn."""


class Tokens(Struct, frozen=True):
    """The tokens that a call used, as the provider reports them."""

    input: int
    """All of them, those of the cache included."""
    output: int
    cache_read: int = 0
    cache_written: int = 0


class Ending(Struct, frozen=True):
    """What is known once a stream has ended."""

    reason: EndReason
    tool_calls: tuple[ToolCall, ...]
    tokens: Tokens | None
    """None when the provider did not say."""
    model: str
    """The provider's own name for it; empty when it did not say."""
    memory: Collected | None = None
    """Parts of the reply that have to come back with it."""
    said: str = ""
    """The provider's word for an end reason that is not known."""


class StreamReader(Protocol):
    def feed(self, data: bytes) -> Iterator[str]:
        """The texts that these bytes complete, with empty ones between where a caller may make a pause; to be read to
        its end, for an error may come after a text.

        Raises:
            Unavailable, RateLimited, Invalid, Forbidden: the stream reports a failure, or breaks its protocol.
            ContentRefused: the provider's filter refuses the prompt.
        """

    def finish(self) -> Iterator[str]:
        """The texts that the end of the bytes completes. Raises as ``feed`` does."""

    @property
    def held_bytes(self) -> int:
        """Bytes of a line or a document that has not ended, and is read at once when it does."""

    @property
    def call_characters(self) -> int:
        """Characters of the tool calls so far, which ``ending`` reads."""

    @property
    def hidden_characters(self) -> int:
        """Return the characters of thoughts and calls so far, which are no text of the reply."""

    @property
    def is_whole(self) -> bool:
        """Whether the end of the reply is there: what comes behind it may be missing."""

    @property
    def is_done(self) -> bool:
        """Whether the stream has said that nothing follows."""

    def tokens(self) -> Tokens | None:
        """Return the tokens that the provider has reported so far; None when it has not."""

    def ending(self) -> Ending:
        """After the last byte.

        Raises:
            Unavailable: the stream stopped before its end (``model_sent_nothing``: it had nothing in it).
        """


def ended_early(*, has_come: bool) -> Unavailable:
    if has_come:
        return Unavailable("the model's provider ended its stream before the reply did")
    return Unavailable(
        "the model's provider answered with an empty stream. Servers do so when a prompt does not fit their window: set"
        " context_tokens of the model to the window that its server was started with",
        code=MODEL_SENT_NOTHING,
    )


class _FunctionPiece(Struct, gc=False):
    name: str | None = None
    arguments: str | None = None
    parameters: Any = None
    input: Any = None

    def given(self) -> str:
        """Return the arguments, or the piece of them."""
        return self.arguments or json_of(self.input if self.parameters is None else self.parameters)


class _CallPiece(Struct, gc=False):
    index: int | None = None
    id: str | None = None
    function: _FunctionPiece | None = None
    name: str | None = None
    arguments: Any = None
    parameters: Any = None
    input: Any = None
    extra_content: dict[str, Any] | None = None
    provider_specific_fields: dict[str, Any] | None = None
    thought_signature: str | None = None

    def extra(self) -> dict[str, Any] | None:
        """Return the fields that have to come back with the call."""
        if not (self.extra_content or self.provider_specific_fields or self.thought_signature):
            return None
        given = {name: getattr(self, name) for name in CARRIED_OF_CALLS}
        return {name: value for name, value in given.items() if value}


CARRIED_OF_CALLS = ("extra_content", "provider_specific_fields", "thought_signature")


class _ChatDelta(Struct, gc=False):
    content: str | None = None
    refusal: str | None = None
    tool_calls: list[_CallPiece] | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    reasoning_details: list[dict[str, Any]] | None = None
    thinking_blocks: list[dict[str, Any]] | None = None
    extra_content: dict[str, Any] | None = None
    provider_specific_fields: dict[str, Any] | None = None
    function_call: _FunctionPiece | None = None
    parts: list[Any] | None = None
    """A content that is no text: its parts."""

    def has_carried(self) -> bool:
        """Return whether it has any of the fields of ``CARRIED``."""
        return bool(
            self.reasoning_content
            or self.reasoning
            or self.reasoning_details
            or self.thinking_blocks
            or self.extra_content
            or self.provider_specific_fields
        )


CARRIED = (
    "reasoning_content", "reasoning", "reasoning_details", "thinking_blocks", "extra_content",
    "provider_specific_fields",
)  # fmt: skip
"""Fields of a message that some providers want back with it; no reader sees them."""


class _Choice(Struct, gc=False):
    index: int | None = None
    delta: _ChatDelta | None = None
    finish_reason: str | None = None
    message: dict[str, Any] | None = None
    usage: dict[str, Any] | None = None
    error: Any = None
    text: str | None = None


class _PromptDetails(Struct, gc=False):
    cached_tokens: int | None = None


class _ChatUsage(Struct, gc=False):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _PromptDetails | None = None
    prompt_cache_hit_tokens: int | None = None
    """DeepSeek's."""
    cached_tokens: int | None = None
    """Moonshot's."""
    input_tokens: int | None = None
    output_tokens: int | None = None
    """Gateways' names of the first two."""

    def __post_init__(self) -> None:
        if self.prompt_tokens is None and self.completion_tokens is None:
            self.prompt_tokens, self.completion_tokens = self.input_tokens, self.output_tokens


class _ChatChunk(Struct, gc=False):
    choices: list[_Choice] | None = None
    model: str | None = None
    usage: _ChatUsage | None = None
    error: Any = None
    x_groq: Any = None


_chat_chunk = msgspec.json.Decoder(_ChatChunk)


def _chunk_of(document: dict[str, Any]) -> _ChatChunk:
    """Return a chunk that is not in the documented form."""
    error = document.get("error") or None
    choices = [_choice_of(object_of(each)) for each in list_of(document.get("choices"))[:MAX_CHOICES]]
    is_failure = document.get("object") == "error" or document.get("type") == "error"
    is_message = not choices and document.keys() & {"message", "detail"} and "usage" not in document
    if error is None and (is_failure or is_message):
        error = document
    elif error is not None and not isinstance(error, dict):
        error = {**document, "message": name_of(error)}
    usage = _usage_of(object_of(document.get("usage")))
    return _ChatChunk(choices, name_of(document.get("model")), usage, error, document.get("x_groq"))


def _choice_of(choice: dict[str, Any]) -> _Choice:
    delta, message = choice.get("delta"), object_of(choice.get("message"))
    return _Choice(
        index=index_of(choice.get("index")),
        delta=_delta_of(object_of(delta) if not isinstance(delta, str) else {"content": delta}),
        finish_reason=name_of(choice.get("finish_reason")),
        message=message or None,
        usage=object_of(choice.get("usage")) or None,
        error=choice.get("error") or None,
        text=text_of(choice.get("text")) or None,
    )


def _delta_of(delta: dict[str, Any]) -> _ChatDelta:
    content = delta.get("content")
    legacy = object_of(delta.get("function_call"))
    found = _ChatDelta(
        content=None if isinstance(content, list) else text_of(content),
        refusal=text_of(delta.get("refusal")),
        tool_calls=[_call_of(object_of(each)) for each in list_of(delta.get("tool_calls"))[:MAX_CALLS_AT_ONCE]],
        function_call=_function_of(legacy) if legacy else None,
        parts=content if isinstance(content, list) else None,
    )
    for name in CARRIED:
        value = delta.get(name)
        if isinstance(value, dict if name in ("extra_content", "provider_specific_fields") else str) and value:
            setattr(found, name, whole_characters(value) if isinstance(value, str) else value)
        elif name in ("reasoning_details", "thinking_blocks"):
            setattr(found, name, [each for each in list_of(value) if isinstance(each, dict)] or None)
    return found


def _call_of(call: dict[str, Any]) -> _CallPiece:
    function = _function_of({**call, **object_of(call.get("function"))})
    piece = _CallPiece(index_of(call.get("index")), name_of(call.get("id")), function)
    for name in CARRIED_OF_CALLS:
        if isinstance(value := call.get(name), str if name == "thought_signature" else dict):
            setattr(piece, name, value)
    return piece


def _function_of(function: dict[str, Any]) -> _FunctionPiece:
    arguments = next((function[name] for name in ("arguments", "parameters", "input") if name in function), None)
    return _FunctionPiece(name_of(function.get("name")), json_of(arguments))


def _usage_of(usage: dict[str, Any]) -> _ChatUsage | None:
    if not usage:
        return None
    details = object_of(usage.get("prompt_tokens_details"))
    return _ChatUsage(
        count_of(usage.get("prompt_tokens", usage.get("input_tokens"))),
        count_of(usage.get("completion_tokens", usage.get("output_tokens"))),
        _PromptDetails(count_of(details.get("cached_tokens"))),
        count_of(usage.get("prompt_cache_hit_tokens")),
        count_of(usage.get("cached_tokens")),
    )


class PayloadReader:
    """The common parts of readers of protocols whose events are JSON; each reads the payloads in its own way."""

    unit = "an event"
    """A payload, for people."""

    def __init__(self) -> None:
        self._lines = Lines()
        self._payloads = Payloads()
        self._tool_calls = ToolCalls()
        self._memory = MemoryCollector()
        self._said = ""
        """The provider's word for the end of the reply."""
        self._done = False
        """Whether the stream has said that nothing follows."""
        self._has_come = False
        """Whether anything of a reply has come."""
        self._refused = False
        self._tokens: Tokens | None = None
        self._model = ""

    def feed(self, data: bytes) -> Iterator[str]:
        return self._read_payloads(self._lines.feed(data))

    def finish(self) -> Iterator[str]:
        return self._read_payloads(self._lines.finish())

    def _read_payloads(self, payloads: list[bytes]) -> Iterator[str]:
        raise NotImplementedError

    def _read_otherwise(self, payload: bytes) -> Iterator[str]:
        """Read a payload that is not in the documented form."""
        yield PAUSE
        try:
            for document in self._payloads.documents(payload):
                yield from self._read_document(document)
        except UnreadableError:
            if not self.is_whole:
                raise broken(f"sent {self.unit} that is not one") from None

    def _read_document(self, document: dict[str, Any]) -> Iterator[str]:
        raise NotImplementedError

    @property
    def held_bytes(self) -> int:
        return self._lines.held_bytes + self._payloads.held_bytes

    @property
    def call_characters(self) -> int:
        return self._tool_calls.characters

    @property
    def hidden_characters(self) -> int:
        return self._tool_calls.written + self._memory.written

    @property
    def is_whole(self) -> bool:
        return bool(self._said) or self._done

    @property
    def is_done(self) -> bool:
        return self._done

    def tokens(self) -> Tokens | None:
        return self._tokens

    def ending(self) -> Ending:
        if not self.is_whole or not (self._said or self._has_come or self._memory):
            raise ended_early(has_come=self._has_come or bool(self._model) or bool(self._memory))
        return ending_of(self._said, self._tool_calls, self._memory, self.tokens(), self._model, refused=self._refused)


class ChatCompletionsReader(PayloadReader):
    """The stream of ``POST …/chat/completions``."""

    unit = "a chunk"

    def __init__(self) -> None:
        super().__init__()
        self._repeated = Repeated()
        self._choice: int | None = None
        """The index of the choice that is read; a server that makes several was not asked to."""

    def _read_payloads(self, payloads: list[bytes]) -> Iterator[str]:
        repeated, begun = self._repeated, self._payloads.begun
        for payload in payloads:
            if not payload:
                if begun:
                    yield from self._read_otherwise(payload)
                continue
            if payload.startswith(repeated.head) and payload.endswith(repeated.tail):
                try:
                    text = decode_text(payload[repeated.start : repeated.end])
                except (msgspec.DecodeError, ValueError):
                    text = ""
                if text:
                    yield text
                    continue
            elif payload == b"[DONE]":
                self._done = True
                continue
            try:
                chunk = _chat_chunk.decode(payload)
            except (msgspec.DecodeError, RecursionError, ValueError):
                yield from self._read_otherwise(payload)
                continue
            text = self._only_text(chunk)
            if text:
                self._has_come = True
                repeated.learn(payload, CONTENT, self._text_of)
                yield text
            elif chunk.choices or chunk.usage is not None or chunk.error:
                yield from self._read(chunk)
                yield PAUSE
            else:
                yield from self._read_otherwise(payload)

    def _read_document(self, document: dict[str, Any]) -> Iterator[str]:
        yield from self._read(_chunk_of(document))
        yield PAUSE

    def _text_of(self, payload: bytes) -> str:
        return self._only_text(_chat_chunk.decode(payload))

    def _only_text(self, chunk: _ChatChunk) -> str:
        """Return the text of a chunk that has nothing else, as nearly all; else an empty text."""
        choices = chunk.choices
        if not choices or len(choices) > 1 or chunk.error is not None or chunk.usage is not None or not self._model:
            return ""
        choice = choices[0]
        delta = choice.delta
        if delta is None or not delta.content or choice.finish_reason or choice.index != self._choice:
            return ""
        return "" if delta.refusal or delta.tool_calls or choice.error or delta.has_carried() else delta.content

    def _read(self, chunk: _ChatChunk) -> Iterator[str]:
        if chunk.error:
            if self.is_whole:
                return
            raise failure_in_stream(chunk.error)
        self._model = self._model or chunk.model or ""
        self._use(chunk.usage)
        if chunk.x_groq is not None:
            self._use(_usage_of(object_of(object_of(chunk.x_groq).get("usage"))))
        for choice in chunk.choices or ():
            self._use(_usage_of(choice.usage) if choice.usage is not None else None)
            if choice.error and not self.is_whole:
                raise failure_in_stream(choice.error)
            if self._choice is None:
                self._choice = choice.index
            if choice.index != self._choice and choice.index is not None:
                continue
            if choice.message is not None and not self._has_come:
                yield from self._read_delta(_delta_of(choice.message))
            if choice.delta is not None:
                yield from self._read_delta(choice.delta)
            if choice.text:
                self._has_come = True
                yield choice.text
            self._said = choice.finish_reason or self._said

    def _use(self, usage: _ChatUsage | None) -> None:
        """Later counts replace earlier ones: they are cumulative."""
        if usage is None or (usage.prompt_tokens is None and usage.completion_tokens is None):
            return
        details = usage.prompt_tokens_details
        cached = (details.cached_tokens if details is not None else 0) or usage.prompt_cache_hit_tokens
        read = max(0, usage.prompt_tokens or 0)
        self._tokens = Tokens(
            read, max(0, usage.completion_tokens or 0), cache_read=max(0, min(read, cached or usage.cached_tokens or 0))
        )

    def _read_delta(self, delta: _ChatDelta) -> Iterator[str]:
        for text in (delta.content,) if delta.content else texts_of(delta.parts):
            if text:
                self._has_come = True
                yield text
        if delta.refusal:
            self._refused = self._has_come = True
            yield delta.refusal
        for piece in delta.tool_calls or ():
            function = piece.function or _FunctionPiece(
                piece.name, json_of(piece.arguments), piece.parameters, piece.input
            )
            self._has_come = True
            self._tool_calls.add(piece.index, piece.id or "", function.name or "", function.given(), piece.extra())
            yield PAUSE
        if delta.function_call is not None:
            self._has_come = True
            self._tool_calls.add(None, "", delta.function_call.name or "", delta.function_call.given())
        if delta.has_carried():
            for name in CARRIED:
                if value := getattr(delta, name):
                    self._memory.add(name, value)


def ending_of(
    said: str, calls: ToolCalls, memory: MemoryCollector, tokens: Tokens | None, model: str, *, refused: bool = False
) -> Ending:
    """Return the ending of a reply. Raise Unavailable where the provider says that the reply failed."""
    given = end_reason(said, has_calls=False, refused=refused)
    found = calls.with_extras(cut=given == "length")
    if given == "broken" and not (found and all(is_object(call.arguments) for call, _ in found)):
        raise broken(f"ended its reply as {said!r}")
    reason = end_reason(said, has_calls=bool(found), refused=refused)
    assert reason != "broken"
    return Ending(
        reason,
        tuple(call for call, _ in found),
        tokens,
        model,
        memory.collected([extra for _, extra in found]),
        said if reason == "unknown" else "",
    )


class _MessageUsage(Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None


class _Message(Struct):
    model: str | None = None
    usage: _MessageUsage | None = None


class _Block(Struct):
    type: str = ""
    id: str = ""
    name: str = ""
    text: str = ""
    input: Any = None
    thinking: str = ""
    signature: str = ""
    data: str = ""


class _MessageDelta(Struct):
    type: str = ""
    text: str = ""
    partial_json: str = ""
    stop_reason: str | None = None
    thinking: str = ""
    signature: str = ""


class _MessageEvent(Struct):
    type: str
    index: int | None = 0
    message: _Message | UnsetType = UNSET
    content_block: _Block | UnsetType = UNSET
    delta: _MessageDelta | UnsetType = UNSET
    usage: _MessageUsage | None = None
    error: Any = None


_message_event = msgspec.json.Decoder(_MessageEvent)


def _event_of(document: dict[str, Any]) -> _MessageEvent:
    """Return an event that is not in the documented form."""
    message, block, delta = (object_of(document.get(name)) for name in ("message", "content_block", "delta"))
    usage = object_of(message.get("usage"))
    kind = name_of(document.get("type"))
    error = document.get("error") or (document if kind == "error" else None)
    return _MessageEvent(
        "error" if error else kind,
        index_of(document.get("index")),
        _Message(name_of(message.get("model")), _message_usage_of(usage)),
        _Block(
            name_of(block.get("type")),
            name_of(block.get("id")),
            name_of(block.get("name")),
            text_of(block.get("text")),
            block.get("input"),
            text_of(block.get("thinking")),
            text_of(block.get("signature")),
            text_of(block.get("data")),
        ),
        _MessageDelta(
            name_of(delta.get("type")),
            text_of(delta.get("text")),
            json_of(delta.get("partial_json")),
            name_of(delta.get("stop_reason")),
            text_of(delta.get("thinking")),
            text_of(delta.get("signature")),
        ),
        _message_usage_of(object_of(document.get("usage"))),
        error,
    )


def _message_usage_of(usage: dict[str, Any]) -> _MessageUsage | None:
    names = _MessageUsage.__struct_fields__
    return _MessageUsage(*(count_of(usage.get(name)) for name in names)) if usage else None


def _text_of_event(payload: bytes) -> str:
    event = _message_event.decode(payload)
    if event.type != "content_block_delta" or event.delta is UNSET or event.delta.type in _NO_TEXT:
        return ""
    return event.delta.text


_NO_TEXT = ("input_json_delta", "thinking_delta", "signature_delta")


class MessagesReader(PayloadReader):
    """The stream of ``POST …/messages``."""

    def __init__(self) -> None:
        super().__init__()
        self._repeated = Repeated()
        self._usage = _MessageUsage()

    def _read_payloads(self, payloads: list[bytes]) -> Iterator[str]:
        repeated, begun = self._repeated, self._payloads.begun
        for payload in payloads:
            if not payload:
                if begun:
                    yield from self._read_otherwise(payload)
                continue
            if payload.startswith(repeated.head) and payload.endswith(repeated.tail):
                try:
                    text = decode_text(payload[repeated.start : repeated.end])
                except (msgspec.DecodeError, ValueError):
                    text = ""
                if text:
                    yield text
                    continue
            elif payload == b"[DONE]":
                self._done = True
                continue
            try:
                event = _message_event.decode(payload)
            except (msgspec.DecodeError, RecursionError, ValueError):
                yield from self._read_otherwise(payload)
                continue
            if event.type == "message":
                yield from self._read_otherwise(payload)
            else:
                text = self._read(event)
                if text and event.type == "content_block_delta":
                    repeated.learn(payload, TEXT, _text_of_event)
                yield text

    def _read_document(self, document: dict[str, Any]) -> Iterator[str]:
        if document.get("type") == "message" and isinstance(document.get("content"), list):
            yield from self._read_whole(document)
        else:
            yield self._read(_event_of(document))

    def _read_whole(self, message: dict[str, Any]) -> Iterator[str]:
        for index, block in enumerate(message["content"]):
            event = _event_of({"type": "content_block_start", "index": index, "content_block": object_of(block)})
            yield self._read(event)
        self._model = self._model or name_of(message.get("model"))
        self._use(_message_usage_of(object_of(message.get("usage"))))
        self._said = name_of(message.get("stop_reason")) or self._said
        self._done = True

    def _read(self, event: _MessageEvent) -> str:
        match event:
            case _MessageEvent(type="content_block_delta", delta=_MessageDelta(type="input_json_delta") as delta):
                self._tool_calls.add(event.index, "", "", delta.partial_json)
            case _MessageEvent(type="content_block_delta", delta=_MessageDelta(type="thinking_delta") as delta):
                self._memory.add_thinking(event.index, delta.thinking)
            case _MessageEvent(type="content_block_delta", delta=_MessageDelta(type="signature_delta") as delta):
                self._memory.add_signature(event.index, delta.signature)
            case _MessageEvent(type="content_block_delta", delta=_MessageDelta(text=text)):
                self._has_come = self._has_come or bool(text)
                return text
            case _MessageEvent(type="content_block_start", content_block=_Block(type="tool_use") as block):
                given = json_of(block.input) if block.input else ""
                self._tool_calls.begin(event.index, block.id, block.name, given)
                self._has_come = True
            case _MessageEvent(type="content_block_start", content_block=_Block(type="thinking") as block):
                self._memory.begin_thinking(event.index, block.thinking, block.signature)
            case _MessageEvent(type="content_block_start", content_block=_Block(type="redacted_thinking") as block):
                self._memory.add_redacted(block.data)
            case _MessageEvent(type="content_block_start", content_block=_Block(type="text", text=text)):
                self._has_come = self._has_come or bool(text)
                return text
            case _MessageEvent(type="message_start", message=_Message() as message):
                self._model = message.model or ""
                self._use(message.usage)
            case _MessageEvent(type="message_delta", delta=delta):
                self._said = (delta.stop_reason if delta is not UNSET else "") or self._said
                self._use(event.usage)
            case _MessageEvent(type="message_stop"):
                self._done = True
            case _MessageEvent(type="error") if not self.is_whole:
                raise failure_in_stream(event.error)
            case _:
                pass  # pings, citations, and what is yet to be invented: the versioning policy says to ignore it
        return ""

    def _use(self, usage: _MessageUsage | None) -> None:
        """Later counts replace earlier ones: they are cumulative."""
        if usage is None:
            return
        for field in _MessageUsage.__struct_fields__:
            count = getattr(usage, field)
            if count is not None:
                setattr(self._usage, field, max(0, count))

    def tokens(self) -> Tokens | None:
        usage = self._usage
        if usage.input_tokens is None:
            return None
        read, written = usage.cache_read_input_tokens or 0, usage.cache_creation_input_tokens or 0
        return Tokens(usage.input_tokens + read + written, usage.output_tokens or 0, read, written)
