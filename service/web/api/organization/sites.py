"""Sites of an organization: the state of their indexes, their reports, and who may ask them without a key."""

from typing import Annotated

from aiohttp import web
from msgspec import Meta, Struct, structs

from service.commands.sites import change_site_access, change_site_widget, request_index
from service.domain.errors import Invalid
from service.domain.sites import ChangeSiteAccess
from service.domain.widget import (
    MAX_GREETING_CHARACTERS,
    MAX_HAND_OFF_CHARACTERS,
    MAX_SUGGESTION_CHARACTERS,
    MAX_SUGGESTIONS,
    MAX_TITLE_CHARACTERS,
    WidgetChange,
    WidgetForm,
)
from service.queries.payments import payment_of, remedy_of
from service.queries.read_models import wait_for_head
from service.queries.sites import Site, get_site, list_sites_of
from service.runtime.system import now
from service.views.fields import NextCursor, described
from service.views.sites import IndexingView, PaymentView, SiteReportView, SiteView
from service.web.api.description.operations import Answer, Routes
from service.web.api.organization.projects import CURSOR, LIMIT, LISTED, MAX_LISTED
from service.web.http.access.access import admin_key, site_not_found
from service.web.http.app_keys import COST_BOUNDS, INDEXING, MODELS, SITE_REPORTS, STORE, VIEWS
from service.web.http.problems import json_response, metadata_of, read_body
from service.web.http.query_params import text_cursor, whole_param

WIDGET_EXAMPLE = {
    "title": "Ask the guide",
    "greeting": "",
    "suggestions": ["How do I start?"],
    "handOff": "https://example.com/support?conversation={threadId}",
    "form": "side",
    "accent": "#0b6e4f",
}
SITE_EXAMPLE = {
    "domain": "guide",
    "projectId": "0b9c3d5e7f8a4c1d9e2f3a4b5c6d7e8f",
    "organizationId": "4f2a9c1e6b7d4e0f8a9b0c1d2e3f4a5b",
    "indexWanted": False,
    "wantedAt": None,
    "commit": "9fceb02d0ae598e95dc970b74767f19372d61af8",
    "indexedAt": "2026-11-21T09:31:00.000Z",
    "pages": 120,
    "sections": 900,
    "skippedCount": 1,
    "failure": None,
    "public": False,
    "origins": [],
    "widget": WIDGET_EXAMPLE,
}
SHOWN_EXAMPLE = {
    "site": SITE_EXAMPLE,
    "indexing": None,
    "payment": {"model": "builtin/extractive", "costBoundUsdDay": 0.0, "problem": ""},
}
REPORT_EXAMPLE = {
    "generator": "mintlify",
    "commit": "9fceb02d0ae598e95dc970b74767f19372d61af8",
    "pages": 120,
    "sections": 900,
    "navigationEntries": 118,
    "findings": {
        "leftover": {"number": 1, "first": [{"path": "guides/a.md", "detail": "include: {{ x }}", "line": 12}]}
    },
}


class SiteList(Struct, frozen=True, rename="camel"):
    """Sites of an organization."""

    sites: Annotated[tuple[SiteView, ...], described("By domain.")]
    next_cursor: NextCursor


class ShownSiteView(Struct, frozen=True):
    """A site, with what is being done for it."""

    site: Annotated[SiteView, described("The site.")]
    indexing: Annotated[IndexingView | None, described("How far its indexing is; null when none is under way.")]
    payment: Annotated[PaymentView, described("Who would pay, or pays, for questions without a key.")]


class AccessBody(Struct, frozen=True):
    """The access to a site without a key. What is left out stays as it is."""

    public: Annotated[bool | None, described("Whether anyone may ask it, without a key.")] = None
    origins: Annotated[
        Annotated[tuple[Annotated[str, Meta(max_length=300)], ...], Meta(max_length=100)] | None,
        described("The websites whose pages may ask it; instead of those so far."),
    ] = None


class WidgetBody(Struct, frozen=True, rename="camel"):
    """The settings of a site's widget. What is left out stays as it is; what is empty is the widget's own again."""

    title: Annotated[
        Annotated[str, Meta(max_length=MAX_TITLE_CHARACTERS)] | None, described("The heading of its panel.")
    ] = None
    greeting: Annotated[
        Annotated[str, Meta(max_length=MAX_GREETING_CHARACTERS)] | None, described("Its first words to the reader.")
    ] = None
    suggestions: Annotated[
        Annotated[
            tuple[Annotated[str, Meta(max_length=MAX_SUGGESTION_CHARACTERS)], ...], Meta(max_length=MAX_SUGGESTIONS)
        ]
        | None,
        described("Questions to begin with; instead of those so far."),
    ] = None
    hand_off: Annotated[
        Annotated[str, Meta(max_length=MAX_HAND_OFF_CHARACTERS)] | None,
        described("A link or a mail address where readers get more help; `{threadId}` in a link is the conversation."),
    ] = None
    form: Annotated[WidgetForm | None, described("How the panel opens where the page's tag does not choose.")] = None
    accent: Annotated[Annotated[str, Meta(max_length=7)] | None, described("A colour, such as `#0b6e4f`.")] = None


routes = Routes()


