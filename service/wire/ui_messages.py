r"""Reply events to the UI message stream of AI SDK 5, 6 and 7 (the v2 assistant endpoint). No I/O.

Facts, each measured with the packages from npm:

- Up to 5.0.216, 6.0.230 and 7.0.31 every chunk is checked with ``strictObject``: an unknown key, an unknown type or a
  ``null`` for an optional field ends the reply there with an error. So the vocabulary is that of 5.0.0, and absent
  fields are left out.
- ``finish`` may carry nothing but ``messageMetadata`` there, yet raw readers look for ``threadId`` on an event whose
  type is ``finish``. One event serves both: CR ends a line in server-sent events, so a parser reads a comment and three
  ``data`` lines, joined to a valid chunk, while code that splits on LF sees exactly one line that begins with
  ``data: ``, and it holds the documented event (``_wrapped_finish``).
- A program that parses server-sent events by the specification and wants ``threadId`` at the top level cannot be served
  by the same bytes. Those that cannot be an AI SDK client get the plain form (``is_plain_reader``). Not a reason to
  choose it: the ``Accept`` header, no ``trigger`` in the body, ``ai-sdk/`` in the User-Agent; public integrations send
  real clients through all of them.
- The search is a static tool with ``providerExecuted``, else ``onToolCall`` fires in the page, and in a step of its
  own, else ``sendAutomaticallyWhen`` of 5.0.0 asks again after every answer.
- After ``error`` the client reads no further and keeps the text so far. Anything parseable after ``[DONE]`` is still
  checked, so nothing follows it.
- ``id:`` and ``event:`` lines are ignored by the SDK, but not by readers that split on blank lines: never sent.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, assert_never

from msgspec import UNSET, Meta, Struct, UnsetType

from service.domain.threads.replies import (
    ReplyBroken,
    ReplyDone,
    ReplyEvent,
    ReplyOpened,
    ReplyWaiting,
    SearchFinished,
    SearchStarted,
    SentencesChecked,
    TextDelta,
)
from service.wire.checks import Checks, checks_of
from service.wire.jsontext import json_line
from service.wire.search_output import SEARCH, SearchInput, SearchOutput, new_pages, search_output
from service.wire.waiting import Waiting, waiting

HEADERS: Mapping[str, str] = MappingProxyType(
    {
        "Content-Type": "text/event-stream; charset=utf-8",
        "x-vercel-ai-ui-message-stream": "v1",
        "Cache-Control": "no-cache, no-transform",
        "X-Accel-Buffering": "no",
    }
)
THREAD_ID_HEADER = "X-Thread-Id"
THREAD_KEY_HEADER = "X-Thread-Key"
"""Sent with a thread's first reply only. The key is never in the stream: clients send metadata back."""
MESSAGE_ID_HEADER = "X-Message-Id"
"""In a request, the client's own id of its message, where the body has none; in an answer, the id of the reply."""

KEEP_ALIVE = b": ping\n\n"
"""A comment; every version skips it."""

_PLAIN_READERS = ("curl/", "Wget/", "python-", "Python/", "Go-http-client/", "HTTPie/", "PostmanRuntime/")


def is_plain_reader(user_agent: str, *, body_has_trigger: bool) -> bool:
    """Return whether the caller cannot be an AI SDK client, and so gets the plain ``finish``.

    ``body_has_trigger``: the request body has a string ``trigger``, as every SDK transport sends it.
    """
    return not body_has_trigger and user_agent.startswith(_PLAIN_READERS)


