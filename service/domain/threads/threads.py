"""A chat thread: messages that people posted, and the replies that the assistant gave."""

import hashlib
import hmac
from datetime import datetime
from typing import Annotated, Literal, assert_never

from msgspec import Meta, Struct
from msgspec.structs import replace

from service.domain.errors import Conflict, Invalid, NotFound
from service.domain.events import GONE, Event, PersonalText
from service.domain.model import Usage
from service.domain.search import SearchFilter
from service.domain.texts.unicode_forms import is_too_large
from service.domain.threads import feedback, recorded_reply
from service.domain.threads.feedback import GiveFeedback
from service.domain.threads.recorded_reply import (
    Caller,
    Reply,
    ReplyCommand,
    ReplyCompleted,
    ReplyNews,
    ReplyStarted,
    ReplyStopped,
)
from service.domain.threads.turns import Turns

MAX_QUESTION_CHARACTERS = 32_768
MAX_CONTEXT_CHARACTERS = 50_000
MAX_PATH_CHARACTERS = 200
MAX_FP_CHARACTERS = 200
DEFAULT_PAGE_SIZE = 5
MAX_PAGE_SIZE = 50
ANONYMOUS = "anonymous"
FOUND_NOTHING = "The search found nothing."
"""The reply on record for a search without results."""


class ContextItem(Struct, frozen=True, omit_defaults=True):
    """A part of the page that the reader had in view."""

    type: Literal["code", "textSelection"]
    value: str
    path: str | None = None
    element_id: str | None = None


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
    replaces: str = ""
    """The message that its writer has edited: that turn and all that followed it no longer count."""


ThreadEvent = ThreadStarted | MessagePosted | ReplyStarted | ReplyNews


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
    chat_id: str = ""
    asker: str = ""
    regenerates: bool = False
    """The client asks for another reply to a message that it sent before."""
    edits: bool = False
    """The client gives each message an id of its own: one that is known, with another text, is an edited message."""
    listed: int = 0
    """How many messages the client has in its chat, where too few of them ask for another reply; else 0."""
    is_public: bool = False
    """It came without a key."""
    features: tuple[str, ...] = ()
    """Further parts of the stream that the client asks for."""
    caller: Caller = ""


class RecordEmptySearch(Struct, frozen=True):
    """A program's search that found nothing: a question that the documentation does not answer.

    Its thread is complete at once. ``start.message.instance`` is empty, so that no process answers it.
    """

    start: StartThread


ThreadCommand = StartThread | PostMessage | RecordEmptySearch | ReplyCommand | GiveFeedback


class Turn(Struct, frozen=True):
    """A message and the reply to it."""

    message: MessagePosted
    reply: Reply | None = None


def _reply_id(turn: Turn) -> str:
    return "" if turn.reply is None else turn.reply.reply_id


def _message_id(turn: Turn) -> str:
    return turn.message.message_id


def _client_message_id(turn: Turn) -> str:
    return turn.message.client_message_id


class Absent(Struct, frozen=True):
    pass


class Thread(Struct, frozen=True):
    organization_id: str
    project_id: str
    domain: str
    fp: str
    key_digest: str
    turns: Turns[Turn] = Turns()
    is_public: bool = True
    """All its replies were asked for without a key."""

    def index_of(self, reply_id: str) -> int | None:
        """Return the index of the turn that has this reply now; None when no turn has it, or no longer."""
        return self.turns.last_index(_reply_id, reply_id)

    def turn_of(self, reply_id: str) -> Turn | None:
        index = self.index_of(reply_id)
        return None if index is None else self.turns[index]

    def index_of_message(self, message_id: str) -> int | None:
        return self.turns.last_index(_message_id, message_id)

    def index_asked(self, new: PostMessage) -> int | None:
        """Return the index of this message's turn when the message was sent before; None for a new one."""
        if new.client_message_id:
            index = self.turns.last_index(_client_message_id, new.client_message_id)
            if index is not None:
                return index if new.edits or self.turns[index].message.text == new.text else None
        last = len(self.turns) - 1
        if last >= 0 and _asks_again(new, last) and self.turns[last].message.text == new.text:
            return last
        return None


ThreadState = Absent | Thread


def decide(command: ThreadCommand, thread: ThreadState) -> list[ThreadEvent]:
    """Return the events of a command.

    Raises:
        NotFound: ``thread_not_found``, ``message_not_found``, or the reply is gone.
        Invalid: a message, ``fp`` or comment is blank or too long.
        Conflict: the thread exists already, or its state does not allow the command.
    """
    if isinstance(thread, Absent):
        if isinstance(command, StartThread):
            return _start(command)
        if isinstance(command, RecordEmptySearch):
            return _empty_search(command.start)
        raise _no_thread()
    match command:
        case StartThread() | RecordEmptySearch():
            raise Conflict("This thread exists already.")
        case PostMessage():
            if not may_write(thread, command.domain, command.fp, command.thread_key, key_required=command.key_required):
                raise _no_thread()
            if command.is_public and not thread.is_public:
                raise _no_thread()  # with a key its replies may have quoted pages that are not for everyone
            return _post_to(thread, command)
        case GiveFeedback(reply_id=reply_id):
            if thread.domain != command.domain or thread.fp in GONE:
                raise _no_thread()
            turn = thread.turn_of(reply_id)
            if turn is None or turn.reply is None:
                raise NotFound("Message not found: no reply in this thread has this id.", code="message_not_found")
            return [*feedback.decide(command, turn.reply.feedback)]
        case _:
            return _about_reply(command, thread)


def _start(new: StartThread) -> list[ThreadEvent]:
    if not 1 <= len(new.fp) <= MAX_FP_CHARACTERS:
        raise Invalid(f"fp has 1 to {MAX_FP_CHARACTERS} characters.")
    _check(new.message)
    started = ThreadStarted(new.organization_id, new.project_id, new.domain, new.fp, new.key_digest, new.message.now)
    return [started, *_post(new.message)]


