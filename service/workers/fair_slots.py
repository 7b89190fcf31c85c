"""Slots for work that organizations share, so that one with much or slow work does not keep the others waiting."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from itertools import count

LONG_WAITS_SECONDS = 60.0
"""Long work comes after short work of the same organization that was asked for up to this much later."""


class _Turn:
    __slots__ = ("due", "granted", "is_held", "is_long")

    def __init__(self, *, is_long: bool, due: float) -> None:
        self.is_long, self.due, self.is_held = is_long, due, False
        self.granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()


class _Owner:
    """The turns of one owner: those that wait, first come first, and how many are held."""

    __slots__ = ("held", "held_long", "last", "long", "short")

    def __init__(self) -> None:
        self.short: deque[_Turn] = deque()
        self.long: deque[_Turn] = deque()
        self.held = self.held_long = 0
        self.last = -1
        """The number of the last slot that it got."""

    def first(self, *, takes_long: bool) -> _Turn | None:
        """Return the turn that comes next."""
        for waiting in (self.short, self.long):
            while waiting and waiting[0].granted.cancelled():
                waiting.popleft()
        able = [waiting[0] for waiting in (self.short, self.long if takes_long else ()) if waiting]
        return min(able, key=lambda turn: turn.due, default=None)


class FairSlots:
    """``total`` slots, at most ``share`` of them for one owner. Of the slots at most ``long`` are for long work, and
    one for that of one owner, so that short work always finds a slot that is free soon.

    The next slot goes to the owner that holds the fewest, then to the one that got its last slot the longest ago; of
    one owner's work the shortest that waits comes first. A slot is given in a time that grows with the owners who wait,
    not with their turns.
    """

    def __init__(self, total: int, *, share: int, long: int | None = None) -> None:
        self._total, self._share, self._long = total, share, total if long is None else long
        self._owners: dict[str, _Owner] = {}
        self._waiting: dict[str, _Owner] = {}
        self._held = self._held_long = 0
        self._numbers = count()

    @asynccontextmanager
    async def held(self, owner: str, *, is_long: bool = False) -> AsyncIterator[bool]:
        """Wait for a slot, and hold it for the block; its value: whether it had to be waited for."""
        now = asyncio.get_running_loop().time()
        turn = _Turn(is_long=is_long, due=now + (LONG_WAITS_SECONDS if is_long else 0.0))
        queue = self._waiting[owner] = self._owners.setdefault(owner, _Owner())
        (queue.long if is_long else queue.short).append(turn)
        self._admit()
        try:
            has_waited = not turn.granted.done()
            await turn.granted
            yield has_waited
        finally:
            if turn.is_held:
                self._hold(queue, turn, -1)
            self._admit()

    def _hold(self, queue: _Owner, turn: _Turn, by: int) -> None:
        queue.held += by
        self._held += by
        if turn.is_long:
            queue.held_long += by
            self._held_long += by

    def _admit(self) -> None:
        while self._held < self._total:
            found = min(self._admissible(), key=lambda one: (one[0].held, one[0].last, one[1].due), default=None)
            if found is None:
                return
            queue, turn = found
            (queue.long if turn.is_long else queue.short).popleft()
            turn.is_held, queue.last = True, next(self._numbers)
            self._hold(queue, turn, 1)
            turn.granted.set_result(None)

    def _admissible(self) -> Iterator[tuple[_Owner, _Turn]]:
        for name, queue in list(self._waiting.items()):
            turn = queue.first(takes_long=self._held_long < self._long and not queue.held_long)
            if turn is not None and queue.held < self._share:
                yield queue, turn
            elif not queue.short and not queue.long:
                del self._waiting[name]


def fetch_slots() -> FairSlots:
    """Return slots for visits to other machines, which wait more than they work."""
    return FairSlots(12, share=4)


def build_slots() -> FairSlots:
    """Return slots for reading sites."""
    return FairSlots(3, share=2, long=2)


def reply_slots(total: int) -> FairSlots:
    """Return slots for replies: three quarters for one organization at most, so that the flood of one site does not
    keep the sites of others waiting. Fewer than four slots are not parted.
    """
    return FairSlots(total, share=total if total < 4 else total * 3 // 4)
