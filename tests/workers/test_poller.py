import asyncio

from eventstore import Metadata, execute
from service.commands.organizations import create_organization
from service.commands.projects import create_project
from service.domain.errors import Unavailable
from service.domain.projects.settings import ProjectSettings
from service.domain.sites import RecordIndex
from service.queries.projects import list_projects
from service.queries.sites import get_site
from service.runtime.system import now
from service.streams import SITES
from service.workers.indexing.poller import Poller
from tests.fakes.code_host import FakeCodeHost
from tests.fakes.docs_source import FakeDocsSource, StallingDocsSource


async def a_site(store, views, docs, kind: str, domain: str) -> None:
    organization = await create_organization(store, "Acme", Metadata())
    await views.catch_up()
    repository, token = ("https://docs.example.com/", "") if kind == "website" else ("https://x.y/r.git", "TOKEN")
    new = ProjectSettings(organization.id, "Guide", repository, "main", "", domain, kind, git_token_env=token)
    await create_project(store, views, docs, {"github": FakeCodeHost()}, new, Metadata())
    await views.catch_up()


async def indexed(store, views, domain: str, commit: str) -> None:
    await execute(store, SITES, domain, RecordIndex(commit, "one", 1, 1, (), 0.1, now()))
    await views.catch_up()


async def test_only_sites_with_a_new_commit_are_indexed_again(store, views):
    docs = FakeDocsSource({"a.md": "A"})
    await a_site(store, views, docs, "github", "moved")
    await a_site(store, views, docs, "website", "same")
    project = (await list_projects(views))[0]
    await indexed(store, views, "moved", "0" * 40)
    await indexed(store, views, "same", docs.branches[project.ref])
    poller = Poller(store, views, docs, minutes=1)
    before = await store.head()
    await poller.look()
    await views.catch_up()
    assert (await get_site(views, "moved")).view.index_wanted
    assert not (await get_site(views, "same")).view.index_wanted
    assert await store.head() == before + 1
    await poller.look()  # it is wanted already
    assert await store.head() == before + 1


async def test_unreachable_site_does_not_stop_polling_of_others(store, views):
    docs = FakeDocsSource({"a.md": "A"})
    await a_site(store, views, docs, "github", "one")
    await a_site(store, views, docs, "github", "other")
    for domain in ("one", "other"):
        await indexed(store, views, domain, "0" * 40)
    docs.errors = [Unavailable("down")]
    await Poller(store, views, docs, minutes=1).look()
    await views.catch_up()
    assert sorted([(await get_site(views, domain)).view.index_wanted for domain in ("one", "other")]) == [False, True]


async def test_stalled_sites_do_not_delay_other_organizations(store, followed):
    docs = StallingDocsSource({"a.md": "A"})
    for domain in ("a", "b", "moved"):
        await a_site(store, followed, docs, "github", domain)
        await indexed(store, followed, domain, "0" * 40)
    docs.stalled = {(project.id, "fetch") for project in await list_projects(followed) if project.domain != "moved"}
    before = await store.head()
    polling = asyncio.create_task(Poller(store, followed, docs, minutes=0.0001).run())
    async with asyncio.timeout(60):
        async for recorded in store.subscribe(after=before):
            assert recorded.stream == SITES.stream("moved")
            break
    polling.cancel()
    await asyncio.wait([polling])


async def test_rounds_follow_each_other(store, followed):
    docs = FakeDocsSource({"a.md": "A"})
    await a_site(store, followed, docs, "github", "moved")
    await indexed(store, followed, "moved", "0" * 40)
    before = await store.head()
    polling = asyncio.create_task(Poller(store, followed, docs, minutes=0.0001).run())
    async with asyncio.timeout(60):
        async for recorded in store.subscribe(after=before):
            assert SITES.owns(recorded.stream)
            break
    polling.cancel()
    await asyncio.wait([polling])
