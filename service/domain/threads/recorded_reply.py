"""A reply on record, and the part of a thread's decisions that is about one reply."""

from datetime import datetime
from typing import Annotated, Literal, assert_never

from msgspec import Meta, Struct
from msgspec.structs import replace

from service.domain.errors import Conflict
from service.domain.events import Event, PersonalText
from service.domain.model import Usage
from service.domain.search import Source
from service.domain.threads import feedback
from service.domain.threads.checks import ReplyChecks
from service.domain.threads.feedback import Feedback, FeedbackGiven

Resolution = Literal["answered", "unanswered"]
Outcome = Literal["answered", "unsure", "unanswered", "failed"]
"""The end of a question. ``unsure``: the nearest passages were shown, and may answer it; its resolution is
``unanswered``, but it is no gap of the documentation. ``failed``: there is no whole answer; the reply failed, or was
stopped, interrupted or filtered, or its model failed.
"""
FinishReason = Literal["stop", "length", "content_filter", "error", "other"]
"""Why the model wrote no more. ``error``: it failed, and passages stand in for its answer. ``other``: its provider gave
a reason that is not known, so the answer may not be whole.
"""
MAX_RESUMES = 2
"""How often a reply goes on after a crash of its process: each time its model is paid once more."""
MAX_HANDOVERS = 8
"""How often it goes on, besides, after a process that has left it in good order, as each does in an upgrade."""
Caller = Literal["", "web", "api", "mcp", "terminal"]
"""The kind of client that asked: a page in a browser, a program, an MCP client, or ``docsmith ask``; empty for what was
asked before this was recorded.
"""
ReplyState = Literal["active", "completed", "stopped", "interrupted", "failed"]


class ReplyStarted(Event, frozen=True, tag="reply-started"):
    """``instance`` answers it, and no other.

    Where the message had a reply, this one takes its place, and the turns after it no longer count.
    """

    reply_id: str
    message_id: str
    instance: str
    started_at: datetime
    chat_id: PersonalText = ""
    """The client's own name for its chat; empty when it did not send one."""
    asker: PersonalText = ""
    """A digest of what is known about the reader who asked: one who resumes by the chat's name alone must match it."""
    is_public: bool = False
    """Asked without a key, of a public site."""
    features: tuple[str, ...] = ()
    """Further parts of the stream that its client asked for: one that resumes it gets them again."""
    caller: Caller = ""


class SourcesFound(Event, frozen=True, tag="sources-found"):
    reply_id: str
    query: PersonalText
    sources: tuple[Source, ...]
    """Those that this search added."""
    planned_by: str = ""
    """The model that planned the search; empty for one that was not planned."""
    planned: Annotated[tuple[str, ...], Meta(extra={"personal": []})] = ()
    """The queries that were searched for besides."""
    expected: Annotated[tuple[str, ...], Meta(extra={"personal": []})] = ()
    """The pages that were expected to answer, by title or path."""


class CallEnd(Struct, frozen=True, omit_defaults=True):
    """The end of one call of the model: what the call cost is known then."""

    reason: str
    model: str
    usage: Usage
    prompts: str = ""
    """The hash of the assistant's prompts and tools; empty from before it was recorded."""


class ReplyWritten(Event, frozen=True, tag="reply-written"):
    """A coalesced segment of the text, of 250 ms or so; of up to a second where very many replies are given at once."""

    reply_id: str
    text: PersonalText
    thinking: PersonalText = ""
    """The model's reasoning meanwhile. It is not part of the answer: it is recorded, and shown to no reader."""
    raw: Annotated[str | None, Meta(extra={"personal": None})] = None
    """The model's own words behind the text, with its citations as numbers; None: they are the same."""
    call: CallEnd | None = None
    """The call of the model that ends here."""
    is_left: bool = False
    """The process that wrote it stops, and leaves the reply to another one."""


class ReplyResumed(Event, frozen=True, tag="reply-resumed"):
    """The process that wrote it has ended: ``instance`` goes on with it where its record ends, and no other does."""

    reply_id: str
    instance: str
    count: int
    """How often it went on, this time included."""
    resumed_at: datetime


class ModelTrouble(Struct, frozen=True, omit_defaults=True):
    """Why the model of a reply failed: for operators, and for no reader."""

    model: str
    """As the settings name it."""
    code: str
    reason: str
    """The provider's words, perhaps with some of the prompt."""


