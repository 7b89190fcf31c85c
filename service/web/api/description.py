"""The description of each of the API's operations; ``openapi`` turns it into the document.

Every route of the service is here, or is not part of the API (``NOT_OF_THE_API``): a test compares.
"""

from functools import cache
from typing import Annotated, Any

from msgspec import Meta

from service import __version__
from service.domain.jobs.decider import JobStatus
from service.views.jobs import JobList, JobView
from service.views.jobs_v1 import Session, Sessions
from service.web.api import analytics, feedback, health, jobs, jobs_v1, search, threads
from service.web.api import stream_description as streams
from service.web.api.openapi import document
from service.web.api.operations import DOMAIN, PROJECT, Answer, Operation, Parameter, Tag
from service.web.api.webhook_description import notices

TITLE = "Docsmith"
DESCRIPTION = """\
A documentation agent and assistant: one service, two APIs, one log.

- **Agent**: an instruction becomes a background job, which edits a documentation repository and opens a pull request.
- **Assistant**: a question about a documentation site becomes an answer from its pages, with citations, streamed to
  chat clients, in threads that carry on.

Send a key as `Authorization: Bearer KEY`. Every answer carries an `X-Request-Id`, which is also in the service's log.
Addresses have no slash at their end, and their case matters: an unknown one is answered with 404, and a method that an
address does not support with 405 and `Allow`. Times are ISO 8601 in UTC. Errors are problem details
(RFC 9457): `code` is stable, `detail` is one plain sentence, and `type` is the address of a page that says what to do.
Bodies are JSON in UTF-8, whatever the charset of their content type. Unknown fields of a body are ignored, and `null`
is the same as leaving a field out. A parameter of the query comes once.
"""

TAGS = (
    Tag("Agent", "Jobs that edit the documentation repository of a project. For admin keys."),
    Tag("Assistant", "Answers about one documentation site. For assistant keys; any origin may call it."),
    Tag("Analytics", "Questions to a project's assistant, and readers' ratings of its replies. For admin keys."),
    Tag(
        "Webhooks",
        "Requests that the service sends to an address of yours when a job changes: see `docsmith webhook create`."
        " By the Standard Webhooks specification 1.0.0.",
    ),
    Tag("Service", "The state of the service, and its description."),
    Tag("Deprecated", "Version 1 of the API, for the clients that still speak it."),
)

NOT_OF_THE_API = ("/assets/", "/docs", "/hooks/", "/hosted/", "/manual", "/openapi.json")
"""Pages for people, git's own protocol, and what code hosts send in their own forms; by how their paths begin."""

JOB = Parameter("id", "The job's id.", where="path")

THREAD_HEADERS = ("X-Thread-Id", "X-Thread-Key")
UI_HEADERS = ("x-vercel-ai-ui-message-stream",)
DATA_HEADERS = ("x-vercel-ai-data-stream",)

PageNumber = Annotated[int, Meta(ge=1, le=100)]
JobCursor = Annotated[str, Meta(pattern=f"^{jobs.JOB_CURSOR}$")]
IdempotencyKey = Annotated[str, Meta(pattern="^[!#-~]([ -~]{0,253}[!#-~])?$")]

JOB_EXAMPLE = {
    "id": "019a8e6c-4b7a-7d33-9c1e-5b0f1d8f3a52",
    "status": "completed",
    "source": {"repository": "https://git.example.com/acme/guide", "ref": "main"},
    "model": "builtin/editor",
    "prLink": "https://docsmith.example.com/hosted/5d0c8b1e/pulls/1-kq3vN0tq",
    "createdAt": "2026-11-21T09:30:00.000Z",
    "archivedAt": None,
    "title": "Fix broken links",
    "branch": "docs/fix-broken-links-1d8f3a52",
    "failure": None,
    "usage": {"inputTokens": 0, "outputTokens": 0, "costUsd": 0.0},
    "queuePosition": None,
}

IDEMPOTENCY_KEY = Parameter(
    "Idempotency-Key",
    "Makes a request that is sent again do nothing again: for the same key and the same body the answer is the same"
    " job. Of this project's requests only; it does not expire. 1 to 255 printable ASCII characters, in quotes or not.",
    IdempotencyKey,
    "header",
    example="8e03978e-40d5-43dd-bc93-6894a57f9324",
)
JOB_ANSWER = {200: Answer("The job.", JobView, headers=("ETag",), example=JOB_EXAMPLE)}
BEGUN_EXAMPLE = JOB_EXAMPLE | {"status": "active", "prLink": None}
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

QUESTION: dict[str, Any] = {
    "fp": "anonymous",
    "messages": [{"id": "m1", "role": "user", "parts": [{"type": "text", "text": "How do I retry a failed job?"}]}],
}

