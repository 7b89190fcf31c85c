"""The jobs of an organization, and the page that gives a new one."""

import shlex
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from hashlib import sha256
from typing import get_args

import msgspec
from aiohttp import web

from service.commands.jobs.jobs import MAX_CONTEXT_CHARACTERS, NewJob, request_job
from service.domain.editor_forms import forms
from service.domain.errors import Conflict, Invalid, NotFound
from service.domain.jobs.decider import MAX_PROMPT_CHARACTERS, Message
from service.domain.model import is_builtin
from service.queries.jobs.organization_jobs import (
    JobFilter,
    ListedJobs,
    count_organization_jobs,
    follow_organization_jobs,
    list_organization_jobs,
)
from service.queries.projects import list_organization_projects
from service.queries.read_models import wait_for_head
from service.runtime.system import new_id
from service.views.projects import ProjectView
from service.web.dashboard.page import Live, dashboard_page, live, record_read, root_of_page, see_other
from service.web.http.access.hosts import service_address
from service.web.http.access.people import Member, member, metadata
from service.web.http.app_keys import KNOWN_MODELS, MODEL_NAMES, MODELS, STORE, VIEWS
from service.web.http.connections.limits import metered_for_person
from service.web.http.forms import read_form
from service.web.pages.rendering import rendered

PAGE_LENGTH = 25
LIVE_SECONDS = 0.5
"""The least time between two fragments of a list."""
FILTER_NAMES: Mapping[JobFilter | None, str] = {
    None: "All",
    "active": "Active",
    "review": "To review",
    "needs_input": "Needs your answer",
    "failed": "Failed",
    "archived": "Archived",
}
JOBS_PATH = "/dashboard/{organizationId}/jobs"
SAMPLE = "Fix broken links"

routes = web.RouteTableDef()


@routes.get(JOBS_PATH)
async def show_jobs(request: web.Request) -> web.Response:
    viewer = await member(request)
    only, project_id, cursor = _filter_of(request), request.query.get("project") or None, request.query.get("cursor")
    await wait_for_head(request.app[STORE], request.app[VIEWS])
    projects = await list_organization_projects(request.app[VIEWS], viewer.organization_id)
    filters = await _record_read(request, viewer)
    return dashboard_page(
        request,
        viewer,
        "agent/jobs.html",
        listed=await _listed(request, viewer),
        project_names={project.id: project.name for project in projects},
        counts=await count_organization_jobs(request.app[VIEWS], viewer.organization_id),
        filter_names=FILTER_NAMES,
        only=only,
        project_id=project_id or "",
        projects=projects,
        project_options=[("", "All projects"), *((one.id, one.name) for one in projects)],
        cursor=cursor or "",
        filters={name: value for name, value in filters.items() if value},
    )


async def _record_read(request: web.Request, viewer: Member) -> Mapping[str, str]:
    """Record that the person reads what others asked for, and return the filters of the list."""
    project = request.query.get("project", "")
    known = {one.id for one in await list_organization_projects(request.app[VIEWS], viewer.organization_id)}
    filters = {"only": _filter_of(request) or "", "project": project if project in known or not project else "unknown"}
    await record_read(request, viewer, "jobs", filters)
    return filters


@routes.get(JOBS_PATH + "/live")
async def follow_jobs(request: web.Request) -> web.StreamResponse:
    viewer = await member(request)
    await _record_read(request, viewer)
    return await live(request, _live_rows(request, viewer))


async def _live_rows(request: web.Request, viewer: Member) -> AsyncGenerator[Live, None]:
    """Yield the list when it has changed, from its state now on."""
    store, root = request.app[STORE], root_of_page(request)
    after = await store.head()
    shown = await _rows(request, viewer)
    yield Live(rendered("agent/jobs_rows.html", root=root, member=viewer, **shown))
    changes = follow_organization_jobs(
        store, request.app[VIEWS], viewer.organization_id, after=after, pause_seconds=LIVE_SECONDS
    )
    async with aclosing(changes):
        async for _ in changes:
            rows = await _rows(request, viewer)
            if rows != shown:
                shown = rows
                yield Live(rendered("agent/jobs_rows.html", root=root, member=viewer, **rows))


async def _rows(request: web.Request, viewer: Member) -> dict[str, object]:
    listed = await _listed(request, viewer)
    projects = await list_organization_projects(request.app[VIEWS], viewer.organization_id)
    return {"listed": listed, "project_names": {project.id: project.name for project in projects}}


async def _listed(request: web.Request, viewer: Member) -> ListedJobs:
    return await list_organization_jobs(
        request.app[VIEWS],
        viewer.organization_id,
        limit=PAGE_LENGTH,
        before=request.query.get("cursor") or None,
        only=_filter_of(request),
        project_id=request.query.get("project") or None,
    )


