"""Scripts that pages of any website load: the assistant without a view, and Markdown as nodes, with their types."""

import hashlib
from functools import cache

from aiohttp import web
from msgspec import Struct

from service.web.pages.assets import WEB

SCRIPTS = ("assistant.js", "assistant.d.ts", "markdown.js", "markdown.d.ts")
MAX_AGE_SECONDS = 300
"""Their addresses stay while they change with the service."""

routes = web.RouteTableDef()


class Script(Struct, frozen=True):
    body: bytes
    etag: str


@cache
def find_script(name: str) -> Script | None:
    if name not in SCRIPTS:
        return None
    body = (WEB / "scripts" / name).read_bytes()
    return Script(body, hashlib.sha256(body).hexdigest()[:16])


@routes.get("/sdk/{name}")
async def script(request: web.Request) -> web.Response:
    found = find_script(request.match_info["name"])
    if found is None:
        raise web.HTTPNotFound
    headers = {
        "Access-Control-Allow-Origin": "*",
        "Cross-Origin-Resource-Policy": "cross-origin",
        "Cache-Control": f"public, max-age={MAX_AGE_SECONDS}",
        "ETag": f'"{found.etag}"',
    }
    if any(tag.value == found.etag for tag in request.if_none_match or ()):
        return web.Response(status=304, headers=headers)
    return web.Response(body=found.body, content_type="text/javascript", charset="utf-8", headers=headers)
