"""Looks now and then whether what others keep has changed: repositories that send no webhook, live websites.

Only a change is recorded, as a wish to index; a look that finds nothing leaves no trace in the log.
"""

import asyncio

import structlog

from eventstore import EventStore, Metadata, StoreUnavailable, Views
from service.domain.errors import ServiceError
from service.operations import request_index, source_of
from service.ports.docs_source import DocsSource
from service.projections.projects import list_projects
from service.projections.sites import get_site

log = structlog.get_logger()


class Poller:
    """``minutes`` between the end of one round and the next one's beginning."""

    def __init__(self, store: EventStore, views: Views, docs: DocsSource, *, minutes: float) -> None:
        self._store, self._views, self._docs, self._seconds = store, views, docs, minutes * 60

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await asyncio.sleep(self._seconds)
            await self.look()

    async def look(self) -> None:
        """One round: each site in turn, so that a slow one costs the others time and nothing else."""
        for project in await list_projects(self._views):
            if project.code_host == "local":
                continue  # it is ours, and its pushes and merges are known
            site = await get_site(self._views, project.domain)
            if site is None or site.index_wanted:
                continue
            try:
                fetched = await self._docs.fetch(source_of(project))
                if fetched.base_commit != site.commit:
                    await request_index(self._store, project.domain, "its newest commit is another", Metadata())
            except (ServiceError, StoreUnavailable) as error:
                log.info("site not polled", domain=project.domain, error=type(error).__name__)
