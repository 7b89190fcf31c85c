"""Looks now and then whether what others keep has changed: repositories that send no webhook, live websites.

Only a change is recorded, as a wish to index; a look that finds nothing leaves no trace in the log.
"""

import asyncio
from collections.abc import Sequence

import structlog

from eventstore import EventStore, Metadata, StoreUnavailable, Views
from service.commands.sites import request_index
from service.domain.errors import ServiceError
from service.ports.docs_source import DocsSource
from service.queries.projects import list_projects, source_of
from service.queries.sites import get_site
from service.views.projects import ProjectView
from service.workers.fair_slots import FairSlots, fetch_slots

log = structlog.get_logger()


class Poller:
    """``minutes`` between the beginnings of two rounds. An organization whose round takes longer misses the next."""

    def __init__(
        self,
        store: EventStore,
        views: Views,
        docs: DocsSource,
        *,
        minutes: float,
        fetches: FairSlots | None = None,
    ) -> None:
        self._store, self._views, self._docs, self._seconds = store, views, docs, minutes * 60
        self._fetches = fetches or fetch_slots()
        self._looking: dict[str, asyncio.Task[None]] = {}
        """By organization."""

    async def run(self) -> None:
        """Run until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                await asyncio.sleep(self._seconds)
                await self._begin(group)

    async def look(self) -> None:
        """One round of all organizations, to its end."""
        async with asyncio.TaskGroup() as group:
            await self._begin(group)

    async def _begin(self, group: asyncio.TaskGroup) -> None:
        projects: dict[str, list[ProjectView]] = {}
        for project in await list_projects(self._views):
            if project.code_host != "local":  # those are ours: their pushes and merges are known
                projects.setdefault(project.organization_id, []).append(project)
        self._looking = {name: task for name, task in self._looking.items() if not task.done()}
        for organization_id, theirs in projects.items():
            if organization_id not in self._looking:
                self._looking[organization_id] = group.create_task(self._look_at(theirs))

    async def _look_at(self, projects: Sequence[ProjectView]) -> None:
        """Each site in turn, so that a slow one costs its own organization's others time and nothing else."""
        for project in projects:
            try:
                site = await get_site(self._views, project.domain)
                if site is None or site.view.index_wanted:
                    continue
                async with self._fetches.held(project.organization_id):
                    fetched = await self._docs.fetch(source_of(project))
                if fetched.base_commit != site.view.commit:
                    await request_index(self._store, project.domain, "its newest commit is another", Metadata())
            except (ServiceError, StoreUnavailable) as error:
                log.info("site not polled", domain=project.domain, error=type(error).__name__)
