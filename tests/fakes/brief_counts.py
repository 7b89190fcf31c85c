"""Sliding windows in memory, with a clock that tests move; fails on request."""

from collections import defaultdict
from collections.abc import Sequence

from service.domain.errors import ServiceError
from service.ports.shared.brief_counts import BriefCount, Window, WindowUse


class FakeBriefCounts:
    def __init__(self) -> None:
        self.now = 0
        """In milliseconds."""
        self.asked = 0
        self.errors: list[ServiceError] = []  # raised by the next calls, first to last
        self._times: defaultdict[str, list[int]] = defaultdict(list)

    async def count(self, windows: Sequence[Window]) -> BriefCount:
        self.asked += 1
        if self.errors:
            raise self.errors.pop(0)
        times = [[at for at in self._times[one.name] if at > self.now - one.milliseconds] for one in windows]
        is_counted = all(len(found) < one.limit for found, one in zip(times, windows, strict=True))
        uses = []
        for found, one in zip(times, windows, strict=True):
            self._times[one.name] = found
            if is_counted:
                found.append(self.now)
            first = found[max(len(found) - one.limit, 0)] if found else self.now
            uses.append(WindowUse(len(found), first + one.milliseconds - self.now))
        return BriefCount(is_counted, uses)
