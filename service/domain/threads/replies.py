"""A reply while it is given: what the assistant hands to the wire encoders, one after the other.

The order is fixed: ``ReplyOpened``, any number of searches (each ``SearchStarted``, ``SearchFinished``), text, and at
the end one of ``ReplyDone`` or ``ReplyBroken``. A further search between two stretches of text is allowed.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from itertools import groupby

from msgspec import Struct

from service.domain.model import Usage
from service.domain.search import Source
from service.domain.threads.checks import ReplyChecks
from service.domain.threads.recorded_reply import (
    CallEnd,
    FinishReason,
    Outcome,
    Reply,
    ReplyCompleted,
    ReplyFailed,
    ReplyStarted,
    ReplyStopped,
    ReplyWritten,
    Resolution,
    SourcesFound,
)
from service.domain.threads.threads import DEFAULT_PAGE_SIZE, Thread, ThreadEvent, may_write


class ReplyOpened(Struct, frozen=True, tag="opened"):
    thread_id: str
    reply_id: str


class SearchStarted(Struct, frozen=True, tag="search-started"):
    call_id: str
    query: str


class SearchHit(Struct, frozen=True):
    """A passage as clients see it in the result of the search step."""

    number: int
    path: str
    url: str
    title: str
    heading: str
    content: str
    score: float


class SearchFinished(Struct, frozen=True, tag="search-finished"):
    call_id: str
    query: str
    hits: tuple[SearchHit, ...]
    """For clients: the best passage of each of the best pages, up to the page size."""
    sources: tuple[Source, ...]
    """For the record: every passage that is new in this reply, in the order of their numbers."""
    planned_by: str = ""
    """As ``SourcesFound`` has it; for the record, not for clients."""
    planned: tuple[str, ...] = ()
    expected: tuple[str, ...] = ()


class ReplyWaiting(Struct, frozen=True, tag="waiting"):
    """The reply waits for the provider of its model, which is asked again then. It is shown, and not recorded."""

    seconds: float
    """Until the provider is asked again."""


class TextDelta(Struct, frozen=True, tag="text-delta"):
    text: str
    raw: str | None = None
    """The model's own words behind the text, for the record; None: they are the same. Empty: the text is ours."""


class SentencesChecked(Struct, frozen=True, tag="sentences-checked"):
    """The verdicts on the sentences so far; each takes the place of the one before."""

    checks: ReplyChecks


class ReplyDone(Struct, frozen=True, tag="done"):
    text: str
    """All of it: the joined deltas."""
    cited: tuple[int, ...]
    resolution: Resolution
    model: str
    usage: Usage
    finish_reason: FinishReason = "stop"
    uncited: bool = False
    """Whether it answers, but cites no passage."""
    checks: ReplyChecks | None = None
    """The verdicts for the record."""
    unsure: bool = False
    """As ``ReplyCompleted`` has it."""
    failure: str = ""
    """As ``ReplyCompleted`` has it."""

    @property
    def outcome(self) -> Outcome:
        return "failed" if self.failure else "unsure" if self.unsure else self.resolution


class ReplyBroken(Struct, frozen=True, tag="broken"):
    """An error after the stream has begun."""

    code: str
    message: str
    goes_on: bool = False
    """This instance goes down, and another one goes on with the reply: a client that comes back is cut off instead."""


ReplyEvent = (
    ReplyOpened | SearchStarted | SearchFinished | ReplyWaiting | TextDelta | SentencesChecked | ReplyDone | ReplyBroken
)
"""Events that readers receive."""


class Thought(Struct, frozen=True, tag="thought"):
    """The model's reasoning before or while it wrote: for the record, and never for a reader."""

    text: str


class CallEnded(Struct, frozen=True, tag="call-ended"):
    """A call of the model has ended: for the record, so that what was paid is known after a crash."""

    raw: str
    """The model's words since the last text: they are shown to no reader."""
    end: CallEnd


class ModelFailure(Struct, frozen=True, tag="model-failure"):
    """Why the model failed, for operators alone. What follows for readers says less: a ``ReplyBroken``, or a text."""

    model: str
    code: str
    reason: str
    is_final: bool = False
    """The answer is not the model's then; else it goes on without the call that failed."""


AnswerEvent = ReplyEvent | Thought | CallEnded | ModelFailure
"""Events that the assistant yields."""
LiveEvent = TextDelta | Thought | SentencesChecked
"""Those that come with nearly each piece of a model's text."""


