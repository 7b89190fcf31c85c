"""The agent's endpoints: create a job, look at it, list, follow, steer, cancel and archive jobs."""

import asyncio
import re
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from datetime import UTC, datetime
from hashlib import sha256
from typing import Annotated, Literal

import msgspec
from aiohttp import web
from aiohttp_sse import EventSourceResponse
from msgspec import Meta, Struct

from service.commands.jobs import NewJob, add_message, archive_job, cancel_job
from service.domain.errors import Invalid
from service.domain.jobs.decider import MAX_PROMPT_CHARACTERS, JobCompleted, JobFailed, JobStarted, JobStatus, Message
from service.domain.projects import public_repository
from service.projections.jobs import JobRow, list_jobs, queue_position
from service.projections.projects import ProjectRow
from service.web.api.job_live import (
    changed_row,
    idempotency_key,
    job_row,
    last_event_id,
    live_events,
    new_job,
    past_events,
)
from service.web.http.access import project_for
from service.web.http.app_keys import CLOSING, ENDED_JOBS, JOB_ROOM, STORE, VIEWS
from service.web.http.limits import metered_store
from service.web.http.live import with_keep_alives
from service.web.http.problems import metadata_of, read_body
from service.web.http.query_params import bad_query, query_param, read_number, read_whole
from service.web.http.revocation import require_key_in_force, revocation_of
from service.web.http.schemas import NOT_BLANK, Timestamp, Url, described
from service.wire.job_stream import live_event, queue_event

MAX_WAIT_SECONDS = 60
MAX_LISTED = 100
LISTED = 20
JOB_CURSOR = r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
"""The id of the last job of a page: the next ones are older."""
QUEUE_TOLD_SECONDS = 1.0
"""How often who follows a job that waits is told its place, when that has changed."""

routes = web.RouteTableDef()


class JobBody(Struct):
    """An instruction for the agent."""

    prompt: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=MAX_PROMPT_CHARACTERS,
            description="What is to change in the documentation, in words.",
            extra_json_schema=NOT_BLANK,
        ),
    ]


class JobSource(Struct, frozen=True):
    """What the job works on."""

    repository: Annotated[
        str,
        described(
            "The repository's URL; for a folder on the server `hosted/PROJECT.git`, where the service serves it to git,"
            " below its own address."
        ),
    ]
    ref: Annotated[str, described("The branch that the work started from.")]


class JobFailure(Struct, frozen=True):
    """Why a job failed."""

    code: Annotated[str, described("Stable; `/docs/errors/CODE` says what to do about it.")]
    message: Annotated[str, described("The same as a plain sentence.")]


class JobUsage(Struct, frozen=True, rename="camel"):
    """What the calls of the model used, of all rounds together."""

    input_tokens: Annotated[int, described("Tokens that the model read.")]
    output_tokens: Annotated[int, described("Tokens that it wrote.")]
    cost_usd: Annotated[float | None, described("In US dollars; null when the price is not known.")]


class JobView(Struct, frozen=True, rename="camel"):
    """A job as version 2 of the API shows it."""

    id: Annotated[str, described("The job's id; jobs sort by it as they were created.")]
    status: Annotated[JobStatus, described("`active` until it ends, and again once it is told more.")]
    source: JobSource
    model: Annotated[str, described("The model that does the work, by its full name.")]
    pr_link: Annotated[Url | None, described("The pull request; null while active, and when nothing was to change.")]
    created_at: Annotated[Timestamp, described("When it was asked for.")]
    archived_at: Annotated[Timestamp | None, described("When it was put out of sight; null when it was not.")]
    title: Annotated[str, described("The instruction in a few words.")]
    branch: Annotated[str, described("The branch that the work is on.")]
    failure: Annotated[JobFailure | None, described("Why it failed; null when it did not.")]
    usage: JobUsage
    queue_position: Annotated[int | None, described("From 1 while the job waits for others to end, else null.")] = None


class JobList(Struct, frozen=True, rename="camel"):
    """Some of a project's jobs."""

    jobs: Annotated[list[JobView], described("The newest first.")]
    next_cursor: Annotated[
        str | None, described("Send it back as `cursor` for the next ones; null when there are none.")
    ]


