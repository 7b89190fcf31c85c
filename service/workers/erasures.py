"""Carries out in this process what the log says was erased, whoever erased it."""

import asyncio

import structlog

from eventstore import EventStore, StoreUnavailable, Views
from service.streams import ERASURES, decoded

log = structlog.get_logger()

RETRY_SECONDS = 1.0
PAGE = 1000


async def repeat_erasures(store: EventStore, *, through: int | None = None) -> int:
    """Erase again what the log says was erased: the vault may have been put back from a backup. How many they were.

    Called before anything is read that may be personal: from then on this store shows nothing of it, even when the
    vault cannot be written.

    Raises StoreUnavailable.
    """
    after, subjects = 0, list[str]()
    while page := await store.read_all(after=after, category=ERASURES.category, limit=PAGE):
        after = page[-1].position
        subjects += [
            ERASURES.entity_id(recorded.stream) for recorded in page if through is None or recorded.position <= through
        ]
    if subjects:
        await store.erase_all(subjects)
    return len(subjects)


async def repeat_erasures_if_writable(store: EventStore, *, through: int | None = None) -> None:
    """As ``repeat_erasures``; a vault that cannot be written is a warning, since nothing erased is shown anyway."""
    try:
        await repeat_erasures(store, through=through)
    except StoreUnavailable as error:
        log.warning("what was erased could not be erased again", reason=str(error))


class Erasures:
    def __init__(self, store: EventStore, views: Views) -> None:
        self._store, self._views = store, views
        self._done = 0

    async def repeat(self) -> None:
        """Before anybody is served. A full disk keeps nobody from being served, though."""
        self._done = await self._store.head()
        await repeat_erasures_if_writable(self._store, through=self._done)

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