CHECKS = "data-docsmith-check"
"""With an id: a later one replaces the part in the message."""
WAITING = "data-docsmith-waiting"
"""Transient: ``onData`` gets it, and the message does not."""
CHUNKS: Mapping[str, str] = {
    "start": "The reply's id and the thread's.",
    "start-step": "A step begins: a search, or the text.",
    "tool-input-start": "A search begins.",
    "tool-input-available": "The words that are searched for.",
    "tool-output-available": "The passages that were found.",
    "tool-output-error": "The search failed.",
    "source-url": "A page that passages are from.",
    WAITING: "The model's provider is busy, and is asked again in `seconds`; to be shown, no part of the message.",
    "text-start": "Text begins.",
    "text-delta": "More of the text.",
    "text-end": "The text ends.",
    "finish-step": "The step ends.",
    CHECKS: "The verdicts on the sentences so far, for a body with `features` `checks`; it replaces the one before.",
    "error": "The reply broke off; what came before it stays.",
    "finish": "The reply is whole.",
}
"""Type to meaning: for the API's description, as ``EXAMPLE`` and ``UiChunk``. A test compares what is written."""
EXAMPLE = """\
data: {"type":"start","messageId":"msg_4da30a87","messageMetadata":{"threadId":"kq3vN0tq"}}

data: {"type":"start-step"}

data: {"type":"text-start","id":"t1"}

data: {"type":"text-delta","id":"t1","delta":"Run "}

data: {"type":"text-end","id":"t1"}

data: {"type":"finish-step"}

data: {"type":"finish","threadId":"kq3vN0tq","messageMetadata":{"threadId":"kq3vN0tq"}}

data: [DONE]

"""


class ThreadMetadata(Struct, frozen=True, rename="camel"):
    """Which thread a reply is in, and why its text ends."""

    thread_id: Annotated[str | UnsetType, Meta(description="The thread's id.")] = UNSET
    finish_reason: Annotated[
        str | UnsetType,
        Meta(
            description="`finish`: why the model wrote no more, where its text is not whole. `error`: it failed, and "
            "the text ends with passages that were found. `other`: its provider gave a reason that is not known.",
            extra_json_schema={"enum": ["length", "content-filter", "error", "other"]},
        ),
    ] = UNSET
    failure: Annotated[
        str | UnsetType,
        Meta(description="`finish`: how the assistant is where its model failed, such as `assistant_busy`."),
    ] = UNSET
    uncited: Annotated[bool | UnsetType, Meta(description="`finish`: `true` for an answer that cites no passage.")] = (
        UNSET
    )


class UiChunk(Struct, frozen=True, rename="camel"):
    """A chunk of a reply, as the AI SDK 5 and later have it. Its fields depend on its type."""

    type: Annotated[str, Meta(description="What it is.", extra_json_schema={"enum": list(CHUNKS)})]
    message_id: Annotated[str | UnsetType, Meta(description="`start`: the reply's id, which feedback names.")] = UNSET
    message_metadata: Annotated[
        ThreadMetadata | UnsetType, Meta(description="`start`, `finish`: which thread the reply is in.")
    ] = UNSET
    thread_id: Annotated[
        str | UnsetType, Meta(description="`finish`: the thread's id, for readers that are no client of the AI SDK.")
    ] = UNSET
    id: Annotated[
        str | UnsetType, Meta(description="`text-…`: which text. `data-docsmith-check`: always the same.")
    ] = UNSET
    delta: Annotated[str | UnsetType, Meta(description="`text-delta`: the next part of the text.")] = UNSET
    tool_call_id: Annotated[str | UnsetType, Meta(description="`tool-…`: which search.")] = UNSET
    tool_name: Annotated[str | UnsetType, Meta(description="`tool-input-…`: `search`.")] = UNSET
    provider_executed: Annotated[
        bool | UnsetType, Meta(description="`tool-…`: there is nothing for the client to do.")
    ] = UNSET
    input: Annotated[dict[str, Any] | UnsetType, Meta(description="`tool-input-available`: the `query`.")] = UNSET
    output: Annotated[
        dict[str, Any] | UnsetType,
        Meta(description="`tool-output-available`: the passages, as `results`, numbered as cited."),
    ] = UNSET
    source_id: Annotated[str | UnsetType, Meta(description="`source-url`: its name in this reply.")] = UNSET
    url: Annotated[
        Annotated[str, Meta(extra_json_schema={"format": "uri-reference"})] | UnsetType,
        Meta(description="`source-url`: the page's address."),
    ] = UNSET
    title: Annotated[str | UnsetType, Meta(description="`source-url`: the page's title.")] = UNSET
    data: Annotated[
        Waiting | Checks | UnsetType,
        Meta(description="`data-docsmith-waiting`: for how long. `data-docsmith-check`: the verdicts so far."),
    ] = UNSET
    transient: Annotated[
        bool | UnsetType, Meta(description="`data-…`: `true` where it is not a part of the message.")
    ] = UNSET
    error_text: Annotated[
        str | UnsetType, Meta(description="`error`, `tool-output-error`: what went wrong, as a sentence.")
    ] = UNSET