def job_view(row: JobRow, queue_position: int | None = None) -> JobView:
    failure = JobFailure(row.failure_code, row.failure_message or "") if row.failure_code else None
    return JobView(
        id=row.id,
        status=row.status,
        source=JobSource(public_repository(row.repository, row.project_id), row.ref),
        model=row.model,
        pr_link=row.pull_request_url if row.status != "active" else None,
        created_at=timestamp(row.created_at),
        archived_at=timestamp(row.archived_at) if row.archived_at else None,
        title=row.title,
        branch=row.branch,
        failure=failure,
        usage=JobUsage(row.usage.input_tokens, row.usage.output_tokens, row.usage.cost_usd),
        queue_position=queue_position,
    )


def timestamp(time: datetime) -> str:
    """ISO 8601 in UTC with milliseconds and ``Z``."""
    return time.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@routes.get("/v2/agent/{projectId}/job/{id}")
async def show_job(request: web.Request) -> web.Response:
    """With ``?wait=SECONDS`` the answer is held until the job ends, or so long."""
    project = await project_for(request)
    seconds = _wait_of(request)
    after = await request.app[STORE].head() if seconds else 0
    row = await job_row(request, project, request.match_info["id"])
    if seconds and row.status == "active":
        await _ended(request, row.id, after, seconds)
        require_key_in_force(request)
        row = await job_row(request, project, row.id)
    return await _job_response(request, row)


@routes.post("/v2/agent/{projectId}/job")
async def create_job(request: web.Request) -> web.Response:
    project = await project_for(request)
    prompt = await _prompt(request)
    created = await new_job(request, project, NewJob((Message("user", prompt),), api_version=2))
    row = await changed_row(request, project, created.id)
    row = row if created.again else _as_begun(row)
    location = f"/v2/agent/{project.id}/job/{created.id}"
    return await _job_response(request, row, status=201, headers={"Location": location})


@routes.get("/v2/agent/{projectId}/jobs")
async def show_jobs(request: web.Request) -> web.Response:
    project = await project_for(request)
    limit = number_of(request, "limit", LISTED, least=1, most=MAX_LISTED)
    rows = await list_jobs(
        request.app[VIEWS],
        project.id,
        limit=limit + 1,
        before=_cursor_of(request),
        status=_status_of(request),
        archived=_flag_of(request, "includeArchived"),
    )
    views = [
        job_view(row, await queue_position(request.app[VIEWS], row, request.app[JOB_ROOM])) for row in rows[:limit]
    ]
    return _json(msgspec.json.encode(JobList(views, rows[limit - 1].id if len(rows) > limit else None)))


@routes.post("/v2/agent/{projectId}/job/{id}/message")
async def post_job_message(request: web.Request) -> web.Response:
    """Steers an active job before its next call of the model; has one that has ended go on."""
    project = await project_for(request)
    prompt, key = await _prompt(request), idempotency_key(request)
    row = await job_row(request, project, request.match_info["id"])
    added = await add_message(metered_store(request), project.id, row.id, prompt, metadata_of(request), key=key)
    row = await changed_row(request, project, row.id)
    return await _job_response(request, row if added.again else _as_begun(row))


@routes.post("/v2/agent/{projectId}/job/{id}/cancel")
async def post_job_cancel(request: web.Request) -> web.Response:
    project = await project_for(request)
    row = await job_row(request, project, request.match_info["id"])
    await cancel_job(request.app[STORE], row.id, metadata_of(request))
    return await _job_response(request, await changed_row(request, project, row.id))


@routes.post("/v2/agent/{projectId}/job/{id}/archive")
async def post_job_archive(request: web.Request) -> web.Response:
    project = await project_for(request)
    row = await job_row(request, project, request.match_info["id"])
    await archive_job(request.app[STORE], row.id, metadata_of(request))
    return await _job_response(request, await changed_row(request, project, row.id))


@routes.get("/v2/agent/{projectId}/job/{id}/events")
async def follow_job(request: web.Request) -> web.StreamResponse:
    """The job's events, past then live; each event's id is its position, so ``Last-Event-ID`` resumes."""
    project = await project_for(request)
    after = min(last_event_id(request), await request.app[STORE].head())  # else it would wait for that position
    row = await job_row(request, project, request.match_info["id"])
    headers = {"Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-cache, no-transform"}
    if request.method == "HEAD":
        return web.Response(headers=headers)
    response = EventSourceResponse(sep="\n")
    response.headers.update(headers)
    await response.prepare(request)
    async with response, aclosing(_told(request, project, row, after)) as told:
        async for piece in told:
            await response.write(piece)
    return response


