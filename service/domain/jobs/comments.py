"""Comments on a job's pull requests that address the agent: where each is, what it led to, and what is to be answered.

A comment counts once, whichever of its versions is seen first to mention the agent: a later version of one that is
known mentions it no more newly.
"""

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

IgnoringReason = Literal["no_write_access", "too_many_comments", "too_many_messages"]

HOUR = timedelta(hours=1)
MAX_BEFORE, MAX_SAID = 10, 1_000
"""Comments of a thread that are kept with the next one, and characters of each."""
MAX_IGNORED = 200
"""Ignored comments of a job that are recorded: anyone may write on a public pull request."""
_MENTION = re.compile(r"(?<![\w`/.@])@([A-Za-z0-9][\w-]*(?:/[\w.-]+)?)")


class Said(Struct, frozen=True):
    """The words of an earlier comment of a thread."""

    author: str
    text: str


class CommentSource(Struct, frozen=True, omit_defaults=True):
    """A comment on a pull request, without its text."""

    id: str
    """The code host's, the same for each version of the comment; its kind is part of it."""
    version: str
    """When it was written or last changed, as the code host says it."""
    author: str
    """The name of the account."""
    thread: str = ""
    """Where an answer to it belongs, in the code host's terms; empty for the conversation."""
    url: str = ""
    path: str = ""
    """The file that it is about; empty for none."""
    first_line: int | None = None
    last_line: int | None = None
    diff: str = ""
    """The end of the changes that the code host shows above it."""
    number: int = 0
    """The number of the pull request."""
    side: Literal["new", "old", "gone"] = "new"
    """Whether its lines are counted in the file as the branch has it, as it was before the pull request, or as it was
    in an earlier state of the branch.
    """
    before: tuple[Said, ...] = ()
    """The comments above it in its thread, the oldest first; the newest of many, and the beginning of long ones."""


class Unanswered(Struct, frozen=True):
    """A comment that is still to be answered."""

    answer_id: str
    """Unguessable; it names the answer on the code host."""
    comment: CommentSource
    asked_at: datetime
    reason: IgnoringReason | None = None
    """Why it led to no message, which is the answer; None: the closing message of the round is."""
    until: datetime | None = None
    round: int = 0
    """The job's round in which it became a message."""


class Review(Struct, frozen=True):
    """The comments that addressed a job."""

    seen: frozenset[str] = frozenset()
    ignored: int = 0
    accepted_at: tuple[datetime, ...] = ()
    """When the last ones became messages."""
    warned: dict[str, datetime] = {}
    """When each author was last answered that there were too many."""
    unanswered: tuple[Unanswered, ...] = ()

    def accepted(self, entry: Unanswered) -> "Review":
        """Return it with a comment that became a message."""
        recent = (*(at for at in self.accepted_at if at > entry.asked_at - HOUR), entry.asked_at)
        return replace(
            self, seen=self.seen | {entry.comment.id}, accepted_at=recent, unanswered=(*self.unanswered, entry)
        )

    def turned_down(self, comment_id: str, entry: Unanswered | None) -> "Review":
        """Return it with a comment that led to no message; with an entry it is answered why."""
        review = replace(self, seen=self.seen | {comment_id}, ignored=self.ignored + 1)
        if entry is None:
            return review
        warned = {**self.warned, entry.comment.author: entry.asked_at}
        return replace(review, warned=warned, unanswered=(*self.unanswered, entry))

    def answered(self, answer_ids: tuple[str, ...]) -> "Review":
        return replace(self, unanswered=tuple(one for one in self.unanswered if one.answer_id not in answer_ids))

    def full_until(self, now: datetime, per_hour: int) -> datetime | None:
        """Return when the next comment is accepted; None for now."""
        recent = [at for at in self.accepted_at if at > now - HOUR]
        return recent[-per_hour] + HOUR if len(recent) >= per_hour else None

    def may_warn(self, author: str, now: datetime) -> bool:
        """Return whether an author was not warned within the last hour."""
        warned = self.warned.get(author)
        return warned is None or warned <= now - HOUR


def said_before(said: Sequence[Said]) -> tuple[Said, ...]:
    """Return what is kept of the comments above one."""
    return tuple(
        Said(one.author, one.text if len(one.text) <= MAX_SAID else f"{one.text[:MAX_SAID]} …")
        for one in said[-MAX_BEFORE:]
    )


def without_mentions(text: str) -> str:
    """Return the text with its mentions quoted: a page must not be able to notify people about a pull request."""
    return _MENTION.sub(r"`@\1`", text)


def without_address(text: str) -> str:
    """Return the words of a comment without the ``@name`` that its lines begin with."""
    return re.sub(r"^[ \t]*@[\w-]+(?:\[bot\])?[,:]?[ \t]*", "", text, flags=re.MULTILINE).strip()
