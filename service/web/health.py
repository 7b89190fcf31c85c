"""Whether the process lives, and whether it can do its work."""

from aiohttp import web

from service.web.keys import MODEL_NAMES, READINESS
from service.web.problems import json_response

routes = web.RouteTableDef()


@routes.get("/healthz")
async def healthz(_request: web.Request) -> web.Response:
    return json_response({"status": "ok"})


@routes.get("/readyz")
async def readyz(request: web.Request) -> web.Response:
    """200 when all is well; 503 with what is not, and why."""
    reasons = request.app[READINESS]()
    body = {"status": "not ready" if reasons else "ready", "reasons": reasons, "models": request.app[MODEL_NAMES]}
    return json_response(body, status=503 if reasons else 200)
