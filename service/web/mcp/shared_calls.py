"""Calls of this instance that a client cancels at another one."""

import msgspec
from aiohttp import web

from service.domain.errors import BodyBroken
from service.web.http.internal import InternalRoutes, body_parts
from service.web.mcp.cancellation import CALLS_PATH, RUNNING_CALLS, NamedCall

routes = InternalRoutes()


@routes.operation(CALLS_PATH, "POST")
async def find_call(request: web.Request) -> web.Response:
    """Answer how many calls fit; the only one is cancelled if that is asked for. Raise BodyBroken."""
    body = b"".join([part async for part in body_parts(request)])
    try:
        call = msgspec.msgpack.decode(body, type=NamedCall)
    except msgspec.DecodeError:
        raise BodyBroken from None
    found = request.app[RUNNING_CALLS].find(call)
    return web.Response(body=msgspec.json.encode(found), content_type="application/json")
