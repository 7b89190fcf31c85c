"""The filters that the pages about readers share: the last days, and a site."""

from collections.abc import Mapping, Sequence

from aiohttp import web
from msgspec import Struct

from service.queries.projects import list_organization_projects
from service.queries.readers.analytics import Days
from service.queries.readers.questions import Period
from service.runtime.system import now
from service.views.projects import ProjectView
from service.web.http.access.people import Member
from service.web.http.app_keys import VIEWS
from service.web.http.query_params import query_param

DAYS = {"1": "Today", "7": "Last 7 days", "30": "Last 30 days", "90": "Last 90 days", "365": "Last year"}
EVER = ""
UNKNOWN = "unknown"
"""Stands for a site that is not the organization's, so that no one's words come into the log by an address."""
MAX_CURSOR = 18
"""Digits."""


class Filters(Struct, frozen=True):
    """Choices that the address of a page makes."""

    days: str
    site: str
    projects: Sequence[ProjectView]
    """All of the organization's."""

    @property
    def project(self) -> ProjectView | None:
        return next((project for project in self.projects if project.domain == self.site), None)

    @property
    def project_id(self) -> str | None:
        """Return the project of the chosen site; None for all. A site that is not the organization's has none."""
        return None if not self.site else self.project.id if self.project is not None else ""

    @property
    def domains(self) -> Mapping[str, str]:
        """Return the site of each project."""
        return {project.id: project.domain for project in self.projects}

    @property
    def sites(self) -> Sequence[tuple[str, str]]:
        """Return the choices of a list of sites."""
        return [("", "All sites"), *((project.domain, project.domain) for project in self.projects)]

    @property
    def query(self) -> Mapping[str, str]:
        return {name: value for name, value in (("days", self.days), ("site", self.site)) if value}

    @property
    def chosen(self) -> Mapping[str, str]:
        """Return the query of the same page, for one that shows less than all time by itself."""
        return {"days": self.days or "all", **({"site": self.site} if self.site else {})}

    def period(self) -> Period:
        """Return the period; of days it is the same for the whole of a day in UTC."""
        return Days.until(now().date(), days=int(self.days)).period if self.days else Period()


async def filters_of(request: web.Request, viewer: Member, *, days: str) -> Filters:
    """Return what the query chooses; ``days`` where it chooses none. A value that is no choice counts as none."""
    chosen = choice(request, "days", (*DAYS, "all"), days)
    projects = await list_organization_projects(request.app[VIEWS], viewer.organization_id)
    site = choice(request, "site", [project.domain for project in projects], UNKNOWN)
    return Filters(EVER if chosen == "all" else chosen, site if query_param(request, "site") else "", projects)


def choice(request: web.Request, name: str, choices: Sequence[str], default: str = "") -> str:
    value = query_param(request, name)
    return value if value is not None and value in choices else default


def cursor_place(request: web.Request, start: int) -> int:
    """Return the place that the cursor of a list names."""
    text = query_param(request, "cursor") or ""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= MAX_CURSOR else start
