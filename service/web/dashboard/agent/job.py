"""One job: its state, plan and steps as they come, and what people may do with it."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from hashlib import sha256

from aiohttp import web
from markupsafe import Markup

from eventstore import EventStore, Metadata
from service.commands.jobs.jobs import add_message, archive_job, cancel_job, retry_job, unarchive_job
from service.domain.editor_forms import forms
from service.domain.errors import Conflict, Invalid, NotFound
from service.domain.jobs.decider import MAX_PROMPT_CHARACTERS
from service.domain.model import is_builtin
from service.queries.jobs.job_transcript import follow_transcript, read_plan, read_transcript
from service.queries.jobs.jobs import ReadJob, job_changing_pull_request
from service.queries.jobs.organization_jobs import ListedJob, listed_job, project_of_job
from service.queries.projects import get_project
from service.queries.read_models import wait_for_head
from service.runtime.processes import run_in_child
from service.runtime.system import new_id
from service.views.projects import ProjectView
from service.web.dashboard.actors import actor_names
from service.web.dashboard.page import Live, dashboard_page, live, record_read, root_of_page, see_other
from service.web.http.access.people import Member, member, metadata
from service.web.http.app_keys import JOB_CHANGES, JOB_READER, STORE, VIEWS
from service.web.http.connections.limits import metered_for_person
from service.web.http.forms import read_form
from service.web.http.hosted import MAKING_BYTES, MAKING_SECONDS, PAGE_TURNS, act_on_job
from service.web.pages.pull_request_views import make_changes
from service.web.pages.rendering import rendered

JOB_PATH = "/dashboard/{organizationId}/jobs/{jobId}"
MAX_DIGITS = 15
"""The longest position in the log."""

routes = web.RouteTableDef()


@routes.get(JOB_PATH)
async def show_job(request: web.Request) -> web.Response:
    viewer = await member(request)
    project, job = await find_job(request, viewer)
    return await _job_page(request, viewer, project, job)


async def _job_page(
    request: web.Request, viewer: Member, project: ProjectView, job: ReadJob, *, refusal: str = "", status: int = 200
) -> web.Response:
    await _record_read(request, viewer, job)
    before = _number(request.query.get("before", ""))
    transcript = await read_transcript(request.app[STORE], job.view.id, before=before)
    return await asyncio.to_thread(  # a thousand steps take a tenth of a second
        dashboard_page,
        request,
        viewer,
        "agent/job.html",
        status=status,
        **await _state(request, viewer, project, job),
        transcript=transcript,
        before=before,
        refusal=refusal,
        form=new_id(),
        max_prompt=MAX_PROMPT_CHARACTERS,
    )


async def _record_read(request: web.Request, viewer: Member, job: ReadJob) -> None:
    """Record that the person reads what others wrote to a job, or it to them."""
    await record_read(request, viewer, "job", {"job": job.view.id})


async def _state(request: web.Request, viewer: Member, project: ProjectView, job: ReadJob) -> dict[str, object]:
    """Return what the parts of the page show that change with the job's state."""
    listed, number = listed_job(job.row), job.pull_request_number
    can_close = is_changing = False
    if number is not None and project.code_host == "local" and job.view.pull_request_state == "open":
        can_close = True
        is_changing = await job_changing_pull_request(request.app[VIEWS], project.id, number) is not None
    return {
        "listed": listed,
        "job": job.view,
        "project": project,
        "todos": await read_plan(request.app[VIEWS], job.view.id),
        "requested_by": (await actor_names(request, viewer.organization_id))(listed.requested_by),
        "number": number,
        "can_close": can_close,
        "is_changing": is_changing,
        "can_edit": viewer.can_edit,
        "forms": forms() if is_builtin(job.view.model) else (),
    }


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS else None


@routes.get(JOB_PATH + "/live")
async def follow_job(request: web.Request) -> web.StreamResponse:
    """Send the job's state and its new steps, each once, until it ends."""
    viewer = await member(request)
    project, job = await find_job(request, viewer)
    await _record_read(request, viewer, job)
    seen = request.headers.get("Last-Event-ID") or request.query.get("after", "")
    after = min(_number(seen) or 0, await request.app[STORE].head())
    return await live(request, _fragments(request, viewer, project, job, after))


async def _fragments(
    request: web.Request, viewer: Member, project: ProjectView, job: ReadJob, after: int
) -> AsyncGenerator[Live, None]:
    last_state, root = "", root_of_page(request)
    async with aclosing(follow_transcript(request.app[STORE], job.view.id, after)) as steps:
        async for position, entries in steps:
            read = await request.app[JOB_READER].read_changed(project.id, job.view.id)
            values = await _state(request, viewer, project, read)
            listed = values["listed"]
            assert isinstance(listed, ListedJob)
            changed, last_state = listed.state != last_state, listed.state
            html = await asyncio.to_thread(
                rendered,
                "agent/job_live.html",
                root=root,
                member=viewer,
                entries=entries,
                with_actions=changed,
                **values,
            )
            yield Live(html, str(position))


