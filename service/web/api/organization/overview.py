"""Numbers of what waits for an organization's people, and its jobs over all projects."""

from typing import Annotated, cast, get_args

from aiohttp import web
from msgspec import Meta

from service.queries.jobs.organization_jobs import JobFilter, list_organization_jobs, with_queue_positions
from service.queries.overview import read_overview
from service.queries.read_models import wait_for_head
from service.queries.sites import list_organization_sites
from service.runtime.system import now
from service.views.jobs.jobs import OrganizationJobList
from service.views.overview import OverviewView
from service.web.api.description.operations import Answer, Parameter, Routes, cursor_parameter, limit_parameter
from service.web.api.jobs.job_bodies import JOB_EXAMPLE
from service.web.api.jobs.jobs import JOB_CURSOR, cursor_of
from service.web.http.access.access import admin_key
from service.web.http.app_keys import JOB_READER, STORE, VIEWS
from service.web.http.problems import json_response
from service.web.http.query_params import bad_query, query_param, whole_param

MAX_LISTED, LISTED = 100, 20
LISTED_EXAMPLE = JOB_EXAMPLE | {
    "projectId": "5d0c8b1e",
    "state": "review",
    "beganAt": "2026-11-21T09:30:00.000Z",
    "requestedBy": "person:6f1e0c2b9a7d4c55b3e8d1f0a2c4e697",
}
OVERVIEW_EXAMPLE = {
    "jobs": {"review": 2, "needsInput": 1, "active": 0, "failed": 1},
    "unanswered": 14,
    "sites": 3,
    "failingSites": 0,
    "oldestIndexedAt": "2026-11-21T09:31:00.000Z",
}

routes = Routes()


@routes.operation(
    "GET",
    "/v2/overview",
    "getOverview",
    "Organization",
    "Get what needs a person",
    {200: Answer("The numbers.", OverviewView, example=OVERVIEW_EXAMPLE)},
    description="The numbers of the dashboard's first page. `listOrganizationJobs` with `only` lists the jobs.",
)
async def show_overview(request: web.Request) -> web.Response:
    organization_id, views = (await admin_key(request)).state.organization_id, request.app[VIEWS]
    await wait_for_head(request.app[STORE], views)
    sites = await list_organization_sites(views, organization_id)
    return json_response(await read_overview(views, organization_id, sites, now()))


@routes.operation(
    "GET",
    "/v2/jobs",
    "listOrganizationJobs",
    "Organization",
    "List an organization's jobs",
    {200: Answer("The newest first.", OrganizationJobList, example={"jobs": [LISTED_EXAMPLE], "nextCursor": None})},
    description="Those of all projects, without archived ones unless `only` asks for these. As long as `nextCursor` is"
    " not null there are more: send it back as `cursor`.",
    parameters=(
        limit_parameter(LISTED, MAX_LISTED),
        cursor_parameter(Annotated[str, Meta(pattern=f"^{JOB_CURSOR}$")]),
        Parameter(
            "only",
            "Only jobs that are `active`, `completed` or `failed`, whose pull request waits for a `review`, that"
            " ask something (`needs_input`), or that are `archived`.",
            JobFilter,
            example="review",
        ),
        Parameter("projectId", "Only those of this project.", example="5d0c8b1e"),
    ),
)
async def list_jobs(request: web.Request) -> web.Response:
    organization_id, views = (await admin_key(request)).state.organization_id, request.app[VIEWS]
    limit = whole_param(request, "limit", LISTED, least=1, most=MAX_LISTED)
    before, only, project_id = cursor_of(request), _filter_of(request), query_param(request, "projectId")
    await wait_for_head(request.app[STORE], views)
    listed = await list_organization_jobs(
        views, organization_id, limit=limit, before=before, only=only, project_id=project_id
    )
    return json_response((await with_queue_positions(views, listed, request.app[JOB_READER].slots)).view)


def _filter_of(request: web.Request) -> JobFilter | None:
    only = query_param(request, "only")
    if only is not None and only not in get_args(JobFilter):
        raise bad_query("only", f"is one of {', '.join(get_args(JobFilter))}")
    return cast("JobFilter | None", only)
