"""``/dashboard/{organizationId}/usage``: the requests of an organization by day, key and project, and its limits."""

import re

from aiohttp import web

from service.commands.projects import change_cost_bound
from service.domain.errors import Invalid
from service.domain.projects.decider import project_not_found
from service.queries.projects import get_project
from service.queries.read_models import wait_for_head
from service.web.api.organization.usage import DAYS, usage_of
from service.web.dashboard.page import dashboard_page, see_other
from service.web.http.access.people import member, metadata
from service.web.http.app_keys import STORE, VIEWS
from service.web.http.forms import SMALL_FORM_BYTES, read_form

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
        "access/usage.html",
        usage=usage,
        questions=[(day.day, day.assistant) for day in usage.days],
        jobs=[(day.day, day.agent) for day in usage.days],
        days=days,
        periods=PERIODS,
        scopes=SCOPES,
        windows=WINDOWS,
    )


@routes.post("/dashboard/{organizationId}/usage/bounds")
async def change_bound(request: web.Request) -> web.Response:
    """Set the cost bound of one site; empty or 0 for no own bound."""
    viewer = await member(request, "owner")
    form = await read_form(request, max_bytes=SMALL_FORM_BYTES)
    views = request.app[VIEWS]
    project = await get_project(views, form.get("project", ""))
    if project is None or project.organization_id != viewer.organization_id:
        raise project_not_found()
    text = form.get("usd", "").strip() or "0"
    if not re.fullmatch(r"[0-9]{1,7}(\.[0-9]{1,6})?", text):
        raise Invalid(f"A cost limit is a number of US dollars, such as 2.50; {text[:40]!r} is not.")
    position = await change_cost_bound(request.app[STORE], project.id, float(text), metadata(request))
    await views.wait_for(position)
    notice = f"The cost limit of {project.domain} is changed."
    return see_other(request, f"dashboard/{viewer.organization_id}/usage", notice=notice)
