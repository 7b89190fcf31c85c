"""Version 1 of the agent's endpoints, deprecated: the shapes and spellings are those of the public API."""

from contextlib import aclosing
from typing import Annotated, Literal

from aiohttp import web
from msgspec import Meta, Struct

from service.commands.jobs import NewJob
from service.domain.errors import Invalid
from service.domain.jobs.decider import MAX_PROMPT_CHARACTERS, Message
from service.domain.jobs.events import TodoStatus
from service.ports import code_host
from service.projections.jobs import JobRow, list_jobs
from service.projections.projects import ProjectRow
from service.web.api.job_live import job_row, live_events, new_job
from service.web.api.jobs import number_of, timestamp
from service.web.http.access import project_for
from service.web.http.app_keys import CLOSING, VIEWS
from service.web.http.live import with_keep_alives
from service.web.http.problems import json_response, read_body
from service.web.http.revocation import SENTENCE, revocation_of
from service.web.http.schemas import NOT_BLANK, Timestamp, Url, described
from service.web.http.versioning import deprecated
from service.wire.data_stream import HEADERS as DATA_STREAM_HEADERS
from service.wire.data_stream import KEEP_ALIVE, line
from service.wire.job_stream import JobStreamEncoder

MAX_SKIPPED = 1_000_000
TAKEN = 12

HaltReason = Literal["completed", "github_missconfigured", "error", "processing", "interrupted"]

CODE_HOST_FAILURES = frozenset(
    {
        "forbidden", "not_found", "no_such_branch", "branch_protected", code_host.TOKEN_MISSING,
        code_host.TOKEN_REFUSED, code_host.RIGHTS_MISSING, code_host.NO_SUCH_REPOSITORY, code_host.REPOSITORY_MOVED,
        code_host.REPOSITORY_ARCHIVED, code_host.PULL_REQUEST_REFUSED,
    }
)  # fmt: skip

routes = web.RouteTableDef()


class MessageBody(Struct):
    """One message of the instruction."""

    role: Annotated[Literal["system", "user", "assistant"], described("Whose words they are.")]
    content: Annotated[str, Meta(max_length=MAX_PROMPT_CHARACTERS, description="The words.")]


class JobBodyV1(Struct):
    """An instruction for the agent, as a chat."""

    messages: Annotated[
        list[MessageBody],
        Meta(
            min_length=1,
            max_length=1000,
            description="At least one that is not blank, of whichever role.",
            extra_json_schema={"contains": {"properties": {"content": NOT_BLANK}}},
        ),
    ]
    branch: Annotated[
        Annotated[str, Meta(max_length=1000)] | None,
        described("The branch to work on, made if it is not there; what git refuses of its name is made legal."),
    ] = None
    asDraft: Annotated[  # noqa: N815  (the API's own name)
        bool | Literal["true", "false"] | None,
        described("Whether the pull request is a draft; it is not when left out."),
    ] = None
    model: Annotated[
        Annotated[str, Meta(max_length=100)] | None,
        described("`sonnet`, which is meant when it is left out, `opus`, or another alias of the settings."),
    ] = None


class TodoView(Struct, frozen=True):
    """One step of the agent's plan."""

    id: Annotated[str, described("Of this step, within the plan.")]
    content: Annotated[str, described("What is to do.")]
    status: Annotated[TodoStatus, described("How far it is.")]
    priority: Annotated[Literal["high", "medium", "low"], described("How much it matters.")]


class Session(Struct, frozen=True, rename="camel"):
    """A job as version 1 of the API shows it."""

    session_id: Annotated[str, described("The job's id.")]
    subdomain: Annotated[str, described("The domain of the project's site.")]
    branch: Annotated[str, described("The branch that the work is on.")]
    haulted: Annotated[bool, described("Whether the job has ended.")]
    hault_reason: Annotated[HaltReason, described("How it ended; `processing` until then.")]
    pull_request_link: Annotated[Url | None, described("The pull request, once there is one.")]
    message_to_user: Annotated[str, described("What the agent said last, or why it failed; empty before that.")]
    todos: Annotated[tuple[TodoView, ...], described("The agent's plan.")]
    user_id: Annotated[str, described("The id of the key that asked for it.")]
    title: Annotated[str, described("The instruction in a few words.")]
    created_at: Annotated[Timestamp, described("When it was asked for.")]


