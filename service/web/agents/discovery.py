"""Where agents find the MCP servers of public sites, before they connect to one.

Facts (SEP-2127 "MCP Server Cards", final, and its experimental-ext-server-card, 2026-11):

- A card names one server, where it is and the versions that it speaks; its tools are listed by the server alone. Its
  place is ``/server-card`` behind the server's address, its type ``application/mcp-server-card+json``.
- A catalog lists the cards of a host at ``/.well-known/ai-catalog.json``; drafts of it, and clients that follow them,
  look at ``/.well-known/mcp/catalog.json`` and ``/.well-known/mcp.json``.
- ``/.well-known/mcp/server-card.json``, where other clients look, has room for one card: it is there while one site is
  public.
- Both may be read from pages of any website, and be kept for an hour: here, not so long, since a site may be closed.

A private site is in no catalog, and has a card as little as a site that does not exist.
"""

import msgspec
from aiohttp import hdrs, web
from msgspec import Struct, field

from service import __version__
from service.domain.access.callers import address_of
from service.domain.access.names import name_of
from service.domain.errors import NotFound
from service.views.projects import ProjectView
from service.web.http.access.access import PROJECT_DIRECTORY, PUBLIC_SITES, site_not_found
from service.web.http.access.hosts import NAMES, is_host_ours, service_address
from service.web.http.site_addresses import site_address
from service.wire.mcp.requests import VERSIONS

CARD_SCHEMA = "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json"
CARD_TYPE = "application/mcp-server-card+json"
CATALOG_TYPE = "application/ai-catalog+json"
MAX_LISTED = 1_000
"""Public sites in the catalog; further ones are found by their own cards."""
MAX_TEXT = 100
"""Characters of a card's title and description."""
HEADERS = {
    hdrs.ACCESS_CONTROL_ALLOW_ORIGIN: "*",
    "Cross-Origin-Resource-Policy": "cross-origin",
    hdrs.CACHE_CONTROL: "public, max-age=60",
}

routes = web.RouteTableDef()


class Remote(Struct, frozen=True, rename="camel"):
    """An address of a server."""

    url: str
    type: str = "streamable-http"
    supported_protocol_versions: tuple[str, ...] = VERSIONS


class ServerCard(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A server as its card shows it."""

    schema: str = field(name="$schema")
    name: str
    """A host's name from its end, a slash, and the site's domain."""
    version: str
    title: str
    description: str
    remotes: tuple[Remote, ...]
    website_url: str = ""


class CatalogEntry(Struct, frozen=True, rename="camel"):
    identifier: str
    display_name: str
    type: str
    url: str


class Catalog(Struct, frozen=True, rename="camel"):
    """The cards of a host."""

    spec_version: str
    entries: tuple[CatalogEntry, ...]


def _require_name(request: web.Request) -> None:
    """Raise NotFound where a card would show a host name that the request gives and the service does not have."""
    if not request.app[NAMES].public_url and not is_host_ours(request):
        raise NotFound("Cards name this service by its public address. Set server.public_url.")


@routes.get("/.well-known/ai-catalog.json")
@routes.get("/.well-known/mcp/catalog.json")
@routes.get("/.well-known/mcp.json")
async def show_catalog(request: web.Request) -> web.Response:
    _require_name(request)
    host, base = _host(request), service_address(request)
    entries = [
        CatalogEntry(
            f"urn:air:{host}:{project.domain}", _title(project), CARD_TYPE, f"{base}/mcp/{project.domain}/server-card"
        )
        for domain in request.app[PUBLIC_SITES].domains()[:MAX_LISTED]
        if (project := await _project(request, domain)) is not None
    ]
    kind = CATALOG_TYPE if request.path.endswith("ai-catalog.json") else "application/json"
    return _document(request, Catalog("1.0", tuple(entries)), kind)


@routes.get("/mcp/{domain}/server-card")
async def show_card(request: web.Request) -> web.Response:
    return await _card(request, request.match_info["domain"])


@routes.get("/.well-known/mcp/server-card.json")
async def show_only_card(request: web.Request) -> web.Response:
    domains = request.app[PUBLIC_SITES].domains()
    return await _card(request, domains[0] if len(domains) == 1 else "")


async def _card(request: web.Request, domain: str) -> web.Response:
    _require_name(request)
    project = await _project(request, domain)
    if project is None:
        raise site_not_found()
    card = ServerCard(
        CARD_SCHEMA,
        f"{'.'.join(reversed(_host(request).split('.')))}/{domain}",
        __version__,
        _title(project),
        f"Search and read {project.name}, and ask about it."[:MAX_TEXT],
        (Remote(f"{service_address(request)}/mcp/{domain}"),),
        site_address(request, project),
    )
    return _document(request, card, CARD_TYPE)


def _document(request: web.Request, value: Struct, content_type: str) -> web.Response:
    """Answer with what may be kept for a minute, unless it names the service as the request does."""
    headers = dict(HEADERS)
    if not request.app[NAMES].public_url:
        headers[hdrs.CACHE_CONTROL] = "no-store"
    return web.Response(body=msgspec.json.encode(value), content_type=content_type, headers=headers)


async def _project(request: web.Request, domain: str) -> ProjectView | None:
    """Return the project of a public site."""
    site = request.app[PUBLIC_SITES].find(domain)
    if site is None:
        return None
    return await request.app[PROJECT_DIRECTORY].by_domain(domain, site.organization_id)


def _title(project: ProjectView) -> str:
    return f"{project.name or project.domain} documentation"[:MAX_TEXT]


def _host(request: web.Request) -> str:
    """Return the name of the service in an identifier; an address is not one that a publisher could have."""
    name = name_of(service_address(request).partition("://")[2])
    return "localhost" if name is None or address_of(name.strip("[]")) is not None else name
