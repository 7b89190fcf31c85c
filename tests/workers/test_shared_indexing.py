"""Instances that share a log: one of them builds a site's index, and the others fetch it."""

import asyncio
from collections import Counter
from contextlib import asynccontextmanager

import pytest

from eventstore import Metadata, execute, load
from service.commands.organizations import create_organization
from service.commands.projects import create_project
from service.commands.sites import request_index
from service.domain.errors import Conflict
from service.domain.projects.settings import ProjectSettings
from service.domain.sites import IndexingStarted, RecordIndex, SiteIndexed, StartIndexing
from service.ports.shared.instances import Peer
from service.retrieval.index.stored import FORMAT
from service.retrieval.index.transfer import packed
from service.retrieval.search.query import SiteIndexes
from service.runtime.hosted_place import HostedPlace
from service.runtime.system import now
from service.streams import SITES, decoded
from service.workers.indexing.indexer import Indexer, IndexerContext
from service.workers.indexing.sharing import SharedIndexing
from tests.fakes.code_host import FakeCodeHost
from tests.fakes.docs_source import FakeDocsSource
from tests.fakes.internal_http import Answered, FakeInternalHttp

PAGES = {f"k{number}.md": f"# Kite {number}\n\nFly it.\n" for number in range(5)}


class Membership:
    """One instance's view of the town's instances."""

    def __init__(self, town, name):
        self._town, self.name, self.is_leading = town, name, False

    def is_alive(self, name):
        return name in self._town.alive

    def others(self):
        return [
            Peer(name, "" if name in self._town.starting else f"http://{name}", "1", False)
            for name in sorted(self._town.alive)
            if name != self.name
        ]

    def leads(self):
        return self.is_leading


class Town:
    """Instances over one log, each with its own folder and its own view of the repositories."""

    def __init__(self, store, views, folder):
        self.store, self.views, self._folder = store, views, folder
        self.docs = FakeDocsSource(PAGES)
        self.alive, self.starting, self.indexes, self.memberships = set(), set(), {}, {}
        self.fetched, self.cut = Counter(), set()
        self.http = FakeInternalHttp(self._answer)
        self.pulse, self.began = asyncio.Event(), asyncio.Event()
        self.began.set()
        self._tasks = {}

    async def _answer(self, asked):
        _, _, _, domain, name = asked.target.split("/")
        folder = self._folder / asked.to / "index" / domain / name
        if not folder.is_dir():
            return Answered(404)
        self.fetched[asked.to] += 1
        parts = list(packed(folder))
        if asked.to in self.cut:
            return Answered(parts=[parts[0][:600] + b"?" + parts[0][601:], *parts[1:]])
        return Answered(parts=parts)

    def start(self, name, *, is_home=True, serves=None):
        """``serves`` is the index that is in its folder already."""
        data = self._folder / name
        self.alive.add(name)
        membership = self.memberships[name] = Membership(self, name)
        index = self.indexes[name] = SiteIndexes(data / "index")
        shared = SharedIndexing(self.store, membership, self.http, HostedPlace(data, is_here=is_home))
        context = IndexerContext(retry_seconds=0, shared=shared, sleep=self._sleep)
        indexer = Indexer(self.store, self.views, self.docs, index, data, context)
        if serves is not None:
            index.use_after(self.began, "kites", serves)
        self._tasks[name] = asyncio.create_task(indexer.run())
        return indexer

    async def _sleep(self, _seconds):
        await self.pulse.wait()

    async def kill(self, name):
        self.alive.discard(name)
        self._tasks[name].cancel()
        await asyncio.gather(self._tasks.pop(name), return_exceptions=True)
        await self.indexes.pop(name).close()

    def beat(self):
        """Let all pass on that sleep between two looks."""
        self.pulse.set()
        self.pulse = asyncio.Event()

    async def request(self):
        await request_index(self.store, "kites", "a test", Metadata())

    async def events(self, kind):
        found = await self.store.read_stream(SITES.stream("kites"))
        return [event for _, event in decoded(SITES, found) if isinstance(event, kind)]

    async def until(self, is_so):
        async with asyncio.timeout(60):
            while not await is_so():
                self.beat()
                await asyncio.sleep(0.01)

    async def until_all_serve(self, times=1):
        async def is_so():
            indexed = await self.events(SiteIndexed)
            names = {index.served("kites") for index in self.indexes.values()}
            return len(indexed) >= times and names == {indexed[-1].file}

        await self.until(is_so)

    async def close(self):
        for name in list(self._tasks):
            await self.kill(name)


@pytest.fixture
async def town(store, views, tmp_path, followed):
    async with _town(store, views, tmp_path, "github") as town:
        yield town


@asynccontextmanager
async def _town(store, views, folder, code_host):
    town = Town(store, views, folder)
    organization = await create_organization(store, "Acme", Metadata())
    await views.catch_up()
    token = {"git_token_env": "TOKEN"} if code_host == "github" else {}
    new = ProjectSettings(organization.id, "Kites", "https://x.y/r.git", "main", "", "kites", code_host, **token)
    await create_project(store, views, town.docs, {"github": FakeCodeHost()}, new, Metadata())
    yield town
    await town.close()


async def test_index_is_built_once_and_fetched_by_the_others(town):
    for name in ("one", "two", "three"):
        town.start(name)
    await town.until_all_serve()
    [started], [indexed] = await town.events(IndexingStarted), await town.events(SiteIndexed)
    assert town.fetched == {started.instance: 2}
    assert indexed.format == int(FORMAT)
    for index in town.indexes.values():
        found = (await index.search("kites", "kite 3")).sections
        assert found[0].path == "k3.md"


