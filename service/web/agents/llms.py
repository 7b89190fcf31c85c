"""``llms.txt``, the list of a site's pages, and ``llms-full.txt``, all of them in one file (llmstxt.org).

The second is written as it is read, some pages at a time: searches wait no longer than for those. When another index
takes over meanwhile, the connection is cut, since the rest would be of another commit than the first part.
"""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Sequence
from functools import partial

from aiohttp import hdrs, web
from msgspec import Struct

from service import __version__
from service.domain.access.callers import counted_as
from service.domain.errors import Unavailable
from service.ports.bounds import CountBound
from service.ports.search_index import ListedPage, PageList
from service.runtime.shares import Seats
from service.views.projects import ProjectView
from service.web.agents.access import EVERYONE, head_of, is_known, site_to_read, tag_of
from service.web.agents.texts import FULL, list_text, page_text
from service.web.http.app_keys import CLOSING, INDEX
from service.web.http.connections.client_address import client_address
from service.web.http.site_addresses import markdown_base, reading_address

TYPE = "text/plain"
PAGES_AT_ONCE = 20
FULL_SECONDS = 900.0
"""For the whole of one file: a client that is slower is cut off."""
FULL_AT_ONCE = (16, 6, 2)
"""Files that are being sent, in all, of one site, and to one address of a site."""
RETRY_AFTER_SECONDS = 30.0
MAX_KEPT_BYTES = 32 * 1024 * 1024
"""For the lists that are kept: about 300,000 pages."""
FULL_SEATS: web.AppKey[Seats] = web.AppKey("FULL_SEATS")

routes = web.RouteTableDef()


class Listed(Struct, frozen=True):
    """The pages of a site, and their list as text, with its entity tag."""

    commit: str
    pages: Sequence[ListedPage]
    body: bytes
    tag: str


class KeptLists:
    """The lists that were asked for last, as text: it takes longer to make one than to find that a caller has it."""

    def __init__(self) -> None:
        self._lists: OrderedDict[tuple[str, str, str], Listed] = OrderedDict()
        self._bytes = 0
        self._making = asyncio.Lock()

    async def find(self, project: ProjectView, base: str, found: PageList) -> Listed:
        """Return the list of these pages. ``base``: the address of their Markdown."""
        key = (project.domain, project.name, base)
        async with self._making:  # of those who ask at once, one makes it
            kept = self._lists.get(key)
            if kept is None or kept.pages is not found.pages:
                body, tag = await asyncio.to_thread(_text_of, project.name, base, found.pages)
                kept = Listed(found.commit, found.pages, body, tag)
                self._keep(key, kept)
            self._lists.move_to_end(key)
            return kept

    def _keep(self, key: tuple[str, str, str], listed: Listed) -> None:
        before = self._lists.pop(key, None)
        self._bytes += len(listed.body) - (len(before.body) if before is not None else 0)
        self._lists[key] = listed
        while self._bytes > MAX_KEPT_BYTES and len(self._lists) > 1:
            self._bytes -= len(self._lists.popitem(last=False)[1].body)


LISTS: web.AppKey[KeptLists] = web.AppKey("LISTS")


def full_seats(count_bound: CountBound) -> Seats:
    return Seats(FULL_AT_ONCE, on_refused=partial(count_bound, "full_texts"))


@routes.get("/sites/{domain}/llms.txt")
async def show_list(request: web.Request) -> web.Response:
    listed = await _listed(request, await site_to_read(request))
    headers = head_of(request, listed.tag, TYPE)
    if is_known(request, listed.tag):
        return web.Response(status=304, headers=headers)
    return web.Response(body=listed.body, headers=headers)


@routes.get(f"/sites/{{domain}}/{FULL}")
async def show_all(request: web.Request) -> web.StreamResponse:
    project = await site_to_read(request)
    listed = await _listed(request, project)
    headers = head_of(request, tag := tag_of(FULL, listed.commit, __version__, listed.tag), TYPE)
    if is_known(request, tag):
        return web.Response(status=304, headers=headers)
    if request.method == hdrs.METH_HEAD:
        return web.Response(headers=headers)
    with request.app[FULL_SEATS].seat("", project.id, f"{project.id} {counted_as(client_address(request))}") as is_free:
        if not is_free:
            raise Unavailable(
                "This file is being sent too often at once. Try again in half a minute, or read single pages.",
                retry_after_seconds=RETRY_AFTER_SECONDS,
            )
        response = web.StreamResponse(headers=headers)
        try:
            async with asyncio.timeout(FULL_SECONDS):
                await response.prepare(request)
                async for text in _texts(request, project, listed):
                    await response.write(text)
                await response.write_eof()
        except TimeoutError:
            raise ConnectionResetError("the client took too long") from None
    return response


async def _listed(request: web.Request, project: ProjectView) -> Listed:
    found = await request.app[INDEX].list_pages(project.domain, readers=EVERYONE)
    return await request.app[LISTS].find(project, markdown_base(request, project.domain), found)


def _text_of(name: str, base: str, pages: Sequence[ListedPage]) -> tuple[bytes, str]:
    body = list_text(name, base, pages).encode()
    return body, tag_of(body)


async def _texts(request: web.Request, project: ProjectView, listed: Listed) -> AsyncIterator[bytes]:
    """Yield the main pages as text. Raise ConnectionResetError when they are no longer all of one commit."""
    address = partial(reading_address, request, project)
    main = [page.path for page in listed.pages if page.is_main]
    for start in range(0, len(main), PAGES_AT_ONCE):
        paths = main[start : start + PAGES_AT_ONCE]
        pages = await request.app[INDEX].read_pages(project.domain, paths, readers=EVERYONE)
        if any(page is None or page.commit != listed.commit for page in pages):
            raise ConnectionResetError("another index has taken over")
        if request.app[CLOSING].is_set():
            raise ConnectionResetError("the server is going down")
        yield await asyncio.to_thread(
            lambda pages: "".join(f"{page_text(page, address(page.url))}\n" for page in pages).encode(),
            [page for page in pages if page is not None],
        )
