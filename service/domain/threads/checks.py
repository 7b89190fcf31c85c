"""The verdicts on the sentences of a reply: whether each stands on a passage that the reply was made from."""

from typing import Literal

from msgspec import Struct

CheckStatus = Literal["supported", "partly", "unsupported"]


class SentenceCheck(Struct, frozen=True, omit_defaults=True):
    """A sentence, list item, table row or line of code that makes a claim."""

    text: str
    """Its beginning."""
    start: int
    """Where it begins in the reply's text, in characters."""
    status: CheckStatus
    """``partly``: it stands on a passage that it does not cite, or only a part of it stands on one."""
    passage: int = 0
    """The number of the passage that it stands on; 0 for none."""
    start_line: int = 0
    """Where in the page's file that passage has it; 0 for nowhere."""
    end_line: int = 0
    missing: tuple[str, ...] = ()
    """Its numbers, names, flags and pieces of code that are in no passage, or that a passage contradicts."""


class ReplyChecks(Struct, frozen=True, omit_defaults=True):
    """All verdicts on a reply: how many of each, and the sentences that are not supported."""

    supported: int = 0
    partly: int = 0
    unsupported: int = 0
    marked: tuple[SentenceCheck, ...] = ()
    """The first of those that are unsupported."""

    @property
    def checked(self) -> int:
        return self.supported + self.partly + self.unsupported
