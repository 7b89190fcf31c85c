"""Finds the place of a time in a log.

What is newly written never goes back in time (log_file.py), but older logs may hold readings of a clock that was wrong
for a while: before it was set at a start, or set by mistake. So a time is looked up among the readings that can be
believed: the longest series of them that does not go back. A clock is wrong for fewer events than it is right, so those
that are left out are the wrong ones, whichever way they are off.
"""

from array import array
from bisect import bisect_right
from collections.abc import Callable
from datetime import UTC, datetime

from eventstore.store import EventStore

PAGE = 1_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


async def position_at(
    store: EventStore, time: datetime, head: int, *, progress: Callable[[int, int], None] | None = None
) -> int:
    """Return the position of the last event, up to a head, that was recorded at a time or before; 0 when none was.

    Every event is read once. ``progress`` is called after each page with the position reached and the head.
    """
    times = array("q")
    while len(times) < head and (events := await store.read_all(after=len(times), limit=min(PAGE, head - len(times)))):
        times.extend(_microseconds(event.recorded_at) for event in events)
        if progress is not None:
            progress(len(times), head)
    return _last_until(times, _microseconds(time))


def _last_until(times: "array[int]", until: int) -> int:
    """Return how many events were recorded up to a time, of events with these readings in order."""
    if not times:
        return 0
    # The longest series, by patience sorting: of each length the series that ends earliest, and for each event the one
    # before it in the series that it ends.
    ends, at, before = array("q"), array("q"), array("q")
    for index, time in enumerate(times):
        length = len(ends) if not ends or time >= ends[-1] else bisect_right(ends, time)
        before.append(at[length - 1] if length else -1)
        if length == len(ends):
            ends.append(time)
            at.append(index)
        else:
            ends[length], at[length] = time, index
    later, index = len(times), at[-1]
    while index >= 0 and times[index] > until:
        later, index = index, before[index]
    # Those that follow were recorded before the next reading that can be believed: by their own readings.
    while index + 1 < later and times[index + 1] <= until:
        index += 1
    return index + 1


def _microseconds(time: datetime) -> int:
    since = time - _EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
