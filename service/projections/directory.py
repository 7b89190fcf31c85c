"""Projects in memory, for those who look one up with each request."""

from collections.abc import Awaitable, Callable
from contextlib import suppress

from eventstore import EventStore, StoreUnavailable, Views
from service.projections.projects import ProjectRow, get_project, project_of_domain
from service.streams import PROJECTS

MAX_ROWS = 10_000


class ProjectDirectory:
    """The projects that were asked for, as they are in the read models as of the last change of a project.

    ``run`` keeps up with changes: this process's are seen at once, those of others within 25 ms or so.
    """

    def __init__(self, store: EventStore, views: Views) -> None:
        self._store, self._views = store, views
        self._position = 0
        self._by_id: dict[str, ProjectRow] = {}
        self._by_domain: dict[str, ProjectRow] = {}

    async def load(self) -> None:
        self._position = await self._store.head()

    async def run(self) -> None:
        """Follow the log until cancelled."""
        async for batch in self._store.follow(after=self._position, category=PROJECTS.category):
            self._position = batch[-1].position
            self._by_id.clear()
            self._by_domain.clear()

    def known(self, project_id: str, organization_id: str) -> ProjectRow | None:
        """As ``by_id``, of those in memory; None says nothing."""
        row = self._by_id.get(project_id)
        return row if row is not None and row.organization_id == organization_id else None

    async def by_id(self, project_id: str, organization_id: str) -> ProjectRow | None:
        """An organization's project. One that is not there takes as long as one of somebody else."""
        return await self._find(self._by_id, get_project, project_id, organization_id)

    async def by_domain(self, domain: str, organization_id: str) -> ProjectRow | None:
        """The project of an organization's site, as ``by_id``."""
        return await self._find(self._by_domain, project_of_domain, domain, organization_id)

    async def _find(
        self,
        rows: dict[str, ProjectRow],
        find: Callable[[Views, str], Awaitable[ProjectRow | None]],
        name: str,
        organization_id: str,
    ) -> ProjectRow | None:
        row = rows.get(name)
        if row is not None and row.organization_id == organization_id:
            return row
        position = max(self._position, await self._store.head())  # it may have been made a moment ago
        if self._views.trouble is None:
            with suppress(StoreUnavailable):  # a disk that is full just now: what is known already is still served
                await self._views.wait_for(position)
        row = await find(self._views, name)
        if row is None or row.organization_id != organization_id:
            if self._views.trouble is not None:
                raise StoreUnavailable(self._views.trouble)
            return None
        if self._position <= position and self._views.trouble is None:
            if len(rows) >= MAX_ROWS:
                rows.clear()
            rows[name] = row
        return row
