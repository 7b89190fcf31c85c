"""The agent's endpoints: create a job, look at it, follow it."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Annotated, Literal

from aiohttp import web
from aiohttp_sse import EventSourceResponse
from msgspec import Meta, Struct

from service.domain.errors import Invalid, NotFound
from service.domain.jobs import MAX_PROMPT_CHARACTERS, JobCompleted, JobEvent, JobFailed, JobStatus, Message
from service.domain.model import Usage
from service.operations import CreatedJob, NewJob, request_job
from service.projections.jobs import JobRow, get_job
from service.projections.projects import ProjectRow
from service.streams import JOBS, decoded
from service.web.access import project_for
from service.web.keys import CLOSING, MODELS, STORE, VIEWS
from service.web.live import with_keep_alives
from service.web.problems import json_response, metadata_of, read_body
from service.web.versioning import deprecated
from service.wire.data_stream import HEADERS as DATA_STREAM_HEADERS
from service.wire.data_stream import KEEP_ALIVE
from service.wire.job_stream import JobStreamEncoder, live_event

routes = web.RouteTableDef()


class JobBody(Struct):
    prompt: Annotated[str, Meta(min_length=1, max_length=MAX_PROMPT_CHARACTERS)]


class MessageBody(Struct):
    role: Literal["system", "user", "assistant"]
    content: Annotated[str, Meta(max_length=MAX_PROMPT_CHARACTERS)]


class JobBodyV1(Struct):
    messages: Annotated[list[MessageBody], Meta(min_length=1, max_length=1000)]
    branch: Annotated[str, Meta(max_length=1000)] | None = None
    asDraft: bool | Literal["true", "false"] | None = None  # noqa: N815  (the API's own name)
    model: Annotated[str, Meta(max_length=100)] | None = None


class JobSource(Struct, frozen=True):
    repository: str
    ref: str


class JobFailure(Struct, frozen=True):
    code: str
    message: str


class JobView(Struct, frozen=True, rename="camel"):
    """A job as version 2 of the API shows it."""

    id: str
    status: JobStatus
    source: JobSource
    model: str
    pr_link: str | None
    created_at: str
    archived_at: str | None
    title: str
    branch: str
    failure: JobFailure | None
    usage: Usage


def job_view(row: JobRow) -> JobView:
    failure = JobFailure(row.failure_code, row.failure_message or "") if row.failure_code else None
    return JobView(
        id=row.id,
        status=row.status,
        source=JobSource(row.repository, row.ref),
        model=row.model,
        pr_link=row.pull_request_url if row.status != "active" else None,
        created_at=timestamp(row.created_at),
        archived_at=None,
        title=row.title,
        branch=row.branch,
        failure=failure,
        usage=row.usage,
    )


def timestamp(time: datetime) -> str:
    """ISO 8601 in UTC with milliseconds and ``Z``."""
    return time.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@routes.post("/v2/agent/{projectId}/job")
async def create_job(request: web.Request) -> web.Response:
    project = await project_for(request)
    body = await read_body(request, JobBody)
    if not body.prompt.strip():
        raise Invalid("$.prompt: is blank", problems=(("$.prompt", "is blank"),))
    created = await _request_job(request, project, NewJob((Message("user", body.prompt),), api_version=2))
    row = await _row(request, project, created.id)
    location = f"/v2/agent/{project.id}/job/{created.id}"
    return json_response(job_view(row), status=201, headers={"Location": location})


@routes.get("/v2/agent/{projectId}/job/{id}")
async def show_job(request: web.Request) -> web.Response:
    project = await project_for(request)
    return json_response(job_view(await _row(request, project, request.match_info["id"])))


@routes.get("/v2/agent/{projectId}/job/{id}/events")
async def follow_job(request: web.Request) -> web.StreamResponse:
    """The job's events, past then live; each event's id is its position, so ``Last-Event-ID`` resumes."""
    project = await project_for(request)
    after = _last_event_id(request)
    row = await _row(request, project, request.match_info["id"])
    events = _events(request, row.id, after) if row.status == "active" else _past_events(request, row.id, after)
    response = EventSourceResponse(sep="\n")
    response.headers["Content-Type"] = "text/event-stream; charset=utf-8"
    response.headers["Cache-Control"] = "no-cache, no-transform"
    await response.prepare(request)
    async with response, aclosing(events):
        async for told in with_keep_alives(events, request.app[CLOSING]):
            if told is not None:  # the response sends its own keep-alives
                await response.write(live_event(*told))
    return response


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
    created = await _request_job(request, project, new)
    headers = {**DATA_STREAM_HEADERS, "X-Session-Id": created.id, "X-Branch-Name": created.branch}
    response = web.StreamResponse(headers={**headers, **deprecated(f"/v2/agent/{project.id}/job")})
    await response.prepare(request)
    encoder = JobStreamEncoder(created.id)
    async with aclosing(_events(request, created.id, 0)) as events:
        async for told in with_keep_alives(events, request.app[CLOSING]):
            lines = [KEEP_ALIVE] if told is None else encoder.encode(told[1])
            if lines:
                await response.write(b"".join(lines))
    await response.write_eof()
    return response


async def _request_job(request: web.Request, project: ProjectRow, new: NewJob) -> CreatedJob:
    try:
        return await request_job(request.app[STORE], request.app[MODELS], project, new, metadata_of(request))
    except NotFound as error:  # a name in the body, not in the address
        raise Invalid(f"$.model: {error}", code=error.code, problems=(("$.model", str(error)),)) from error


async def _row(request: web.Request, project: ProjectRow, job_id: str) -> JobRow:
    """The job as it is at least as of the log's end: who has just made it finds it."""
    views = request.app[VIEWS]
    await views.wait_for(await request.app[STORE].head())
    row = await get_job(views, project.id, job_id)
    if row is None:
        raise NotFound("There is no such job.", code="job_not_found")
    return row


async def _events(request: web.Request, job_id: str, after: int) -> AsyncGenerator[tuple[int, JobEvent], None]:
    """The job's events after a position, past then live, up to its end."""
    async with aclosing(request.app[STORE].subscribe(after=after, stream=JOBS.stream(job_id))) as subscription:
        async for recorded in subscription:
            for _, event in decoded(JOBS, [recorded]):
                yield recorded.position, event
                if isinstance(event, JobCompleted | JobFailed):
                    return


async def _past_events(request: web.Request, job_id: str, after: int) -> AsyncGenerator[tuple[int, JobEvent], None]:
    """Of a job that has ended: a client that reconnects after its last event would wait in vain for another."""
    recorded = await request.app[STORE].read_stream(JOBS.stream(job_id))
    for event in recorded:
        if event.position > after:
            for _, told in decoded(JOBS, [event]):
                yield event.position, told


def _last_event_id(request: web.Request) -> int:
    text = request.headers.get("Last-Event-ID", "0")
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise Invalid("Last-Event-ID is the id of an event of this stream.")
    return int(text)
