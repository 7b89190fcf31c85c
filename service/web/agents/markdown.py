"""``/sites/{domain}/{path}``: the pages of a site as Markdown.

With ``.md`` behind it an address is always Markdown. Without, a browser is redirected to the page on its site, and
programs that accept anything get Markdown.
"""

import asyncio
import re

from aiohttp import hdrs, web
from msgspec.structs import replace

from service.domain.errors import NotFound
from service.ports.search_index import Page, SiteLinks
from service.web.agents.access import EVERYONE, head_of, is_known, site_to_read, tag_of
from service.web.agents.links import with_markdown_links
from service.web.agents.texts import page_text
from service.web.http.app_keys import INDEX
from service.web.http.site_addresses import MARKDOWN, markdown_base, markdown_path, page_address, site_address, urls_of

HTML, TYPE = "text/html", "text/markdown"
MAX_PATH = 2_000
MAX_RANGES = 50
"""Media ranges of an ``Accept`` that are read."""
_QUALITY = re.compile(r"q=([01](?:\.[0-9]{0,3})?)", re.ASCII)

routes = web.RouteTableDef()


@routes.get("/sites/{domain}/{path:.*}")
async def show_page(request: web.Request) -> web.StreamResponse:
    project = await site_to_read(request)
    path = request.match_info["path"]
    page = await _find_page(request, project.domain, path) if len(path) <= MAX_PATH else None
    if page is None:
        raise NotFound("Page not found. Take an address of the site's llms.txt.", code="page_not_found")
    site, base = site_address(request, project), markdown_base(request, project.domain)
    if site and not path.endswith(MARKDOWN) and prefers_html(request.headers.getall(hdrs.ACCEPT, ())):
        return web.Response(status=302, headers={hdrs.LOCATION: page_address(site, page.url), hdrs.VARY: hdrs.ACCEPT})
    body, tag = await asyncio.to_thread(_body, page, await request.app[INDEX].links(project.domain), base)
    headers = head_of(request, tag, TYPE)
    if site:
        headers[hdrs.LINK] = f'<{page_address(site, page.url)}>; rel="canonical"'
    if is_known(request, tag):
        return web.Response(status=304, headers=headers)
    return web.Response(body=body, headers=headers)


def _body(page: Page, links: SiteLinks, base: str) -> tuple[bytes, str]:
    body = page_text(replace(page, content=with_markdown_links(page, links, base))).encode()
    return body, tag_of(body)


async def _find_page(request: web.Request, domain: str, path: str) -> Page | None:
    """Return the page with that address; else one that the path means by its file."""
    other = None
    for url in urls_of(path):
        page = await request.app[INDEX].read_page(domain, url, readers=EVERYONE)
        if page is not None and (not path.endswith(MARKDOWN) or markdown_path(page.url) == markdown_path(url)):
            return page
        other = other or page
    return other


def prefers_html(accepted: tuple[str, ...] | list[str]) -> bool:
    """Return whether these lines of an ``Accept`` name HTML, and no Markdown that is as welcome."""
    qualities: dict[str, float] = {}
    for part in ",".join(accepted).split(",")[:MAX_RANGES]:
        kind, _, parameters = part.partition(";")
        quality = _QUALITY.search(parameters)
        qualities[kind.strip().lower()] = float(quality[1]) if quality else 1.0
    return qualities.get(HTML, 0.0) > qualities.get(TYPE, 0.0)
