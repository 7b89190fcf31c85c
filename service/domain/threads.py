"""A chat thread: messages that people posted, and the replies that the assistant gave."""

import hashlib
import hmac
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import chain
from typing import Annotated, Literal, assert_never, overload

from msgspec import Meta, Struct
from msgspec.structs import replace

from service.domain.errors import Conflict, Invalid, NotFound
from service.domain.events import Event, PersonalText
from service.domain.model import Usage

MAX_QUESTION_CHARACTERS = 32_768
MAX_CONTEXT_CHARACTERS = 50_000
MAX_PATH_CHARACTERS = 200
MAX_FP_CHARACTERS = 200
DEFAULT_PAGE_SIZE = 5
MAX_PAGE_SIZE = 50
ANONYMOUS = "anonymous"

Resolution = Literal["answered", "unanswered"]
ReplyState = Literal["active", "completed", "stopped", "interrupted", "failed"]


class ContextItem(Struct, frozen=True, omit_defaults=True):
    """What the reader had in view."""

    type: Literal["code", "textSelection"]
    value: str
    path: str | None = None
    element_id: str | None = None


class SearchFilter(Struct, frozen=True, omit_defaults=True):
    """Which pages may be found."""

    version: str | None = None
    language: str | None = None
    tag: str | None = None
    groups: tuple[str, ...] = ()


class Source(Struct, frozen=True):
    """A passage that an answer was made from."""

    number: int
    """As the model cites it, from 1, in the order found; unique in a reply."""
    path: str
    url: str
    title: str
    heading: str
    start_line: int
    end_line: int
    commit: str


class ThreadStarted(Event, frozen=True, tag="thread-started"):
    organization_id: str
    project_id: str
    domain: str
    fp: PersonalText
    key_digest: str
    """SHA-256 of the thread key, in hex."""
    started_at: datetime


class MessagePosted(Event, frozen=True, tag="message-posted"):
    message_id: str
    client_message_id: PersonalText
    """As the client named it; empty when it did not."""
    text: PersonalText
    context: Annotated[tuple[ContextItem, ...], Meta(extra={"personal": []})]
    current_path: PersonalText
    filter: SearchFilter
    page_size: int
    api_version: Literal[1, 2]
    posted_at: datetime


class ReplyStarted(Event, frozen=True, tag="reply-started"):
    """``instance`` answers it, and no other."""

    reply_id: str
    message_id: str
    instance: str
    started_at: datetime


class SourcesFound(Event, frozen=True, tag="sources-found"):
    reply_id: str
    query: PersonalText
    sources: tuple[Source, ...]
    """Those that this search added."""


class ReplyWritten(Event, frozen=True, tag="reply-written"):
    """A coalesced segment of the text, about every 250 ms of it."""

    reply_id: str
    text: PersonalText


class ReplyCompleted(Event, frozen=True, tag="reply-completed"):
    reply_id: str
    text: PersonalText
    cited: tuple[int, ...]
    resolution: Resolution
    model: str
    usage: Usage
    completed_at: datetime


class ReplyStopped(Event, frozen=True, tag="reply-stopped"):
    """It ended before its end: the reader went away, or the process that wrote it did. What was written stays."""

    reply_id: str
    reason: Literal["stopped", "interrupted"]
    stopped_at: datetime


class ReplyFailed(Event, frozen=True, tag="reply-failed"):
    reply_id: str
    code: str
    message: str
    failed_at: datetime


ThreadEvent = (
    ThreadStarted
    | MessagePosted
    | ReplyStarted
    | SourcesFound
    | ReplyWritten
    | ReplyCompleted
    | ReplyStopped
    | ReplyFailed
)


class StartThread(Struct, frozen=True):
    """Its first message comes with it."""

    organization_id: str
    project_id: str
    domain: str
    fp: str
    key_digest: str
    message: "PostMessage"


class PostMessage(Struct, frozen=True):
    message_id: str
    client_message_id: str
    text: str
    context: tuple[ContextItem, ...]
    current_path: str
    filter: SearchFilter
    page_size: int
    api_version: Literal[1, 2]
    reply_id: str
    instance: str
    domain: str
    fp: str
    now: datetime
    thread_key: str | None = None
    key_required: bool = False


class RecordSources(Struct, frozen=True):
    reply_id: str
    query: str
    sources: tuple[Source, ...]


class RecordText(Struct, frozen=True):
    reply_id: str
    text: str


class CompleteReply(Struct, frozen=True):
    reply_id: str
    text: str
    cited: tuple[int, ...]
    resolution: Resolution
    model: str
    usage: Usage
    now: datetime


