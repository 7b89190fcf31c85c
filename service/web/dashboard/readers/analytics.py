"""The sums of a period: questions, outcomes, ratings, times, cited pages, tokens and cost."""

from aiohttp import web

from service.queries.readers.analytics import Days, read_analytics, with_uncited_pages
from service.queries.readers.questions import catch_up_questions
from service.runtime.system import now
from service.web.dashboard.actors import actor_names
from service.web.dashboard.page import dashboard_page
from service.web.dashboard.readers.periods import DAYS, filters_of
from service.web.dashboard.readers.questions import CALLERS
from service.web.http.access.people import member
from service.web.http.app_keys import INDEX, STORE, VIEWS

DEFAULT_DAYS = "30"

routes = web.RouteTableDef()


@routes.get("/dashboard/{organizationId}/analytics")
async def show_analytics(request: web.Request) -> web.Response:
    """Show charts, each with its numbers as a table. Nothing of it is text that readers typed."""
    viewer = await member(request)
    filters = await filters_of(request, viewer, days=DEFAULT_DAYS)
    days = Days.until(now().date(), days=int(filters.days or DEFAULT_DAYS))
    views = request.app[VIEWS]
    await catch_up_questions(request.app[STORE], views)
    found = await read_analytics(views, viewer.organization_id, days, project_id=filters.project_id)
    if project := filters.project or (filters.projects[0] if len(filters.projects) == 1 else None):
        found = await with_uncited_pages(found, views, request.app[INDEX], project, days)
    return dashboard_page(
        request, viewer, "readers/analytics.html",
        found=found, filters=filters, all_days=DAYS, callers=CALLERS,
        name_of=await actor_names(request, viewer.organization_id),
    )  # fmt: skip
