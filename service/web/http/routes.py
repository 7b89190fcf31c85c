"""The template of the route that a request came by: for an older path, that of the path it is an alias of.

Public clients have older paths of the assistant built in. The same handlers answer them, and all that goes by a
route's template (limits, headers, metrics, spans, logs) treats the two alike.
"""

from functools import lru_cache

from aiohttp import web
from msgspec import Struct

ALIASES = {
    "/discovery/v1/assistant/": ("/v1/assistant/", "/api/assistant/"),
    "/discovery/v2/assistant/": ("/v2/assistant/",),
    "/discovery/v1/search/": ("/v1/search/",),
    "/discovery/v1/page/": ("/v1/page/",),
    "/discovery/v1/feedback/": ("/v1/feedback/",),
}
"""Beginnings of paths, and the older beginnings in their place."""
FOR_BROWSERS = ("/discovery/", *(alias for aliases in ALIASES.values() for alias in aliases))
"""Beginnings of the paths that pages of other origins may call, by any name of the service."""
SITE_PAGES = "/sites/"
"""Beginning of the paths of a site's pages as Markdown, which pages of other origins may fetch, too."""
SITE_SERVERS = "/mcp/"
"""Beginning of the paths of the sites' MCP servers, which agents in pages of other origins may call."""
CROSS_ORIGIN = (*FOR_BROWSERS, SITE_PAGES, SITE_SERVERS)


def aliases_of(path: str) -> list[str]:
    """Return the older paths of a route."""
    return [
        alias + path.removeprefix(main)
        for main, aliases in ALIASES.items()
        if path.startswith(main)
        for alias in aliases
    ]


class Visit(Struct):
    """One request on its way: whatever is asked several times of each."""

    route: str
    """The template, as ``route_of`` has it."""
    started: float
    """On the clock of ``time.perf_counter``."""
    is_stream: bool = False
    """Its answer is sent in parts, over a longer time."""


VISIT = web.RequestKey("visit", Visit)


def route_of(request: web.Request) -> str:
    """Return the template of the request's route; ``unknown`` where there is none."""
    resource = request.match_info.route.resource
    return _main_path(resource.canonical) if resource is not None else "unknown"


@lru_cache(maxsize=1024)
def _main_path(template: str) -> str:
    for main, aliases in ALIASES.items():
        for alias in aliases:
            if template.startswith(alias):
                return main + template.removeprefix(alias)
    return template
