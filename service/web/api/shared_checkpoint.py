"""The checkpoint that this instance signed last, for the pages of the others."""

import msgspec
from aiohttp import web

from service.web.http.app_keys import LAST_CHECKPOINT
from service.web.http.internal import InternalRoutes
from service.workers.checkpointing import CHECKPOINT_PATH

routes = InternalRoutes()


@routes.operation(CHECKPOINT_PATH, "GET")
async def send_checkpoint(request: web.Request) -> web.Response:
    """Answer with the checkpoint; null where this instance has signed none."""
    found = await request.app[LAST_CHECKPOINT].here()
    return web.Response(body=msgspec.json.encode(found), content_type="application/json")