class SseEvent(Struct, frozen=True):
    """One server-sent event: what a parser makes of it, and its exact bytes."""

    data: str
    raw: bytes


class _Chunk(Struct, frozen=True, tag_field="type", rename="camel"):
    pass


class _Metadata(Struct, frozen=True, rename="camel"):
    thread_id: str
    finish_reason: str | UnsetType = UNSET
    uncited: bool | UnsetType = UNSET
    failure: str | UnsetType = UNSET


class _Start(_Chunk, frozen=True, tag="start"):
    message_id: str
    message_metadata: _Metadata


class _StartStep(_Chunk, frozen=True, tag="start-step"):
    pass


class _FinishStep(_Chunk, frozen=True, tag="finish-step"):
    pass


class _TextStart(_Chunk, frozen=True, tag="text-start"):
    id: str


class _TextDelta(_Chunk, frozen=True, tag="text-delta"):
    id: str
    delta: str


class _TextEnd(_Chunk, frozen=True, tag="text-end"):
    id: str


class _ToolInputStart(_Chunk, frozen=True, tag="tool-input-start"):
    tool_call_id: str
    tool_name: str = SEARCH
    provider_executed: bool = True


class _ToolInputAvailable(_Chunk, frozen=True, tag="tool-input-available", kw_only=True):
    tool_call_id: str
    tool_name: str = SEARCH
    input: SearchInput
    provider_executed: bool = True


class _ToolOutputAvailable(_Chunk, frozen=True, tag="tool-output-available"):
    tool_call_id: str
    output: SearchOutput
    provider_executed: bool = True


class _ToolOutputError(_Chunk, frozen=True, tag="tool-output-error"):
    tool_call_id: str
    error_text: str
    provider_executed: bool = True


class _SourceUrl(_Chunk, frozen=True, tag="source-url"):
    source_id: str
    url: str
    title: str | UnsetType = UNSET


class _Waiting(_Chunk, frozen=True, tag=WAITING):
    data: Waiting
    transient: bool = True


class _Checks(_Chunk, frozen=True, tag=CHECKS):
    data: Checks
    id: str = "checks"
    """One for the whole reply: clients replace the part by it."""


class _Error(_Chunk, frozen=True, tag="error"):
    error_text: str


class _PlainFinish(_Chunk, frozen=True, tag="finish"):
    thread_id: str
    message_metadata: _Metadata


class _DocumentedFinish(_Chunk, frozen=True, tag="finish"):
    thread_id: str
    finish_reason: str | UnsetType = UNSET
    uncited: bool | UnsetType = UNSET
    failure: str | UnsetType = UNSET


_DONE = SseEvent("[DONE]", b"data: [DONE]\n\n")


