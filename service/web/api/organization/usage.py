"""An organization's use and limits: as the API answers them, and as the dashboard shows them."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Annotated, Any

from aiohttp import web
from msgspec import Meta

from service.domain.texts.times import timestamp
from service.queries.access.usage import cost_by_site, usage_by_day, usage_by_key, usage_by_project
from service.queries.organizations import get_organization
from service.runtime.system import now
from service.views.access.usage import LimitScope, LimitView, UsageOfView, UsageView
from service.web.api.description.operations import Answer, Parameter, Routes
from service.web.http.access.access import admin_key
from service.web.http.app_keys import COST_BOUNDS, VIEWS
from service.web.http.connections.limits import ADMISSIONS
from service.web.http.problems import json_response
from service.web.http.query_params import whole_param

MAX_DAYS, DAYS = 90, 30

USAGE_EXAMPLE: dict[str, Any] = {
    "limits": [
        {
            "scope": "project",
            "id": "5d0c8b1e",
            "name": "Guide",
            "limit": 100,
            "windowSeconds": 3600,
            "used": 3,
            "resetsAt": "2026-11-21T10:02:11.000Z",
        }
    ],
    "days": [{"day": "2026-11-21", "assistant": 128, "agent": 3}],
    "keys": [{"id": "5b0f1d8f3a524b7a9c1e7d33019a8e6c", "name": "CI", "assistant": 0, "agent": 3}],
    "projects": [{"id": "5d0c8b1e", "name": "Guide", "assistant": 128, "agent": 3}],
    "costs": [
        {
            "projectId": "5d0c8b1e",
            "domain": "guide",
            "spentTodayUsd": 0.42,
            "ownBoundUsdDay": 5.0,
            "boundUsdDay": 20.0,
        }
    ],
}

routes = Routes()


@routes.operation(
    "GET",
    "/v2/usage",
    "getUsage",
    "Organization",
    "Get usage and limits",
    {200: Answer("The accepted requests, and the limits as they stand.", UsageView, example=USAGE_EXAMPLE)},
    description="The requests that the limits count: questions to the assistant, new jobs, and messages to jobs.",
    parameters=(
        Parameter(
            "days",
            f"How many days, today included, 1 to {MAX_DAYS}; {DAYS} when not given.",
            Annotated[int, Meta(ge=1, le=MAX_DAYS)],
            example=DAYS,
        ),
    ),
)
async def show_usage(request: web.Request) -> web.Response:
    organization_id = (await admin_key(request)).state.organization_id
    days = whole_param(request, "days", DAYS, least=1, most=MAX_DAYS)
    return json_response(await usage_of(request, organization_id, days))


async def usage_of(request: web.Request, organization_id: str, days: int) -> UsageView:
    """Return the use of an organization in the last days, today included."""
    views, today = request.app[VIEWS], now().date()
    keys = await usage_by_key(views, organization_id, today, days)
    projects = await usage_by_project(views, organization_id, today, days)
    organization = await get_organization(views, organization_id)
    name = organization.name if organization is not None else ""
    limits = [
        limit
        for scope, one in _callers(UsageOfView(organization_id, name, 0, 0), keys, projects)
        if (limit := _limit(request, scope, one)) is not None
    ]
    by_day = await usage_by_day(views, organization_id, today, days)
    costs = await cost_by_site(views, organization_id, today, request.app[COST_BOUNDS]().site)
    return UsageView(tuple(limits), by_day, keys, projects, costs)


def _callers(
    organization: UsageOfView, keys: tuple[UsageOfView, ...], projects: tuple[UsageOfView, ...]
) -> Iterator[tuple[LimitScope, UsageOfView]]:
    yield "organization", organization
    yield from (("project", project) for project in projects if project.agent)
    yield from (("public-site", project) for project in projects if project.assistant)
    yield from (("assistant-key", key) for key in keys if key.id and key.assistant)


def _limit(request: web.Request, scope: LimitScope, one: UsageOfView) -> LimitView | None:
    """Return how far one is from a limit; None where there is no limit, or nothing of a public site's is used."""
    standing = request.app[ADMISSIONS].standing_of(scope, one.id)
    if standing is None:
        return None
    used = standing.limit - standing.remaining
    if scope == "public-site" and not used:
        return None
    resets_at = timestamp(now() + timedelta(milliseconds=standing.reset_milliseconds)) if used else None
    return LimitView(scope, one.id, one.name, standing.limit, standing.window_seconds, used, resets_at)
