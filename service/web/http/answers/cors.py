"""CORS for what pages of other origins call: the assistant. Admin keys never belong in a browser, so no other route.

A key with a list of origins, and a public site, open nothing to others. The refusal is an answer that any page may
read, since it holds no
data, so that a developer sees the reason.
"""

from aiohttp import web

from service.web.http.access.access import ORIGINS
from service.web.http.routes import CROSS_ORIGIN

ALLOW_HEADERS = (
    "Authorization, Content-Type, User-Agent, Idempotency-Key, Last-Event-ID, X-Thread-Id, X-Thread-Key, X-Message-Id,"
    " X-Reader-Token, MCP-Protocol-Version, Mcp-Method, Mcp-Name"
)
"""By name, since ``*`` does not cover Authorization; some chat clients set User-Agent (WIRE.md, section 8)."""
ALLOW_METHODS = "POST, GET, OPTIONS"
EXPOSE_HEADERS = "X-Thread-Id, X-Thread-Key, X-Message-Id, X-Request-Id, Retry-After, RateLimit, RateLimit-Policy"
MAX_AGE_SECONDS = 7200


def is_preflight(request: web.Request) -> bool:
    """Return whether a browser asks what a page of another origin may send."""
    return request.method == "OPTIONS" and request.path.startswith(CROSS_ORIGIN) and "Origin" in request.headers


def preflight() -> web.Response:
    """Return the answer to a preflight, which needs no key. ``allow_origin`` adds the origin to it."""
    return web.Response(
        status=204,
        headers={
            "Access-Control-Allow-Methods": ALLOW_METHODS,
            "Access-Control-Allow-Headers": ALLOW_HEADERS,
            "Access-Control-Max-Age": str(MAX_AGE_SECONDS),
        },
    )


def allow_origin(request: web.Request, response: web.StreamResponse) -> None:
    """Add the fields to every answer's head, errors and streams included."""
    if request.path.startswith(CROSS_ORIGIN):
        origin = request.headers.get("Origin")
        if not request.get(ORIGINS):
            response.headers["Access-Control-Allow-Origin"] = "*"
        elif origin is not None:  # it was let in, so it is one of the list
            response.headers["Access-Control-Allow-Origin"] = origin
        response.headers["Access-Control-Expose-Headers"] = EXPOSE_HEADERS
        response.headers["Cross-Origin-Resource-Policy"] = "cross-origin"  # for pages that are isolated
        response.headers.add("Vary", "Origin")
