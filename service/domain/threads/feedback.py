"""A reader's rating of a reply: a thumb up or down, perhaps with a comment. It is part of the thread's record, so
erasing the thread also erases the comment.
"""

from datetime import datetime
from typing import Literal

from msgspec import Struct

from service.domain.errors import Conflict, Invalid
from service.domain.events import Event, PersonalText

MAX_COMMENT_CHARACTERS = 4_000
MAX_CHANGES = 20
"""Limit for the changes of one reply's feedback: assistant keys are public, and a client could change it for ever."""

Rating = Literal["up", "down"]


class FeedbackGiven(Event, frozen=True, tag="feedback-given"):
    """The last one of a reply counts."""

    reply_id: str
    rating: Rating
    given_at: datetime
    comment: PersonalText = ""


class GiveFeedback(Struct, frozen=True):
    reply_id: str
    domain: str
    """Domain of the site that the feedback is for: a thread belongs to one site only."""
    rating: Rating
    comment: str
    now: datetime


class Feedback(Struct, frozen=True):
    """The feedback that counts for a reply now, and how often feedback was given."""

    rating: Rating
    comment: str
    given: int = 1


def decide(command: GiveFeedback, before: Feedback | None) -> list[FeedbackGiven]:
    """Return the events of a command. Raise Invalid for a long comment, Conflict ``feedback_changed_too_often``."""
    if len(command.comment) > MAX_COMMENT_CHARACTERS:
        raise Invalid(f"A comment has at most {MAX_COMMENT_CHARACTERS} characters.")
    if before is not None and (before.rating, before.comment) == (command.rating, command.comment):
        return []
    if before is not None and before.given >= MAX_CHANGES:
        raise Conflict(
            "The feedback for this message was changed too often, and cannot be changed again.",
            code="feedback_changed_too_often",
        )
    return [FeedbackGiven(command.reply_id, command.rating, given_at=command.now, comment=command.comment)]


def evolve(before: Feedback | None, event: FeedbackGiven) -> Feedback:
    return Feedback(event.rating, event.comment, 1 if before is None else before.given + 1)
