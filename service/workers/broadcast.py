"""Live events from whoever makes them to whoever listens, in this process.

A topic keeps what was told while it is open, and each listener has its own place in it: one that comes late gets all
from the start, one that is slow is only behind, and neither costs the teller or the other listeners anything: there is
no queue for each of them that could fill up. What a topic can hold is bounded by what it is about, one reply, and by
``MAX_EVENTS``.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Generic, TypeVar

T = TypeVar("T")

MAX_EVENTS = 250_000
"""In one topic: more than any reply has."""


class TopicFull(RuntimeError):
    """A topic has got more events than it can be about."""


class Topic(Generic[T]):
    def __init__(self) -> None:
        self._told: list[T] = []
        self._closed = False
        self._news = asyncio.Event()

    def tell(self, event: T) -> None:
        """Raises TopicFull, and RuntimeError once it is closed."""
        if self._closed:
            raise RuntimeError("the topic is closed")
        if len(self._told) >= MAX_EVENTS:
            raise TopicFull(f"a topic has at most {MAX_EVENTS} events")
        self._told.append(event)
        self._wake()

    def close(self) -> None:
        """No more will be told; listeners end when they have read all."""
        self._closed = True
        self._wake()

    async def listen(self) -> AsyncGenerator[T, None]:
        """All that was and will be told, in order, until the topic is closed."""
        async with aclosing(self.batches()) as batches:
            async for events in batches:
                for event in events:
                    yield event

    async def batches(self) -> AsyncGenerator[Sequence[T], None]:
        """As ``listen``, as many at a time as there are; never none."""
        place = 0
        while True:
            news = self._news
            if place < len(self._told):
                told = self._told[place:]
                place += len(told)
                yield told
                continue
            if self._closed:
                return
            await news.wait()

    def _wake(self) -> None:
        self._news.set()
        self._news = asyncio.Event()


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
