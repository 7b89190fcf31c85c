"""The clock that a job's waits and budgets go by."""

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    def now(self) -> datetime:
        """Return the time of day, in UTC; it may be set while the service runs."""

    def seconds(self) -> float:
        """Return seconds since some moment; never set."""

    async def sleep(self, seconds: float) -> None: ...