class Sessions(Struct, frozen=True, rename="camel"):
    """Some of a project's jobs."""

    all_sessions: Annotated[list[Session], described("The newest first.")]


def session(row: JobRow, project: ProjectRow) -> Session:
    return Session(
        session_id=row.id,
        subdomain=project.domain,
        branch=row.branch,
        haulted=row.status != "active",
        hault_reason=_reason(row),
        pull_request_link=row.pull_request_url,
        message_to_user=_last_word(row),
        todos=tuple(TodoView(todo.id, todo.content, todo.status, todo.priority) for todo in row.todos),
        user_id=row.created_by,
        title=row.title,
        created_at=timestamp(row.created_at),
    )


def _reason(row: JobRow) -> HaltReason:
    if row.status == "active":
        return "processing"
    if row.status == "completed":
        return "completed"
    if row.failure_code in ("cancelled", "interrupted"):
        return "interrupted"
    return "github_missconfigured" if row.failure_code in CODE_HOST_FAILURES else "error"


def _last_word(row: JobRow) -> str:
    if row.status == "active":
        return ""
    return (row.failure_message if row.status == "failed" else row.last_word) or ""


@routes.post("/v1/agent/{projectId}/job")
async def create_job_v1(request: web.Request) -> web.StreamResponse:
    """The job's progress as AI SDK 4 data lines. The job goes on when the caller leaves."""
    project = await project_for(request)
    body = await read_body(request, JobBodyV1)
    messages = tuple(Message(message.role, message.content) for message in body.messages)
    if not any(message.content.strip() for message in messages):
        raise Invalid("$.messages: every message is blank", problems=(("$.messages", "every message is blank"),))
    new = NewJob(
        messages,
        api_version=1,
        model_alias=body.model or "sonnet",
        branch=(body.branch or "").strip(),
        as_draft=body.asDraft in (True, "true"),
    )
    created = await new_job(request, project, new)
    headers = {**DATA_STREAM_HEADERS, "X-Session-Id": created.id, "X-Branch-Name": created.branch}
    response = web.StreamResponse(headers={**headers, **deprecated(f"/v2/agent/{project.id}/job")})
    await response.prepare(request)
    encoder, revocation = JobStreamEncoder(created.id), revocation_of(request)
    async with aclosing(live_events(request, created.id, 0)) as events:
        async for told in with_keep_alives(events, request.app[CLOSING], revocation=revocation):
            lines = [KEEP_ALIVE] if told is None else encoder.encode(told[1])
            if lines:
                await response.write(b"".join(lines))
            if encoder.is_done:
                break
    if revocation.is_published and not encoder.is_done:
        await response.write(line("3", SENTENCE))
    await response.write_eof()
    return response


@routes.get("/v1/agent/{projectId}/job/{id}")
async def show_job_v1(request: web.Request) -> web.Response:
    project = await project_for(request)
    row = await job_row(request, project, request.match_info["id"])
    return json_response(session(row, project), headers=deprecated(f"/v2/agent/{project.id}/job/{row.id}"))


@routes.get("/v1/agent/{projectId}/jobs")
async def show_jobs_v1(request: web.Request) -> web.Response:
    project = await project_for(request)
    skip = number_of(request, "skip", 0, least=0, most=MAX_SKIPPED)
    take = number_of(request, "take", TAKEN, least=1, most=100)
    rows = await list_jobs(request.app[VIEWS], project.id, limit=take, skip=skip)
    sessions = Sessions([session(row, project) for row in rows])
    return json_response(sessions, headers=deprecated(f"/v2/agent/{project.id}/jobs"))
