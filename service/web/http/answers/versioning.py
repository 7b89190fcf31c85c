"""Headers of answers from a deprecated version of the API."""

from datetime import UTC, date, datetime, time
from email.utils import format_datetime
from urllib.parse import quote

from aiohttp import web

from service.web.http.routes import route_of

DEPRECATED_SINCE = datetime(2026, 11, 21, tzinfo=UTC)

SUNSET: web.AppKey[date | None] = web.AppKey("SUNSET")
"""From when on the deprecated version may be gone, if the settings say so."""

SUCCESSORS = {
    "/v1/agent/{projectId}/job": "/v2/agent/{projectId}/job",
    "/v1/agent/{projectId}/job/{id}": "/v2/agent/{projectId}/job/{id}",
    "/v1/agent/{projectId}/jobs": "/v2/agent/{projectId}/jobs",
    "/discovery/v1/assistant/{domain}/message": "/discovery/v2/assistant/{domain}/message",
    "/discovery/v1/assistant/{domain}/message/{chatId}/stream": (
        "/discovery/v2/assistant/{domain}/message/{chatId}/stream"
    ),
}
"""The successor of each deprecated address. Others of version 1 have none, and are not deprecated."""


def deprecated(successor: str) -> dict[str, str]:
    """``Deprecation`` (RFC 9745: a date as ``@`` and seconds since 1970) and the address that takes over (RFC 5829)."""
    return {
        "Deprecation": f"@{int(DEPRECATED_SINCE.timestamp())}",
        "Link": f'<{successor}>; rel="successor-version"',
    }


def tell_version(request: web.Request, response: web.StreamResponse) -> None:
    """For every answer's head: of a deprecated address also errors carry the fields, and ``Sunset`` (RFC 8594)."""
    successor = SUCCESSORS.get(route_of(request))
    if successor is None:
        return
    for name, value in deprecated(_filled(successor, request)).items():
        response.headers.setdefault(name, value)
    sunset = request.app[SUNSET]
    if sunset is not None:
        response.headers["Sunset"] = format_datetime(datetime.combine(sunset, time(tzinfo=UTC)), usegmt=True)


def _filled(successor: str, request: web.Request) -> str:
    """The successor's address as the request names it: encoded, since a part of it may hold anything."""
    return successor.format_map({name: quote(value, safe="") for name, value in request.match_info.items()})