def _filter_of(request: web.Request) -> JobFilter | None:
    return next((name for name in get_args(JobFilter) if name == request.query.get("only")), None)


@routes.get(JOBS_PATH + "/new")
async def show_new_job(request: web.Request) -> web.Response:
    """Show the form; fields of the query fill it in."""
    viewer = await member(request, "editor")
    return await _new_job_page(request, viewer, dict(request.query))


@routes.post(JOBS_PATH + "/new")
async def create_job(request: web.Request) -> web.Response:
    """Create the job; the same form sent again leads to the same job. ``show=curl`` shows the call instead."""
    viewer = await member(request, "editor")
    values = dict(await read_form(request))
    projects = await _writable_projects(request, viewer)
    project = next((one for one in projects if one.id == values.get("project")), None)
    if values.get("show") == "curl":
        return await _new_job_page(request, viewer, values)
    wrong = _problems(values, project)
    if project is None or wrong:
        return await _new_job_page(request, viewer, values, wrong=wrong, status=400)
    new = NewJob(
        (Message("user", values["prompt"]),),
        api_version=2,
        model_alias=values.get("model", ""),
        branch=values.get("branch", ""),
        as_draft=values.get("draft") == "true",
        context=values.get("context", ""),
    )
    key = sha256(f"{project.id}\n{values.get('form', '')}\n".encode() + msgspec.json.encode(new)).hexdigest()
    store = metered_for_person(request, viewer.organization_id, project.id)
    try:
        created = await request_job(store, request.app[MODELS], project, new, metadata(request), key=key)
    except (Invalid, NotFound, Conflict) as error:
        name = "model" if isinstance(error, NotFound) else "branch"
        return await _new_job_page(request, viewer, values, wrong={name: str(error)}, status=400)
    return see_other(request, f"dashboard/{viewer.organization_id}/jobs/{created.id}", notice="The job is created.")


def _problems(values: Mapping[str, str], project: ProjectView | None) -> dict[str, str]:
    """Return sentences by the field that they are about."""
    wrong = {}
    if project is None:
        wrong["project"] = "Choose the project whose documentation the job changes."
    prompt, context = values.get("prompt", ""), values.get("context", "")
    if not prompt:
        wrong["prompt"] = "Write what the agent should do."
    elif len(prompt) > MAX_PROMPT_CHARACTERS:
        wrong["prompt"] = f"The instruction has {len(prompt):,} characters. Shorten it to {MAX_PROMPT_CHARACTERS:,}."
    if len(context) > MAX_CONTEXT_CHARACTERS:
        wrong["context"] = f"The context has {len(context):,} characters. Shorten it to {MAX_CONTEXT_CHARACTERS:,}."
    return wrong


async def _writable_projects(request: web.Request, viewer: Member) -> Sequence[ProjectView]:
    projects = await list_organization_projects(request.app[VIEWS], viewer.organization_id)
    return [project for project in projects if project.code_host != "website"]


async def _new_job_page(
    request: web.Request,
    viewer: Member,
    values: Mapping[str, str],
    *,
    wrong: Mapping[str, str] | None = None,
    status: int = 200,
) -> web.Response:
    projects = await _writable_projects(request, viewer)
    project = next((one for one in projects if one.id == values.get("project")), projects[0] if projects else None)
    return dashboard_page(
        request,
        viewer,
        "agent/job_new.html",
        status=status,
        projects=projects,
        project=project,
        project_options=[(one.id, one.name) for one in projects],
        model_options=[(one.name, one.name) for one in request.app[KNOWN_MODELS]()],
        values={name: values.get(name, "") for name in ("prompt", "context", "branch", "model", "draft")},
        wrong=dict(wrong or {}),
        model_name=request.app[MODEL_NAMES]["agent"],
        forms=forms() if is_builtin(request.app[MODEL_NAMES]["agent"]) else (),
        form=values.get("form") or new_id(),
        curl=_curl(request, project, values) if project else "",
        max_prompt=MAX_PROMPT_CHARACTERS,
        max_context=MAX_CONTEXT_CHARACTERS,
    )


def _curl(request: web.Request, project: ProjectView, values: Mapping[str, str]) -> str:
    """Return the same request for a terminal; the key comes from a variable."""
    body: dict[str, object] = {"prompt": values.get("prompt") or SAMPLE}
    body |= {name: values[name] for name in ("context", "branch", "model") if values.get(name)}
    if values.get("draft") == "true":
        body["asDraft"] = True
    return (
        f"curl -sS {service_address(request)}/v2/agent/{project.id}/job \\\n"
        '  -H "Authorization: Bearer $DOCSMITH_KEY" \\\n'
        "  -H 'Content-Type: application/json' \\\n"
        f"  -d {shlex.quote(msgspec.json.encode(body).decode())}"
    )
