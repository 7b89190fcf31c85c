"""The verdicts on the sentences of a reply: whether each stands on a passage that the reply was made from."""

from typing import Literal

from msgspec import Struct

CheckStatus = Literal["supported", "partly", "unsupported"]
MAX_MARKED = 20
"""Unsupported sentences that are recorded with a reply."""


class SentenceCheck(Struct, frozen=True, omit_defaults=True):
    """A sentence, list item, row of a table or block of code that makes a claim."""

    text: str
    """Its beginning; of a block of code the first line, or the first that is not supported."""
    start: int
    """Where it begins in the reply's text, in characters."""
    status: CheckStatus
    """``partly``: nothing in it is wrong, but the passages that it cites do not have all of it. It is not marked."""
    passage: int = 0
    """The number of the passage that it stands on; 0 for none."""
    start_line: int = 0
    """Where in the page's file that passage has it; 0 for nowhere."""
    end_line: int = 0
    missing: tuple[str, ...] = ()
    """Its numbers, names, flags and pieces of code that are in no passage, or that a passage contradicts."""


class CheckCounts(Struct, frozen=True, omit_defaults=True):
    """How many sentences of a reply have each verdict."""

    supported: int = 0
    partly: int = 0
    unsupported: int = 0

    @property
    def checked(self) -> int:
        return self.supported + self.partly + self.unsupported


class ReplyChecks(Struct, frozen=True):
    """The verdicts on a reply, in the order of its text; those on record are of unsupported sentences alone."""

    counts: CheckCounts = CheckCounts()
    sentences: tuple[SentenceCheck, ...] = ()

    @property
    def checked(self) -> int:
        return self.counts.checked

    @property
    def marked(self) -> tuple[SentenceCheck, ...]:
        """Return the unsupported sentences that are recorded: the first ones."""
        return tuple(one for one in self.sentences if one.status == "unsupported")[:MAX_MARKED]

    @property
    def recorded(self) -> "ReplyChecks":
        return ReplyChecks(self.counts, self.marked)
