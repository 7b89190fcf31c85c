"""What the API's description says of each operation; ``openapi`` turns it into the document.

Every route of the service stands here, or is no part of the API (``NOT_OF_THE_API``): a test compares.
"""

from functools import cache
from importlib.metadata import version
from typing import Any, get_args

from service.domain.jobs import JobEvent, JobStatus
from service.web import health, jobs, jobs_v1, threads
from service.web.assistant_description import ANALYTICS, SITE
from service.web.openapi import Answer, Operation, Parameter, Tag, document

TITLE = "Docsmith"
DESCRIPTION = """\
A documentation agent and assistant: one service, two APIs, one log.

- **Agent**: an instruction becomes a background job, which edits a documentation repository and opens a pull request.
- **Assistant**: a question about a documentation site becomes an answer from its pages, with citations, streamed to
  chat clients, in threads that carry on.

Send a key as `Authorization: Bearer KEY`. Every answer carries an `X-Request-Id`, which is found again in the
service's log. Times are ISO 8601 in UTC. Errors are problem details (RFC 9457): `code` is stable, `detail` is one plain
sentence, and `type` is the address of a page that says what to do. Unknown fields of a body are ignored, and `null` is
the same as leaving a field out.
"""

TAGS = (
    Tag("Agent", "Jobs that edit the documentation repository of a project. For admin keys."),
    Tag("Assistant", "Answers about one documentation site. For assistant keys; any origin may call it."),
    Tag("Analytics", "What was asked of a project's assistant, and what readers thought of it. For admin keys."),
    Tag("Service", "Whether the service lives, and what it offers."),
    Tag("Deprecated", "Version 1 of the API, for the clients that still speak it."),
)

NOT_OF_THE_API = ("/assets/", "/docs", "/hooks/", "/hosted/", "/openapi.json")
"""Pages for people, git's own protocol, and what code hosts send in their own forms; by how their paths begin."""

JOB_EVENT_TYPES = tuple(kind.__struct_config__.tag for kind in get_args(JobEvent))

PROJECT = Parameter("projectId", "The project's id, as `docsmith project list` shows it.", where="path")
JOB = Parameter("id", "The job's id.", where="path")
DOMAIN = Parameter("domain", "The site's domain, such as `docs.example.com`.", where="path", example="guide")

THREAD_HEADERS = {
    "X-Thread-Id": "The thread's id: send it back as `threadId`, and the conversation goes on.",
    "X-Thread-Key": "Only for a new thread, and only here: a secret that proves whose thread it is.",
}

JOB_EXAMPLE = {
    "id": "019a8e6c-4b7a-7d33-9c1e-5b0f1d8f3a52",
    "status": "completed",
    "source": {"repository": "https://git.example.com/acme/guide", "ref": "main"},
    "model": "builtin/editor",
    "prLink": "https://docsmith.example.com/hosted/5d0c…/pulls/1-kq3v…",
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
    " job. Of this project's requests only; it does not expire.",
    where="header",
    example="8e03978e-40d5-43dd-bc93-6894a57f9324",
)
JOB_ANSWER = {200: Answer("The job.", jobs.JobView, example=JOB_EXAMPLE)}

QUESTION: dict[str, Any] = {
    "fp": "anonymous",
    "messages": [{"id": "m1", "role": "user", "parts": [{"type": "text", "text": "How do I retry a failed job?"}]}],
}

UI_STREAM = """\
data: {"type":"start","messageId":"msg_…","messageMetadata":{"threadId":"…"}}

data: {"type":"text-start","id":"0"}

data: {"type":"text-delta","id":"0","delta":"Run "}

data: {"type":"text-end","id":"0"}

data: {"type":"finish","finishReason":"stop","messageMetadata":{"threadId":"…"}}

data: [DONE]

"""

LIVE_EVENTS = """\
id: 41
event: job-requested
data: {"type":"job-requested","title":"Fix broken links"}

id: 63
event: pull-request-opened
data: {"type":"pull-request-opened","number":1,"url":"https://…"}

"""

