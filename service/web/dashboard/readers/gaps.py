"""Gaps of the documentation: groups of unanswered questions, and a job made of one."""

from urllib.parse import urlencode

from aiohttp import web

from service.commands.gaps import dismiss_gap, restore_gap
from service.commands.jobs.jobs import NewJob, request_job
from service.domain.access.idempotency import KeyReused
from service.domain.errors import Conflict, Invalid
from service.domain.jobs.decider import MAX_PROMPT_CHARACTERS, Message
from service.domain.threads.gaps import gap_not_found
from service.queries.projects import get_project
from service.queries.readers.gaps import GapQuery, job_key
from service.queries.readers.questions import catch_up_questions
from service.web.dashboard.actors import actor_names
from service.web.dashboard.page import dashboard_page, record_read, see_other
from service.web.dashboard.readers.periods import DAYS, Filters, cursor_place, filters_of
from service.web.http.access.people import Member, member, metadata
from service.web.http.app_keys import GAP_READER, MODELS, STORE, VIEWS
from service.web.http.connections.limits import metered_for_person
from service.web.http.forms import read_form

PAGE_LENGTH = 20
MAX_OFFSET = 10_000

routes = web.RouteTableDef()


@routes.get("/dashboard/{organizationId}/gaps")
async def show_gaps(request: web.Request) -> web.Response:
    """List the gaps, those that most readers met first."""
    viewer = await member(request)
    filters = await filters_of(request, viewer, days="30")
    await record_read(request, viewer, "gaps", filters.query)
    await catch_up_questions(request.app[STORE], request.app[VIEWS])
    offset = min(cursor_place(request, 0), MAX_OFFSET)
    dismissed = request.query.get("state") == "dismissed"
    reader = request.app[GAP_READER]
    read = reader.list_dismissed if dismissed else reader.list
    found = await read(_query(viewer, filters), limit=PAGE_LENGTH + 1, offset=offset)
    name_of = await actor_names(request, viewer.organization_id)
    return dashboard_page(
        request, viewer, "readers/gaps.html", dismissed=dismissed, name_of=name_of,
        gaps=[gap for _, gap in found[:PAGE_LENGTH]],
        next=str(offset + PAGE_LENGTH) if len(found) > PAGE_LENGTH else "",
        cursor=str(offset or ""), filters=filters, all_days=DAYS, max_prompt=MAX_PROMPT_CHARACTERS,
    )  # fmt: skip


@routes.post("/dashboard/{organizationId}/gaps/{gapId}/job")
async def make_job(request: web.Request) -> web.Response:
    """Give the agent a job that closes a gap. Sent twice, there is one job."""
    viewer = await member(request, "editor")
    filters = await filters_of(request, viewer, days="30")
    found = await request.app[GAP_READER].find(_query(viewer, filters), request.match_info["gapId"])
    gap = None if found is None else found.view
    project = None if gap is None else await get_project(request.app[VIEWS], gap.project_id)
    if gap is None or project is None:
        raise gap_not_found()
    prompt = (await read_form(request)).get("prompt", "")
    if not 1 <= len(prompt) <= MAX_PROMPT_CHARACTERS:
        raise Invalid(f"An instruction has 1 to {MAX_PROMPT_CHARACTERS} characters.")
    new = NewJob((Message("user", prompt),), api_version=2)
    try:
        store = metered_for_person(request, viewer.organization_id, project.id)
        created = await request_job(store, request.app[MODELS], project, new, metadata(request), key=job_key(gap))
    except KeyReused:
        raise Conflict("A job was made of this gap already. Open the page Gaps again to see it.") from None
    path = f"dashboard/{viewer.organization_id}/jobs/{created.id}"
    return see_other(request, path, notice="The agent has the job. Its pull request closes the gap.")


@routes.post("/dashboard/{organizationId}/gaps/{gapId}/dismiss")
async def dismiss(request: web.Request) -> web.Response:
    """Dismiss a gap; the page of dismissed ones undoes it."""
    viewer = await member(request, "editor")
    filters = await filters_of(request, viewer, days="30")
    await catch_up_questions(request.app[STORE], request.app[VIEWS])
    store, views, reader = request.app[STORE], request.app[VIEWS], request.app[GAP_READER]
    wanted = request.match_info["gapId"]
    await dismiss_gap(store, views, reader, _query(viewer, filters), wanted, metadata(request))
    path = f"dashboard/{viewer.organization_id}/gaps?{urlencode(filters.chosen)}"
    return see_other(request, path, notice="The gap is dismissed. It is in the list of dismissed gaps.")


@routes.post("/dashboard/{organizationId}/gaps/{gapId}/restore")
async def restore(request: web.Request) -> web.Response:
    """List a dismissed gap again."""
    viewer = await member(request, "editor")
    store, views = request.app[STORE], request.app[VIEWS]
    await catch_up_questions(store, views)
    await restore_gap(store, views, viewer.organization_id, request.match_info["gapId"], metadata(request))
    path = f"dashboard/{viewer.organization_id}/gaps?state=dismissed"
    return see_other(request, path, notice="The gap is listed again, unless its questions are answered by now.")


def _query(viewer: Member, filters: Filters) -> GapQuery:
    return GapQuery(viewer.organization_id, filters.period(), filters.project_id)
