"""The agent's endpoints: create a job, look at it, list, follow, steer, cancel and archive jobs."""

import asyncio
import re
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, suppress
from typing import Annotated, Literal

import msgspec
from aiohttp import web
from aiohttp_sse import EventSourceResponse
from msgspec import Meta, Struct

from eventstore import EventStore, Metadata
from service.commands.jobs.jobs import (
    CreatedJob,
    NewJob,
    add_message,
    archive_job,
    cancel_job,
    request_job,
    retry_job,
    unarchive_job,
)
from service.domain.access.idempotency import MAX_KEY_CHARACTERS
from service.domain.errors import Invalid, NotFound
from service.domain.jobs.decider import (
    JobCompleted,
    JobFailed,
    JobInterrupted,
    JobReopened,
    JobResumed,
    JobStarted,
    JobStatus,
)
from service.queries.jobs.jobs import ReadJob, events_of, live_events
from service.views.fields import described
from service.views.jobs.jobs import JobList, JobView
from service.views.projects import ProjectView
from service.web.api.description.operations import Answer, Parameter, Routes, cursor_parameter, table
from service.web.api.jobs.job_bodies import (
    BEGUN_EXAMPLE,
    IDEMPOTENCY_KEY,
    JOB_ANSWER,
    JOB_EXAMPLE,
    JobBody,
    NewJobBody,
    not_blank,
)
from service.web.http.access.access import project_for
from service.web.http.access.revocation import require_key_in_force, revocation_of
from service.web.http.app_keys import CLOSING, JOB_READER, MODELS, STORE
from service.web.http.connections.limits import metered_store
from service.web.http.live import with_keep_alives
from service.web.http.problems import metadata_of, read_body
from service.web.http.query_params import NOT_A_CURSOR, bad_query, query_param, read_number, whole_param
from service.wire.job_stream import LIVE_EVENTS, LIVE_EXAMPLE, live_event, queue_event

MAX_WAIT_SECONDS = 60
MAX_LISTED = 100
LISTED = 20
JOB_CURSOR = r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
"""The id of the last job of a page: the next ones are older."""
QUEUE_SECONDS = 1.0
"""How often a client that follows a waiting job gets its place, when that has changed."""


PageNumber = Annotated[int, Meta(ge=1, le=MAX_LISTED)]
EVENT_TABLE = table(
    ("`type`", "Meaning", "Fields"),
    (
        (f"`{kind}`", text, ", ".join(f"`{field}`" for field in fields.split(", ")))
        for kind, (text, fields) in LIVE_EVENTS.items()
    ),
)


class LiveEvent(Struct, frozen=True):
    """An event of a job. Further fields depend on its type."""

    type: Annotated[str, described("The type of the event; the same as its name.", examples=list(LIVE_EVENTS))]


routes = Routes()


@routes.operation(
    "POST",
    "/v2/agent/{projectId}/job",
    "createJob",
    "Agent",
    "Create a job",
    {
        201: Answer(
            "The job, active; the same job as before for an `Idempotency-Key` that was used before.",
            JobView,
            headers=("ETag", "Location"),
            example=BEGUN_EXAMPLE,
            leads_to=dict.fromkeys(
                ("getJob", "messageJob", "cancelJob", "archiveJob", "unarchiveJob", "followJob"), "$response.body#/id"
            ),
        )
    },
    description="An instruction in words becomes a background job. It ends by itself, and `outcome` says"
    " how. Follow it by its events, or get it with `wait`.",
    body=NewJobBody,
    body_examples={
        "instruction": {"prompt": "Fix broken links"},
        "more": {"prompt": "Document the new option", "context": "--retries N: tries after a failure", "asDraft": True},
    },
    parameters=(IDEMPOTENCY_KEY,),
    errors={400: ("unknown_model", "invalid_idempotency_key"), 409: ("read_only",), 422: ("idempotency_key_reused",)},
    limited=True,
)
async def create_job(request: web.Request) -> web.Response:
    project = await project_for(request)
    body = not_blank(await read_body(request, NewJobBody))
    created = await new_job(request, project, body.job())
    job = await request.app[JOB_READER].read_changed(project.id, created.id)
    location = f"/v2/agent/{project.id}/job/{created.id}"
    return job_response(request, job if created.again else job.as_begun(), status=201, headers={"Location": location})