AGENT = (
    Operation(
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
                    ("getJob", "messageJob", "cancelJob", "archiveJob", "followJob"), "$response.body#/id"
                ),
            )
        },
        description="An instruction in words becomes a background job. It ends by itself: with a pull request, or with"
        " nothing to change, or failed. Watch it by its events, or by asking for it with `wait`.",
        key="admin",
        body=jobs.JobBody,
        body_examples={"instruction": {"prompt": "Fix broken links"}},
        parameters=(PROJECT, IDEMPOTENCY_KEY),
        errors={400: ("invalid_idempotency_key",), 409: ("read_only",), 422: ("idempotency_key_reused",)},
        limited=True,
    ),
    Operation(
        "GET",
        "/v2/agent/{projectId}/job/{id}",
        "getJob",
        "Agent",
        "Get a job",
        JOB_ANSWER | {304: Answer("It is as it was when it had the entity tag of `If-None-Match`.", headers=("ETag",))},
        key="admin",
        parameters=(
            PROJECT,
            JOB,
            Parameter(
                "wait",
                "Hold the answer until the job ends, for at most this number of seconds (up to 60).",
                Annotated[float, Meta(ge=0, le=jobs.MAX_WAIT_SECONDS)],
                example=30,
            ),
            Parameter("If-None-Match", "The `ETag` of an earlier answer.", where="header", example='W/"5d0c8b1e"'),
        ),
        errors={404: ("job_not_found",)},
    ),
    Operation(
        "GET",
        "/v2/agent/{projectId}/jobs",
        "listJobs",
        "Agent",
        "List jobs",
        {200: Answer("The newest first.", JobList, example={"jobs": [JOB_EXAMPLE], "nextCursor": None})},
        description="As long as `nextCursor` is not null there are more: send it back as `cursor`.",
        key="admin",
        parameters=(
            PROJECT,
            Parameter("limit", "How many at most, 1 to 100; 20 when not given.", PageNumber, example=20),
            Parameter("cursor", "The `nextCursor` of an earlier answer.", JobCursor),
            Parameter("status", "Only those that are `active`, `completed` or `failed`.", JobStatus),
            Parameter("includeArchived", "With the archived ones.", bool),
        ),
    ),
    Operation(
        "POST",
        "/v2/agent/{projectId}/job/{id}/message",
        "messageJob",
        "Agent",
        "Send a message to a job",
        JOB_ANSWER,
        description="An active job is steered: the message is in the next prompt of its model. One that has ended goes"
        " on, on the same branch and in the same pull request; if that is merged or closed, in a new one.",
        key="admin",
        body=jobs.JobBody,
        body_examples={"more": {"prompt": "Mention it in the changelog, too"}},
        parameters=(PROJECT, JOB, IDEMPOTENCY_KEY),
        errors={
            400: ("invalid_idempotency_key",),
            404: ("job_not_found",),
            409: ("job_erased", "too_many_messages"),
            422: ("idempotency_key_reused",),
        },
        limited=True,
    ),
    Operation(
        "POST",
        "/v2/agent/{projectId}/job/{id}/cancel",
        "cancelJob",
        "Agent",
        "Cancel a job",
        JOB_ANSWER,
        description="It ends as failed, with `failure.code` `cancelled`, and its model is stopped. Again does nothing.",
        key="admin",
        parameters=(PROJECT, JOB),
        errors={404: ("job_not_found",), 409: ("job_ended",)},
    ),
    Operation(
        "POST",
        "/v2/agent/{projectId}/job/{id}/archive",
        "archiveJob",
        "Agent",
        "Archive a job",
        JOB_ANSWER,
        description="Its status stays; it is listed only with `includeArchived`. Again does nothing.",
        key="admin",
        parameters=(PROJECT, JOB),
        errors={404: ("job_not_found",)},
    ),
    Operation(
        "GET",
        "/v2/agent/{projectId}/job/{id}/events",
        "followJob",
        "Agent",
        "Follow a job",
        {
            200: Answer(
                "Server-sent events, past then live, up to the job's end.",
                streams.LiveEvent,
                media_type="text/event-stream",
                example=streams.LIVE_EXAMPLE,
            )
        },
        description="Each event's `event` is its type, its `id` a position: send the last one seen back as"
        " `Last-Event-ID` to go on after it. While a job waits for its turn, events of type `queue-position`, without"
        " an id, report its place. More types may come: ignore those that you do not know.\n\n" + streams.LIVE_TABLE,
        key="admin",
        parameters=(
            PROJECT,
            JOB,
            Parameter(
                "Last-Event-ID",
                "The id of the last event seen.",
                Annotated[int, Meta(ge=0, le=10**18 - 1)],
                "header",
                example=41,
            ),
        ),
        errors={400: ("invalid_request",), 404: ("job_not_found",)},
    ),
)

