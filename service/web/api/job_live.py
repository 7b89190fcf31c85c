"""A job as its readers follow it: the row of the read model, and its events, past then live."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from aiohttp import web

from service.commands.jobs import CreatedJob, NewJob, request_job
from service.domain.access.idempotency import MAX_KEY_CHARACTERS
from service.domain.errors import Invalid, NotFound
from service.domain.jobs.decider import JobCompleted, JobEvent, JobFailed, JobReopened
from service.projections.jobs import JobRow, get_job
from service.projections.projects import ProjectRow
from service.streams import JOBS, decoded
from service.web.http.app_keys import ENDED_JOBS, MODELS, STORE, VIEWS
from service.web.http.limits import metered_store
from service.web.http.problems import metadata_of


async def new_job(request: web.Request, project: ProjectRow, new: NewJob) -> CreatedJob:
    """Raises Invalid and KeyReused."""
    key = idempotency_key(request)
    try:
        return await request_job(
            metered_store(request), request.app[MODELS], project, new, metadata_of(request), key=key
        )
    except NotFound as error:  # a name in the body, not in the address
        raise Invalid(f"$.model: {error}", code=error.code, problems=(("$.model", str(error)),)) from error


def idempotency_key(request: web.Request) -> str:
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


async def job_row(request: web.Request, project: ProjectRow, job_id: str) -> JobRow:
    """The job as it is at least as of the log's end: who has just made it finds it. Raises NotFound.

    One that has ended is kept in memory: what another process records of it is seen some milliseconds later.
    """
    views, ended = request.app[VIEWS], request.app[ENDED_JOBS]
    known = ended.find(project.id, job_id)
    if known is not None:
        return known
    changes = ended.changes
    await views.wait_for(await request.app[STORE].head())
    row = await get_job(views, project.id, job_id)
    if row is None:
        raise NotFound("There is no such job.", code="job_not_found")
    ended.remember(row, changes)
    return row


async def changed_row(request: web.Request, project: ProjectRow, job_id: str) -> JobRow:
    """As ``job_row``, for who has just recorded something of the job."""
    request.app[ENDED_JOBS].forget(job_id)
    return await job_row(request, project, job_id)


async def live_events(request: web.Request, job_id: str, after: int) -> AsyncGenerator[tuple[int, JobEvent], None]:
    """The job's events after a position, past then live, up to its end; over the end of a round that others follow."""
    store, stream = request.app[STORE], JOBS.stream(job_id)
    async with aclosing(store.subscribe(after=after, stream=stream)) as subscription:
        async for recorded in subscription:
            for _, event in decoded(JOBS, [recorded]):
                yield recorded.position, event
                if isinstance(event, JobCompleted | JobFailed):
                    next_ones = await store.read_stream(stream, after_version=recorded.stream_version, limit=100)
                    if not any(isinstance(one, JobReopened) for _, one in decoded(JOBS, next_ones)):
                        return


async def past_events(request: web.Request, job_id: str, after: int) -> AsyncGenerator[tuple[int, JobEvent], None]:
    """Of a job that has ended: a client that reconnects after its last event would wait in vain for another."""
    async with aclosing(request.app[STORE].iterate_stream(JOBS.stream(job_id))) as events:
        async for recorded in events:
            if recorded.position > after:
                for _, told in decoded(JOBS, [recorded]):
                    yield recorded.position, told


def last_event_id(request: web.Request) -> int:
    text = request.headers.get("Last-Event-ID", "0")
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise Invalid("Last-Event-ID is the id of an event of this stream.")
    return int(text)
