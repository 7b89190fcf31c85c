"""``/dashboard/{organizationId}/usage``: the requests of an organization by day, key and project, and its limits."""

from aiohttp import web

from service.queries.read_models import wait_for_head
from service.web.api.organization.usage import DAYS, usage_of
from service.web.dashboard.page import dashboard_page
from service.web.http.app_keys import STORE, VIEWS
from service.web.http.people import member

PERIODS = (7, 30, 90)
SCOPES = {
    "organization": "Questions to all sites",
    "project": "New jobs and messages",
    "public-site": "Questions without a key",
    "assistant-key": "Questions with this key",
}
WINDOWS = {3600: "an hour", 24 * 3600: "a day", 30 * 24 * 3600: "30 days"}

routes = web.RouteTableDef()


@routes.get("/dashboard/{organizationId}/usage")
async def show_usage(request: web.Request) -> web.Response:
    viewer = await member(request)
    await wait_for_head(request.app[STORE], request.app[VIEWS])
    days = next((one for one in PERIODS if str(one) == request.query.get("days")), DAYS)
    usage = await usage_of(request, viewer.organization_id, days)
    return dashboard_page(
        request,
        viewer,
        "usage.html",
        usage=usage,
        questions=[(day.day, day.assistant) for day in usage.days],
        jobs=[(day.day, day.agent) for day in usage.days],
        days=days,
        periods=PERIODS,
        scopes=SCOPES,
        windows=WINDOWS,
    )