class UiMessageEncoder:
    """Encodes one reply for one reader. Feed it the reply's events in order, each once.

    ``events`` gives whole server-sent events; ``encode`` and ``data`` are the same as bytes and as strings.
    """

    def __init__(self, *, plain: bool = False, has_checks: bool = False) -> None:
        """``plain``: send the plain ``finish`` (``is_plain_reader``); ``has_checks``: send the sentences' verdicts."""
        self._plain, self._has_checks = plain, has_checks
        self._thread_id = ""
        self._step_is_open = False
        self._text_id = ""
        self._before_delta = b""
        self._texts = 0
        self._calls: list[str] = []
        self._told: dict[str, None] = {}
        """Pages that were sent, in order; an empty set takes three times the memory."""

    def encode(self, event: ReplyEvent) -> list[bytes]:
        if self._text_id and isinstance(event, TextDelta) and event.text:  # nearly all: the same as below, in one go
            return [b"".join((self._before_delta, json_line(event.text), b"}\n\n"))]
        return [one.raw for one in self.events(event)]

    def data(self, event: ReplyEvent) -> list[str]:
        return [one.data for one in self.events(event)]

    def events(self, event: ReplyEvent) -> list[SseEvent]:
        match event:
            case ReplyOpened(thread_id=thread_id, reply_id=reply_id):
                self._thread_id = thread_id
                return _ordinary([_Start(reply_id, _Metadata(thread_id))])
            case SearchStarted(call_id=call_id, query=query):
                return _ordinary(self._search_started(call_id, query))
            case SearchFinished():
                return _ordinary(self._search_finished(event))
            case TextDelta(text=text):
                return _ordinary(self._text(text))
            case ReplyWaiting(seconds=seconds):
                return _ordinary([_Waiting(waiting(seconds))])
            case SentencesChecked(checks=checks):
                return _ordinary([_Checks(checks_of(checks))]) if self._has_checks else []
            case ReplyDone():
                return [*_ordinary(self._end_step()), self._finish(event), _DONE]
            case ReplyBroken(message=message):
                failed: list[_Chunk] = [_ToolOutputError(call_id, message) for call_id in self._calls]
                self._calls.clear()
                return [*_ordinary([*failed, *self._end_step(), _Error(message)]), _DONE]
            case _:
                assert_never(event)

    def _search_started(self, call_id: str, query: str) -> list[_Chunk]:
        chunks = self._end_step() if self._text_id else []
        chunks += self._begin_step()
        self._calls.append(call_id)
        return [*chunks, _ToolInputStart(call_id), _ToolInputAvailable(tool_call_id=call_id, input=SearchInput(query))]

    def _search_finished(self, found: SearchFinished) -> list[_Chunk]:
        chunks: list[_Chunk] = []
        if found.call_id not in self._calls:  # the reader came when the search was over
            chunks += self._search_started(found.call_id, found.query)
        self._calls.remove(found.call_id)
        chunks.append(_ToolOutputAvailable(found.call_id, search_output(found.hits)))
        for url, title in new_pages(found.sources, self._told):
            chunks.append(_SourceUrl(f"s{len(self._told)}", url, title or UNSET))
        return chunks if self._calls else [*chunks, *self._end_step()]

    def _text(self, text: str) -> list[_Chunk]:
        if not text:
            return []
        chunks: list[_Chunk] = []
        if not self._text_id:
            self._texts += 1
            chunks += self._end_step()
            chunks += self._begin_step()
            self._text_id = f"t{self._texts}"
            self._before_delta = _event(json_line(_TextDelta(self._text_id, ""))).removesuffix(b'""}\n\n')
            chunks.append(_TextStart(self._text_id))
        return [*chunks, _TextDelta(self._text_id, text)]

    def _begin_step(self) -> list[_Chunk]:
        if self._step_is_open:
            return []
        self._step_is_open = True
        return [_StartStep()]

    def _end_step(self) -> list[_Chunk]:
        if not self._step_is_open:
            return []
        chunks: list[_Chunk] = [_TextEnd(self._text_id)] if self._text_id else []
        self._step_is_open, self._text_id = False, ""
        return [*chunks, _FinishStep()]

    def _finish(self, done: ReplyDone) -> SseEvent:
        """The reason goes into the metadata, where every version takes it: as a field of the chunk the first ones of 5
        refuse it.
        """
        reason = UNSET if done.finish_reason == "stop" else done.finish_reason.replace("_", "-")
        uncited, failure = True if done.uncited else UNSET, done.failure or UNSET
        if self._plain:
            return _ordinary([_PlainFinish(self._thread_id, _Metadata(self._thread_id, reason, uncited, failure))])[0]
        return _wrapped_finish(json_line(_DocumentedFinish(self._thread_id, reason, uncited, failure)))


def _event(data: bytes) -> bytes:
    return b"data: " + data + b"\n\n"


def _ordinary(chunks: list[_Chunk]) -> list[SseEvent]:
    lines = [json_line(chunk) for chunk in chunks]
    return [SseEvent(line.decode(), _event(line)) for line in lines]


def _wrapped_finish(documented: bytes) -> SseEvent:
    """The documented event on a line of its own, inside a chunk that every version accepts."""
    before, after = b'{"type":"finish","messageMetadata":', b"}"
    return SseEvent(
        b"\n".join([before, documented, after]).decode(),
        b": \rdata:" + before + b"\ndata: " + documented + b"\n: \rdata:" + after + b"\n\n",
    )
