"""Sliding windows that all instances of the service count in, for what is counted briefly and recorded nowhere."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import Struct


class Window(Struct, frozen=True):
    name: str
    """Its scope, and the caller that is counted."""
    limit: int
    milliseconds: int


class WindowUse(Struct, frozen=True):
    used: int
    reset_milliseconds: int
    """Until one more fits or, where there is room, until the oldest leaves; the whole window when it is empty."""


class BriefCount(Struct, frozen=True):
    is_counted: bool
    uses: Sequence[WindowUse]
    """The use of each window, in their order, after it was counted."""


class BriefCounts(Protocol):
    async def count(self, windows: Sequence[Window]) -> BriefCount:
        """Count one in each of these windows, at most two, if all have room; in none otherwise.

        Exact for all instances, by one clock. Raises Unavailable where there is no answer in time; then it may be
        counted.
        """


class TokenCounts(Protocol):
    """Reader tokens that all instances made: by the id of a project, and the hour since 1970."""

    async def add(self, counts: Mapping[tuple[str, int], int], *, since_hour: int) -> Mapping[tuple[str, int], int]:
        """Add to the counts, and return all since an hour. Raises Unavailable."""

    async def forget(self, *, before_hour: int) -> None:
        """Raises Unavailable."""
