"""News of a pull request of the embedded code host, for its page as members have it open."""

from collections.abc import AsyncGenerator

from aiohttp import web

from service.domain.errors import NotFound
from service.queries.jobs.organization_jobs import follow_pull_request
from service.queries.projects import get_project
from service.web.dashboard.page import Live, live
from service.web.http.access.people import member
from service.web.http.app_keys import STORE, VIEWS

PAUSE_SECONDS = 1.0
"""From one reading of the page to the next."""

routes = web.RouteTableDef()


@routes.get(r"/dashboard/{organizationId}/pulls/{projectId}/{number:\d{1,9}}/live")
async def follow(request: web.Request) -> web.StreamResponse:
    """Say each time that the pull request or a job on it has changed; the page then reads itself again."""
    viewer = await member(request)
    project = await get_project(request.app[VIEWS], request.match_info["projectId"])
    if project is None or project.organization_id != viewer.organization_id:
        raise NotFound("Project not found. Check the address.", code="project_not_found")
    return await live(request, _changes(request, project.id, int(request.match_info["number"])))


async def _changes(request: web.Request, project_id: str, number: int) -> AsyncGenerator[Live, None]:
    store, views = request.app[STORE], request.app[VIEWS]
    async for _ in follow_pull_request(store, views, project_id, number, pause_seconds=PAUSE_SECONDS):
        yield Live("changed")
