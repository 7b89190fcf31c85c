"""Live events of this process, from publisher to listeners.

A topic keeps what was published while it is open, and each listener has its own place in it: one that comes late gets
all from the start, one that is slow is only behind, and neither costs the publisher or the other listeners anything:
there is no queue for each of them that could fill up. What a topic can hold is bounded by what it is about, one
reply, and by ``MAX_EVENTS``.

A listener with all events so far may take the next one in the call that publishes it (``service.ports.direct_reader``).
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Generic, TypeVar

from service.ports.direct_reader import DirectReader
from service.queries.keys import Revocation

T = TypeVar("T")

MAX_EVENTS = 250_000
"""Events of one topic: more than any reply has."""


class TopicFull(RuntimeError):
    """A topic has got more events than it can be about."""


class Topic(Generic[T]):
    def __init__(self) -> None:
        self._published: list[T] = []
        self._closed = False
        self._waiting: list[_Listener[T]] = []

    def publish(self, event: T) -> None:
        """Raises TopicFull, and RuntimeError once it is closed."""
        if self._closed:
            raise RuntimeError("the topic is closed")
        if len(self._published) >= MAX_EVENTS:
            raise TopicFull(f"a topic has at most {MAX_EVENTS} events")
        self._published.append(event)
        if self._waiting:
            self._waiting = [listener for listener in self._waiting if not listener.wakes_for(event)]

    def close(self) -> None:
        """End the topic; listeners end when they have read all."""
        self._closed = True
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
        self, direct: DirectReader[T] | None = None, revocation: Revocation | None = None
    ) -> AsyncGenerator[Sequence[T], None]:
        """Yield as ``listen`` does, all waiting events at a time; a batch is never empty.

        ``direct`` is called with what is published while this listener waits for it; what it takes is in no batch.
        There are no more once the listener's key is revoked.
        """
        listener = _Listener(direct)
        if revocation is not None:
            revocation.watch(listener.wake)
        try:
            while revocation is None or not revocation.is_published:
                if listener.place < len(self._published):
                    events = self._published[listener.place :]
                    listener.place += len(events)
                    yield events
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

    def __init__(self, direct: DirectReader[T] | None) -> None:
        self._direct = direct
        self._news: asyncio.Future[None] | None = None
        self.place = 0

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

    def find(self, name: str) -> Topic[T] | None:
        return self._topics.get(name)

    def close(self, name: str) -> None:
        topic = self._topics.pop(name, None)
        if topic is not None:
            topic.close()
