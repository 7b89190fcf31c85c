"""Which scope of an admin key each route needs: a route that is not named here needs the widest."""

from aiohttp import hdrs, web

from service.domain.access.keys import KeyScope
from service.web.http.routes import route_of

READS = (hdrs.METH_GET, hdrs.METH_HEAD)
OF_JOBS = ("/v1/agent/", "/v2/agent/")
"""Beginnings of the routes that create and change jobs."""
MCP = "/mcp"
"""Where agents create jobs."""
MERGE = "/merge"
"""Changes the documentation's branch, as a push does."""
MEASURES = "/v2/sites/{domain}/golden"
"""Takes a body, and changes nothing."""
FETCH = "git-upload-pack"
"""The service of git's protocol that reads: to fetch it sends a POST, too, and to push it begins with a GET."""


def scope_needed(request: web.Request) -> KeyScope:
    return scope_of_route(request.method, route_of(request))


def scope_of_git(request: web.Request) -> KeyScope:
    """Return the scope for a request of git's routes; elsewhere a query may name any service."""
    service = request.match_info.get("service") or request.query.get("service")
    return "read" if service == FETCH else "all"


def scope_of_route(method: str, route: str) -> KeyScope:
    """Return the scope for a method and a route's template."""
    if method in READS or route == MEASURES:
        return "read"
    if route == MCP:
        return "jobs"
    return "jobs" if route.startswith(OF_JOBS) and not route.endswith(MERGE) else "all"
