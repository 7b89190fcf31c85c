"""Carry out in this process the erasures that the log records, from whichever process they came."""

import asyncio

import structlog

from eventstore import EventStore, StoreUnavailable, Views
from service.integrity.erasing import repeat_erasures_if_writable
from service.streams import ERASURES, decoded

log = structlog.get_logger()

RETRY_SECONDS = 1.0


class Erasures:
    def __init__(self, store: EventStore, views: Views) -> None:
        self._store, self._views = store, views
        self._done = 0

    async def repeat(self) -> None:
        """Repeat the erasures before the first request is served. A full disk does not prevent serving."""
        self._done = await self._store.head()
        await repeat_erasures_if_writable(self._store, through=self._done)

    async def run(self) -> None:
        """Run until cancelled: forget what this process holds in memory, and empty the files that it keeps open."""
        async for recorded in self._store.subscribe(after=self._done, category=ERASURES.category):
            for subject, _ in decoded(ERASURES, [recorded]):
                await self._forget(subject, recorded.position)

    async def _forget(self, subject: str, position: int) -> None:
        while True:
            try:
                await self._store.erase(subject)
                await self._views.wait_for(position)
                await self._views.scrub()
                return
            except (StoreUnavailable, TimeoutError) as error:
                log.warning("an erasure is not complete yet", subject=subject, reason=str(error))
                await asyncio.sleep(RETRY_SECONDS)
