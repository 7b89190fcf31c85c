"""Long answers: keep-alives while nothing happens, an early end when the server goes down or their key is revoked."""

import asyncio
import socket
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AbstractContextManager, suppress
from typing import TypeVar

from aiohttp import web

from service.queries.access.keys import Revocation

T = TypeVar("T")

KEEP_ALIVE_SECONDS = 15.0
"""Proxies cut connections that are silent for 30 to 60 seconds."""
SLOTS = 60
"""Parts of that time, each with its own readers: one write for each of thousands would hold the event loop up."""
UNACKNOWLEDGED_SECONDS = 120
"""A reader's system that acknowledges nothing for this long is gone, and its connection is cut."""
_TCP_USER_TIMEOUT: int | None = getattr(socket, "TCP_USER_TIMEOUT", None)
"""Linux has it; elsewhere a reader who is gone is noticed once too much waits for it."""


async def with_keep_alives(
    events: AsyncGenerator[T, None],
    closing: asyncio.Event | None = None,
    *,
    revocation: Revocation | None = None,
    seconds: float = KEEP_ALIVE_SECONDS,
) -> AsyncGenerator[T | None, None]:
    """Yield the events, and a None for each ``seconds`` without one; end once ``closing`` is set or the key revoked.

    Close it (``aclosing``): it closes the events, which cannot be closed while the next one is waited for.
    """
    closed = asyncio.ensure_future((closing or asyncio.Event()).wait())
    upcoming = asyncio.ensure_future(_next(events))
    if revocation is not None:
        revocation.watch(closed.cancel)
    try:
        while True:
            await asyncio.wait({upcoming, closed}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if revocation is not None and revocation.is_published:
                return
            if upcoming.done():
                found = upcoming.result()
                if found is None:
                    return
                yield found[0]
                del found
                upcoming = asyncio.ensure_future(_next(events))
            elif closed.done():
                return
            else:
                yield None
    finally:
        if revocation is not None:
            revocation.unwatch(closed.cancel)
        for waiting in (upcoming, closed):
            waiting.cancel()
        await asyncio.gather(upcoming, closed, return_exceptions=True)
        await events.aclose()


class KeepAlives:
    """Sends something to each reader of a long answer from time to time, with one clock for all of them.

    A task, a clock and a future for each took 1.5 kB of a reply whose model is slow.
    """

    def __init__(self, data: bytes, *, seconds: float = KEEP_ALIVE_SECONDS) -> None:
        self._data, self._slot_seconds = data, seconds / SLOTS
        self._slots: list[set[_KeptAlive]] = [set() for _ in range(SLOTS)]
        self._at = 0
        """The slot that had its turn last."""
        self._clock: asyncio.TimerHandle | None = None
        self._readers = 0

    def of(self, request: web.Request, response: web.StreamResponse) -> AbstractContextManager[None]:
        """Keep the connection of an answer that has begun from being silent, and have it cut if its reader is gone."""
        return _KeptAlive(self, request.transport, response)

    def add(self, reader: "_KeptAlive") -> set["_KeptAlive"]:
        """Return the set that the reader is in: it has its turn when the whole time is over."""
        self._readers += 1
        if self._clock is None:
            self._clock = asyncio.get_running_loop().call_later(self._slot_seconds, self._turn)
        self._slots[self._at].add(reader)
        return self._slots[self._at]

    def remove(self, reader: "_KeptAlive", slot: set["_KeptAlive"]) -> None:
        slot.discard(reader)
        self._readers -= 1
        if not self._readers and self._clock is not None:
            self._clock.cancel()
            self._clock = None

    def _turn(self) -> None:
        self._clock = asyncio.get_running_loop().call_later(self._slot_seconds, self._turn)
        self._at = (self._at + 1) % SLOTS
        for reader in self._slots[self._at]:
            reader.write(self._data)


class _KeptAlive(AbstractContextManager[None, None]):
    __slots__ = ("_all", "_response", "_slot", "_transport")

    def __init__(
        self, keep_alives: KeepAlives, transport: asyncio.Transport | None, response: web.StreamResponse
    ) -> None:
        self._all, self._transport, self._response = keep_alives, transport, response

    def __enter__(self) -> None:
        self._slot = self._all.add(self)
        self._cut_after(UNACKNOWLEDGED_SECONDS)

    def __exit__(self, *_: object) -> None:
        self._all.remove(self, self._slot)
        self._cut_after(0)  # as it was: the connection's next answers are short

    def write(self, data: bytes) -> None:
        """Write, unless more waits for the reader: a connection that takes nothing of it is cut (``connections``)."""
        transport = self._transport
        if transport is not None and not transport.is_closing() and not transport.get_write_buffer_size():
            write_now(self._response, data)

    def _cut_after(self, seconds: int) -> None:
        """Have the system cut the connection when what it sent is not acknowledged in this time; 0: in its own."""
        given: socket.socket | None = self._transport.get_extra_info("socket") if self._transport is not None else None
        if _TCP_USER_TIMEOUT is None or given is None or given.fileno() < 0:
            return
        if given.family in (socket.AF_INET, socket.AF_INET6):
            given.setsockopt(socket.IPPROTO_TCP, _TCP_USER_TIMEOUT, seconds * 1000)


def write_now(response: web.StreamResponse, data: bytes) -> None:
    """Hand data to the connection, without a task that waits for its reader.

    aiohttp's ``StreamWriter.write`` gives all of the data to the transport before it first waits, and then waits only
    for a reader who is behind, as the next write does: so the first step of the coroutine is all of it. A connection
    that is gone is left to the task that writes the rest.
    """
    writing = response.write(data)
    with suppress(StopIteration, ConnectionError):
        writing.send(None)
        writing.close()


async def _next(events: AsyncIterator[T]) -> tuple[T] | None:
    async for event in events:
        return (event,)
    return None
