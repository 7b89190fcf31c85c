"""Tools for jobs: create one, wait for it, send it a message."""

import asyncio
from contextlib import aclosing, suppress
from typing import Annotated

from msgspec import Meta, Struct
from msgspec.structs import asdict

from service.commands.jobs.jobs import MAX_CONTEXT_CHARACTERS, NewJob, add_message, request_job
from service.domain.access.idempotency import MAX_KEY_CHARACTERS
from service.domain.errors import Invalid
from service.domain.jobs.decider import MAX_PROMPT_CHARACTERS, JobCompleted, JobFailed, Message
from service.queries.jobs.jobs import ReadJob, live_events
from service.queries.jobs.organization_jobs import project_of_job
from service.queries.read_models import wait_for_head
from service.views.fields import described
from service.views.jobs.jobs import JobView
from service.web.http.access.revocation import require_key_in_force, revocation_of
from service.web.http.app_keys import CLOSING, JOB_READER, MODELS, STORE, VIEWS
from service.web.http.connections.limits import metered_for_tool
from service.web.http.live import with_keep_alives
from service.web.http.problems import metadata_of
from service.web.mcp.organization import MAX_PROJECT_CHARACTERS, Organization, find_project
from service.web.mcp.tools import Call, Tools

MAX_WAIT_SECONDS = 60
MAX_ID_CHARACTERS = 100

Prompt = Annotated[str, Meta(min_length=1, max_length=MAX_PROMPT_CHARACTERS)]
JobId = Annotated[str, Meta(min_length=1, max_length=MAX_ID_CHARACTERS, description="The job's `id`.")]
Once = Annotated[
    Annotated[str, Meta(min_length=1, max_length=MAX_KEY_CHARACTERS, pattern="^[ -~]+$")] | None,
    described("A name for this request: sent again with the same one, it does nothing again."),
]

tools: Tools[Organization] = Tools()


class CreateJobArguments(Struct, forbid_unknown_fields=True, rename="camel"):
    prompt: Annotated[Prompt, described("The change to make to the documentation, in words.")]
    project: Annotated[
        Annotated[str, Meta(max_length=MAX_PROJECT_CHARACTERS)] | None,
        described("A project's id or the name of its site. May be left out where there is one project."),
    ] = None
    context: Annotated[
        Annotated[str, Meta(max_length=MAX_CONTEXT_CHARACTERS)] | None,
        described("Text to read beside the instruction, such as release notes or a diff."),
    ] = None
    branch: Annotated[
        Annotated[str, Meta(max_length=1000)] | None, described("The branch to work on; a new one when left out.")
    ] = None
    as_draft: Annotated[bool, described("Whether the pull request is a draft.")] = False
    idempotency_key: Once = None


class JobStatusArguments(Struct, forbid_unknown_fields=True, rename="camel"):
    job_id: JobId
    wait_seconds: Annotated[
        Annotated[float, Meta(ge=0, le=MAX_WAIT_SECONDS)],
        described(f"Hold the answer until the job ends, for at most this time, up to {MAX_WAIT_SECONDS}."),
    ] = 0


class MessageJobArguments(Struct, forbid_unknown_fields=True, rename="camel"):
    job_id: JobId
    prompt: Annotated[Prompt, described("What to do differently, or in addition.")]
    idempotency_key: Once = None


class JobAnswer(JobView, frozen=True, rename="camel"):
    """A job, and the project whose documentation it changes."""

    project_id: Annotated[str, described("The project's id.")] = ""


@tools.tool("create_job", "Create a documentation job", reads=False)
async def create_job(call: Call[Organization], arguments: CreateJobArguments) -> JobAnswer:
    """Have Docsmith change the documentation as an instruction says. The job works in the background and ends with a
    pull request; ask for it with `job_status`.
    """
    project = await find_project(call.request, call.scope, arguments.project)
    new = NewJob(
        (Message("user", _not_blank(arguments.prompt)),),
        api_version=2,
        branch=(arguments.branch or "").strip(),
        as_draft=arguments.as_draft,
        context=arguments.context or "",
    )
    app = call.request.app
    created = await request_job(
        metered_for_tool(call.request, call.scope.key, project.id), app[MODELS], project, new,
        metadata_of(call.request), key=arguments.idempotency_key or "",
    )  # fmt: skip
    job = await app[JOB_READER].read_changed(project.id, created.id)
    return _answer(job if created.again else job.as_begun(), project.id)


@tools.tool("job_status", "Look at a job", reads=True)
async def job_status(call: Call[Organization], arguments: JobStatusArguments) -> JobAnswer:
    """Look at a documentation job: whether it is active, and then its outcome, its closing words, its pull request and
    the problems that are left.
    """
    app, job_id = call.request.app, arguments.job_id
    project_id = await _project_of(call, job_id)
    after = await app[STORE].head()
    job = await app[JOB_READER].read(project_id, job_id)
    if arguments.wait_seconds and job.view.status == "active":
        await _wait(call, job_id, after, arguments.wait_seconds)
        require_key_in_force(call.request)
        job = await app[JOB_READER].read(project_id, job_id)
    return _answer(job, project_id)


@tools.tool("message_job", "Send a message to a job", reads=False)
async def message_job(call: Call[Organization], arguments: MessageJobArguments) -> JobAnswer:
    """Steer a documentation job that is active, or have one that has ended go on, on the same branch and pull request.
    Also the way to answer a job whose outcome is `needs_input`.
    """
    prompt = _not_blank(arguments.prompt)
    project_id = await _project_of(call, arguments.job_id)
    store = metered_for_tool(call.request, call.scope.key, project_id)
    key = arguments.idempotency_key or ""
    added = await add_message(store, arguments.job_id, prompt, metadata_of(call.request), key=key)
    job = await call.request.app[JOB_READER].read_changed(project_id, arguments.job_id)
    return _answer(job if added.again else job.as_begun(), project_id)


async def _project_of(call: Call[Organization], job_id: str) -> str:
    """Return the project of the organization's job. Raise NotFound."""
    app = call.request.app
    await wait_for_head(app[STORE], app[VIEWS])
    return await project_of_job(app[VIEWS], call.scope.id, job_id)


async def _wait(call: Call[Organization], job_id: str, after: int, seconds: float) -> None:
    """Wait until the job ends, the time is over, the key is revoked or the server goes down."""
    events, app = live_events(call.request.app[STORE], job_id, after), call.request.app
    with suppress(TimeoutError):
        kept = with_keep_alives(events, app[CLOSING], revocation=revocation_of(call.request))
        async with asyncio.timeout(seconds), aclosing(kept) as heard:
            async for news in heard:
                if news is None:
                    await call.progress.keep_alive()
                elif isinstance(news[1], JobCompleted | JobFailed):
                    return
                else:
                    await call.progress.report(str(type(news[1]).__struct_config__.tag))


def _answer(job: ReadJob, project_id: str) -> JobAnswer:
    return JobAnswer(**asdict(job.view), project_id=project_id)


def _not_blank(prompt: str) -> str:
    if not prompt.strip():
        raise Invalid("The prompt is blank. Say in words what to change.")
    return prompt
