"""Gives each section of each site its vector, in the background, where an embedding model is set.

What is done is kept by the content's hash: a restart goes on where it was, a new index needs only what changed, and
search uses what there is.
"""

import asyncio

import structlog

from eventstore import EventStore, Views
from service.domain.errors import NotFound, ServiceError, Unavailable
from service.domain.sites import SiteIndexed
from service.queries.sites import list_sites
from service.retrieval.search.meaning import Meaning
from service.retrieval.search.query import SiteIndexes
from service.streams import SITES, decoded

log = structlog.get_logger()

BATCH = 64
BATCH_SECONDS = 60.0
PAUSES_SECONDS = (1.0, 5.0, 30.0, 120.0, 600.0)
"""After failures in a row; the last one again and again."""


class Embedder:
    def __init__(
        self,
        store: EventStore,
        views: Views,
        index: SiteIndexes,
        meaning: Meaning,
        *,
        pauses_seconds: tuple[float, ...] = PAUSES_SECONDS,
    ) -> None:
        self._store, self._views, self._index, self._meaning = store, views, index, meaning
        self._pauses = pauses_seconds

    async def run(self) -> None:
        """Run until cancelled: every site that has an index, then each that gets a new one."""
        await self._meaning.prepare()
        after = await self._store.head()
        for site in await list_sites(self._views):
            if site.file is not None:
                await self._embed(site.view.domain)
        async for recorded in self._store.subscribe(after=after, category=SITES.category):
            for domain, event in decoded(SITES, [recorded]):
                if isinstance(event, SiteIndexed):
                    await self._use_and_embed(domain, event.file)

    async def _use_and_embed(self, domain: str, file: str) -> None:
        try:
            await self._index.use(domain, file)  # it may not have been taken up yet
        except ServiceError:
            return  # replaced already: its event follows
        await self._embed(domain)

    async def _embed(self, domain: str) -> None:
        """Until every section of the domain's index has a vector, or the model refuses one."""
        failures = 0
        while True:
            try:
                if not await self._embed_batch(domain):
                    return
                failures = 0
            except NotFound:
                return  # not served (yet): its event follows
            except Unavailable as error:
                pause = self._pauses[min(failures, len(self._pauses) - 1)]
                log.warning("embedding waits", domain=domain, reason=str(error), seconds=pause)
                await asyncio.sleep(max(pause, error.retry_after_seconds or 0.0))
                failures += 1
            except (ServiceError, ValueError) as error:
                log.warning("embedding stopped", domain=domain, reason=str(error))
                return

    async def _embed_batch(self, domain: str) -> bool:
        """One more batch; False when nothing is missing any more."""
        hashes = await self._index.hashes(domain)
        vectors = await self._meaning.vectors(domain)
        missing = await asyncio.to_thread(vectors.missing, hashes)
        if not missing:
            await asyncio.to_thread(vectors.keep_only, hashes)
            return False
        for at in range(0, len(missing), BATCH):
            texts = await self._index.meanings(domain, missing[at : at + BATCH])
            if not texts:
                return True  # another index has taken over
            made = await self._meaning.model.embed(list(texts.values()), timeout_seconds=BATCH_SECONDS)
            await asyncio.to_thread(vectors.add, dict(zip(texts, made, strict=True)))
        log.info("sections embedded", domain=domain, sections=len(missing))
        return True
