"""The newest events in memory, and those who wait for the next; for a store to feed, on its event loop.

A batch that was just committed is handed to its waiters as it is: a thousand subscribers make no reads. A waiter names
what it waits for (a stream, a category, everything) and is woken by nothing else. A waiter that is behind what is kept
here goes back to reading pages.

Waking takes time on the event loop on which others append. So waiters are woken a few at a time, and while appends are
under way as much time is left between as the last few took: subscribers, however many, take at most half of it.

A store of any kind can use this: it needs no more than the events in order.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence

from eventstore.errors import StoreClosed
from eventstore.events import RecordedEvent

MAX_EVENTS = 4_096
MAX_BYTES = 16 << 20
WOKEN_AT_ONCE = 64
LONGEST_REST_SECONDS = 0.05
"""Between two lots of waiters. A process that was paused in the midst of one would else rest for as long again."""

Key = tuple[str, str]
"""The events that a waiter waits for: of a stream, a category, or all."""
ALL: Key = ("all", "")


class Tail:
    """``is_busy`` returns whether the event loop has better to do than to wake the next few waiters at once."""

    def __init__(self, last: int, is_busy: Callable[[], bool]) -> None:
        self.last = last
        """The newest position that was published."""
        self._is_busy = is_busy
        self._batches: deque[_Batch] = deque()
        self._events = self._bytes = 0
        self.cleared = 0
        """How often it was cleared: what was read before that is not for publishing, since a key may be gone."""
        self._waiting: dict[Key, dict[asyncio.Future[int], None]] = {}
        self._to_wake: deque[tuple[asyncio.Future[int], int]] = deque()
        self._is_waking = self._is_closed = False

    def publish(self, events: Sequence[RecordedEvent]) -> None:
        """Add the events that follow ``last`` and wake those who wait for one of them."""
        if not events:
            return
        before = self.last
        assert events[0].position == before + 1
        batch = _Batch(events)
        self.last = batch.last
        self._batches.append(batch)
        self._events += len(events)
        self._bytes += batch.size
        while len(self._batches) > 1 and (self._events > MAX_EVENTS or self._bytes > MAX_BYTES):
            oldest = self._batches.popleft()
            self._events -= len(oldest.events)
            self._bytes -= oldest.size
        if self._waiting:
            for key in batch.keys if len(batch.keys) < len(self._waiting) else list(self._waiting):
                if key in batch.keys and key in self._waiting:
                    self._wake(key, before)

    def skip_to(self, last: int) -> None:
        """Go on from a later position without the events up to it: those who wait have to read them."""
        if last > self.last:
            self.last = last
            self.clear()
            for key in list(self._waiting):
                self._wake(key, 0)

    def clear(self) -> None:
        """Keep no events."""
        self.cleared += 1
        self._batches.clear()
        self._events = self._bytes = 0

    def after(self, position: int, key: Key) -> tuple[Sequence[RecordedEvent], int] | None:
        """Return the events of a kind after a position, and up to where they are all; None when not kept."""
        if position >= self.last:
            return (), position
        found: list[Sequence[RecordedEvent]] = []
        for batch in reversed(self._batches):
            events = batch.of(key)
            if batch.first <= position + 1:
                if batch.first <= position:
                    events = [event for event in events if event.position > position]
                found.append(events)
                break
            found.append(events)
        else:
            return None
        return found[0] if len(found) == 1 else [event for part in reversed(found) for event in part], self.last

    async def wait(self, key: Key) -> int:
        """Wait for an event of this kind; return the position before which there was certainly none since.

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
        except asyncio.CancelledError:
            waiting.pop(future, None)
            if not waiting and self._waiting.get(key) is waiting:
                del self._waiting[key]
            raise

    def close(self) -> None:
        """Raise StoreClosed in all who wait: nothing more will come."""
        self._is_closed = True
        waiting = [future for futures in self._waiting.values() for future in futures]
        for future in waiting + [future for future, _ in self._to_wake]:
            if not future.done():
                future.set_exception(StoreClosed("the store is closed"))
        self._waiting.clear()
        self._to_wake.clear()

    def _wake(self, key: Key, before: int) -> None:
        self._to_wake.extend((future, before) for future in self._waiting.pop(key))
        if not self._is_waking:
            self._wake_some()

    def _wake_some(self) -> None:
        loop = asyncio.get_running_loop()
        self._is_waking = bool(self._to_wake)
        if not self._to_wake:
            return
        for _ in range(min(WOKEN_AT_ONCE, len(self._to_wake))):
            future, before = self._to_wake.popleft()
            if not future.done():
                future.set_result(before)
        loop.call_soon(self._woken, loop.time())  # its turn comes after theirs

    def _woken(self, since: float) -> None:
        loop = asyncio.get_running_loop()
        if self._to_wake and self._is_busy():
            loop.call_later(min(loop.time() - since, LONGEST_REST_SECONDS), self._wake_some)
        elif self._to_wake:
            loop.call_soon(self._wake_some)
        else:
            self._is_waking = False


class _Batch:
    """Events that were published together, by what one may wait for."""

    __slots__ = ("_by_key", "events", "first", "last", "size")

    def __init__(self, events: Sequence[RecordedEvent]) -> None:
        self.events = events
        self.first, self.last = events[0].position, events[-1].position
        self.size = sum(len(event.data) + len(event.personal or b"") for event in events)
        self._by_key: dict[Key, list[RecordedEvent]] | None = None

    @property
    def keys(self) -> dict[Key, list[RecordedEvent]]:
        if self._by_key is None:
            by_key: dict[Key, list[RecordedEvent]] = {ALL: []}
            for event in self.events:
                stream = event.stream
                for key in (("stream", stream), ("category", category_of(stream))):
                    found = by_key.get(key)
                    if found is None:
                        by_key[key] = [event]
                    else:
                        found.append(event)
            self._by_key = by_key
        return self._by_key

    def of(self, key: Key) -> Sequence[RecordedEvent]:
        return self.events if key is ALL else self.keys.get(key, ())


def category_of(stream: str) -> str:
    """Return the part of a stream's name before its first dash."""
    return stream.partition("-")[0]
