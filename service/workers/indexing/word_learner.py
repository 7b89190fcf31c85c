"""Learns vectors of words from each site's own text, in a child process, where the settings ask for them."""

from collections.abc import Callable
from pathlib import Path

import structlog

from eventstore import EventStore, Views
from service.domain.errors import ServiceError
from service.domain.sites import SiteIndexed
from service.queries.sites import list_sites
from service.retrieval.index.own_vectors import update_own_vectors
from service.retrieval.search.query import SiteIndexes
from service.runtime.processes import run_in_child
from service.streams import SITES, decoded

log = structlog.get_logger()

SECONDS, MEMORY_BYTES = 300.0, 2 * 1024**3


class WordLearner:
    def __init__(self, store: EventStore, views: Views, index: SiteIndexes) -> None:
        self._store, self._views, self._index = store, views, index

    async def run(self) -> None:
        """Run until cancelled: every site that has an index, then each that gets a new one."""
        after = await self._store.head()
        for site in await list_sites(self._views):
            if site.file is not None:
                await self._learn(site.view.domain, site.file)
        async for recorded in self._store.subscribe(after=after, category=SITES.category):
            for domain, event in decoded(SITES, [recorded]):
                if isinstance(event, SiteIndexed):
                    await self._learn(domain, event.file)

    async def _learn(self, domain: str, file: str) -> None:
        try:
            folder = self._index.path_of(domain, file)
            if not folder.is_dir():
                return  # replaced already: its event follows
            sections = await run_in_child(
                _update, folder, timeout_seconds=SECONDS, memory_bytes=MEMORY_BYTES, on_progress=lambda _: None
            )
        except (ServiceError, RuntimeError, OSError, ValueError, LookupError) as error:
            log.warning("words not learned", domain=domain, reason=f"{type(error).__name__}: {error}"[:500])
        else:
            if sections:
                log.info("words learned", domain=domain, sections=sections)


def _update(folder: Path, report: Callable[[object], None]) -> int:  # noqa: ARG001  (every child gets one)
    return update_own_vectors(folder)
