"""A site on other websites and in other programs: its widget's tag and settings, and the address of its MCP server."""

import asyncio
from collections.abc import Mapping

import msgspec
from aiohttp import web
from markupsafe import Markup
from msgspec import Struct

from service.domain.errors import ServiceError
from service.domain.widget import FORMS, MAX_SUGGESTIONS, WidgetChange
from service.queries.sites import Site
from service.views.sites import WidgetView
from service.web.api.organization.sites import save_widget, site_of
from service.web.dashboard.documentation.site_page import site_page
from service.web.dashboard.documentation.sites import SITE
from service.web.dashboard.page import see_other
from service.web.http.access.hosts import service_address
from service.web.http.access.people import Member, member
from service.web.http.forms import read_form
from service.web.http.problems import status_of
from service.web.pages.manual import tag_guides
from service.web.widget.bundle import widget

PATH = SITE + "/widget"
FORM_WORDS = {
    "side": "A panel beside the page",
    "modal": "A window over the page",
    "popover": "A small window in the corner",
    "inline": "In the page, where <ask-docs> stands",
}
KEY = "KEY"
"""The place of a key, which is shown only when it is created."""

routes = web.RouteTableDef()


class Tag(Struct, frozen=True):
    """The widget's tag for one site generator."""

    name: str
    html: Markup
    """Where to put it."""
    code: str


@routes.get(PATH)
async def show_widget(request: web.Request) -> web.Response:
    viewer = await member(request)
    return await _widget_page(request, viewer, await site_of(request, viewer.organization_id))


@routes.post(PATH)
async def change_widget(request: web.Request) -> web.Response:
    viewer = await member(request, "owner")
    site, values = await site_of(request, viewer.organization_id), await read_form(request)
    change = WidgetChange(
        values.get("title"),
        values.get("greeting"),
        tuple(values["suggestions"].splitlines()) if "suggestions" in values else None,
        values.get("hand_off"),
        next((form for form in FORMS if form == values.get("form")), None),
        values.get("accent"),
    )
    try:
        await save_widget(request, site.view, change)
    except ServiceError as error:
        return await _widget_page(request, viewer, site, values, error)
    path = f"dashboard/{viewer.organization_id}/sites/{site.view.domain}/widget"
    return see_other(request, path, notice="Saved. The widget shows it when it is opened next.")


async def _widget_page(
    request: web.Request,
    viewer: Member,
    site: Site,
    values: Mapping[str, str] | None = None,
    error: ServiceError | None = None,
) -> web.Response:
    view, base = site.view, service_address(request)
    key = "" if view.public else KEY
    return await site_page(
        request,
        viewer,
        "documentation/site_widget.html",
        site,
        status=status_of(error) if error is not None else 200,
        tags=tags_of(base, view.domain, key),
        pinned=await _pinned_tag(base, view.domain, key),
        policy=f"script-src 'self' {base}; connect-src 'self' {base}",
        mcp_address=f"{base}/mcp/{view.domain}",
        mcp_entry=mcp_entry_of(view.domain, f"{base}/mcp/{view.domain}", key),
        forms=list(FORM_WORDS.items()),
        most_suggestions=MAX_SUGGESTIONS,
        values={**_values(view.widget), **(values or {})},
        problem=str(error) if error is not None else "",
    )


def tags_of(base: str, domain: str, key: str) -> list[Tag]:
    """Return the tag for each site generator, as the manual has it, filled in; ``key``: empty for a public site."""
    return [Tag(guide.name, guide.html, _filled(guide.code, base, domain, key)) for guide in tag_guides()]


def _filled(code: str, base: str, domain: str, key: str) -> str:
    if not key:
        code = code.replace(f' data-key="{KEY}"', "").replace(f', "data-key": "{KEY}"', "")
    code = code.replace("https://docsmith.example.com", base)
    return code.replace('"guide"', f'"{domain}"').replace(f'"{KEY}"', f'"{key}"')


async def _pinned_tag(base: str, domain: str, key: str) -> str:
    """Return the tag of exactly this version."""
    loader = (await asyncio.to_thread(widget)).loader
    named = f' data-key="{key}"' if key else ""
    return (
        f'<script src="{base}/widget/{loader.name}.js" integrity="{loader.integrity}" crossorigin="anonymous"'
        f' data-site="{domain}"{named} async></script>'
    )


def mcp_entry_of(name: str, address: str, key: str) -> str:
    """Return the entry for the file of MCP servers that clients read; ``key``: empty for a public site."""
    headers = {"headers": {"Authorization": f"Bearer {key}"}} if key else {}
    entry = {"mcpServers": {name: {"type": "http", "url": address, **headers}}}
    return msgspec.json.format(msgspec.json.encode(entry)).decode()


def _values(settings: WidgetView) -> dict[str, str]:
    return {
        "title": settings.title,
        "greeting": settings.greeting,
        "suggestions": "\n".join(settings.suggestions),
        "hand_off": settings.hand_off.removeprefix("mailto:"),
        "form": settings.form,
        "accent": settings.accent,
    }
