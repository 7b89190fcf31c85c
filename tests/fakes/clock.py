"""A clock that tests move on."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

START = datetime(2026, 1, 2, tzinfo=UTC)


class MovedClock:
    """Time passes only while something sleeps, and then at once: ``sleep`` moves the clock on."""

    def __init__(self, start: datetime = START) -> None:
        self.time = start
        self.on_sleep: list[Callable[[], Awaitable[None]]] = []
        self.slept: list[float] = []
        self.is_held = False
        """Nobody wakes before ``release``."""
        self._released = asyncio.Event()

    def now(self) -> datetime:
        return self.time

    def seconds(self) -> float:
        return (self.time - START).total_seconds()

    async def sleep(self, seconds: float) -> None:
        if self.is_held:
            await self._released.wait()
        await asyncio.sleep(0)
        for act in self.on_sleep:
            await act()
        self.slept.append(seconds)
        self.time += timedelta(seconds=seconds)

    def move(self, **by: float) -> None:
        self.time += timedelta(**by)

    def release(self) -> None:
        self.is_held = False
        self._released.set()
