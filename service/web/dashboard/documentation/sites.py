"""The sites of an organization: their indexes, how far an indexing is, and who may ask without a key."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing

from aiohttp import web

from service.commands.sites import request_index
from service.domain.access.callers import completed_origins
from service.domain.errors import ServiceError
from service.domain.sites import ChangeSiteAccess
from service.queries.payments import payer, payment_of, settings_to_paste
from service.queries.read_models import wait_for_head
from service.queries.sites import Site, list_sites_of
from service.runtime.system import now
from service.streams import SITES
from service.web.api.organization.sites import open_or_close, site_of
from service.web.dashboard.documentation.choices import offered
from service.web.dashboard.documentation.site_page import site_page
from service.web.dashboard.page import Live, dashboard_page, live, root_of_page, see_other
from service.web.http.access.people import Member, member, metadata
from service.web.http.app_keys import COST_BOUNDS, GUARDED_PROJECTS, INDEXING, MODELS, STORE, VIEWS
from service.web.http.forms import read_form
from service.web.http.problems import status_of
from service.web.pages.rendering import rendered

PAGE_LENGTH = 50
PROGRESS_SECONDS = 0.5
"""Between two looks at how far an indexing is."""
SITES_PATH = "/dashboard/{organizationId}/sites"
SITE = SITES_PATH + "/{domain}"

routes = web.RouteTableDef()


@routes.get(SITES_PATH)
async def show_sites(request: web.Request) -> web.Response:
    viewer = await member(request)
    await wait_for_head(request.app[STORE], request.app[VIEWS])
    cursor = request.query.get("cursor", "")
    rows = await list_sites_of(request.app[VIEWS], viewer.organization_id, after=cursor, limit=PAGE_LENGTH + 1)
    shown = rows[:PAGE_LENGTH]
    return dashboard_page(
        request,
        viewer,
        "documentation/sites.html",
        choices=offered(await request.app[GUARDED_PROJECTS].allowed(), may_allow=viewer.person.is_operator),
        sites=[row.view for row in shown],
        cursor=cursor,
        next_cursor=shown[-1].view.domain if len(rows) > PAGE_LENGTH else None,
    )


@routes.get(SITE)
async def show_site(request: web.Request) -> web.Response:
    viewer = await member(request)
    site = await site_of(request, viewer.organization_id)
    state = await _state(request, site)
    return await site_page(
        request,
        viewer,
        "documentation/site.html",
        site,
        indexing=state["indexing"],
        is_busy=state["is_busy"],
    )


@routes.get(SITE + "/live")
async def follow_site(request: web.Request) -> web.StreamResponse:
    viewer = await member(request)
    site = await site_of(request, viewer.organization_id)
    return await live(request, _live_state(request, viewer, site.view.domain))


async def _live_state(request: web.Request, viewer: Member, domain: str) -> AsyncGenerator[Live, None]:
    """Yield the state of the site when it has changed: looked at while it is being indexed, else after each event."""
    store, root, shown = request.app[STORE], root_of_page(request), ""
    after = await store.head()
    async with aclosing(store.follow(after=after, stream=SITES.stream(domain))) as batches:
        news = asyncio.ensure_future(anext(batches))
        try:
            while True:
                state = await _state(request, await site_of(request, viewer.organization_id))
                html = rendered("documentation/site_state.html", root=root, member=viewer, **state)
                if html != shown:
                    shown = html
                    yield Live(html)
                await asyncio.wait({news}, timeout=PROGRESS_SECONDS if state["is_busy"] else None)
                if news.done():
                    news.result()
                    await wait_for_head(store, request.app[VIEWS])
                    news = asyncio.ensure_future(anext(batches))
        finally:
            news.cancel()
            await asyncio.wait({news})


async def _state(request: web.Request, site: Site) -> dict[str, object]:
    indexing = await request.app[INDEXING](site.view.domain)
    return {"site": site.view, "indexing": indexing, "is_busy": site.view.index_wanted or indexing is not None}


@routes.post(SITE + "/index")
async def index_site(request: web.Request) -> web.Response:
    viewer = await member(request, "editor")
    site = await site_of(request, viewer.organization_id)
    await request_index(request.app[STORE], site.view.domain, "a person asked for it", metadata(request))
    await wait_for_head(request.app[STORE], request.app[VIEWS])
    path = f"dashboard/{viewer.organization_id}/sites/{site.view.domain}"
    return see_other(request, path, notice="The site is to be indexed again. Only what changed is read.")


@routes.get(SITE + "/access")
async def show_access(request: web.Request) -> web.Response:
    viewer = await member(request)
    return await _access_page(request, viewer, await site_of(request, viewer.organization_id))


@routes.post(SITE + "/access")
async def change_access(request: web.Request) -> web.Response:
    viewer = await member(request, "owner")
    site, values = await site_of(request, viewer.organization_id), await read_form(request)
    origins = tuple(values.get("origins", "").split())
    change = ChangeSiteAccess(now(), public=values.get("public") == "true", origins=origins)
    try:
        await open_or_close(request, site.view, change)
    except ServiceError as error:
        return await _access_page(request, viewer, site, values, error)
    path = f"dashboard/{viewer.organization_id}/sites/{site.view.domain}/access"
    return see_other(request, path, notice=f"Saved. It applies from now on. {completed_origins(origins)}".strip())


async def _access_page(
    request: web.Request,
    viewer: Member,
    site: Site,
    values: Mapping[str, str] | None = None,
    error: ServiceError | None = None,
) -> web.Response:
    payment = await payment_of(request.app[MODELS], request.app[COST_BOUNDS]())
    now_ = {"public": "true" if site.view.public else "", "origins": "\n".join(site.view.origins)}
    return await site_page(
        request,
        viewer,
        "documentation/site_access.html",
        site,
        status=status_of(error) if error is not None else 200,
        payment=payment,
        payer=payer(payment),
        needed=settings_to_paste(payment),
        values={**now_, **({"public": ""} if values is not None else {}), **(values or {})},
        problem=str(error) if error is not None else "",
    )
