"""``/ask/{domain}/pages/{path}``: a page of a site as this service shows it, where the site's own address is not known.

Search results and citations lead there, for all who may open the ask page. Others wrote the pages, so they are rendered
in a child process, without markup of their own; links within the site lead to its other pages here, and those that
lead to no page are none.
"""

from collections.abc import Sequence
from html import unescape
from urllib.parse import quote

from aiohttp import web
from markupsafe import Markup, escape

from service.domain.errors import NotFound
from service.markup.links import is_external
from service.ports.search_index import Page, Section, SiteLinks
from service.runtime.processes import run_in_child
from service.views.projects import ProjectView
from service.web.agents.links import url_of_link
from service.web.ask.sites import site_to_ask
from service.web.ask.texts import preferred_language, texts_in
from service.web.http.access.access import MEMBER_READS
from service.web.http.app_keys import INDEX
from service.web.http.connections.limits import count_briefly
from service.web.http.hosted import MAKING_BYTES, MAKING_SECONDS, PAGE_TURNS
from service.web.http.site_addresses import SAFE, page_address, published_address, urls_of
from service.web.pages.html import html_page, way_up
from service.web.pages.site_sections import render_sections

MAX_CHARACTERS = 600_000
"""Characters of a page; the sections behind them are left out."""
MAX_PATH = 2_000

routes = web.RouteTableDef()


def pages_base(request: web.Request, project: ProjectView) -> str:
    """Return the address that a page's URL is put behind: its site's, else that of its place here."""
    return published_address(project) or f"{way_up(request)}ask/{quote(project.domain)}/pages"


def page_link(request: web.Request, project: ProjectView, url: str) -> str:
    """Return the address of a page, or of a section of it, for a link on the page in view."""
    site = published_address(project)
    return page_address(site, url) if site else pages_base(request, project) + quote(url, safe=f"{SAFE}#?")


async def reader_groups(request: web.Request, project: ProjectView) -> Sequence[str]:
    """Return the groups of readers as whom a member of the organization may ask and read; none for others."""
    if MEMBER_READS not in request:
        return ()
    try:
        return await request.app[INDEX].reader_groups(project.domain)
    except NotFound:  # it is not indexed yet
        return ()


@routes.get("/ask/{domain}/pages/{path:.*}")
async def show_page(request: web.Request) -> web.Response:
    project = await site_to_ask(request, counts="search")
    await count_briefly(request)
    readers = await reader_groups(request, project)
    page = await _find_page(request, project.domain, request.match_info["path"], readers)
    if site := published_address(project):
        raise web.HTTPFound(page_address(site, page.url))
    sections = _beginning(page.sections or (Section(page.path, page.url, page.title, "", (), page.content, 1, 1),))
    async with request.app[PAGE_TURNS].slot(project.id):
        pieces = await run_in_child(
            render_sections, sections, timeout_seconds=MAKING_SECONDS, memory_bytes=MAKING_BYTES
        )
    links, base = await request.app[INDEX].links(project.domain), pages_base(request, project)
    language = preferred_language(request.headers.get("Accept-Language", ""))
    return html_page(
        request,
        "site_page.html",
        domain=project.domain,
        language=language,
        texts=texts_in(language),
        title=page.title,
        html=_with_links(pieces, page, links, base, readers),
        is_cut=len(sections) < len(page.sections),
    )


async def _find_page(request: web.Request, domain: str, path: str, readers: Sequence[str]) -> Page:
    if len(path) <= MAX_PATH:
        for url in (*urls_of(path), f"/{path}/"):
            if (page := await request.app[INDEX].read_page(domain, url or "/", readers=readers)) is not None:
                return page
    raise NotFound("The documentation has no page of this address. Search for it.", code="page_not_found")


def _beginning(sections: Sequence[Section]) -> list[Section]:
    kept, left = [], MAX_CHARACTERS
    for section in sections:
        left -= len(section.text)
        if left < 0:
            break
        kept.append(section)
    return kept


def _with_links(pieces: Sequence[str], page: Page, links: SiteLinks, base: str, readers: Sequence[str]) -> Markup:
    """Return the HTML with its links: those that lead to no page have no address."""
    html: list[str] = []
    for at, piece in enumerate(pieces):
        html.append(_link(unescape(piece), page, links, base, readers) if at % 2 else piece)
    return Markup("".join(html))  # noqa: S704 - written by the renderer, which escapes all text


def _link(target: str, page: Page, links: SiteLinks, base: str, readers: Sequence[str]) -> str:
    if target.startswith("#"):
        return f'<a href="{escape(target)}">'
    if is_external(target):
        return f'<a href="{escape(target)}" rel="nofollow noopener noreferrer">'
    url = url_of_link(target, page, links, readers)
    return "<a>" if url is None else f'<a href="{escape(base + quote(url, safe=f"{SAFE}#?"))}">'
