"""Bounds on what strangers read, and a text that stays of one commit."""

import asyncio
from contextlib import asynccontextmanager

import aiohttp
import pytest

from service.domain.access.names import Names
from service.domain.access.usage import Limits
from service.ports.bounds import ignore_bounds
from service.web.agents.llms import FULL_SEATS, PAGES_AT_ONCE, full_seats
from service.web.agents.pages import MODULES
from service.web.http.access.hosts import NAMES
from service.web.http.app_keys import CLOSING, INDEX
from service.web.http.connections.admission import AdmissionSettings
from tests.fakes.search_index import FakeSearchIndex
from tests.web.entrance import entrance

PAGES = {f"page-{number:03}.md": f"# Page {number}\n\nText.\n" for number in range(2 * PAGES_AT_ONCE)}


class Index(FakeSearchIndex):
    """``before_read`` is awaited before each part of a site's text."""

    def __init__(self, before_read=None):
        super().__init__()
        self.put("alpha", PAGES)
        self.before_read, self.parts = before_read, 0

    async def read_pages(self, domain, paths, *, readers=None):
        self.parts += 1
        if self.before_read is not None:
            await self.before_read(self)
        return await super().read_pages(domain, paths, readers=readers)


@asynccontextmanager
async def public_site(folder, index, limits=None):
    """The address of a public site over this index."""

    def prepare(app):
        app[INDEX], app[CLOSING], app[FULL_SEATS] = index, asyncio.Event(), full_seats(ignore_bounds)
        app[NAMES] = Names("https://docsmith.example.com", "127.0.0.1")
        for module in MODULES:
            app.add_routes(module.routes)

    settings = AdmissionSettings(limits=limits or Limits())
    async with entrance(folder, settings, prepare=prepare) as entry, aiohttp.ClientSession() as http:
        await entry.open_site("alpha", "https://docs.example.com")
        while True:  # it is known a moment later
            async with http.get(f"{entry.url}/mcp/alpha/server-card") as answer:
                if answer.status == 200:
                    break
        yield http, f"{entry.url}/sites/alpha"


async def test_reads_without_a_key_count_as_searches(tmp_path):
    async with public_site(tmp_path, Index(), Limits(address_searches=2)) as (http, site):
        found = []
        for path in ("page-001.md", "llms.txt", "page-002.md", "llms-full.txt"):
            async with http.get(f"{site}/{path}") as answer:
                found.append((answer.status, "Retry-After" in answer.headers))
        assert found == [(200, False), (200, False), (429, True), (429, True)]


async def test_text_of_two_commits_is_cut(tmp_path):
    async def renew(index):
        if index.parts == 2:
            index.put("alpha", PAGES, commit="1" * 40)

    async with public_site(tmp_path, Index(renew)) as (http, site), http.get(f"{site}/llms-full.txt") as answer:
        with pytest.raises(aiohttp.ClientPayloadError):
            await answer.read()


async def test_address_gets_two_whole_texts_at_a_time(tmp_path):
    go_on = asyncio.Event()

    async def wait(_):
        await go_on.wait()

    async with public_site(tmp_path, Index(wait)) as (http, site):
        async with http.get(f"{site}/llms-full.txt") as one, http.get(f"{site}/llms-full.txt") as two:
            async with http.get(f"{site}/llms-full.txt") as third:
                assert (third.status, third.headers["Retry-After"]) == (503, "30")
            go_on.set()
            assert await one.read() == await two.read() != b""
        async with http.get(f"{site}/llms-full.txt") as later:
            assert later.status == 200
