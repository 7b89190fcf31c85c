"""Files for programs of others: scripts that pages of any website load, with their types, and the Python client.

Each is one file, which people may keep a copy of: what it imports is written into it, in the place of the import, and
without that module's opening comment.
"""

import hashlib
import re
from functools import cache

from aiohttp import web
from msgspec import Struct

from service.web.pages.assets import WEB

SCRIPTS = ("assistant.js", "assistant.d.ts", "markdown.js", "markdown.d.ts")
PYTHON_CLIENT = "docsmith_client.py"
MAX_AGE_SECONDS = 300
"""Their addresses stay while they change with the service."""

_IMPORT = re.compile(r'^import \{ \w+ \} from "\./(\w+\.js)";$', re.MULTILINE)
_EXPORT = re.compile(r"^(?:export |//.*\n)", re.MULTILINE)
"""Left out of a module that is written into another: the word, and lines of comment at the margin."""

routes = web.RouteTableDef()


class Script(Struct, frozen=True):
    body: bytes
    etag: str
    content_type: str


def find_script(name: str) -> Script | None:
    return _script(name) if name in (*SCRIPTS, PYTHON_CLIENT) else None  # what strangers name is not kept


@cache
def _script(name: str) -> Script:
    if name == PYTHON_CLIENT:
        file, content_type = WEB.parent / "sdk" / name, "text/x-python"
    else:
        file, content_type = WEB / "scripts" / name, "text/javascript"
    source = file.read_text(encoding="utf-8")
    body = _IMPORT.sub(lambda found: _imported(found[1]), source).encode()
    return Script(body, hashlib.sha256(body).hexdigest()[:16], content_type)


def _imported(name: str) -> str:
    return _EXPORT.sub("", (WEB / "scripts" / name).read_text(encoding="utf-8"))


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
    return web.Response(body=found.body, content_type=found.content_type, charset="utf-8", headers=headers)
