"""Live events from whoever makes them to whoever listens, in this process.

A topic keeps what was told while it is open, and each listener has its own place in it: one that comes late gets all
from the start, one that is slow is only behind, and neither costs the teller or the other listeners anything: there is
no queue for each of them that could fill up. What a topic can hold is bounded by what it is about, one reply, and by
``MAX_EVENTS``.

Who has heard all may be told the next event in the call that tells it (``at_once``): waking a task for each piece of a
reply costs as much as all else that is done with the piece.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import Generic, TypeVar

from service.queries.keys import Revocation

T = TypeVar("T")

MAX_EVENTS = 250_000
"""In one topic: more than any reply has."""


class TopicFull(RuntimeError):
    """A topic has got more events than it can be about."""


class Topic(Generic[T]):
    def __init__(self) -> None:
        self._told: list[T] = []
        self._closed = False
        self._waiting: list[_Listener[T]] = []

    def publish(self, event: T) -> None:
        """Raises TopicFull, and RuntimeError once it is closed."""
        if self._closed:
            raise RuntimeError("the topic is closed")
        if len(self._told) >= MAX_EVENTS:
            raise TopicFull(f"a topic has at most {MAX_EVENTS} events")
        self._told.append(event)
        if self._waiting:
            self._waiting = [listener for listener in self._waiting if not listener.wakes_for(event)]

    def close(self) -> None:
        """No more will be told; listeners end when they have read all."""
        self._closed = True
        for listener in self._waiting:
            listener.wake()
        self._waiting = []

    async def listen(self) -> AsyncGenerator[T, None]:
        """All that was and will be told, in order, until the topic is closed."""
        async with aclosing(self.batches()) as batches:
            async for events in batches:
                for event in events:
                    yield event

    async def batches(
        self, at_once: Callable[[T], bool] | None = None, revocation: Revocation | None = None
    ) -> AsyncGenerator[Sequence[T], None]:
        """As ``listen``, as many at a time as there are; never none.

        ``at_once`` is given what is told while this listener waits for it, by the teller: it must neither raise nor
        take its time. An event for which it returns False comes in the next batch, and what follows behind it.
        There are no more once the listener's key is revoked.
        """
        listener = _Listener(at_once)
        if revocation is not None:
            revocation.watch(listener.wake)
        try:
            while revocation is None or not revocation.is_published:
                if listener.place < len(self._told):
                    told = self._told[listener.place :]
                    listener.place += len(told)
                    yield told
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
    """Who has heard all that was told so far, and waits for more."""

    __slots__ = ("_at_once", "_news", "place")

    def __init__(self, at_once: Callable[[T], bool] | None) -> None:
        self._at_once = at_once
        self._news: asyncio.Future[None] | None = None
        self.place = 0

    async def woken(self) -> None:
        self._news = asyncio.get_running_loop().create_future()
        await self._news

    def wake(self) -> None:
        if self._news is not None and not self._news.done():
            self._news.set_result(None)

    def wakes_for(self, event: T) -> bool:
        """Whether the event is for a batch; else it has been dealt with."""
        if self._at_once is not None and self._at_once(event):
            self.place += 1
            return False
        self.wake()
        return True


class Broadcast(Generic[T]):
    """Topics by name, from ``open`` to ``close``."""

    def __init__(self) -> None:
        self._topics: dict[str, Topic[T]] = {}

    def open(self, name: str) -> Topic[T]:
        """The topic of that name, made when there is none: a listener may come before the teller."""
        return self._topics.setdefault(name, Topic())

    def find(self, name: str) -> Topic[T] | None:
        return self._topics.get(name)

    def close(self, name: str) -> None:
        topic = self._topics.pop(name, None)
        if topic is not None:
            topic.close()
