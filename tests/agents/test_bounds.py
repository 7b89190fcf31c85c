"""Bounds on what strangers read, and a text that stays of one commit."""

import asyncio
from contextlib import asynccontextmanager

import aiohttp
import pytest

from service.domain.access.names import Names
from service.domain.access.usage import Limits
from service.ports.bounds import ignore_bounds
from service.ports.search_index import PageList
from service.web.agents.llms import FULL_SEATS, LISTS, PAGES_AT_ONCE, KeptLists, full_seats
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
        app[INDEX], app[CLOSING] = index, asyncio.Event()
        app[FULL_SEATS], app[LISTS] = full_seats(ignore_bounds), KeptLists()
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
        index.key = await entry.key("assistant", domains=("alpha",))
        yield http, f"{entry.url}/sites/alpha"


class CountedPages(tuple):
    """Pages that count how often a list is made of them."""

    made = 0

    def __iter__(self):
        self.made += 1
        return super().__iter__()


class IndexOfCounted(Index):
    """The pages of each commit are one list, as long as it is served."""

    def __init__(self):
        super().__init__()
        self.lists = {}

    async def list_pages(self, domain, *, readers=None):
        found = await super().list_pages(domain, readers=readers)
        return self.lists.setdefault(found.commit, PageList(found.commit, CountedPages(found.pages)))


async def test_list_is_made_once_for_a_commit(tmp_path):
    index = IndexOfCounted()
    async with public_site(tmp_path, index) as (http, site):

        async def ask(method="GET", path="llms.txt", **headers):
            async with http.request(method, f"{site}/{path}", headers=headers) as answer:
                return answer.status, answer.headers["ETag"], await answer.text()

        (status, tag, text), again = await asyncio.gather(ask(), ask())
        assert (status, again) == (200, (200, tag, text))
        (listed,) = index.lists.values()
        made = listed.pages.made
        assert await ask(**{"If-None-Match": tag}) == (304, tag, "")
        assert await ask("HEAD") == (200, tag, "")
        assert (await ask("HEAD", "llms-full.txt"))[0] == 200
        assert listed.pages.made == made
        index.put("alpha", {"other.md": "# Other\n\nText.\n"}, commit="1" * 40)
        assert "Other" in (await ask())[2]


async def test_reads_with_a_key_count_as_its_searches(tmp_path):
    index = Index()
    async with public_site(tmp_path, index, Limits(key_searches=2)) as (http, site):
        found = []
        for path in ("page-001.md", "llms.txt", "llms-full.txt"):
            async with http.get(f"{site}/{path}", headers={"Authorization": f"Bearer {index.key}"}) as answer:
                found.append(answer.status)
        assert found == [200, 200, 429]


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