class ReplyCompleted(Event, frozen=True, tag="reply-completed"):
    reply_id: str
    text: PersonalText
    cited: tuple[int, ...]
    resolution: Resolution
    model: str
    usage: Usage
    completed_at: datetime
    finish_reason: FinishReason = "stop"
    uncited: bool = False
    """Whether it answers, but cites no passage: nothing shows what it stands on."""
    checks: Annotated[ReplyChecks | None, Meta(extra={"personal": None})] = None
    """The verdicts on its sentences; None for a reply that was not checked."""
    first_text_at: datetime | None = None
    """When the first of its text was sent to its readers; None for a reply that another process began."""
    unsure: bool = False
    """Whether it shows the nearest passages, which may answer the question, where no passage surely does."""
    failure: str = ""
    """The code of what its readers learned where its model failed and passages stand in."""
    trouble: Annotated[ModelTrouble | None, Meta(extra={"personal": None})] = None

    @property
    def outcome(self) -> Outcome:
        if self.finish_reason in ("content_filter", "error"):
            return "failed"
        return "unsure" if self.unsure else self.resolution


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
    trouble: Annotated[ModelTrouble | None, Meta(extra={"personal": None})] = None
    """Where its model failed."""


class ReaderLeft(Event, frozen=True, tag="reader-left"):
    """The last reader's connection ended before the reply was complete; the reply goes on for a while."""

    reply_id: str
    left_at: datetime


class ReaderReturned(Event, frozen=True, tag="reader-returned"):
    """A reader is there again, or has now received a reply that had ended without one."""

    reply_id: str
    returned_at: datetime


ReplyNews = (
    SourcesFound | ReplyWritten | ReplyResumed | ReplyCompleted | ReplyStopped | ReplyFailed
    | ReaderLeft | ReaderReturned | FeedbackGiven
)  # fmt: skip
"""Events of a reply that has begun."""


class RecordSources(Struct, frozen=True):
    reply_id: str
    query: str
    sources: tuple[Source, ...]
    planned_by: str = ""
    planned: tuple[str, ...] = ()
    expected: tuple[str, ...] = ()
    giver: str = ""
    """The instance that gives the reply as far as it knows: refused once another goes on with it; empty: any."""


class RecordText(Struct, frozen=True):
    reply_id: str
    text: str
    thinking: str = ""
    raw: str | None = None
    call: CallEnd | None = None
    giver: str = ""
    """As ``RecordSources`` has it."""
    is_left: bool = False
    """As ``ReplyWritten`` has it."""


class ResumeReply(Struct, frozen=True):
    """Take a reply over from the instance that gave it."""

    reply_id: str
    giver: str
    """The instance that has ended; another may have taken the reply over since."""
    instance: str
    now: datetime


class CompleteReply(Struct, frozen=True):
    reply_id: str
    text: str
    cited: tuple[int, ...]
    resolution: Resolution
    model: str
    usage: Usage
    now: datetime
    finish_reason: FinishReason = "stop"
    uncited: bool = False
    checks: ReplyChecks | None = None
    first_text_at: datetime | None = None
    giver: str = ""
    """As ``RecordSources`` has it."""
    unsure: bool = False
    failure: str = ""
    trouble: ModelTrouble | None = None


class StopReply(Struct, frozen=True):
    reply_id: str
    reason: Literal["stopped", "interrupted"]
    now: datetime
    giver: str = ""
    """As ``RecordSources`` has it; a reader stops a reply of any instance."""


class FailReply(Struct, frozen=True):
    reply_id: str
    code: str
    message: str
    now: datetime
    giver: str = ""
    """As ``RecordSources`` has it."""
    trouble: ModelTrouble | None = None


class LeaveReply(Struct, frozen=True):
    reply_id: str
    now: datetime


class ReturnToReply(Struct, frozen=True):
    reply_id: str
    now: datetime


RecordCommand = RecordSources | RecordText | ResumeReply | CompleteReply | StopReply | FailReply
"""Recorded only while the reply is under way, and only of the instance that gives it."""
ReplyCommand = RecordCommand | LeaveReply | ReturnToReply