class StopReply(Struct, frozen=True):
    reply_id: str
    reason: Literal["stopped", "interrupted"]
    now: datetime


class FailReply(Struct, frozen=True):
    reply_id: str
    code: str
    message: str
    now: datetime


ThreadCommand = StartThread | PostMessage | RecordSources | RecordText | CompleteReply | StopReply | FailReply


class Reply(Struct, frozen=True):
    reply_id: str
    instance: str
    state: ReplyState = "active"
    text: str = ""
    sources: tuple[Source, ...] = ()


class Turn(Struct, frozen=True):
    """A message and the reply to it."""

    message: MessagePosted
    reply: Reply | None = None


class Turns(Sequence[Turn]):
    """The turns of a thread, oldest first; never changed in place.

    In chunks, so that a long thread is not copied for each event: ``with_next`` and ``with_changed`` copy one chunk and
    the list of chunks.
    """

    __slots__ = ("_chunks", "_last")
    _SIZE = 64

    def __init__(self, chunks: tuple[tuple[Turn, ...], ...] = (), last: tuple[Turn, ...] = ()) -> None:
        self._chunks, self._last = chunks, last

    def with_next(self, turn: Turn) -> "Turns":
        if len(self._last) < self._SIZE:
            return Turns(self._chunks, (*self._last, turn))
        return Turns((*self._chunks, self._last), (turn,))

    def with_changed(self, index: int, turn: Turn) -> "Turns":
        """With another turn at an index from 0."""
        number, at = divmod(index, self._SIZE)
        if number == len(self._chunks):
            return Turns(self._chunks, (*self._last[:at], turn, *self._last[at + 1 :]))
        chunk = self._chunks[number]
        changed = (*chunk[:at], turn, *chunk[at + 1 :])
        return Turns((*self._chunks[:number], changed, *self._chunks[number + 1 :]), self._last)

    def __len__(self) -> int:
        return len(self._chunks) * self._SIZE + len(self._last)

    @overload
    def __getitem__(self, index: int) -> Turn: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Turn, ...]: ...
    def __getitem__(self, index: int | slice) -> Turn | tuple[Turn, ...]:
        if isinstance(index, slice):
            return tuple(self)[index]
        number, at = divmod(range(len(self))[index], self._SIZE)
        return self._last[at] if number == len(self._chunks) else self._chunks[number][at]

    def __iter__(self) -> Iterator[Turn]:
        return chain(*self._chunks, self._last)

    def __reversed__(self) -> Iterator[Turn]:
        return chain(reversed(self._last), *map(reversed, reversed(self._chunks)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Turns) and (self._chunks, self._last) == (other._chunks, other._last)

    def __hash__(self) -> int:
        return hash((self._chunks, self._last))


class Absent(Struct, frozen=True):
    pass


class Thread(Struct, frozen=True):
    organization_id: str
    project_id: str
    domain: str
    fp: str
    key_digest: str
    turns: Turns = Turns()

    def turn_of(self, reply_id: str) -> Turn | None:
        return next((t for t in reversed(self.turns) if t.reply is not None and t.reply.reply_id == reply_id), None)


ThreadState = Absent | Thread


def decide(command: ThreadCommand, thread: ThreadState) -> list[ThreadEvent]:
    match command, thread:
        case StartThread(message=message) as new, Absent():
            if not 1 <= len(new.fp) <= MAX_FP_CHARACTERS:
                raise Invalid(f"fp has 1 to {MAX_FP_CHARACTERS} characters.")
            started = ThreadStarted(
                new.organization_id, new.project_id, new.domain, new.fp, new.key_digest, started_at=message.now
            )
            return [started, *_post(message)]
        case StartThread(), Thread():
            raise Conflict("This thread exists already.")
        case _, Absent():
            raise _no_thread()
        case PostMessage(), Thread():
            if not _may_post(command, thread):
                raise _no_thread()
            return _post(command)
        case ((RecordSources() | RecordText() | CompleteReply() | StopReply() | FailReply()), Thread()):
            return _about_reply(command, thread)
        case _:
            raise AssertionError(command)


def _no_thread() -> NotFound:
    return NotFound("There is no such thread.", code="thread_not_found")


def _may_post(command: PostMessage, thread: Thread) -> bool:
    if thread.domain != command.domain or (thread.fp != ANONYMOUS and thread.fp != command.fp):
        return False
    if command.thread_key is None:
        return not command.key_required
    return hmac.compare_digest(digest_of(command.thread_key), thread.key_digest)


def _post(new: PostMessage) -> list[ThreadEvent]:
    if not new.text.strip() or len(new.text) > MAX_QUESTION_CHARACTERS:
        raise Invalid(f"A question has 1 to {MAX_QUESTION_CHARACTERS} characters.")
    if any(len(item.value) > MAX_CONTEXT_CHARACTERS for item in new.context):
        raise Invalid(f"A context value has at most {MAX_CONTEXT_CHARACTERS} characters.")
    if len(new.current_path) > MAX_PATH_CHARACTERS:
        raise Invalid(f"currentPath has at most {MAX_PATH_CHARACTERS} characters.")
    if not 1 <= new.page_size <= MAX_PAGE_SIZE:
        raise Invalid(f"retrievalPageSize is 1 to {MAX_PAGE_SIZE}.")
    return [
        MessagePosted(
            new.message_id, new.client_message_id, new.text, new.context, new.current_path, new.filter,
            new.page_size, new.api_version, posted_at=new.now,
        ),
        ReplyStarted(new.reply_id, new.message_id, new.instance, started_at=new.now),
    ]  # fmt: skip


def _about_reply(
    command: RecordSources | RecordText | CompleteReply | StopReply | FailReply, thread: Thread
) -> list[ThreadEvent]:
    turn = thread.turn_of(command.reply_id)
    if turn is None or turn.reply is None:
        raise NotFound("There is no such reply.")
    if turn.reply.state != "active":
        if isinstance(command, StopReply | FailReply):
            return []  # it has ended by itself
        raise Conflict("This reply has ended.")
    match command:
        case RecordSources(reply_id=reply_id, query=query, sources=sources):
            return [SourcesFound(reply_id, query, sources)]
        case RecordText(reply_id=reply_id, text=text):
            return [ReplyWritten(reply_id, text)] if text else []
        case CompleteReply() as done:
            return [
                ReplyCompleted(
                    done.reply_id, done.text, done.cited, done.resolution, done.model, done.usage, completed_at=done.now
                )
            ]
        case StopReply(reply_id=reply_id, reason=reason, now=now):
            return [ReplyStopped(reply_id, reason, stopped_at=now)]
        case FailReply(reply_id=reply_id, code=code, message=message, now=now):
            return [ReplyFailed(reply_id, code, message, failed_at=now)]
        case _:
            assert_never(command)


def evolve(thread: ThreadState, event: ThreadEvent) -> ThreadState:
    match event, thread:
        case ThreadStarted(), _:
            return Thread(event.organization_id, event.project_id, event.domain, event.fp, event.key_digest)
        case _, Absent():
            raise AssertionError(event)
        case MessagePosted(), Thread():
            return replace(thread, turns=thread.turns.with_next(Turn(event)))
        case ReplyStarted(reply_id=reply_id, message_id=message_id, instance=instance), Thread():
            for back, asked in enumerate(reversed(thread.turns), start=1):  # nearly always the last one
                if asked.message.message_id == message_id:
                    changed = replace(asked, reply=Reply(reply_id, instance))
                    return replace(thread, turns=thread.turns.with_changed(len(thread.turns) - back, changed))
            return thread
        case SourcesFound(reply_id=reply_id, sources=sources), Thread():
            turn = _reply(thread, reply_id)
            return _with_reply(thread, replace(turn, sources=(*turn.sources, *sources)))
        case ReplyWritten(reply_id=reply_id, text=text), Thread():
            turn = _reply(thread, reply_id)
            return _with_reply(thread, replace(turn, text=turn.text + text))
        case ReplyCompleted(reply_id=reply_id, text=text), Thread():
            return _with_reply(thread, replace(_reply(thread, reply_id), state="completed", text=text))
        case ReplyStopped(reply_id=reply_id, reason=reason), Thread():
            return _with_reply(thread, replace(_reply(thread, reply_id), state=reason))
        case ReplyFailed(reply_id=reply_id), Thread():
            return _with_reply(thread, replace(_reply(thread, reply_id), state="failed"))
        case _:
            assert_never(event)


def _reply(thread: Thread, reply_id: str) -> Reply:
    turn = thread.turn_of(reply_id)
    assert turn is not None
    assert turn.reply is not None
    return turn.reply


def _with_reply(thread: Thread, reply: Reply) -> Thread:
    for back, turn in enumerate(reversed(thread.turns), start=1):  # nearly always the last one
        if turn.reply is not None and turn.reply.reply_id == reply.reply_id:
            changed = replace(turn, reply=reply)
            return replace(thread, turns=thread.turns.with_changed(len(thread.turns) - back, changed))
    return thread


def digest_of(thread_key: str) -> str:
    return hashlib.sha256(thread_key.encode()).hexdigest()