@routes.operation(
    "GET",
    "/v2/sites",
    "listSites",
    "Projects",
    "List sites",
    {200: Answer("By domain.", SiteList, example={"sites": [SITE_EXAMPLE], "nextCursor": None})},
    parameters=(LIMIT, CURSOR),
)
async def show_sites(request: web.Request) -> web.Response:
    key = await admin_key(request)
    limit = whole_param(request, "limit", LISTED, least=1, most=MAX_LISTED)
    after = text_cursor(request)
    rows = await list_sites_of(request.app[VIEWS], key.state.organization_id, after=after, limit=limit + 1)
    shown = tuple(row.view for row in rows[:limit])
    return json_response(SiteList(shown, shown[-1].domain if len(rows) > limit else None))


@routes.operation(
    "GET",
    "/v2/sites/{domain}",
    "getSite",
    "Projects",
    "Get a site",
    {200: Answer("The site, and how far its indexing is.", ShownSiteView, example=SHOWN_EXAMPLE)},
)
async def show_site(request: web.Request) -> web.Response:
    return json_response(await shown_site(request, await _site(request)))


@routes.operation(
    "GET",
    "/v2/sites/{domain}/report",
    "getSiteReport",
    "Projects",
    "Get the report of a site",
    {200: Answer("How well the site was read, and what was left out.", SiteReportView, example=REPORT_EXAMPLE)},
    errors={404: ("not_indexed",)},
)
async def show_report(request: web.Request) -> web.Response:
    return json_response(await request.app[SITE_REPORTS].report(await _site(request)))


@routes.operation(
    "POST",
    "/v2/sites/{domain}/index",
    "indexSite",
    "Projects",
    "Index a site again",
    {202: Answer("The site; an index of its newest commit is wanted.", ShownSiteView, example=SHOWN_EXAMPLE)},
    errors={409: ("read_only",)},
)
async def index_site(request: web.Request) -> web.Response:
    """Only files that changed are read again."""
    site = await _site(request)
    await request_index(request.app[STORE], site.view.domain, "the API asked for it", metadata_of(request))
    await wait_for_head(request.app[STORE], request.app[VIEWS])
    return json_response(await shown_site(request, await _site(request)), status=202)


@routes.operation(
    "POST",
    "/v2/sites/{domain}/access",
    "changeSiteAccess",
    "Projects",
    "Open a site to everyone, or close it",
    {200: Answer("The site as it is now.", ShownSiteView, example=SHOWN_EXAMPLE)},
    description="A public site's assistant, search and pages answer without a key. A model that costs money needs a"
    " cost limit first.",
    body=AccessBody,
    body_examples={"close": {"public": False}, "open": {"public": True, "origins": ["https://docs.example.com"]}},
    errors={409: ("read_only",)},
)
async def change_access(request: web.Request) -> web.Response:
    site = await _site(request)
    body = await read_body(request, AccessBody)
    await open_or_close(request, site.view, ChangeSiteAccess(now(), body.public, body.origins))
    return json_response(await shown_site(request, await _site(request)))


@routes.operation(
    "POST",
    "/v2/sites/{domain}/widget",
    "changeSiteWidget",
    "Projects",
    "Change the settings of a site's widget",
    {200: Answer("The site as it is now.", ShownSiteView, example=SHOWN_EXAMPLE)},
    description="The widget reads them when it is opened, so the pages that carry its tag stay as they are.",
    body=WidgetBody,
    body_examples={"help": {"handOff": "help@example.com"}, "look": {"title": "Ask the guide", "accent": "#0b6e4f"}},
    errors={409: ("read_only",)},
)
async def change_widget(request: web.Request) -> web.Response:
    site = await _site(request)
    body = await read_body(request, WidgetBody)
    await save_widget(request, site.view, WidgetChange(**structs.asdict(body)))
    return json_response(await shown_site(request, await _site(request)))


async def save_widget(request: web.Request, site: SiteView, change: WidgetChange) -> None:
    """Change the settings of a site's widget. Raise Invalid."""
    await change_site_widget(request.app[STORE], site.domain, change, metadata_of(request))
    await wait_for_head(request.app[STORE], request.app[VIEWS])


async def open_or_close(request: web.Request, site: SiteView, change: ChangeSiteAccess) -> None:
    """Change who may ask a site. Raise Invalid for a site whose replies no cost bound holds."""
    if change.public and not site.public:
        payment = await payment_of(request.app[MODELS], request.app[COST_BOUNDS]())
        if payment.problem:
            raise Invalid(f"{site.domain} stays private. {payment.problem} {remedy_of(payment)}")
    await change_site_access(request.app[STORE], site.domain, change, metadata_of(request))
    await wait_for_head(request.app[STORE], request.app[VIEWS])


async def shown_site(request: web.Request, site: Site) -> ShownSiteView:
    payment = await payment_of(request.app[MODELS], request.app[COST_BOUNDS]())
    return ShownSiteView(site.view, await request.app[INDEXING](site.view.domain), payment)


async def _site(request: web.Request) -> Site:
    key = await admin_key(request)
    return await site_of(request, key.state.organization_id)


async def site_of(request: web.Request, organization_id: str) -> Site:
    """Return the organization's site that the path names. Raise NotFound, also for another organization's."""
    domain, views = request.match_info["domain"], request.app[VIEWS]
    site = await get_site(views, domain)
    if site is None or site.view.organization_id != organization_id:
        await wait_for_head(request.app[STORE], views)  # it may have been created a moment ago
        site = await get_site(views, domain)
    if site is None or site.view.organization_id != organization_id:
        raise site_not_found()
    return site
