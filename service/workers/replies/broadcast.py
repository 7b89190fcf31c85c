"""Live events of this process, from publisher to listeners.

A topic keeps what was published while it is open, and each listener has its own place in it: one that comes late gets
all from the start, one that is slow is only behind, and neither costs the publisher or the other listeners anything:
there is no queue for each of them that could fill up. What a topic can hold is bounded by what it is about, one
reply, and by ``MAX_EVENTS``.

What the result of a search holds is large, and few come late: ``pack_later`` has it kept in little memory, and so is
the text of a long answer that takes its time.

A listener with all events so far may take the next one in the call that publishes it (``service.ports.direct_reader``).
"""

import asyncio
import secrets
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Generic, TypeVar

from service.ports.direct_reader import DirectReader
from service.queries.access.keys import Revocation
from service.runtime.packing import Packed
from service.runtime.turns import call_in_turn

T = TypeVar("T")

MAX_EVENTS = 250_000
"""Events of one topic: more than any reply has."""

PACK_SECONDS = 10.0
"""A reply that takes a few seconds is never packed."""
PACK_EVENTS = 16
"""From this number on, text that is not packed yet is packed as well: a long answer takes 100 kB in single pieces."""
MAX_PACKED = 5_000
"""Events of one topic that are packed, its first: with all, the event loop would be held up for as much as 0.2 s, and
once more for each listener that comes late.
"""


class TopicFull(RuntimeError):
    """A topic has got more events than it can be about."""


class Topic(Generic[T]):
    def __init__(self) -> None:
        self._id = ""
        self._packed: tuple[Packed[list[T]], ...] = ()
        """The first of the events, in the parts that were packed together."""
        self._packed_events = 0
        self._published: list[T] = []
        """Those after them."""
        self._pack_clock: asyncio.TimerHandle | None = None
        self._closed = False
        self._waiting: list[_Listener[T]] = []

    @property
    def id(self) -> str:
        """Return a name of this very topic, as no other has."""
        self._id = self._id or secrets.token_hex(8)
        return self._id

    def publish(self, event: T) -> None:
        """Raises TopicFull, and RuntimeError once it is closed."""
        if self._closed:
            raise RuntimeError("the topic is closed")
        if self._packed_events + len(self._published) >= MAX_EVENTS:
            raise TopicFull(f"a topic has at most {MAX_EVENTS} events")
        self._published.append(event)
        if len(self._published) == PACK_EVENTS:
            self.pack_later()
        if self._waiting:
            self._waiting = [listener for listener in self._waiting if not listener.wakes_for(event)]

    def pack_later(self) -> None:
        """Keep in little memory, after some seconds, what is published by then."""
        if self._pack_clock is None and self._packed_events < MAX_PACKED and not self._closed:
            loop = asyncio.get_running_loop()
            self._pack_clock = loop.call_later(PACK_SECONDS, call_in_turn, self.pack)

    def pack(self) -> None:
        """Keep in little memory what was published first; each listener that comes late unpacks it for itself."""
        self._pack_clock = None
        count = min(len(self._published), MAX_PACKED - self._packed_events)
        if count and not self._closed:
            self._packed = (*self._packed, Packed(self._published[:count]))
            self._packed_events += count
            self._published = self._published[count:]

    def _next_of(self, listener: "_Listener[T]") -> list[T]:
        events = self._after(listener.place)
        listener.place += len(events)
        return events

    def published(self) -> list[T]:
        return self._after(0)

    def _after(self, place: int) -> list[T]:
        """Return the events after the first ``place``."""
        if place >= self._packed_events:
            return self._published[place - self._packed_events :]
        packed = [event for part in self._packed for event in part.unpacked()]
        return packed[place:] + self._published

    def close(self) -> None:
        """End the topic; listeners end when they have read all."""
        self._closed = True
        if self._pack_clock is not None:
            self._pack_clock.cancel()
        for listener in self._waiting:
            listener.wake()
        self._waiting = []

    async def listen(self) -> AsyncGenerator[T, None]:
        """Yield all that was and will be published, in order, until the topic is closed."""
        async with aclosing(self.batches()) as batches:
            async for events in batches:
                for event in events:
                    yield event

    async def batches(
        self, direct: DirectReader[T] | None = None, revocation: Revocation | None = None, *, after: int = 0
    ) -> AsyncGenerator[Sequence[T], None]:
        """Yield as ``listen`` does, all waiting events at a time; a batch is never empty. ``after``: without the first.

        ``direct`` is called with what is published while this listener waits for it; what it takes is in no batch.
        There are no more once the listener's key is revoked.
        """
        listener = _Listener(direct, after)
        if revocation is not None:
            revocation.watch(listener.wake)
        try:
            while revocation is None or not revocation.is_published:
                if listener.place < self._packed_events + len(self._published):
                    yield self._next_of(listener)  # without a name here: while it waits, it holds no event
                    continue
                if self._closed:
                    return
                self._waiting.append(listener)
                await listener.woken()
        finally:
            if revocation is not None:
                revocation.unwatch(listener.wake)
            self._waiting = [other for other in self._waiting if other is not listener]


class _Listener(Generic[T]):
    """A listener with all events so far, which waits for more."""

    __slots__ = ("_direct", "_news", "place")

    def __init__(self, direct: DirectReader[T] | None, place: int) -> None:
        self._direct = direct
        self._news: asyncio.Future[None] | None = None
        self.place = place

    async def woken(self) -> None:
        self._news = asyncio.get_running_loop().create_future()
        await self._news

    def wake(self) -> None:
        if self._news is not None and not self._news.done():
            self._news.set_result(None)

    def wakes_for(self, event: T) -> bool:
        """Return whether the event is for a batch; else it has been dealt with."""
        if self._direct is not None and self._direct(event):
            self.place += 1
            return False
        self.wake()
        return True


class Broadcast(Generic[T]):
    """Topics by name, from ``open`` to ``close``."""

    def __init__(self) -> None:
        self._topics: dict[str, Topic[T]] = {}

    def open(self, name: str) -> Topic[T]:
        """The topic of that name, made when there is none: a listener may come before the publisher."""
        return self._topics.setdefault(name, Topic())

    def names(self) -> list[str]:
        return list(self._topics)

    def find(self, name: str) -> Topic[T] | None:
        return self._topics.get(name)

    def detach(self, name: str) -> Topic[T] | None:
        """Return the topic of that name, which has the name no longer, and stays open."""
        return self._topics.pop(name, None)

    def close(self, name: str) -> None:
        topic = self._topics.pop(name, None)
        if topic is not None:
            topic.close()
