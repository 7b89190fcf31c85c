"""A site's pages as resources: ``docs://{domain}/{path}``, as Markdown."""

from urllib.parse import quote, unquote

from aiohttp import web

from service.domain.errors import Invalid, NotFound
from service.views.projects import ProjectView
from service.web.http.access.access import CALLER
from service.web.http.app_keys import INDEX
from service.web.http.connections.limits import count_search
from service.web.http.site_addresses import SAFE
from service.web.mcp.search import MAX_TEXT_CHARACTERS
from service.wire.mcp.requests import MAX_SHOWN
from service.wire.mcp.results import (
    ResourceContents,
    ResourceDescription,
    ResourceList,
    ResourceTemplate,
    ResourceText,
)

SCHEME = "docs://"
PAGE_SIZE = 500
"""Resources in one part of the list."""


class SitePages:
    """The resources of a site's server."""

    def templates(self, project: ProjectView, /) -> list[ResourceTemplate]:
        about = "A page of this documentation, by its path on the site."
        return [ResourceTemplate(f"{_base(project)}{{+path}}", "page", "Page", about)]

    async def listed(self, request: web.Request, project: ProjectView, cursor: str | None, /) -> ResourceList:
        """Return a part of the list; the cursor is the index of its first page. Raise OverLimit (429)."""
        first = _index(cursor)
        await count_search(request, request.get(CALLER), project)
        pages = (await request.app[INDEX].list_pages(project.domain, readers=())).pages
        shown = pages[first : first + PAGE_SIZE]
        resources = [ResourceDescription(_uri(project, page.url), page.title or page.url, page.title) for page in shown]
        if first + PAGE_SIZE < len(pages):
            return ResourceList(resources=resources, next_cursor=str(first + PAGE_SIZE))
        return ResourceList(resources=resources)

    async def read(self, request: web.Request, project: ProjectView, uri: str, /) -> ResourceContents:
        """Return a page. Raise NotFound; OverLimit (429)."""
        missing = NotFound(f"Resource not found: {uri[:MAX_SHOWN]}. Take a uri of resources/list.")
        if not uri.startswith(_base(project)):
            raise missing
        await count_search(request, request.get(CALLER), project)
        path = unquote(uri.removeprefix(_base(project)))
        page = await request.app[INDEX].read_page(project.domain, path or "/", readers=())
        if page is None:
            raise missing
        return ResourceContents(contents=[ResourceText(uri, page.content[:MAX_TEXT_CHARACTERS])])


def _base(project: ProjectView) -> str:
    return f"{SCHEME}{quote(project.domain)}/"


def _uri(project: ProjectView, url: str) -> str:
    return _base(project) + quote(url.lstrip("/"), safe=SAFE)


def _index(cursor: str | None) -> int:
    if cursor is None:
        return 0
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) <= 9):
        raise Invalid(f"Unknown cursor: {cursor[:MAX_SHOWN]}. Take the nextCursor of an earlier answer.")
    return int(cursor)
