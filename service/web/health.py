"""Whether the process lives, and whether it can do its work."""

from typing import Literal

from aiohttp import web
from msgspec import Struct

from service.web.keys import MODEL_NAMES, READINESS
from service.web.problems import json_response

routes = web.RouteTableDef()


class Health(Struct, frozen=True):
    status: Literal["ok"] = "ok"


class Readiness(Struct, frozen=True):
    status: Literal["ready", "not ready"]
    reasons: dict[str, str]
    """What is not ready, and why; empty when all is well."""
    models: dict[str, str]
    """What each kind of work uses."""


@routes.get("/healthz")
async def healthz(_request: web.Request) -> web.Response:
    return json_response(Health())


@routes.get("/readyz")
async def readyz(request: web.Request) -> web.Response:
    """200 when all is well; 503 with what is not, and why."""
    reasons = request.app[READINESS]()
    body = Readiness("not ready" if reasons else "ready", reasons, request.app[MODEL_NAMES])
    return json_response(body, status=503 if reasons else 200)
