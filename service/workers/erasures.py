"""Carries out in this process what the log says was erased, whoever erased it."""

import asyncio

import structlog

from eventstore import EventStore, StoreUnavailable, Views
from service.streams import ERASURES, decoded

log = structlog.get_logger()

RETRY_SECONDS = 1.0
PAGE = 1000


class Erasures:
    def __init__(self, store: EventStore, views: Views) -> None:
        self._store, self._views = store, views
        self._done = 0

    async def repeat(self) -> None:
        """Before anybody is served: a vault that was put back from a backup forgets again what it should."""
        while page := await self._store.read_all(after=self._done, category=ERASURES.category, limit=PAGE):
            for recorded in page:
                self._done = recorded.position
                for subject, _ in decoded(ERASURES, [recorded]):
                    try:
                        await self._store.erase(subject)
                    except StoreUnavailable as error:  # a full disk keeps nobody from being served
                        log.warning("an erasure could not be repeated", subject=subject, reason=str(error))

    async def run(self) -> None:
        """Until cancelled: forget what this process holds in memory, and empty the files that it keeps open."""
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
