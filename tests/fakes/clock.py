"""A clock that tests move on."""

import asyncio
from datetime import UTC, datetime, timedelta

START = datetime(2026, 1, 2, tzinfo=UTC)


class MovedClock:
    """Time passes only while something sleeps, and then at once: ``sleep`` moves the clock on.

    ``on_sleep`` is called with the time after each sleep, for a test that lets things happen at a time.
    """

    def __init__(self, start: datetime = START) -> None:
        self.time = start
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
        self.slept.append(seconds)
        self.time += timedelta(seconds=seconds)

    def move(self, **by: float) -> None:
        self.time += timedelta(**by)

    def release(self) -> None:
        self.is_held = False
        self._released.set()
