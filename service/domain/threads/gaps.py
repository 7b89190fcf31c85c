"""A gap of the documentation, and what became of it: somebody dismissed it, or the pages answer its questions by now.

That there is a gap follows from the questions that could not be answered, so there is no event for it. Its stream
begins with the first thing that is done about it. No words of readers are in it: it names questions by their ids.
"""

from datetime import datetime
from hashlib import sha256
from typing import assert_never

from msgspec import Struct

from service.domain.errors import NotFound
from service.domain.events import Event

MAX_QUESTIONS = 1_000
"""Questions that one event names, each for all in the same words."""


class GapDismissed(Event, frozen=True, tag="gap-dismissed"):
    """Nothing is to be written for it: from now on questions in the words of these are in no gap."""

    organization_id: str
    project_id: str
    questions: tuple[str, ...]
    """The newest one of each wording. Who dismissed it is in the event's metadata."""
    dismissed_at: datetime


class GapRestored(Event, frozen=True, tag="gap-restored"):
    """It was dismissed by mistake."""

    restored_at: datetime


class GapAnswered(Event, frozen=True, tag="gap-answered"):
    """The site, as it is at a commit, answers these questions, and those in the same words that were asked before."""

    organization_id: str
    project_id: str
    questions: tuple[str, ...]
    """The newest one of each wording."""
    commit: str
    answered_at: datetime


GapEvent = GapDismissed | GapRestored | GapAnswered


class DismissGap(Struct, frozen=True):
    organization_id: str
    project_id: str
    questions: tuple[str, ...]
    now: datetime


class RestoreGap(Struct, frozen=True):
    now: datetime


class AnswerGap(Struct, frozen=True):
    organization_id: str
    project_id: str
    questions: tuple[str, ...]
    commit: str
    now: datetime


GapCommand = DismissGap | RestoreGap | AnswerGap


class Open(Struct, frozen=True):
    pass


class Dismissed(Struct, frozen=True):
    questions: frozenset[str]


GapState = Open | Dismissed


def gap_id(oldest_question_id: str) -> str:
    """Return the name of a gap: the same as long as its oldest question is."""
    return sha256(oldest_question_id.encode()).hexdigest()[:16]


def gap_not_found() -> NotFound:
    return NotFound(
        "Gap not found: its questions may be answered or erased by now. List the gaps again.", code="gap_not_found"
    )


def decide(command: GapCommand, state: GapState) -> list[GapEvent]:
    """Return the events of a command: none where it is done already."""
    match command, state:
        case DismissGap() as new, _:
            known = state.questions if isinstance(state, Dismissed) else frozenset()
            if known.issuperset(new.questions):
                return []
            return [GapDismissed(new.organization_id, new.project_id, new.questions, dismissed_at=new.now)]
        case RestoreGap(now=now), Dismissed():
            return [GapRestored(restored_at=now)]
        case RestoreGap(), _:
            return []
        case AnswerGap() as new, _:
            return [GapAnswered(new.organization_id, new.project_id, new.questions, new.commit, answered_at=new.now)]
        case _:
            raise AssertionError(command)


def evolve(state: GapState, event: GapEvent) -> GapState:
    match event:
        case GapDismissed(questions=questions):
            known = state.questions if isinstance(state, Dismissed) else frozenset()
            return Dismissed(known.union(questions))
        case GapRestored():
            return Open()
        case GapAnswered():
            return state
        case _:
            assert_never(event)
