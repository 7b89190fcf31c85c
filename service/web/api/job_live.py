"""What the endpoints of both versions read of a request about jobs."""

from aiohttp import web

from service.commands.jobs import CreatedJob, NewJob, request_job
from service.domain.access.idempotency import MAX_KEY_CHARACTERS
from service.domain.errors import Invalid, NotFound
from service.views.projects import ProjectView
from service.web.http.app_keys import MODELS
from service.web.http.limits import metered_store
from service.web.http.problems import metadata_of


async def new_job(request: web.Request, project: ProjectView, new: NewJob) -> CreatedJob:
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


def last_event_id(request: web.Request) -> int:
    text = request.headers.get("Last-Event-ID", "0")
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise Invalid("Last-Event-ID is the id of an event of this stream.")
    return int(text)
