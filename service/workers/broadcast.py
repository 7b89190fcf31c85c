"""Live events from whoever makes them to whoever listens, in this process.

A topic keeps what was told while it is open, and each listener has its own place in it: one that comes late gets all
from the start, one that is slow is only behind, and neither costs the teller or the other listeners anything. What a
topic can hold is bounded by what it is about: one reply.
"""

import asyncio
from collections.abc import AsyncGenerator
from typing import Generic, TypeVar

T = TypeVar("T")


class Topic(Generic[T]):
    def __init__(self) -> None:
        self._told: list[T] = []
        self._closed = False
        self._news = asyncio.Event()

    def tell(self, event: T) -> None:
        if self._closed:
            raise RuntimeError("the topic is closed")
        self._told.append(event)
        self._wake()

    def close(self) -> None:
        """No more will be told; listeners end when they have read all."""
        self._closed = True
        self._wake()

    async def listen(self) -> AsyncGenerator[T, None]:
        """All that was and will be told, in order, until the topic is closed."""
        place = 0
        while True:
            news = self._news
            while place < len(self._told):
                yield self._told[place]
                place += 1
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
