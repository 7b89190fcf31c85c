"""Slots for work that organizations share, so that one with much or slow work does not keep the others waiting."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from itertools import count

LONG_WAITS_SECONDS = 60.0
"""Long work comes after short work of the same organization that was asked for up to this much later."""


class _Turn:
    def __init__(self, owner: str, *, is_long: bool, due: float) -> None:
        self.owner, self.is_long, self.due = owner, is_long, due
        self.granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()


class FairSlots:
    """``total`` slots, at most ``share`` of them for one owner. Of the slots at most ``long`` are for long work, and
    one for that of one owner, so that short work always finds a slot that is free soon.

    The next slot goes to the owner that holds the fewest, then to the one that got its last slot the longest ago; of
    one owner's work the shortest that waits comes first.
    """

    def __init__(self, total: int, *, share: int, long: int | None = None) -> None:
        self._total, self._share, self._long = total, share, total if long is None else long
        self._waiting: list[_Turn] = []
        self._held: list[_Turn] = []
        self._last: dict[str, int] = {}
        """By owner, the number of the last slot that it got."""
        self._numbers = count()

    @asynccontextmanager
    async def held(self, owner: str, *, is_long: bool = False) -> AsyncIterator[None]:
        """Wait for a slot, and hold it for the block."""
        now = asyncio.get_running_loop().time()
        turn = _Turn(owner, is_long=is_long, due=now + (LONG_WAITS_SECONDS if is_long else 0.0))
        self._waiting.append(turn)
        self._admit()
        try:
            await turn.granted
            yield
        finally:
            if turn in self._held:
                self._held.remove(turn)
            else:
                self._waiting.remove(turn)
            self._admit()

    def _admit(self) -> None:
        while len(self._held) < self._total:
            turn = min(self._admissible(), key=self._order, default=None)
            if turn is None:
                return
            self._waiting.remove(turn)
            self._held.append(turn)
            self._last[turn.owner] = next(self._numbers)
            turn.granted.set_result(None)

    def _admissible(self) -> Iterator[_Turn]:
        holds = Counter(turn.owner for turn in self._held)
        long = [turn.owner for turn in self._held if turn.is_long]
        for turn in self._waiting:
            if holds[turn.owner] >= self._share or turn.granted.cancelled():
                continue
            if not turn.is_long or (len(long) < self._long and turn.owner not in long):
                yield turn

    def _order(self, turn: _Turn) -> tuple[int, int, float]:
        holds = sum(one.owner == turn.owner for one in self._held)
        return holds, self._last.get(turn.owner, -1), turn.due


def fetch_slots() -> FairSlots:
    """Return slots for visits to other machines, which wait more than they work."""
    return FairSlots(12, share=4)


def build_slots() -> FairSlots:
    """Return slots for reading sites."""
    return FairSlots(3, share=2, long=2)
