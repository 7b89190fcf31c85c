"""A changed file, as the gates see it."""

from msgspec import Struct


class Changed(Struct, frozen=True):
    """A file before and after; None where it is not there."""

    path: str
    before: str | None
    after: str | None
    is_moved: bool = False
    """``before`` is the text under its old name."""
