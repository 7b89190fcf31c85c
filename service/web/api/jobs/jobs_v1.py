"""Version 1 of the agent's endpoints, deprecated: the shapes and spellings are those of the public API."""

from contextlib import aclosing
from typing import Annotated, Literal

from aiohttp import web
from msgspec import Meta, Struct

from service.commands.jobs.jobs import NewJob
from service.domain.errors import Invalid
from service.domain.jobs.decider import MAX_PROMPT_CHARACTERS, Message
from service.queries.jobs.jobs import live_events
from service.queries.jobs.jobs_v1 import list_sessions, session_of
from service.views.fields import described
from service.views.jobs.jobs_v1 import Session, Sessions
from service.web.api.description.operations import Answer, Parameter, Routes
from service.web.api.jobs.job_bodies import IDEMPOTENCY_KEY, JOB_EXAMPLE
from service.web.api.jobs.jobs import MAX_LISTED, PageNumber, new_job
from service.web.http.access.access import project_for
from service.web.http.access.revocation import SENTENCE, revocation_of
from service.web.http.answers.versioning import deprecated
from service.web.http.app_keys import CLOSING, JOB_READER, STORE, VIEWS
from service.web.http.live import with_keep_alives
from service.web.http.problems import json_response, read_body
from service.web.http.query_params import whole_param
from service.web.http.schemas import NOT_BLANK
from service.wire import data_stream
from service.wire.job_stream import JobStreamEncoder, named_model

MAX_SKIPPED = 1_000_000
TAKEN = 12

SESSION_EXAMPLE = {
    "sessionId": JOB_EXAMPLE["id"],
    "subdomain": "guide",
    "branch": "docs/fix-broken-links-1d8f3a52",
    "haulted": True,
    "haultReason": "completed",
    "pullRequestLink": JOB_EXAMPLE["prLink"],
    "messageToUser": "Mended 2 links.",
    "todos": [{"id": "1", "content": "Fix links", "status": "completed", "priority": "medium"}],
    "userId": "key_0b6f",
    "title": "Fix broken links",
    "createdAt": "2026-11-21T09:30:00.000Z",
}

routes = Routes()


class MessageBody(Struct):
    """One message of the instruction."""

    role: Annotated[Literal["system", "user", "assistant"], described("The message's author.")]
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
        described(
            "The branch to work on, created if it does not exist; characters that git refuses in its name are replaced."
        ),
    ] = None
    asDraft: Annotated[  # noqa: N815  (the API's own name)
        bool | Literal["true", "false"] | None,
        described("Whether the pull request is a draft; it is not when left out."),
    ] = None
    model: Annotated[
        Annotated[str, Meta(max_length=100)] | None,
        described(
            "An alias of the settings. Left out, or `sonnet` or `opus` where the settings do not have it: the"
            " agent's own model."
        ),
    ] = None


@routes.operation(
    "POST",
    "/v1/agent/{projectId}/job",
    "createJobV1",
    "Deprecated",
    "Create a job, and follow it",
    {
        200: Answer(
            "What the agent does, as data lines of the AI SDK 4. The job outlives the connection.",
            media_type="text/plain",
            headers=("X-Session-Id", "X-Branch-Name", "X-Model", "x-vercel-ai-data-stream"),
            example=data_stream.EXAMPLE,
            leads_to={"getJobV1": "$response.header.X-Session-Id"},
        )
    },
    description=data_stream.DESCRIPTION,
    body=JobBodyV1,
    body_examples={"instruction": {"messages": [{"role": "user", "content": "Fix broken links"}]}},
    parameters=(IDEMPOTENCY_KEY,),
    errors={
        400: ("unknown_model", "invalid_idempotency_key"),
        409: ("read_only",),
        422: ("idempotency_key_reused",),
    },
    limited=True,
)
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
        model_alias=body.model or "",
        branch=(body.branch or "").strip(),
        as_draft=body.asDraft in (True, "true"),
    )
    created = await new_job(request, project, new)
    headers = {**data_stream.HEADERS, "X-Session-Id": created.id, "X-Branch-Name": created.branch}
    headers["X-Model"] = named_model(created.model)
    response = web.StreamResponse(headers={**headers, **deprecated(f"/v2/agent/{project.id}/job")})
    await response.prepare(request)
    encoder, revocation = JobStreamEncoder(created.id), revocation_of(request)
    events = live_events(request.app[STORE], created.id, 0)
    async with aclosing(with_keep_alives(events, request.app[CLOSING], revocation=revocation)) as kept:
        async for told in kept:
            lines = [] if told is None else encoder.encode(told[1])
            if told is None or (not lines and encoder.is_waiting):
                lines = [data_stream.KEEP_ALIVE]
            if lines:
                await response.write(b"".join(lines))
            if encoder.is_done:
                break
    if revocation.is_published and not encoder.is_done:
        await response.write(data_stream.line("3", SENTENCE))
    await response.write_eof()
    return response


@routes.operation(
    "GET",
    "/v1/agent/{projectId}/job/{id}",
    "getJobV1",
    "Deprecated",
    "Get a job",
    {200: Answer("The job.", Session, example=SESSION_EXAMPLE)},
    errors={404: ("job_not_found",)},
)
async def show_job_v1(request: web.Request) -> web.Response:
    project = await project_for(request)
    job = await request.app[JOB_READER].read(project.id, request.match_info["id"])
    return json_response(session_of(job, project), headers=deprecated(f"/v2/agent/{project.id}/job/{job.view.id}"))


@routes.operation(
    "GET",
    "/v1/agent/{projectId}/jobs",
    "listJobsV1",
    "Deprecated",
    "List jobs",
    {200: Answer("The newest first.", Sessions, example={"allSessions": [SESSION_EXAMPLE]})},
    parameters=(
        Parameter(
            "skip",
            "How many to leave out at the start.",
            Annotated[int, Meta(ge=0, le=MAX_SKIPPED)],
            example=0,
        ),
        Parameter("take", f"How many at most, 1 to {MAX_LISTED}; {TAKEN} when not given.", PageNumber, example=12),
    ),
)
async def show_jobs_v1(request: web.Request) -> web.Response:
    project = await project_for(request)
    skip = whole_param(request, "skip", 0, least=0, most=MAX_SKIPPED)
    take = whole_param(request, "take", TAKEN, least=1, most=MAX_LISTED)
    sessions = await list_sessions(request.app[VIEWS], project, limit=take, skip=skip)
    return json_response(sessions, headers=deprecated(f"/v2/agent/{project.id}/jobs"))
