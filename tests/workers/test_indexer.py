"""A site's index follows its repository."""

import asyncio
import sqlite3
from contextlib import aclosing, closing

import pytest

from eventstore import Metadata
from service.commands.organizations import create_organization
from service.commands.projects import create_project
from service.commands.sites import request_index
from service.domain.errors import DiskFull, Invalid, RateLimited, Unavailable
from service.domain.projects.settings import ProjectSettings
from service.domain.sites import IndexFailed, IndexKept, SiteIndexed
from service.ports.docs_source import NewCommit
from service.queries.projects import project_of_domain, source_of
from service.queries.sites import get_site
from service.retrieval.index.atomic_folder import SUMS_FILE, seal
from service.retrieval.search.query import SiteIndexes
from service.runtime.system import now
from service.streams import SITES, decoded
from service.workers.indexing.indexer import Indexer, IndexerContext
from tests.fakes.code_host import FakeCodeHost
from tests.fakes.docs_source import FakeDocsSource

PAGES = {f"k{number}.md": f"# Kite {number}\n\nFly it.\n" for number in range(20)}
AUTHOR = "Ada Lovelace <ada@example.com>"


class Kites:
    """A site, and who changes it."""

    def __init__(self, store, views, docs, index, data):
        self.docs, self.index = docs, index
        self._store, self._views = store, views
        self.indexer = Indexer(store, views, docs, index, data, IndexerContext(retry_seconds=0))

    async def change(self, path: str, text: str) -> None:
        await self._views.catch_up()
        source = source_of(await project_of_domain(self._views, "kites"))
        parent = self.docs.branches["main"]
        written = await self.docs.write_commit(source, NewCommit(parent, {path: text}, AUTHOR, "docs: it\n", now()))
        await self.docs.push(source, branch="main", commit=written.commit)

    async def read(self, *, whole: bool = False) -> int:
        """How many files an indexing has read."""
        await self._views.catch_up()
        report = await self.indexer.index("kites", Metadata(), whole=whole)
        assert report.pages == len(PAGES)
        return report.read

    async def want(self) -> None:
        await self.begin()
        await request_index(self._store, "kites", "a test", Metadata())

    async def begin(self) -> None:
        self._after = await self._store.head()

    async def until(self, kind: type) -> None:
        """An event of this kind, and what it leads to, has been seen since ``begin``."""
        async with asyncio.timeout(60), aclosing(self._store.subscribe(after=self._after, category="site")) as events:
            async for recorded in events:
                if any(isinstance(event, kind) for _, event in decoded(SITES, [recorded])):
                    break
        await self._views.catch_up()

    async def failure(self) -> str | None:
        failure = (await get_site(self._views, "kites")).view.failure
        return None if failure is None else failure.code

    async def answers(self, query: str) -> list[str]:
        return [section.path for section in (await self.index.search("kites", query)).sections]


@pytest.fixture
async def kites(store, views, tmp_path):
    docs = FakeDocsSource(PAGES)
    organization = await create_organization(store, "Acme", Metadata())
    await views.catch_up()
    new = ProjectSettings(
        organization.id, "Kites", "https://x.y/r.git", "main", "", "kites", "github", git_token_env="TOKEN"
    )
    await create_project(store, views, docs, {"github": FakeCodeHost()}, new, Metadata())
    index = SiteIndexes(tmp_path / "index")
    yield Kites(store, views, docs, index, tmp_path)
    await index.close()


async def test_only_changes_are_read_until_everything_is_requested(kites, tmp_path):
    assert await kites.read() == 20
    await kites.change("k7.md", "# Kite 7\n\nMade of zylon.\n")
    assert await kites.read() == 1
    assert await kites.answers("zylon") == ["k7.md"]
    assert await kites.answers("kite 19") != []
    assert await kites.read(whole=True) == 20
    assert len(list((tmp_path / "index" / "kites").iterdir())) == 1


async def test_contents_are_compared_where_changes_are_unknown(kites):
    assert await kites.read() == 20
    await kites.change("k7.md", "# Kite 7\n\nMade of zylon.\n")
    kites.docs.forget_all_but("main")
    assert await kites.read() == 1
    assert await kites.answers("zylon") == ["k7.md"]


@pytest.fixture
async def running(kites, followed):
    def run():
        tasks.append(asyncio.create_task(kites.indexer.run()))

    tasks = []
    yield run
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@pytest.mark.parametrize("error", [Unavailable("It is down."), RateLimited("Later."), DiskFull()])
async def test_temporary_failure_is_retried_until_it_has_passed(kites, running, error):
    await kites.read()
    await kites.change("k7.md", "# Kite 7\n\nMade of zylon.\n")
    kites.docs.errors = [error] * 3
    await kites.want()
    running()
    await kites.until(SiteIndexed)
    assert await kites.failure() is None
    async with asyncio.timeout(60):
        while await kites.answers("zylon") != ["k7.md"]:  # noqa: ASYNC110 - served a moment after it was recorded
            await asyncio.sleep(0.01)


async def test_failure_that_passes_without_a_change_is_cleared(kites, running):
    await kites.read()
    kites.docs.errors = [Unavailable("It is down.")]
    await kites.want()
    running()
    await kites.until(IndexKept)
    assert await kites.failure() is None


async def test_permanent_failure_is_tried_once_per_process(kites, running):
    await kites.read()
    await kites.change("k7.md", "# Kite 7\n\nMade of zylon.\n")
    kites.docs.errors = [Invalid("There is no branch 'main'.", code="no_such_branch")]
    await kites.want()
    running()
    await kites.until(IndexFailed)
    assert await kites.failure() == "no_such_branch"
    assert kites.docs.errors == []
    running()
    await kites.until(SiteIndexed)
    assert await kites.failure() is None


@pytest.mark.parametrize("damage", [b"", b"\0\0\0\0"])
async def test_index_that_cannot_be_renewed_is_rebuilt(kites, tmp_path, damage):
    assert await kites.read() == 20
    await kites.change("k7.md", "# Kite 7\n\nMade of zylon.\n")
    for damaged in (tmp_path / "index" / "kites").glob("*/sections/*.idx"):
        damaged.write_bytes(damage + damaged.read_bytes()[len(damage) :] if damage else b"")
    assert await kites.read() == 20
    assert await kites.answers("zylon") == ["k7.md"]


async def test_index_of_an_earlier_format_is_built_again(kites, running):
    await kites.read()
    folder = kites.index.path_of("kites", kites.index.served("kites"))
    await kites.index.forget("kites")
    with closing(sqlite3.connect(folder / "pages.db", isolation_level=None)) as db:
        db.execute("UPDATE meta SET value = '8' WHERE key = 'format'")
    (folder / SUMS_FILE).unlink()
    seal(folder)
    with pytest.raises(Invalid, match="format"):
        await kites.index.use("kites", folder.name)
    await kites.begin()
    running()
    await kites.until(SiteIndexed)
    async with asyncio.timeout(60):
        while kites.index.served("kites") is None:  # noqa: ASYNC110 - served a moment after it was recorded
            await asyncio.sleep(0.01)
    assert "k7.md" in await kites.answers("kite 7")
