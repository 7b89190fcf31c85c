"""The API's description as a whole. Each operation is described beside its handler, in ``MODULES``.

Every route of the service is described, or is not part of the API (``NOT_OF_THE_API``): a test compares.
"""

from functools import cache
from typing import Any

from service import __version__
from service.web.api import health, search, widget
from service.web.api.assistant import analytics, feedback, reader_tokens, resumes, threads
from service.web.api.description.openapi import document
from service.web.api.description.operations import Tag
from service.web.api.description.webhook_description import NOTICES
from service.web.api.jobs import job_work, jobs, jobs_v1
from service.web.api.organization import MODULES as ORGANIZATION

TITLE = "Docsmith"
DESCRIPTION = """\
A documentation agent and assistant: one service, two APIs, one log.

- **Agent**: an instruction becomes a background job, which edits a documentation repository and opens a pull request.
- **Assistant**: a question about a documentation site becomes an answer from its pages, with citations, streamed to
  chat clients, in threads that carry on.

Send a key as `Authorization: Bearer KEY`; the assistant of a public site needs none. An admin key has a scope: `read`
opens every GET and `evaluateSearch`, `jobs` also what creates and changes jobs, `all` everything of its organization;
the security of each operation names the scope that it needs.

Every answer carries an `X-Request-Id`, which is also in the service's log.
Addresses have no slash at their end, and their case matters: an unknown one is answered with 404, and a method that an
address does not support with 405 and `Allow`. Times are ISO 8601 in UTC. Errors are problem details
(RFC 9457): `code` is stable, `detail` is one plain sentence, and `type` is the address of a page that says what to do.
Bodies are JSON in UTF-8, whatever the charset of their content type. Unknown fields of a body are ignored. Where
the schema allows `null`, it is the same as leaving the field out. A parameter of the query comes once.

Clients with an older path of the assistant built in are answered there as well: `x-aliases` of an operation lists its
older paths. Prefer the main path.
"""

TAGS = (
    Tag("Agent", "Jobs that edit the documentation repository of a project. For admin keys."),
    Tag(
        "Assistant",
        "Answers about one documentation site. For assistant keys, and without a key where the site is"
        " public. Pages of other origins may call it, as the key or the site allows.",
    ),
    Tag(
        "Projects",
        "The organization's documentation: repositories, code hosts, sites and their indexes. For admin keys.",
    ),
    Tag("Analytics", "Questions to a project's assistant, and readers' ratings of its replies. For admin keys."),
    Tag(
        "Readers",
        "What readers ask an organization's assistants: questions, conversations, gaps and sums. For admin keys.",
    ),
    Tag(
        "Organization",
        "What needs a person, jobs of all projects, people, keys, webhooks with their deliveries, and usage of an"
        " organization. For admin keys.",
    ),
    Tag(
        "Webhooks",
        "Requests that the service sends to an address of yours when a job changes: see `docsmith webhook create`."
        " By the Standard Webhooks specification 1.0.0.",
    ),
    Tag("Service", "The state of the service, and its description."),
    Tag("Deprecated", "Version 1 of the API, for the clients that still speak it."),
)

NOT_OF_THE_API = (
    "/.well-known/", "/account", "/ask/", "/assets/", "/dashboard", "/docs", "/favicon.ico", "/hooks/", "/hosted/",
    "/manual", "/mcp", "/openapi.json", "/operator/", "/sdk/", "/sign-in", "/sign-out", "/sites/", "/widget",
)  # fmt: skip
"""Pages for people, scripts, text and tools for agents, git's own protocol, and what code hosts send in their own
forms; by how their paths begin.
"""

MODULES = (
    jobs, job_work, jobs_v1, threads, resumes, search, reader_tokens, widget, feedback, analytics, *ORGANIZATION,
    health,
)  # fmt: skip
_TAG_NAMES = [tag.name for tag in TAGS]
OPERATIONS = sorted(
    (operation for module in MODULES for operation in module.routes.operations),
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
        notices=NOTICES,
    )