class Reply(Struct, frozen=True):
    reply_id: str
    instance: str
    state: ReplyState = "active"
    text: str = ""
    sources: tuple[Source, ...] = ()
    """Those that it found; once it has ended, those that it cites: the others are most of a long thread."""
    cited: tuple[int, ...] = ()
    """Numbers of sources; known once the reply is complete."""
    chat_id: str = ""
    asker: str = ""
    is_public: bool = False
    features: tuple[str, ...] = ()
    is_undelivered: bool = False
    """Whether its reader lost the connection before the end, or the process that sent it died."""
    has_returned: bool = False
    """Whether a reader has come back for it."""
    resumes: int = 0
    """How often it went on in another process."""
    handovers: int = 0
    """How many of these times it had been left in good order."""
    is_left: bool = False
    """It waits for another process since then."""
    ended_at: datetime | None = None
    feedback: Feedback | None = None


def decide(command: ReplyCommand, reply: Reply) -> list[ReplyNews]:
    """Return the events of a command. Raise Conflict for one that comes after the reply's end, or by an instance that
    does not give it any more.
    """
    match command:
        case LeaveReply(reply_id=reply_id, now=now):
            return [] if reply.is_undelivered else [ReaderLeft(reply_id, left_at=now)]
        case ReturnToReply(reply_id=reply_id, now=now):
            return [ReaderReturned(reply_id, returned_at=now)] if reply.is_undelivered else []
    if reply.state == "active":
        return _recorded(command, reply)
    if isinstance(command, StopReply | FailReply):
        return []  # it has ended by itself
    raise Conflict("This reply has ended.")


def _recorded(command: RecordCommand, reply: Reply) -> list[ReplyNews]:
    if command.giver and command.giver != reply.instance:
        raise Conflict("Another process goes on with this reply.")
    match command:
        case RecordSources() as new:
            return [SourcesFound(new.reply_id, new.query, new.sources, new.planned_by, new.planned, new.expected)]
        case RecordText(reply_id=reply_id) as new:
            is_empty = not new.text and not new.thinking and not new.raw and new.call is None and not new.is_left
            written = ReplyWritten(reply_id, new.text, new.thinking, new.raw, new.call, new.is_left)
            return [] if is_empty else [written]
        case ResumeReply(reply_id=reply_id, instance=instance, now=now):
            may_go_on = (
                reply.handovers < MAX_HANDOVERS if reply.is_left else (reply.resumes - reply.handovers < MAX_RESUMES)
            )
            if not may_go_on:
                return [ReplyStopped(reply_id, "interrupted", stopped_at=now)]
            return [ReplyResumed(reply_id, instance, reply.resumes + 1, resumed_at=now)]
        case CompleteReply() as done:
            return [
                ReplyCompleted(
                    done.reply_id,
                    done.text,
                    done.cited,
                    done.resolution,
                    done.model,
                    done.usage,
                    done.now,
                    done.finish_reason,
                    done.uncited,
                    done.checks,
                    done.first_text_at,
                    done.unsure,
                    done.failure,
                    done.trouble,
                )
            ]
        case StopReply(reply_id=reply_id, reason=reason, now=now):
            return [ReplyStopped(reply_id, reason, stopped_at=now)]
        case FailReply(reply_id=reply_id, code=code, message=message, now=now, trouble=trouble):
            return [ReplyFailed(reply_id, code, message, failed_at=now, trouble=trouble)]
        case _:
            assert_never(command)


def evolve(reply: Reply, event: ReplyNews) -> Reply:
    match event:
        case SourcesFound(sources=sources):
            return replace(reply, sources=(*reply.sources, *sources))
        case ReplyWritten(text=text, is_left=is_left):
            return replace(reply, text=reply.text + text, is_left=is_left)
        case ReplyResumed(instance=instance, count=count):
            handovers = reply.handovers + reply.is_left
            return replace(
                reply, instance=instance, resumes=count, is_undelivered=True, handovers=handovers, is_left=False
            )
        case ReplyCompleted(text=text, cited=cited, completed_at=at):
            kept = tuple(source for source in reply.sources if source.number in cited)
            return replace(reply, state="completed", text=text, sources=kept, cited=cited, ended_at=at)
        case ReplyStopped(reason=reason, stopped_at=at):
            is_undelivered = reply.is_undelivered or reason == "interrupted"
            return replace(reply, state=reason, sources=(), ended_at=at, is_undelivered=is_undelivered)
        case ReplyFailed(failed_at=at):
            return replace(reply, state="failed", sources=(), ended_at=at)
        case ReaderLeft():
            return replace(reply, is_undelivered=True)
        case ReaderReturned():
            return replace(reply, is_undelivered=False, has_returned=True)
        case FeedbackGiven():
            return replace(reply, feedback=feedback.evolve(reply.feedback, event))
        case _:
            assert_never(event)
