"""Gaps of the documentation: groups of unanswered questions, and a job made of one."""

from aiohttp import web

from service.commands.jobs.jobs import NewJob, request_job
from service.domain.access.idempotency import KeyReused
from service.domain.errors import Conflict, Invalid, NotFound
from service.domain.jobs.decider import MAX_PROMPT_CHARACTERS, Message
from service.queries.projects import get_project
from service.queries.readers.gaps import GapQuery, job_key
from service.queries.readers.questions import catch_up_questions
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
    found = await request.app[GAP_READER].list(_query(viewer, filters), limit=PAGE_LENGTH + 1, offset=offset)
    return dashboard_page(
        request, viewer, "readers/gaps.html",
        gaps=[gap for _, gap in found[:PAGE_LENGTH]],
        next=str(offset + PAGE_LENGTH) if len(found) > PAGE_LENGTH else "",
        cursor=str(offset or ""), filters=filters, all_days=DAYS, max_prompt=MAX_PROMPT_CHARACTERS,
    )  # fmt: skip


@routes.post("/dashboard/{organizationId}/gaps/{gapId}/job")
async def make_job(request: web.Request) -> web.Response:
    """Give the agent a job that closes a gap. Sent twice, there is one job."""
    viewer = await member(request, "editor")
    filters = await filters_of(request, viewer, days="30")
    gap = await request.app[GAP_READER].find(_query(viewer, filters), request.match_info["gapId"])
    project = None if gap is None else await get_project(request.app[VIEWS], gap.project_id)
    if gap is None or project is None:
        raise NotFound("Gap not found: its questions may be answered or erased by now. Open the page Gaps again.")
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


def _query(viewer: Member, filters: Filters) -> GapQuery:
    return GapQuery(viewer.organization_id, filters.day_period(), filters.project_id)
