"""Whether the process lives, and whether it can do its work."""

from collections.abc import Mapping
from typing import Annotated, Literal

from aiohttp import web
from msgspec import Struct

from service.queries.model_failures import find_failing_model
from service.views.fields import described
from service.web.api.description.operations import Answer, Routes
from service.web.http.app_keys import BEHIND, IS_DRILL, MODEL_NAMES, MODELS, READINESS, REFUSES_REQUESTS, VIEWS
from service.web.http.problems import RETRY_SECONDS, json_response

READY_EXAMPLE = {
    "status": "ready",
    "reasons": {},
    "behind": {"docs.example.com": "behind since 2026-03-01T12:00:00Z: its newest commit is being fetched"},
    "degraded": {"assistant": "anthropic/claude-sonnet-5-5 fails since 2026-03-01T12:00:00.000Z: model_key_refused"},
    "models": {"agent": "builtin/editor", "assistant": "anthropic/claude-sonnet-5-5"},
}
GOES_DOWN_EXAMPLE = {"status": "not ready", "reasons": {"service": "it is going down"}}
NOT_READY_EXAMPLE = READY_EXAMPLE | {"status": "not ready", "reasons": {"job-runner": "this worker has ended"}}

routes = Routes()


class Health(Struct, frozen=True):
    """The process lives."""

    status: Annotated[Literal["ok"], described("Always this.")] = "ok"


class RequestReadiness(Struct, frozen=True):
    """Whether a proxy should send requests here."""

    status: Annotated[Literal["ready", "not ready"], described("`ready` when it should.")]
    reasons: Annotated[dict[str, str], described("Why it should not; empty when it should.")]


class Readiness(Struct, frozen=True):
    """Whether the service can do its work."""

    status: Annotated[Literal["ready", "not ready"], described("`ready` when all is well.")]
    reasons: Annotated[dict[str, str], described("The parts that are not ready, and why; empty when all are.")]
    behind: Annotated[
        Mapping[str, str],
        described(
            "Sites whose search index is older than their documentation, and why. The service is ready all the same."
        ),
    ]
    degraded: Annotated[
        dict[str, str],
        described(
            "Parts that do less than they should, and why. `assistant`: its model fails, so readers get passages in"
            " place of answers, until a reply of it works again. `drill`: this is a drill on a restored copy. The"
            " service is ready all the same."
        ),
    ]
    models: Annotated[dict[str, str], described("The model that each kind of work uses.")]


@routes.operation(
    "GET",
    "/healthz",
    "health",
    "Service",
    "Check that the process is alive",
    {200: Answer("It does.", Health, example={"status": "ok"})},
)
async def healthz(_request: web.Request) -> web.Response:
    return json_response(Health())


@routes.operation(
    "GET",
    "/readyz",
    "readiness",
    "Service",
    "Check that the service is ready",
    {
        200: Answer("It can.", Readiness, example=READY_EXAMPLE),
        503: Answer("It cannot; `reasons` says why.", Readiness, example=NOT_READY_EXAMPLE),
    },
)
async def readyz(request: web.Request) -> web.Response:
    """200 when all is well; 503 with what is not, and why.

    A model that fails is no reason for 503: all instances have the same one, and search, pages, jobs and passages in
    place of answers still work. A proxy that took the instances out would end all of that.
    """
    app = request.app
    reasons, degraded = await app[READINESS](), {}
    if app[IS_DRILL]:
        degraded["drill"] = "a restored copy is tried with the builtin models, and nothing leaves this machine"
    if (failing := await find_failing_model(app[VIEWS], app[MODELS])) is not None:
        degraded["assistant"] = f"{failing.model} fails since {failing.since}: {failing.code}"
    status: Literal["ready", "not ready"] = "not ready" if reasons else "ready"
    body = Readiness(status, reasons, app[BEHIND](), degraded, app[MODEL_NAMES])
    headers = {"Retry-After": str(RETRY_SECONDS)} if reasons else None
    return json_response(body, status=503 if reasons else 200, headers=headers)


@routes.operation(
    "GET",
    "/readyz/requests",
    "requestReadiness",
    "Service",
    "Check that this instance takes requests",
    {
        200: Answer("A proxy should send requests here.", RequestReadiness, example={"status": "ready", "reasons": {}}),
        503: Answer(
            "It should send them to other instances; `reasons` says why.", RequestReadiness, example=GOES_DOWN_EXAMPLE
        ),
    },
)
async def request_readiness(request: web.Request) -> web.Response:
    """503 for what is wrong with this instance alone. What is away for all of them, such as PostgreSQL, is no reason:
    reading goes on.
    """
    reasons = request.app[REFUSES_REQUESTS]()
    headers = {"Retry-After": str(RETRY_SECONDS)} if reasons else None
    body = RequestReadiness("not ready" if reasons else "ready", reasons)
    return json_response(body, status=503 if reasons else 200, headers=headers)