@routes.operation(
    "GET",
    "/v2/agent/{projectId}/job/{id}",
    "getJob",
    "Agent",
    "Get a job",
    JOB_ANSWER | {304: Answer("It is as it was when it had the entity tag of `If-None-Match`.", headers=("ETag",))},
    parameters=(
        Parameter(
            "wait",
            f"Hold the answer until the job ends, for at most this number of seconds (up to {MAX_WAIT_SECONDS}).",
            Annotated[float, Meta(ge=0, le=MAX_WAIT_SECONDS)],
            example=30,
        ),
        Parameter("If-None-Match", "The `ETag` of an earlier answer.", where="header", example='W/"5d0c8b1e"'),
    ),
    errors={404: ("job_not_found",)},
)
async def show_job(request: web.Request) -> web.Response:
    """With ``?wait=SECONDS`` the answer is held until the job ends, or so long."""
    project = await project_for(request)
    seconds = _wait_of(request)
    after = await request.app[STORE].head() if seconds else 0
    reader, job_id = request.app[JOB_READER], request.match_info["id"]
    job = await reader.read(project.id, job_id)
    if seconds and job.view.status == "active":
        await _ended(request, job_id, after, seconds)
        require_key_in_force(request)
        job = await reader.read(project.id, job_id)
    return job_response(request, job)


@routes.operation(
    "GET",
    "/v2/agent/{projectId}/jobs",
    "listJobs",
    "Agent",
    "List jobs",
    {200: Answer("The newest first.", JobList, example={"jobs": [JOB_EXAMPLE], "nextCursor": None})},
    description="As long as `nextCursor` is not null there are more: send it back as `cursor`.",
    parameters=(
        Parameter("limit", f"How many at most, 1 to {MAX_LISTED}; {LISTED} when not given.", PageNumber, example=20),
        cursor_parameter(Annotated[str, Meta(pattern=f"^{JOB_CURSOR}$")]),
        Parameter("status", "Only those that are `active`, `completed` or `failed`.", JobStatus),
        Parameter("includeArchived", "With the archived ones.", bool),
    ),
)
async def show_jobs(request: web.Request) -> web.Response:
    project = await project_for(request)
    limit = whole_param(request, "limit", LISTED, least=1, most=MAX_LISTED)
    jobs = await request.app[JOB_READER].list(
        project.id,
        limit=limit,
        before=cursor_of(request),
        status=_status_of(request),
        archived=_flag_of(request, "includeArchived"),
    )
    return _json(msgspec.json.encode(jobs))


@routes.operation(
    "POST",
    "/v2/agent/{projectId}/job/{id}/message",
    "messageJob",
    "Agent",
    "Send a message to a job",
    JOB_ANSWER,
    description="An active job is steered: the message is in the next prompt of its model. One that has ended goes"
    " on, on the same branch and in the same pull request; if that is merged or closed, in a new one.",
    body=JobBody,
    body_examples={"more": {"prompt": "Mention it in the changelog, too"}},
    parameters=(IDEMPOTENCY_KEY,),
    errors={
        400: ("invalid_idempotency_key",),
        404: ("job_not_found",),
        409: ("job_erased", "too_many_messages"),
        422: ("idempotency_key_reused",),
    },
    limited=True,
)
async def post_job_message(request: web.Request) -> web.Response:
    """Steers an active job before its next call of the model; has one that has ended go on."""
    project = await project_for(request)
    prompt, key = await _prompt(request), _idempotency_key(request)
    reader, job_id = request.app[JOB_READER], request.match_info["id"]
    await reader.read(project.id, job_id)
    added = await add_message(metered_store(request), job_id, prompt, metadata_of(request), key=key)
    job = await reader.read_changed(project.id, job_id)
    return job_response(request, job if added.again else job.as_begun())


