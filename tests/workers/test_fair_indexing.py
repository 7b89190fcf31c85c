"""What one site takes does not keep the others waiting."""

import asyncio
from contextlib import aclosing

import pytest

from eventstore import Metadata
from service.commands.organizations import create_organization
from service.commands.projects import create_project
from service.commands.sites import request_index
from service.domain.errors import Unavailable
from service.domain.projects.settings import ProjectSettings
from service.domain.sites import IndexFailed, SiteIndexed
from service.ports.docs_source import NewCommit
from service.queries.projects import list_projects, source_of
from service.queries.sites import get_site
from service.retrieval.search.query import SiteIndexes
from service.runtime.system import now
from service.streams import SITES, decoded
from service.workers.indexing.indexer import Indexer, IndexerContext
from service.workers.indexing.site_build import BuildTimes
from tests.fakes.code_host import FakeCodeHost
from tests.fakes.docs_source import StallingDocsSource

PAGES = {f"k{number}.md": f"# Kite {number}\n\nFly it.\n" for number in range(3)}


class Town:
    """Organizations with sites, and an indexer that runs."""

    def __init__(self, store, views, data):
        self.docs = StallingDocsSource(PAGES)
        self.index = SiteIndexes(data / "index")
        self.counted, self.pauses = [], []
        self.store, self.views, self._data = store, views, data
        self.rests = asyncio.Event()

    async def organization(self) -> str:
        organization = await create_organization(self.store, "Acme", Metadata())
        await self.views.catch_up()
        return organization.id

    async def site(self, organization: str, domain: str, *stalled: str) -> str:
        """Whose operations never end. Returns the project's id."""
        new = ProjectSettings(
            organization, domain, "https://x.y/r.git", "main", "", domain, "github", git_token_env="TOKEN"
        )
        hosts = {"github": FakeCodeHost()}
        project = await create_project(self.store, self.views, self.docs, hosts, new, Metadata())
        self.docs.stalled |= {(project.id, operation) for operation in stalled}
        await self.views.catch_up()
        return project.id

    async def change(self, path: str, text: str | None) -> None:
        source = source_of((await list_projects(self.views))[0])
        new = NewCommit(self.docs.branches["main"], {path: text}, "Ada <ada@example.com>", "docs: it\n", now())
        written = await self.docs.write_commit(source, new)
        await self.docs.push(source, branch="main", commit=written.commit)

    def indexer(self, **options) -> Indexer:
        context = IndexerContext(count_bound=lambda bound, times=1: self.counted.append(bound), **options)
        return Indexer(self.store, self.views, self.docs, self.index, self._data, context)

    async def until(self, domain: str, kind: type, times: int = 1) -> None:
        """So many events of the kind are on the log."""
        async with asyncio.timeout(120), aclosing(self.store.subscribe(after=0, category="site")) as events:
            async for recorded in events:
                for one, event in decoded(SITES, [recorded]):
                    times -= one == domain and isinstance(event, kind)
                if times <= 0:
                    break
        await self.views.catch_up()

    async def pause(self, seconds: float) -> None:
        """Three pauses pass at once, the fourth never does."""
        self.pauses.append(seconds)
        if len(self.pauses) > 3:
            self.rests.set()
            await asyncio.Event().wait()


@pytest.fixture
async def town(store, followed, tmp_path):
    town = Town(store, followed, tmp_path)
    yield town
    await town.index.close()


@pytest.fixture
async def run():
    def begin(indexer: Indexer) -> Indexer:
        tasks.append(asyncio.create_task(indexer.run()))
        return indexer

    tasks = []
    yield begin
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@pytest.mark.parametrize("stalled", ["fetch", "export"])
async def test_stalled_sites_keep_no_other_organization_waiting(town, run, stalled):
    hostile = await town.organization()
    for number in range(6):
        await town.site(hostile, f"a{number}", stalled)
    run(town.indexer())
    await town.site(await town.organization(), "kites")
    await town.until("kites", SiteIndexed)


@pytest.mark.parametrize("stalled", ["fetch", "export"])
async def test_stalled_site_keeps_its_neighbour_from_nothing(town, run, stalled):
    organization = await town.organization()
    await town.site(organization, "a", stalled)
    run(town.indexer())
    await town.site(organization, "kites")
    await town.until("kites", SiteIndexed)


async def test_stalled_comparison_falls_back_to_reading_everything(town, run):
    project = await town.site(await town.organization(), "kites")
    run(town.indexer(times=BuildTimes(quick=0.5)))
    await town.until("kites", SiteIndexed)
    town.docs.stalled.add((project, "changes"))
    await town.change("k1.md", None)
    await request_index(town.store, "kites", "a test", Metadata())
    await town.until("kites", SiteIndexed, times=2)
    assert (await get_site(town.views, "kites")).view.pages == 2


async def test_site_that_is_no_quick_work_is_read_as_long_work(town, run):
    await town.site(await town.organization(), "kites")
    run(town.indexer(times=BuildTimes(quick_bytes=1)))
    await town.until("kites", SiteIndexed)
    assert [operation for _, operation in town.docs.calls] == ["fetch", "export", "export"]


async def test_site_that_times_out_has_growing_pauses(town, run):
    project = await town.site(await town.organization(), "kites")
    run(town.indexer(times=BuildTimes(least=0, bytes_a_second=1e12), sleep=town.pause, retry_seconds=15))
    await town.until("kites", IndexFailed, times=4)
    for _ in range(5):  # none of these is a try
        await request_index(town.store, "kites", "a push", Metadata())
    async with asyncio.timeout(60):
        await town.rests.wait()
    site = await get_site(town.views, "kites")
    assert site.view.failure.code == "timed_out"
    assert [later / earlier for earlier, later in zip(town.pauses, town.pauses[1:], strict=False)] == [2, 2, 2]
    assert town.counted == ["indexing_time"] * 4
    assert town.docs.calls.count((project, "fetch")) == 4


async def test_site_that_is_behind_is_named_with_its_reason(town, run):
    await town.site(await town.organization(), "kites")
    town.docs.errors = [Unavailable("https://x.y/r.git is down.", code="unavailable")] * 9
    indexer = run(town.indexer(sleep=town.pause))
    await town.until("kites", IndexFailed, times=4)
    async with asyncio.timeout(60):
        await town.rests.wait()
    assert list(indexer.behind()) == ["kites"]
    assert "4 tries failed, the last one: unavailable" in indexer.behind()["kites"]
    assert "x.y" not in indexer.behind()["kites"]
    town.docs.errors = []
    await request_index(town.store, "kites", "a push", Metadata())
    await town.until("kites", SiteIndexed)
    async with asyncio.timeout(60):
        while indexer.behind():  # noqa: ASYNC110 - a moment after it was recorded
            await asyncio.sleep(0.01)


async def test_two_processes_do_not_index_one_site_at_once(town):
    await town.site(await town.organization(), "kites")
    await asyncio.gather(*(town.indexer().index("kites", Metadata(), whole=True) for _ in range(3)))
    assert [operation for _, operation in town.docs.calls].count("export") == 3
    assert town.docs.most_at_work == 1