async def _told(request: web.Request, project: ProjectRow, row: JobRow, after: int) -> AsyncGenerator[bytes, None]:
    """The events as bytes, and while the job waits its place in the queue, whenever that changes."""
    events = live_events(request, row.id, after) if row.status == "active" else past_events(request, row.id, after)
    waits, place = row.waiting_since is not None, None
    async with aclosing(events):
        async for told in with_keep_alives(
            events, request.app[CLOSING], revocation=revocation_of(request), seconds=QUEUE_TOLD_SECONDS
        ):
            if told is not None:
                yield live_event(*told)
                waits = waits and not isinstance(told[1], JobStarted)
            elif waits:  # the response sends its own keep-alives
                row = await job_row(request, project, row.id)
                now, waits = (
                    await queue_position(request.app[VIEWS], row, request.app[JOB_ROOM]),
                    row.waiting_since is not None,
                )
                if now is not None and now != place:
                    place = now
                    yield queue_event(now)


async def _prompt(request: web.Request) -> str:
    body = await read_body(request, JobBody)
    if not body.prompt.strip():
        raise Invalid("$.prompt: is blank", problems=(("$.prompt", "is blank"),))
    return body.prompt


def _as_begun(row: JobRow) -> JobRow:
    """A quick job may have ended by now: who has one begin is answered with how it began, active."""
    return msgspec.structs.replace(row, status="active", failure_code=None, failure_message=None)


async def _ended(request: web.Request, job_id: str, after: int, seconds: float) -> None:
    """Wait until the job ends, the time is over, the key is revoked or the server goes down."""
    events = live_events(request, job_id, after)
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds), aclosing(events):
            async for told in with_keep_alives(events, request.app[CLOSING], revocation=revocation_of(request)):
                if told is not None and isinstance(told[1], JobCompleted | JobFailed):
                    return


async def _job_response(
    request: web.Request, row: JobRow, *, status: int = 200, headers: dict[str, str] | None = None
) -> web.Response:
    """The job with a weak entity tag; 304 without it for a reader who has it already (RFC 9110, section 13.1.2)."""
    if row.waiting_since is None:
        body, tag = request.app[ENDED_JOBS].encoded(row, _encoded)
    else:
        body, tag = _encoded(row, await queue_position(request.app[VIEWS], row, request.app[JOB_ROOM]))
    weak = f'W/"{tag}"'
    known = (request.if_none_match or ()) if "If-None-Match" in request.headers else ()
    if request.method in ("GET", "HEAD") and any(one.value in (tag, "*") for one in known):
        return web.Response(status=304, headers={"ETag": weak})
    return _json(body, status=status, headers={**(headers or {}), "ETag": weak})


def _encoded(row: JobRow, place: int | None = None) -> tuple[bytes, str]:
    """The job as JSON, and the tag of that."""
    body = msgspec.json.encode(job_view(row, place))
    return body, sha256(body).hexdigest()[:32]


def _json(body: bytes, *, status: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    """An answer that may be kept, but is asked for again each time."""
    return web.Response(
        status=status,
        body=body,
        content_type="application/json",
        headers={"Cache-Control": "private, no-cache", **(headers or {})},
    )


def number_of(request: web.Request, name: str, default: int, *, least: int, most: int) -> int:
    """A whole number of the query. Raises Invalid."""
    text = query_param(request, name)
    if text is None:
        return default
    number = read_whole(text, least=least, most=most)
    if number is None:
        raise bad_query(name, f"is a whole number from {least} to {most}")
    return number


def _wait_of(request: web.Request) -> float:
    if not request.query_string:
        return 0.0
    text = query_param(request, "wait")
    if text is None:
        return 0.0
    seconds = read_number(text, least=0, most=MAX_WAIT_SECONDS)
    if seconds is None:
        raise bad_query("wait", f"is a number of seconds from 0 to {MAX_WAIT_SECONDS}")
    return seconds


def _status_of(request: web.Request) -> JobStatus | None:
    match query_param(request, "status"):
        case None:
            return None
        case "active" | "completed" | "failed" as status:
            return status
        case _:
            raise bad_query("status", "is active, completed or failed")


def _flag_of(request: web.Request, name: Literal["includeArchived"]) -> bool:
    text = query_param(request, name)
    if text not in (None, "true", "false"):
        raise bad_query(name, "is true or false")
    return text == "true"


def _cursor_of(request: web.Request) -> str | None:
    text = query_param(request, "cursor")
    if text is None:
        return None
    if not re.fullmatch(JOB_CURSOR, text):
        raise bad_query("cursor", "is the nextCursor of an earlier answer")
    return text
