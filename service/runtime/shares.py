"""Slots for work on what others sent: each organization and project has a share, so that one cannot take them all."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager

from service.domain.errors import Unavailable

RETRY_AFTER_SECONDS = 5.0


class Shares:
    """``slots`` in all, of which the owner at each level may hold ``each[level]``: the widest owner comes first.

    A free slot goes to the owner that holds the fewest, and among equals to who came first.
    """

    def __init__(
        self, slots: int, each: Sequence[int], *, waiting: int, seconds: float, on_refused: Callable[[], None]
    ) -> None:
        self._free = slots
        self._each = each
        self._most_waiting = waiting
        self._seconds = seconds
        self._on_refused = on_refused
        self._held: Counter[tuple[int, str]] = Counter()
        self._waiting: list[_Waiter] = []

    @asynccontextmanager
    async def slot(self, *owners: str) -> AsyncIterator[None]:
        """Hold a slot; ``owners`` are one for each level, such as an organization and its project.

        Raises Unavailable: too many requests of the same owner wait already, or it waited too long.
        """
        keys = tuple(enumerate(owners))
        await self._take(_Waiter(keys))
        try:
            yield
        finally:
            self._give_back(keys)

    async def _take(self, waiter: "_Waiter") -> None:
        if sum(other.keys == waiter.keys for other in self._waiting) >= self._most_waiting:
            raise self._refusal()
        self._waiting.append(waiter)
        self._grant()
        try:
            async with asyncio.timeout(self._seconds):
                await waiter.granted.wait()
        except BaseException as error:
            if waiter.granted.is_set():
                self._give_back(waiter.keys)
            else:
                self._waiting.remove(waiter)
            if isinstance(error, TimeoutError):
                raise self._refusal() from None
            raise

    def _refusal(self) -> Unavailable:
        self._on_refused()
        return Unavailable(
            "Too many requests of this kind are under way; try again in a few seconds.",
            retry_after_seconds=RETRY_AFTER_SECONDS,
        )

    def _give_back(self, keys: "Keys") -> None:
        self._free += 1
        self._held.subtract(keys)
        for key in keys:
            if not self._held[key]:
                del self._held[key]
        self._grant()

    def _grant(self) -> None:
        while self._free:
            able = [waiter for waiter in self._waiting if self._may_hold(waiter.keys)]
            if not able:
                return
            chosen = min(able, key=lambda waiter: [self._held[key] for key in waiter.keys])
            self._waiting.remove(chosen)
            self._free -= 1
            self._held.update(chosen.keys)
            chosen.granted.set()

    def _may_hold(self, keys: "Keys") -> bool:
        return all(self._held[key] < most for key, most in zip(keys, self._each, strict=True))


class Seats:
    """Places that are held for long, such as by an open page: the owner at each level may hold ``each[level]``, and
    no one waits for one.
    """

    def __init__(self, each: Sequence[int], *, on_refused: Callable[[], None]) -> None:
        self._each = each
        self._on_refused = on_refused
        self._held: dict[tuple[int, str], set[_Seat]] = {}

    @contextmanager
    def seat(self, *owners: str, is_used: Callable[[], bool] = lambda: True) -> Iterator[bool]:
        """Hold a place, and yield whether there was one. It counts as long as ``is_used`` returns true."""
        keys, seat = tuple(enumerate(owners)), _Seat(is_used)
        if any(self._used(key) >= most for key, most in zip(keys, self._each, strict=True)):
            self._on_refused()
            yield False
            return
        for key in keys:
            self._held.setdefault(key, set()).add(seat)
        try:
            yield True
        finally:
            for key in keys:
                self._held[key].remove(seat)
                if not self._held[key]:
                    del self._held[key]

    def _used(self, key: tuple[int, str]) -> int:
        return sum(seat.is_used() for seat in self._held.get(key, ()))


class _Seat:
    def __init__(self, is_used: Callable[[], bool]) -> None:
        self.is_used = is_used


Keys = tuple[tuple[int, str], ...]


class _Waiter:
    def __init__(self, keys: Keys) -> None:
        self.keys = keys
        self.granted = asyncio.Event()
