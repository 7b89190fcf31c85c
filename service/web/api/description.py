"""The description of each of the API's operations; ``openapi`` turns it into the document.

Every route of the service is here, or is not part of the API (``NOT_OF_THE_API``): a test compares.
"""

from functools import cache
from typing import Any

from service import __version__
from service.web.api import analytics, feedback, health, jobs, jobs_v1, search, threads
from service.web.api import stream_description as streams
from service.web.api.openapi import document
from service.web.api.operations import DOMAIN, Answer, Operation, Parameter, Tag
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


THREAD_HEADERS = ("X-Thread-Id", "X-Thread-Key")
UI_HEADERS = ("x-vercel-ai-ui-message-stream",)


QUESTION: dict[str, Any] = {
    "fp": "anonymous",
    "messages": [{"id": "m1", "role": "user", "parts": [{"type": "text", "text": "How do I retry a failed job?"}]}],
}

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
        "/discovery/v1/assistant/{domain}/message",
        "askV1",
        "Deprecated",
        "Ask a question, for the AI SDK 4",
        {
            200: Answer(
                "The answer as it is written, as a data stream.",
                media_type="text/plain",
                headers=(*THREAD_HEADERS, *streams.DATA_HEADERS),
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

MODULES = (jobs, jobs_v1, search, feedback, analytics, health)
_OPERATIONS = [operation for module in MODULES for operation in module.routes.operations]
_TAG_NAMES = [tag.name for tag in TAGS]
OPERATIONS = sorted(
    (*ASSISTANT, *_OPERATIONS, *DEPRECATED),
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
        notices=notices(jobs.JOB_EXAMPLE),
    )