def _empty_search(new: StartThread) -> list[ThreadEvent]:
    done = ReplyCompleted(
        new.message.reply_id, FOUND_NOTHING, (), "unanswered", "", Usage(cost_usd=0.0), completed_at=new.message.now
    )
    return [*_start(new), done]


def _no_thread() -> NotFound:
    return NotFound("Thread not found. Leave its id out to begin a new one.", code="thread_not_found")


def may_write(thread: Thread, domain: str, fp: str, thread_key: str | None, *, key_required: bool) -> bool:
    if thread.domain != domain or (thread.fp != ANONYMOUS and thread.fp != fp) or thread.fp in GONE:
        return False  # the replacement of an erased fp belongs to no one
    if thread_key is None:
        return not key_required
    return hmac.compare_digest(digest_of(thread_key), thread.key_digest)


def _post_to(thread: Thread, new: PostMessage) -> list[ThreadEvent]:
    _check(new)
    index = thread.index_asked(new)
    if index is None:
        return _post(new)
    asked, reply = thread.turns[index].message, thread.turns[index].reply
    if asked.text != new.text:
        return [*_stopped_from(thread, index, new.now), *_post(new, replaces=asked.message_id)]
    if reply is not None and reply.state in ("active", "completed") and not _asks_again(new, index):
        return []  # sent again: the same reply is sent again
    return [*_stopped_from(thread, index, new.now), _reply_to(new, asked.message_id)]


def _asks_again(new: PostMessage, index: int) -> bool:
    """A chat that ends with the question of that turn has two messages for each turn before it, and one more."""
    return new.regenerates or 0 < new.listed < 2 * (index + 1)


def _stopped_from(thread: Thread, index: int, now: datetime) -> list[ThreadEvent]:
    """The end of all replies under way that no longer count."""
    replaced = (thread.turns[at].reply for at in range(index, len(thread.turns)))
    return [ReplyStopped(reply.reply_id, "stopped", now) for reply in replaced if reply and reply.state == "active"]


def _check(new: PostMessage) -> None:
    if not new.text.strip() or is_too_large(new.text, MAX_QUESTION_CHARACTERS):
        grows = new.text.strip() and len(new.text) <= MAX_QUESTION_CHARACTERS
        form = ", also in Unicode's form NFKC, in which this one has more" if grows else ""
        raise Invalid(f"A question has 1 to {MAX_QUESTION_CHARACTERS} characters{form}.")
    if any(len(item.value) > MAX_CONTEXT_CHARACTERS for item in new.context):
        raise Invalid(f"A context value has at most {MAX_CONTEXT_CHARACTERS} characters.")
    if len(new.current_path) > MAX_PATH_CHARACTERS:
        raise Invalid(f"currentPath has at most {MAX_PATH_CHARACTERS} characters.")
    if not 1 <= new.page_size <= MAX_PAGE_SIZE:
        raise Invalid(f"retrievalPageSize is 1 to {MAX_PAGE_SIZE}.")


def _post(new: PostMessage, *, replaces: str = "") -> list[ThreadEvent]:
    return [
        MessagePosted(
            new.message_id, new.client_message_id, new.text, new.context, new.current_path, new.filter,
            new.page_size, new.api_version, posted_at=new.now, replaces=replaces,
        ),
        _reply_to(new, new.message_id),
    ]  # fmt: skip


def _reply_to(new: PostMessage, message_id: str) -> ReplyStarted:
    return ReplyStarted(
        new.reply_id, message_id, new.instance, new.now, new.chat_id, new.asker, new.is_public, new.features, new.caller
    )


def _about_reply(command: ReplyCommand, thread: Thread) -> list[ThreadEvent]:
    turn = thread.turn_of(command.reply_id)
    if turn is None or turn.reply is None:
        raise NotFound("Reply not found in this thread. Its message may have been edited or answered again.")
    return [*recorded_reply.decide(command, turn.reply)]


def evolve(thread: ThreadState, event: ThreadEvent) -> ThreadState:
    match event, thread:
        case ThreadStarted(), _:
            return Thread(event.organization_id, event.project_id, event.domain, event.fp, event.key_digest)
        case _, Absent():
            raise AssertionError(event)
        case MessagePosted(replaces=replaced), Thread():
            turns = thread.turns
            if replaced and (index := thread.index_of_message(replaced)) is not None:
                turns = turns.first(index)
            return replace(thread, turns=turns.with_next(Turn(event)))
        case ReplyStarted(message_id=message_id), Thread():
            index = thread.index_of_message(message_id)
            if index is None:
                return thread
            reply = Reply(
                event.reply_id, event.instance, chat_id=event.chat_id, asker=event.asker, is_public=event.is_public,
                features=event.features,
            )  # fmt: skip
            asked = thread.turns[index]
            turns = thread.turns if asked.reply is None else thread.turns.first(index + 1)
            turns = turns.with_changed(index, replace(asked, reply=reply))
            return replace(thread, turns=turns, is_public=thread.is_public and event.is_public)
        case _, Thread():
            return _with_reply(thread, event)
        case _:
            assert_never(event)


def _with_reply(thread: Thread, event: ReplyNews) -> Thread:
    index = thread.index_of(event.reply_id)
    if index is None:  # of a reply that no longer counts
        return thread
    turn = thread.turns[index]
    assert turn.reply is not None
    changed = replace(turn, reply=recorded_reply.evolve(turn.reply, event))
    return replace(thread, turns=thread.turns.with_changed(index, changed))


def digest_of(thread_key: str) -> str:
    return hashlib.sha256(thread_key.encode()).hexdigest()