AGENT = (
    Operation(
        "POST",
        "/v2/agent/{projectId}/job",
        "createJob",
        "Agent",
        "Ask for a change",
        {
            201: Answer(
                "The job, active.", jobs.JobView, headers={"Location": "The job's address."}, example=JOB_EXAMPLE
            )
        },
        description="An instruction in words becomes a background job. It ends by itself: with a pull request, or with"
        " nothing to change, or failed. Watch it by its events, or by asking for it with `wait`.",
        key="admin",
        body=jobs.JobBody,
        body_examples={"instruction": {"prompt": "Fix broken links"}},
        parameters=(PROJECT, IDEMPOTENCY_KEY),
        errors={400: ("invalid_idempotency_key",), 422: ("idempotency_key_reused",)},
        limited=True,
    ),
    Operation(
        "GET",
        "/v2/agent/{projectId}/job/{id}",
        "getJob",
        "Agent",
        "Look at a job",
        JOB_ANSWER | {304: Answer("It is as it was when it had the entity tag of `If-None-Match`.")},
        key="admin",
        parameters=(
            PROJECT,
            JOB,
            Parameter(
                "wait", "Hold the answer until the job ends, for at most so many seconds (up to 60).", float, example=30
            ),
            Parameter("If-None-Match", "The `ETag` of an earlier answer.", where="header", example='W/"5d0c…"'),
        ),
        errors={404: ("job_not_found",)},
    ),
    Operation(
        "GET",
        "/v2/agent/{projectId}/jobs",
        "listJobs",
        "Agent",
        "List jobs",
        {200: Answer("The newest first.", jobs.JobList)},
        description="As long as `nextCursor` is not null there are more: send it back as `cursor`.",
        key="admin",
        parameters=(
            PROJECT,
            Parameter("limit", "How many at most, 1 to 100.", int, example=20),
            Parameter("cursor", "The `nextCursor` of an earlier answer."),
            Parameter("status", "Only those that are `active`, `completed` or `failed`.", JobStatus),
            Parameter("includeArchived", "With the archived ones.", bool),
        ),
    ),
    Operation(
        "POST",
        "/v2/agent/{projectId}/job/{id}/message",
        "messageJob",
        "Agent",
        "Say more to a job",
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
        "Put a job out of sight",
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
                media_type="text/event-stream",
                example=LIVE_EVENTS,
            )
        },
        description="Each event's `event` is its type, its `id` a position: send the last one seen back as"
        f" `Last-Event-ID` to go on after it. The types are: {', '.join(f'`{tag}`' for tag in JOB_EVENT_TYPES)}."
        " More may come: pass over those that you do not know. While a job waits for its turn, events of type"
        " `queue-position`, without an id, tell its place.",
        key="admin",
        parameters=(
            PROJECT,
            JOB,
            Parameter("Last-Event-ID", "The id of the last event seen.", int, "header", example=41),
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
                media_type="text/event-stream",
                headers=THREAD_HEADERS,
                example=UI_STREAM,
            )
        },
        description="Made for `useChat`, and plain enough for curl: each event is one JSON chunk, the last is `[DONE]`."
        " First comes the search step and its sources, then text. An error after the answer has begun is a chunk of"
        " type `error`.",
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
        "Go on reading a reply",
        {
            200: Answer(
                "The reply under way, from its start: the same stream as when it was asked for.",
                media_type="text/event-stream",
                example=UI_STREAM,
            ),
            204: Answer("Nothing is under way in that chat, or nothing for this reader."),
        },
        description="What `useChat({resume: true})` asks for when its page comes back. It is for whoever has the"
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

SERVICE = (
    Operation(
        "GET", "/healthz", "health", "Service", "Whether the process lives", {200: Answer("It does.", health.Health)}
    ),
    Operation(
        "GET",
        "/readyz",
        "readiness",
        "Service",
        "Whether it can do its work",
        {200: Answer("It can.", health.Readiness), 503: Answer("It cannot; `reasons` says why.", health.Readiness)},
    ),
)

DEPRECATED = (
    Operation(
        "POST",
        "/v1/agent/{projectId}/job",
        "createJobV1",
        "Deprecated",
        "Ask for a change, and read how it goes",
        {
            200: Answer(
                "What the agent does, as data lines of the AI SDK 4. The job outlives the connection.",
                media_type="text/plain",
                headers={"X-Session-Id": "The job's id.", "X-Branch-Name": "The branch that it works on."},
            )
        },
        key="admin",
        body=jobs_v1.JobBodyV1,
        body_examples={"instruction": {"messages": [{"role": "user", "content": "Fix broken links"}]}},
        parameters=(PROJECT, IDEMPOTENCY_KEY),
        errors={400: ("unknown_model", "invalid_idempotency_key"), 422: ("idempotency_key_reused",)},
        deprecated=True,
        limited=True,
    ),
    Operation(
        "GET",
        "/v1/agent/{projectId}/job/{id}",
        "getJobV1",
        "Deprecated",
        "Look at a job",
        {200: Answer("The job.", jobs_v1.Session)},
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
        {200: Answer("The newest first.", jobs_v1.Sessions)},
        key="admin",
        parameters=(
            PROJECT,
            Parameter("skip", "How many to leave out at the start.", int, example=0),
            Parameter("take", "How many at most, 1 to 100.", int, example=12),
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
                "The answer as it is written, as a data stream.", media_type="text/plain", headers=THREAD_HEADERS
            )
        },
        key="assistant",
        body=threads.ThreadBody,
        body_examples={"question": {"fp": "anonymous", "messages": [{"role": "user", "content": "How do I retry?"}]}},
        parameters=(DOMAIN,),
        errors={404: ("thread_not_found",), 409: ("conflict",)},
        deprecated=True,
        limited=True,
    ),
)

OPERATIONS = (*AGENT, *ASSISTANT, *SITE, *ANALYTICS, *SERVICE, *DEPRECATED)


@cache
def description() -> dict[str, Any]:
    """The document that ``/openapi.json`` serves."""
    return document(
        OPERATIONS,
        version=version("docsmith"),
        title=TITLE,
        description=DESCRIPTION,
        tags=TAGS,
    )