@routes.operation(
    "POST",
    "/v2/agent/{projectId}/job/{id}/cancel",
    "cancelJob",
    "Agent",
    "Cancel a job",
    JOB_ANSWER,
    description="It ends as failed, with `failure.code` `cancelled`, and its model is stopped. Again does nothing.",
    errors={404: ("job_not_found",), 409: ("job_ended",)},
)
async def post_job_cancel(request: web.Request) -> web.Response:
    return await _changed(request, cancel_job)


@routes.operation(
    "POST",
    "/v2/agent/{projectId}/job/{id}/retry",
    "retryJob",
    "Agent",
    "Retry a job",
    JOB_ANSWER,
    description="A job that failed carries its last instructions out again, on the same branch; one that waits for"
    " something goes on now. For one that is under way it does nothing.",
    errors={404: ("job_not_found",), 409: ("job_not_failed", "job_erased", "too_many_messages")},
    limited=True,
)
async def post_job_retry(request: web.Request) -> web.Response:
    return await _changed(request, retry_job)


@routes.operation(
    "POST",
    "/v2/agent/{projectId}/job/{id}/archive",
    "archiveJob",
    "Agent",
    "Archive a job",
    JOB_ANSWER,
    description="Its status stays; it is listed only with `includeArchived`. Again does nothing.",
    errors={404: ("job_not_found",)},
)
async def post_job_archive(request: web.Request) -> web.Response:
    return await _changed(request, archive_job)


@routes.operation(
    "POST",
    "/v2/agent/{projectId}/job/{id}/unarchive",
    "unarchiveJob",
    "Agent",
    "Unarchive a job",
    JOB_ANSWER,
    description="It is listed again. For a job that is not archived it does nothing.",
    errors={404: ("job_not_found",)},
)
async def post_job_unarchive(request: web.Request) -> web.Response:
    return await _changed(request, unarchive_job)


async def _changed(
    request: web.Request, change: Callable[[EventStore, str, Metadata], Awaitable[object]]
) -> web.Response:
    """Change a job; the request counts where the limits count it."""
    project = await project_for(request)
    reader, job_id = request.app[JOB_READER], request.match_info["id"]
    await reader.read(project.id, job_id)
    await change(metered_store(request), job_id, metadata_of(request))
    return job_response(request, await reader.read_changed(project.id, job_id))


@routes.operation(
    "GET",
    "/v2/agent/{projectId}/job/{id}/events",
    "followJob",
    "Agent",
    "Follow a job",
    {
        200: Answer(
            "Server-sent events, past then live, up to the job's end.",
            LiveEvent,
            media_type="text/event-stream",
            example=LIVE_EXAMPLE,
        )
    },
    description="Each event's `event` is its type, its `id` a position: send the last one seen back as"
    " `Last-Event-ID` to go on after it. While a job waits for its turn, events of type `queue-position`, without"
    " an id, report its place. More types may come: ignore those that you do not know.\n\n" + EVENT_TABLE,
    parameters=(
        Parameter(
            "Last-Event-ID",
            "The id of the last event seen.",
            Annotated[int, Meta(ge=0, le=10**18 - 1)],
            "header",
            example=41,
        ),
    ),
    errors={400: ("invalid_request",), 404: ("job_not_found",)},
)
async def follow_job(request: web.Request) -> web.StreamResponse:
    """The job's events, past then live; each event's id is its position, so ``Last-Event-ID`` resumes."""
    project = await project_for(request)
    after = min(_last_event_id(request), await request.app[STORE].head())  # else it would wait for that position
    job = await request.app[JOB_READER].read(project.id, request.match_info["id"])
    headers = {"Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-cache, no-transform"}
    if request.method == "HEAD":
        return web.Response(headers=headers)
    response = EventSourceResponse(sep="\n")
    response.headers.update(headers)
    await response.prepare(request)
    async with response, aclosing(_pieces(request, project.id, job, after)) as pieces:
        async for piece in pieces:
            await response.write(piece)
    return response


