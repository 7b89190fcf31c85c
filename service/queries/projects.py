"""Projects, from the read models, and in memory for requests that look one up each."""

import sqlite3
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress

import msgspec
from msgspec import Struct
from msgspec.structs import asdict

from eventstore import EventStore, StoreUnavailable, Views
from service.domain.projects.contexts import ContextRepository
from service.domain.projects.settings import ProjectSettings
from service.domain.texts.times import timestamp_from
from service.ports.docs_source import Source
from service.streams import PROJECTS
from service.views.projects import ContextView, ProjectView

MAX_IN_MEMORY = 10_000


async def list_projects(views: Views) -> list[ProjectView]:
    """Return all, oldest first."""
    return [_view(row) for row in await views.query("SELECT * FROM projects ORDER BY created_at, id", ())]


async def list_organization_projects(views: Views, organization_id: str) -> list[ProjectView]:
    """Return an organization's projects, oldest first."""
    rows = await views.query(
        "SELECT * FROM projects WHERE domain IN (SELECT domain FROM sites WHERE organization_id = ?)"
        " ORDER BY created_at, id",
        (organization_id,),
    )
    return [_view(row) for row in rows]


async def list_projects_of(views: Views, organization_id: str, *, after: str = "", limit: int) -> list[ProjectView]:
    """Return an organization's projects, by domain, those after a domain."""
    rows = await views.query(
        "SELECT * FROM projects WHERE domain IN"
        " (SELECT domain FROM sites WHERE organization_id = ? AND domain > ? ORDER BY domain LIMIT ?) ORDER BY domain",
        (organization_id, after, limit),
    )
    return [_view(row) for row in rows]


async def token_ids(views: Views) -> set[str]:
    """Return the names under which the vault keeps the tokens of all projects, and of their context repositories."""
    projects = await list_projects(views)
    of_contexts = {one.token_id for project in projects for one in project.contexts}
    return ({project.token_id for project in projects} | of_contexts) - {""}


async def get_project(views: Views, project_id: str) -> ProjectView | None:
    row = await views.query_one("SELECT * FROM projects WHERE id = ?", (project_id,))
    return _view(row) if row else None


async def organization_of(views: Views, project_id: str) -> str:
    """Return the id of a project's organization; empty where the project does not exist."""
    project = await get_project(views, project_id)
    return project.organization_id if project is not None else ""


async def project_of_domain(views: Views, domain: str) -> ProjectView | None:
    row = await views.query_one("SELECT * FROM projects WHERE domain = ?", (domain,))
    return _view(row) if row else None


async def cost_bound_of(views: Views, domain: str) -> tuple[float, str]:
    """Return the bound a day, in US dollars, that the owner of a site has set, 0 for none, and its organization."""
    project = await project_of_domain(views, domain)
    return (project.max_cost_usd_day, project.organization_id) if project is not None else (0.0, "")


def _view(row: sqlite3.Row) -> ProjectView:
    settings = msgspec.json.decode(row["settings"], type=ProjectSettings)
    values = {**asdict(settings), "contexts": tuple(ContextView(**asdict(one)) for one in settings.contexts)}
    return ProjectView(id=row["id"], created_at=timestamp_from(row["created_at"]), **values)


def source_of(project: ProjectView) -> Source:
    """Return where a project's documentation is, for the ports that read and change it."""
    return source_from(project.id, project)


def source_from(project_id: str, project: Struct) -> Source:
    """Return the source of anything with a project's fields, such as one that is not recorded yet."""
    names = [name for name in Source.__struct_fields__ if name in ProjectSettings.__struct_fields__]
    return Source(project_id, **{name: getattr(project, name) for name in names})


def context_sources(project_id: str, contexts: Iterable[ContextRepository | ContextView]) -> tuple[Source, ...]:
    """Return where a project's context repositories are, for the port that reads them. Their code host's API is never
    asked: its kind says nothing.
    """
    return tuple(
        Source(
            project_id, one.repository, one.ref, "", "github", git_token_env=one.token_env, context=one.name,
            guarded=not one.internal, public=one.public, token_id=one.token_id,
        )
        for one in contexts
    )  # fmt: skip


class ProjectDirectory:
    """Projects that were looked up, as they are in the read models as of the last change of a project.

    ``run`` keeps up with changes: this process's are seen at once, those of others within 25 ms or so.
    """

    def __init__(self, store: EventStore, views: Views) -> None:
        self._store, self._views = store, views
        self._position = 0
        self._by_id: dict[str, ProjectView] = {}
        self._by_domain: dict[str, ProjectView] = {}

    async def load(self) -> None:
        self._position = await self._store.head()

    async def run(self) -> None:
        """Follow the log until cancelled."""
        async for batch in self._store.follow(after=self._position, category=PROJECTS.category):
            self._position = batch[-1].position
            self._by_id.clear()
            self._by_domain.clear()

    def known(self, project_id: str, organization_id: str) -> ProjectView | None:
        """Return a project as ``by_id``, from memory; None says nothing."""
        row = self._by_id.get(project_id)
        return row if row is not None and row.organization_id == organization_id else None

    async def by_id(self, project_id: str, organization_id: str) -> ProjectView | None:
        """Return an organization's project. A missing one takes as long as one of another organization."""
        return await self._find(self._by_id, get_project, project_id, organization_id)

    async def by_domain(self, domain: str, organization_id: str) -> ProjectView | None:
        """Return the project of an organization's site, as ``by_id``."""
        return await self._find(self._by_domain, project_of_domain, domain, organization_id)

    async def _find(
        self,
        rows: dict[str, ProjectView],
        find: Callable[[Views, str], Awaitable[ProjectView | None]],
        name: str,
        organization_id: str,
    ) -> ProjectView | None:
        row = rows.get(name)
        if row is not None and row.organization_id == organization_id:
            return row
        position = max(self._position, await self._store.head())  # it may have been created a moment ago
        if self._views.trouble is None:
            with suppress(StoreUnavailable):  # a disk that is full just now: what is known already is still served
                await self._views.wait_for(position)
        row = await find(self._views, name)
        if row is None or row.organization_id != organization_id:
            if self._views.trouble is not None:
                raise StoreUnavailable(self._views.trouble)
            return None
        if self._position <= position and self._views.trouble is None:
            if len(rows) >= MAX_IN_MEMORY:
                rows.clear()
            rows[name] = row
        return row
