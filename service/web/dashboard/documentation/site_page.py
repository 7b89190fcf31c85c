"""A page about one site, in the frame that all of them share: its name, its parts, and what can be done with it."""

from aiohttp import web

from service.queries.projects import get_project
from service.queries.sites import Site
from service.web.dashboard.page import dashboard_page
from service.web.http.access.people import Member
from service.web.http.app_keys import VIEWS


async def site_page(
    request: web.Request, viewer: Member, template: str, site: Site, *, status: int = 200, **values: object
) -> web.Response:
    """Return a page whose template extends ``site_base.html``. A live website is only read: no job is offered."""
    project = await get_project(request.app[VIEWS], site.view.project_id)
    can_be_changed = project is not None and project.code_host != "website"
    shown = {"site": site.view, "project": project, "can_be_changed": can_be_changed, **values}
    return dashboard_page(request, viewer, template, status=status, **shown)