async def _pieces(request: web.Request, project_id: str, job: ReadJob, after: int) -> AsyncGenerator[bytes, None]:
    """Yield the events as bytes, and while the job waits its place in the queue, whenever that changes."""
    job_id, waits, place = job.view.id, job.is_waiting, None
    events, closing = events_of(request.app[STORE], job.view, after), request.app[CLOSING]
    kept = with_keep_alives(events, closing, revocation=revocation_of(request), seconds=QUEUE_SECONDS)
    async with aclosing(kept) as heard:
        async for news in heard:
            if news is not None:
                yield live_event(*news)
                queued = isinstance(news[1], JobResumed | JobInterrupted | JobReopened)
                waits = queued or (waits and not isinstance(news[1], JobStarted))
            elif waits:  # the response sends its own keep-alives
                job = await request.app[JOB_READER].read(project_id, job_id)
                waits, now = job.is_waiting, job.view.queue_position
                if now is not None and now != place:
                    place = now
                    yield queue_event(now)


async def new_job(request: web.Request, project: ProjectView, new: NewJob) -> CreatedJob:
    """Raises Invalid and KeyReused."""
    key = _idempotency_key(request)
    try:
        return await request_job(
            metered_store(request), request.app[MODELS], project, new, metadata_of(request), key=key
        )
    except NotFound as error:  # a name in the body, not in the address
        raise Invalid(f"$.model: {error}", code=error.code, problems=(("$.model", str(error)),)) from error


def _idempotency_key(request: web.Request) -> str:
    """The ``Idempotency-Key``, empty when there is none. In quotes, as the draft has it, or bare, as most send it.

    Raises Invalid ``invalid_idempotency_key``.
    """
    values = request.headers.getall("Idempotency-Key", [])
    if not values:
        return ""
    key = values[0].strip()
    if len(key) > 1 and key[0] == key[-1] == '"':
        key = key[1:-1]
    if len(values) > 1 or not 1 <= len(key) <= MAX_KEY_CHARACTERS or not (key.isascii() and key.isprintable()):
        raise Invalid(
            f"An Idempotency-Key has 1 to {MAX_KEY_CHARACTERS} printable ASCII characters, and comes once.",
            code="invalid_idempotency_key",
        )
    return key


def _last_event_id(request: web.Request) -> int:
    text = request.headers.get("Last-Event-ID", "0")
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise Invalid("Last-Event-ID is the id of an event of this stream.")
    return int(text)


async def _prompt(request: web.Request) -> str:
    return not_blank(await read_body(request, JobBody)).prompt


async def _ended(request: web.Request, job_id: str, after: int, seconds: float) -> None:
    """Wait until the job ends, the time is over, the key is revoked or the server goes down."""
    events = live_events(request.app[STORE], job_id, after)
    with suppress(TimeoutError):
        kept = with_keep_alives(events, request.app[CLOSING], revocation=revocation_of(request))
        async with asyncio.timeout(seconds), aclosing(kept) as heard:
            async for news in heard:
                if news is not None and isinstance(news[1], JobCompleted | JobFailed):
                    return


def job_response(
    request: web.Request, job: ReadJob, *, status: int = 200, headers: dict[str, str] | None = None
) -> web.Response:
    """The job with a weak entity tag; 304 without it for a reader who has it already (RFC 9110, section 13.1.2)."""
    body, tag = job.encoded()
    weak = f'W/"{tag}"'
    known = (request.if_none_match or ()) if "If-None-Match" in request.headers else ()
    if request.method in ("GET", "HEAD") and any(one.value in (tag, "*") for one in known):
        return web.Response(status=304, headers={"ETag": weak})
    return _json(body, status=status, headers={**(headers or {}), "ETag": weak})


def _json(body: bytes, *, status: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    """An answer that may be kept, but is asked for again each time."""
    return web.Response(
        status=status,
        body=body,
        content_type="application/json",
        headers={"Cache-Control": "private, no-cache", **(headers or {})},
    )


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


def cursor_of(request: web.Request) -> str | None:
    text = query_param(request, "cursor")
    if text is None:
        return None
    if not re.fullmatch(JOB_CURSOR, text):
        raise bad_query("cursor", NOT_A_CURSOR)
    return text