@routes.get(JOB_PATH + "/changes")
async def show_changes(request: web.Request) -> web.Response:
    """Show the job's changes so far; others wrote the files, so they are compared and rendered in child processes."""
    viewer = await member(request)
    project, job = await find_job(request, viewer)
    await _record_read(request, viewer, job)
    async with request.app[PAGE_TURNS].slot(project.id):
        changes = await request.app[JOB_CHANGES](project, job.view.id)
        made = await run_in_child(make_changes, changes, timeout_seconds=MAKING_SECONDS, memory_bytes=MAKING_BYTES)
    return await asyncio.to_thread(
        dashboard_page,
        request,
        viewer,
        "agent/job_changes.html",
        job=job.view,
        changes=changes,
        files=Markup(made.html),  # noqa: S704  (written by our template, which escapes all text)
    )


# What people do


@routes.post(JOB_PATH + "/message")
async def send_message(request: web.Request) -> web.Response:
    viewer = await member(request, "editor")
    project, job = await find_job(request, viewer)
    form = await read_form(request)
    text, sent = form.get("text", ""), form.get("form", "")
    key = "\npage " + sha256(f"{job.view.id}\n{sent}\n{text}".encode()).hexdigest() if sent else ""
    if len(text) > MAX_PROMPT_CHARACTERS:
        refusal = f"The message has {len(text):,} characters. Shorten it to {MAX_PROMPT_CHARACTERS:,}."
        return await _job_page(request, viewer, project, job, refusal=refusal, status=400)

    async def send(store: EventStore, job_id: str, by: Metadata) -> object:
        return await add_message(store, job_id, text, by, key=key)

    notice = "The agent reads the message at its next step." if job.view.status == "active" else "The job continues."
    return await _done(request, viewer, send, notice, counts=True)


@routes.post(JOB_PATH + "/cancel")
async def cancel(request: web.Request) -> web.Response:
    return await _done(request, await member(request, "editor"), cancel_job, "The job is cancelled.")


@routes.post(JOB_PATH + "/retry")
async def retry(request: web.Request) -> web.Response:
    return await _done(request, await member(request, "editor"), retry_job, "The job is tried again.", counts=True)


@routes.post(JOB_PATH + "/archive")
async def archive(request: web.Request) -> web.Response:
    return await _done(request, await member(request, "editor"), archive_job, "The job is archived.")


@routes.post(JOB_PATH + "/unarchive")
async def unarchive(request: web.Request) -> web.Response:
    return await _done(request, await member(request, "editor"), unarchive_job, "The job is listed again.")


@routes.post(JOB_PATH + "/merge")
async def merge(request: web.Request) -> web.Response:
    viewer = await member(request, "editor")
    project, job = await find_job(request, viewer)

    async def act(_store: EventStore, _job_id: str, by: Metadata) -> object:
        await act_on_job(request, project, job, "merge", by)
        return None

    return await _done(request, viewer, act, f"The pull request is merged into {project.ref}.")


@routes.post(JOB_PATH + "/close")
async def close(request: web.Request) -> web.Response:
    viewer = await member(request, "editor")
    project, job = await find_job(request, viewer)

    async def act(_store: EventStore, _job_id: str, by: Metadata) -> object:
        await act_on_job(request, project, job, "close", by)
        return None

    return await _done(request, viewer, act, "The pull request is closed without merging.")


async def _done(
    request: web.Request,
    viewer: Member,
    change: Callable[[EventStore, str, Metadata], Awaitable[object]],
    notice: str,
    *,
    counts: bool = False,
) -> web.Response:
    """Change a job and lead back to its page, which also shows a refusal. ``counts``: for the project's limit."""
    project, job = await find_job(request, viewer)
    try:
        store = request.app[STORE]
        if counts:
            store = metered_for_person(request, viewer.organization_id, project.id)
        await change(store, job.view.id, metadata(request))
    except (Conflict, Invalid) as error:
        return await _job_page(request, viewer, project, job, refusal=str(error), status=409)
    await request.app[JOB_READER].read_changed(project.id, job.view.id)
    return see_other(request, f"dashboard/{viewer.organization_id}/jobs/{job.view.id}", notice=notice)


async def find_job(request: web.Request, viewer: Member) -> tuple[ProjectView, ReadJob]:
    """Return the job of the address, if it is the organization's. Raise NotFound."""
    await wait_for_head(request.app[STORE], request.app[VIEWS])
    project_id = await project_of_job(request.app[VIEWS], viewer.organization_id, request.match_info["jobId"])
    project = await get_project(request.app[VIEWS], project_id)
    if project is None:
        raise NotFound("Project not found. Check the address.", code="project_not_found")
    return project, await request.app[JOB_READER].read(project.id, request.match_info["jobId"])