ASSISTANT = (
    Operation(
        "POST",
        "/discovery/v2/assistant/{domain}/message",
        "ask",
        "Assistant",
        "Ask a question",
        {
            200: Answer(
                "The answer as it is written: the UI message stream of the AI SDK 5, 6 and 7.",
                streams.UiChunk,
                media_type="text/event-stream",
                headers=(*THREAD_HEADERS, *UI_HEADERS),
                example=streams.UI_EXAMPLE,
            )
        },
        description="Made for `useChat`, and plain enough for curl: each event is one JSON chunk, the last is `[DONE]`."
        " First comes the search step and its sources, then text. An error after the answer has begun is a chunk of"
        " type `error`.\n\n" + streams.UI_TABLE,
        key="assistant",
        body=threads.ThreadBody,
        body_examples={"question": QUESTION},
        parameters=(DOMAIN,),
        errors={404: ("thread_not_found",), 409: ("conflict",)},
        limited=True,
    ),
    Operation(
        "GET",
        "/discovery/v2/assistant/{domain}/message/{chatId}/stream",
        "resumeReply",
        "Assistant",
        "Resume a reply",
        {
            200: Answer(
                "The reply under way, from its start: the same stream as when it was asked for.",
                streams.UiChunk,
                media_type="text/event-stream",
                headers=("X-Thread-Id", *UI_HEADERS),
                example=streams.UI_EXAMPLE,
            ),
            204: Answer("Nothing is under way in that chat, or nothing for this reader."),
        },
        description="What `useChat({resume: true})` asks for when its page comes back. It is for a client that has the"
        " thread's key, or asks as the first request did: with the same key, from the same address, by the same"
        " program.",
        key="assistant",
        parameters=(
            DOMAIN,
            Parameter("chatId", "The `id` that the chat's requests carry in their body.", where="path"),
            Parameter("X-Thread-Key", "The thread's key.", where="header"),
            Parameter("threadKey", "The thread's key, for clients that can set no header."),
            Parameter("fp", "The thread's own `fp`, where it is not `anonymous`."),
        ),
        limited=False,
    ),
)


DEPRECATED = (
    Operation(
        "POST",
        "/v1/agent/{projectId}/job",
        "createJobV1",
        "Deprecated",
        "Create a job, and follow it",
        {
            200: Answer(
                "What the agent does, as data lines of the AI SDK 4. The job outlives the connection.",
                media_type="text/plain",
                headers=("X-Session-Id", "X-Branch-Name", *DATA_HEADERS),
                example=streams.DATA_EXAMPLE,
                leads_to={"getJobV1": "$response.header.X-Session-Id"},
            )
        },
        description=streams.DATA_TABLE,
        key="admin",
        body=jobs_v1.JobBodyV1,
        body_examples={"instruction": {"messages": [{"role": "user", "content": "Fix broken links"}]}},
        parameters=(PROJECT, IDEMPOTENCY_KEY),
        errors={
            400: ("unknown_model", "invalid_idempotency_key"),
            409: ("read_only",),
            422: ("idempotency_key_reused",),
        },
        deprecated=True,
        limited=True,
    ),
    Operation(
        "GET",
        "/v1/agent/{projectId}/job/{id}",
        "getJobV1",
        "Deprecated",
        "Get a job",
        {200: Answer("The job.", Session, example=SESSION_EXAMPLE)},
        key="admin",
        parameters=(PROJECT, JOB),
        errors={404: ("job_not_found",)},
        deprecated=True,
    ),
    Operation(
        "GET",
        "/v1/agent/{projectId}/jobs",
        "listJobsV1",
        "Deprecated",
        "List jobs",
        {200: Answer("The newest first.", Sessions, example={"allSessions": [SESSION_EXAMPLE]})},
        key="admin",
        parameters=(
            PROJECT,
            Parameter(
                "skip",
                "How many to leave out at the start.",
                Annotated[int, Meta(ge=0, le=jobs_v1.MAX_SKIPPED)],
                example=0,
            ),
            Parameter("take", "How many at most, 1 to 100; 12 when not given.", PageNumber, example=12),
        ),
        deprecated=True,
    ),
    Operation(
        "POST",
        "/discovery/v1/assistant/{domain}/message",
        "askV1",
        "Deprecated",
        "Ask a question, for the AI SDK 4",
        {
            200: Answer(
                "The answer as it is written, as a data stream.",
                media_type="text/plain",
                headers=(*THREAD_HEADERS, *DATA_HEADERS),
                example=streams.DATA_EXAMPLE,
            )
        },
        description=streams.DATA_TABLE,
        key="assistant",
        body=threads.ThreadBody,
        body_examples={"question": {"fp": "anonymous", "messages": [{"role": "user", "content": "How do I retry?"}]}},
        parameters=(DOMAIN,),
        errors={404: ("thread_not_found",), 409: ("conflict",)},
        deprecated=True,
        limited=True,
    ),
)

MODULES = (search, feedback, analytics, health)
_OPERATIONS = [operation for module in MODULES for operation in module.routes.operations]
_TAG_NAMES = [tag.name for tag in TAGS]
OPERATIONS = sorted(
    (*AGENT, *ASSISTANT, *DEPRECATED, *_OPERATIONS),
    key=lambda operation: _TAG_NAMES.index(operation.tag),
)


@cache
def description() -> dict[str, Any]:
    """The document that ``/openapi.json`` serves."""
    return document(
        OPERATIONS,
        version=__version__,
        title=TITLE,
        description=DESCRIPTION,
        tags=TAGS,
        notices=notices(JOB_EXAMPLE),
    )
