"""``/``: what this is, whether it is well, the sites that anyone may ask, and the way in."""

from aiohttp import web

from service.queries.organizations import list_organizations
from service.web.http.access.access import PUBLIC_SITES
from service.web.http.access.people import known_person
from service.web.http.app_keys import READINESS, VIEWS
from service.web.pages.assets import find_asset
from service.web.pages.html import SECURITY_HEADERS, html_page

MAX_SITES = 200
"""Public sites that the page names."""

routes = web.RouteTableDef()


@routes.get("/")
async def show_start(request: web.Request) -> web.Response:
    """Name public sites only, to those who are signed in as well."""
    domains = request.app[PUBLIC_SITES].domains()
    return html_page(
        request,
        "start.html",
        is_ready=not await request.app[READINESS](),
        domains=domains[:MAX_SITES],
        left_out=max(0, len(domains) - MAX_SITES),
        person=known_person(request),
        is_new=not domains and not await list_organizations(request.app[VIEWS]),
    )


@routes.get("/favicon.ico")
async def show_icon(_request: web.Request) -> web.Response:
    """Return the picture of the pages, for browsers that ask for it by this name."""
    found = find_asset("docsmith.svg")
    assert found is not None
    headers = {**SECURITY_HEADERS, "Cache-Control": "public, max-age=86400"}
    return web.Response(body=found.body, content_type=found.content_type, headers=headers)
