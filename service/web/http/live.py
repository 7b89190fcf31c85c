"""Long answers: keep-alives while nothing happens, an early end when the server goes down or their key is revoked."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import TypeVar

from aiohttp import web

from service.queries.access.keys import Revocation

T = TypeVar("T")

KEEP_ALIVE_SECONDS = 15.0
"""Proxies cut connections that are silent for 30 to 60 seconds."""


async def with_keep_alives(
    events: AsyncIterator[T],
    closing: asyncio.Event | None = None,
    *,
    revocation: Revocation | None = None,
    seconds: float = KEEP_ALIVE_SECONDS,
) -> AsyncIterator[T | None]:
    """Yield the events, and a None for each ``seconds`` without one; end once ``closing`` is set or the key revoked."""
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