async def test_later_instance_fetches_what_is_there(town):
    town.start("one")
    await town.until_all_serve()
    late = town.start("late")
    assert late.fetching() is not None
    await town.until_all_serve()
    assert late.fetching() is None
    assert town.fetched == {"one": 1}
    assert len(await town.events(SiteIndexed)) == 1


async def test_index_that_no_instance_has_is_built_again(town):
    town.start("one")
    await town.until_all_serve()
    await town.kill("one")
    town.start("two")
    await town.until_all_serve(times=2)


async def test_changed_archive_is_not_served(town):
    town.start("one")
    await town.until_all_serve()
    town.cut.add("one")
    late = town.start("late")

    async def has_failed():
        return "kites" in late.behind()

    await town.until(has_failed)
    assert town.indexes["late"].served("kites") is None
    town.cut.clear()
    await town.until_all_serve()


async def test_index_of_an_instance_that_starts_is_awaited(store, views, tmp_path, followed):
    async with _town(store, views, tmp_path, "local") as town:
        town.start("home")
        await town.until_all_serve()
        town.starting.add("home")
        late = town.start("late", is_home=False)
        async with asyncio.timeout(60):
            for asks in (True, False):  # until it has asked for the index
                while (late.progress("kites") is not None) != asks:  # noqa: ASYNC110 - no event says so
                    await asyncio.sleep(0)
        assert late.fetching() == "1 indexes are to be fetched from other instances"
        town.starting.clear()
        await town.until_all_serve()
        assert late.fetching() is None


async def test_instance_awaits_no_index_for_ever(store, views, tmp_path, followed):
    async with _town(store, views, tmp_path, "local") as town:
        town.start("home")
        await town.until_all_serve()
        town.starting.add("home")
        late = town.start("late", is_home=False)

        async def takes_requests():
            return late.fetching() is None

        await town.until(takes_requests)
        assert town.indexes["late"].served("kites") is None


def damage(index, name):
    file = index.path_of("kites", name) / "pages.db"
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 0xFF
    file.write_bytes(content)


async def test_damaged_index_is_fetched_again(store, views, tmp_path, followed):
    async with _town(store, views, tmp_path, "local") as town:
        town.start("home")
        town.start("away", is_home=False)
        await town.until_all_serve()
        before, index = town.fetched["home"], town.indexes["away"]
        await town.kill("away")
        [indexed] = await town.events(SiteIndexed)
        damage(index, indexed.file)
        town.start("away", is_home=False, serves=indexed.file)
        await town.until_all_serve()
        assert town.fetched["home"] == before + 1
        assert len(await town.events(SiteIndexed)) == 1


async def test_index_that_is_damaged_everywhere_is_built_again(store, views, tmp_path, followed):
    async with _town(store, views, tmp_path, "local") as town:
        town.start("home")
        town.start("away", is_home=False)
        await town.until_all_serve()
        [indexed] = await town.events(SiteIndexed)
        for name, index in list(town.indexes.items()):
            await town.kill(name)
            damage(index, indexed.file)
        for name in ("home", "away"):
            town.start(name, is_home=name == "home", serves=indexed.file)
        await town.until_all_serve(times=2)


async def test_indexing_of_an_ended_instance_is_taken_over(town):
    await execute(town.store, SITES, "kites", StartIndexing("gone", "", None, now()))
    town.alive.add("gone")
    town.http.away.add("gone")
    town.start("one")
    for _ in range(20):
        town.beat()
        await asyncio.sleep(0)
    assert await town.events(SiteIndexed) == []
    town.alive.discard("gone")
    await town.until_all_serve()
    assert [started.instance for started in await town.events(IndexingStarted)] == ["gone", "one"]


async def test_instance_that_lost_its_claim_records_nothing(town):
    late = RecordIndex("c", "f", 1, 1, (), 0.1, now(), instance="paused")
    await execute(town.store, SITES, "kites", StartIndexing("paused", "", None, now()))
    with pytest.raises(Conflict):
        await execute(town.store, SITES, "kites", StartIndexing("one", "", None, now()))
    await execute(town.store, SITES, "kites", StartIndexing("one", "paused", None, now()))
    with pytest.raises(Conflict):
        await execute(town.store, SITES, "kites", late)
    await execute(town.store, SITES, "kites", RecordIndex("d", "g", 1, 1, (), 0.1, now(), instance="one"))
    with pytest.raises(Conflict):
        await execute(town.store, SITES, "kites", late)
    with pytest.raises(Conflict):  # it decided before that index was there
        await execute(town.store, SITES, "kites", StartIndexing("two", "", None, now()))
    assert (await load(town.store, SITES, "kites")).state.file == "g"


async def test_hosted_repository_is_read_where_it_is(store, views, tmp_path, followed):
    async with _town(store, views, tmp_path, "local") as town:
        town.start("away", is_home=False)
        town.start("home")
        await town.until_all_serve()
        await town.request()
        await town.until_all_serve()
        assert {started.instance for started in await town.events(IndexingStarted)} == {"home"}


async def test_website_is_visited_by_the_leader(store, views, tmp_path, followed):
    async with _town(store, views, tmp_path, "website") as town:
        town.start("one")
        town.start("two")
        for _ in range(20):
            town.beat()
            await asyncio.sleep(0)
        assert await town.events(IndexingStarted) == []
        town.memberships["two"].is_leading = True
        await town.until_all_serve()
        assert [started.instance for started in await town.events(IndexingStarted)] == ["two"]