INTERRUPTED = "The answer was interrupted; ask again in a moment."
STOPPED = "The answer was stopped before its end."
MERGED_CHARACTERS = 2_000
FEW_DELTAS = 64
"""Up to this number, deltas are sent one by one."""
RESUMABLE_FOR = timedelta(minutes=5)
"""How long after its end a reply waits for a reader that had lost it."""


class ReplyReplay:
    """Rebuilds a reply from its recorded events, from the start: every character once.

    The result of a search has no text of its passages: that is not on record.
    """

    def __init__(self, thread_id: str, reply_id: str) -> None:
        self._thread_id, self._reply_id = thread_id, reply_id
        self._published = 0
        self._calls = 0
        self.is_over = False

    def apply(self, event: ThreadEvent) -> list[ReplyEvent]:
        """Return what to publish for the next event of the thread."""
        if self.is_over or getattr(event, "reply_id", None) != self._reply_id:
            return []
        match event:
            case ReplyStarted():
                return [ReplyOpened(self._thread_id, self._reply_id)]
            case SourcesFound(query=query, sources=sources):
                self._calls += 1
                call_id = f"{self._reply_id}-{self._calls}"
                return [SearchStarted(call_id, query), SearchFinished(call_id, query, _hits(sources), sources)]
            case ReplyWritten(text=text):
                self._published += len(text)
                return [TextDelta(text)] if text else []
            case ReplyCompleted() as done:
                self.is_over = True
                rest = [TextDelta(done.text[self._published :])] if len(done.text) > self._published else []
                checks = [SentencesChecked(done.checks)] if done.checks is not None and done.checks.checked else []
                return [
                    *rest,
                    *checks,
                    ReplyDone(
                        done.text,
                        done.cited,
                        done.resolution,
                        done.model,
                        done.usage,
                        done.finish_reason,
                        done.uncited,
                        done.checks,
                        done.unsure,
                        done.failure,
                    ),
                ]
            case ReplyStopped(reason=reason):
                self.is_over = True
                return [ReplyBroken(reason, INTERRUPTED if reason == "interrupted" else STOPPED)]
            case ReplyFailed(code=code, message=message):
                self.is_over = True
                return [ReplyBroken(code, message)]
            case _:
                return []


def _hits(sources: Iterable[Source]) -> tuple[SearchHit, ...]:
    """Return the best source of each of the first pages, as a client sees it."""
    best: dict[str, SearchHit] = {}
    for source in sources:
        if source.path not in best and len(best) < DEFAULT_PAGE_SIZE:
            best[source.path] = SearchHit(
                source.number, source.path, source.url, source.title, source.heading, "", 0.0
            )  # fmt: skip
    return tuple(best.values())


def merged(events: Iterable[ReplyEvent]) -> Iterator[ReplyEvent]:
    """Yield the same events, with neighbouring deltas joined where they are many: a late or slow reader gets few.

    A wait that is over is left out, and so are verdicts that later ones replace.
    """
    held = list(events)
    held = [event for event in held if not isinstance(event, ReplyWaiting) or event is held[-1]]
    checked = [event for event in held if isinstance(event, SentencesChecked)]
    held = [event for event in held if not isinstance(event, SentencesChecked) or event is checked[-1]]
    if len(held) <= FEW_DELTAS:
        yield from held
        return
    for is_text, run in groupby(held, key=lambda event: isinstance(event, TextDelta)):
        if is_text:
            text = "".join(event.text for event in run if isinstance(event, TextDelta))
            yield from (TextDelta(text[at : at + MERGED_CHARACTERS]) for at in range(0, len(text), MERGED_CHARACTERS))
        else:
            yield from run


class ResumeRequest(Struct, frozen=True):
    """A request for the reply under way in a chat, by the chat's name, which its client has chosen."""

    domain: str
    asker: str
    now: datetime
    fp: str | None = None
    thread_key: str | None = None
    key_required: bool = False

    def may_hear(self, thread: Thread, reply: Reply) -> bool:
        """Return whether this reader may have a reply of the thread. A chat's name can be guessed, so it is not enough.

        A reader who has the thread's key may; else one who is, by all that is known, the one who asked.
        """
        fp = thread.fp if self.fp is None else self.fp
        if not may_write(thread, self.domain, fp, self.thread_key, key_required=self.key_required):
            return False
        if self.thread_key is not None:
            return True
        return bool(reply.asker) and reply.asker == self.asker

    def waits_for(self, reply: Reply) -> bool:
        """Return whether there is something to read: it is under way, or has lost its reader before its end."""
        if reply.state == "active":
            return True
        return reply.is_undelivered and reply.ended_at is not None and self.now - reply.ended_at < RESUMABLE_FOR
