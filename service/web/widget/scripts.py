"""``/widget.js``, which pages of any website load by one tag, and the files that it loads by their content."""

import asyncio
import re

from aiohttp import hdrs, web

from service.web.http.app_keys import DATA
from service.web.widget.bundle import Script, widget
from service.web.widget.kept import kept_file

FOLDER = "widget"
"""In the data folder, for files of earlier versions."""
LOADER_SECONDS = 300
"""The loader's address stays while it changes with the service; the other files never change."""
FILE_SECONDS = 365 * 24 * 3600

_GZIP = re.compile(r"\bgzip\b(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))", re.IGNORECASE)
"""In an Accept-Encoding that takes it (RFC 9110, section 12.5.3): a weight of 0 refuses it."""

routes = web.RouteTableDef()


@routes.get("/widget.js")
async def loader(request: web.Request) -> web.Response:
    found = (await asyncio.to_thread(widget)).loader
    return _response(request, found, f"public, max-age={LOADER_SECONDS}")


@routes.get(r"/widget/{name:[A-Za-z0-9_-]{43}}.js")
async def file(request: web.Request) -> web.Response:
    """A file of this version or of an earlier one. Of another instance's newer version 404, which browsers do not keep:
    the widget then asks again, and its loader for the newest version's panel.
    """
    name = request.match_info["name"]
    found = (await asyncio.to_thread(widget)).by_name.get(name)
    if found is None:
        try:
            found = await asyncio.to_thread(kept_file, request.app[DATA] / FOLDER, name)
        except FileNotFoundError:
            raise web.HTTPNotFound(headers={"Cache-Control": "no-store"}) from None
    return _response(request, found, f"public, max-age={FILE_SECONDS}, immutable")


def _response(request: web.Request, script: Script, caching: str) -> web.Response:
    etag = script.name
    headers = {
        "Access-Control-Allow-Origin": "*",
        "Cross-Origin-Resource-Policy": "cross-origin",
        "Cache-Control": caching,
        "ETag": f'"{etag}"',
        "Vary": "Accept-Encoding",
    }
    if any(tag.value == etag for tag in request.if_none_match or ()):
        return web.Response(status=304, headers=headers)
    is_packed = bool(_GZIP.search(request.headers.get(hdrs.ACCEPT_ENCODING, "")))
    if is_packed:
        headers["Content-Encoding"] = "gzip"
    body = script.packed if is_packed else script.body
    return web.Response(body=body, content_type="text/javascript", charset="utf-8", headers=headers)
