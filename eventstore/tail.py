"""The newest events in memory, and those who wait for the next; for a store to feed, on its event loop.

A batch that was just committed is handed to its waiters as it is: a thousand subscribers make no reads. A waiter names
what it waits for (a stream, a category, everything) and is woken by nothing else. Whoever falls behind what is kept
here goes back to reading pages. A store of any kind can use it: it needs no more than the events in order.
"""

import asyncio
from collections import deque
from collections.abc import Sequence

from eventstore.errors import StoreClosed
from eventstore.events import RecordedEvent

MAX_EVENTS = 4_096
MAX_BYTES = 16 << 20

Key = tuple[str, str]
"""What a waiter waits for: of a stream, a category, or all."""
ALL: Key = ("all", "")


class Tail:
    def __init__(self, last: int) -> None:
        self.last = last
        """The newest position that was published."""
        self._batches: deque[Sequence[RecordedEvent]] = deque()
        self._events = self._bytes = 0
        self._waiting: dict[Key, dict[asyncio.Future[int], None]] = {}
        self._is_closed = False

    def publish(self, events: Sequence[RecordedEvent]) -> None:
        """Take the events that follow ``last`` and wake those who wait for one of them."""
        if not events:
            return
        before = self.last
        assert events[0].position == before + 1
        self.last = events[-1].position
        self._batches.append(events)
        self._events += len(events)
        self._bytes += _size(events)
        while len(self._batches) > 1 and (self._events > MAX_EVENTS or self._bytes > MAX_BYTES):
            oldest = self._batches.popleft()
            self._events -= len(oldest)
            self._bytes -= _size(oldest)
        if self._waiting:
            streams = {event.stream for event in events}
            self._wake(ALL, before)
            for stream in streams:
                self._wake(("stream", stream), before)
            for category in {category_of(stream) for stream in streams}:
                self._wake(("category", category), before)

    def skip_to(self, last: int) -> None:
        """Go on from a later position without the events up to it: whoever waits has to read them."""
        if last > self.last:
            self.last = last
            self.clear()
            for key in list(self._waiting):
                self._wake(key, 0)

    def clear(self) -> None:
        """Keep no events."""
        self._batches.clear()
        self._events = self._bytes = 0

    def after(self, position: int) -> Sequence[RecordedEvent] | None:
        """The events after a position, or None when some of them are not kept."""
        if position >= self.last:
            return ()
        found: list[Sequence[RecordedEvent]] = []
        for batch in reversed(self._batches):
            first = batch[0].position
            if first <= position + 1:
                found.append(batch[position + 1 - first :] if first <= position else batch)
                break
            found.append(batch)
        else:
            return None
        return found[0] if len(found) == 1 else [event for batch in reversed(found) for event in batch]

    async def wait(self, key: Key) -> int:
        """Wait for an event of this kind; the position before which there was certainly none since.

        Raises:
            StoreClosed: closed, before or meanwhile.
        """
        if self._is_closed:
            raise StoreClosed("the store is closed")
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        waiting = self._waiting.setdefault(key, {})
        waiting[future] = None
        try:
            return await future
        finally:
            waiting.pop(future, None)
            if not waiting and self._waiting.get(key) is waiting:
                del self._waiting[key]

    def close(self) -> None:
        self._is_closed = True
        for waiting in self._waiting.values():
            for future in waiting:
                if not future.done():
                    future.set_exception(StoreClosed("the store is closed"))

    def _wake(self, key: Key, before: int) -> None:
        for future in self._waiting.pop(key, ()):
            if not future.done():
                future.set_result(before)


def category_of(stream: str) -> str:
    """The part of a stream's name before its first dash."""
    return stream.partition("-")[0]


def _size(events: Sequence[RecordedEvent]) -> int:
    return sum(len(event.data) + len(event.personal or b"") for event in events)
