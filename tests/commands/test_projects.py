"""Making and changing projects: what is asked of git and the code host first, what is recorded, and what is not."""

import asyncio

import pytest
from msgspec.structs import replace

from eventstore import Metadata
from service.commands.organizations import create_organization
from service.commands.projects import change_project, create_project
from service.domain.errors import Conflict, Forbidden, Invalid, NotFound
from service.domain.projects.contexts import ContextRepository
from service.domain.projects.decider import ChangeProject
from service.domain.projects.settings import ProjectSettings
from service.queries.projects import get_project
from service.runtime.system import now
from tests.fakes.code_host import FakeCodeHost
from tests.fakes.docs_source import FakeDocsSource

METADATA = Metadata(actor="test")


@pytest.fixture
def docs():
    return FakeDocsSource({"index.md": "# Hi\n"})


@pytest.fixture
def host():
    return FakeCodeHost()


@pytest.fixture
async def make(store, views, docs, host):
    organization = await create_organization(store, "Acme", METADATA)
    await views.catch_up()

    async def make(**changes):
        plain = {
            "organization_id": organization.id, "name": "Guide", "repository": "https://git.example/octo/guide",
            "ref": "main", "docs_folder": "", "domain": "guide", "code_host": "gitea", "git_token_env": "TOKEN",
        }  # fmt: skip
        made = await create_project(
            store, views, docs, {"gitea": host}, ProjectSettings(**{**plain, **changes}), METADATA
        )
        await views.catch_up()
        return made

    return make


@pytest.fixture
def change(store, views, docs, host):
    async def change(project_id, **changes):
        changed = await change_project(
            store, docs, {"gitea": host}, project_id, ChangeProject(now(), **changes), METADATA
        )
        await views.catch_up()
        return changed

    return change


async def test_a_project_has_all_that_it_was_given(make, views, host):
    host.warnings = ("The token expires on 2026-12-24.",)
    made = await make(labels=("docs", "bot"), reviewers=("ada",), api_url="https://git.example/api/v1/")
    row = await get_project(views, made.id)
    assert (row.labels, row.reviewers, row.api_url) == (("docs", "bot"), ("ada",), "https://git.example/api/v1")
    assert made.warnings == host.warnings


async def test_a_project_that_its_code_host_refuses_is_not_made(make, store, host):
    before = await store.head()
    host.errors = [Forbidden("The token may not do this.", code="rights_missing")]
    with pytest.raises(Forbidden):
        await make()
    assert await store.head() == before


async def test_code_host_is_not_asked_about_a_refused_project(make, host):
    host.errors = [Forbidden("asked")]
    with pytest.raises(Invalid):
        await make(labels=("a,b",))
    assert len(host.errors) == 1


async def test_a_change_that_matters_to_the_site_indexes_it_again(make, change, store, views, docs):
    made = await make()
    registered = await store.stream_version("site-guide")
    await change(made.id, name="Handbook", labels=("docs",))
    assert await store.stream_version("site-guide") == registered
    assert (await get_project(views, made.id)).name == "Handbook"
    await change(made.id, docs_folder="docs")
    assert await store.stream_version("site-guide") == registered + 1
    assert docs.registered[-1].docs_folder == "docs"


async def test_a_change_that_cannot_be_is_not_recorded(make, change, store, docs, host):
    made = await make()
    before = await store.head()
    host.errors = [Conflict("It is archived.", code="repository_archived")]
    with pytest.raises(Conflict):
        await change(made.id, ref="next")
    with pytest.raises(NotFound):
        await change("nothing", ref="next")
    assert await store.head() == before


CODE = ContextRepository("code", "https://git.example/octo/kite")


async def test_context_out_of_reach_is_a_warning(make, views):
    made = await make(contexts=(CODE,))
    (warning,) = made.warnings
    assert warning.startswith("The context repository code cannot be read; jobs go on without it: ")
    assert [context.name for context in (await get_project(views, made.id)).contexts] == ["code"]


async def test_clones_of_removed_contexts_are_removed(make, change, docs):
    docs.contexts = {"code": FakeDocsSource(), "api": FakeDocsSource()}
    api = replace(CODE, name="api", repository="https://git.example/octo/api")
    made = await make(contexts=(CODE, api))
    assert made.warnings == ()
    await change(made.id, contexts=(api,))
    assert docs.kept_contexts == {made.id: ["api"]}


async def test_domain_that_another_project_took_meanwhile_is_refused(make, docs):
    """What was imported for the project that is none is removed."""
    begun, end, register = asyncio.Event(), asyncio.Event(), docs.register

    async def held(source):
        await register(source)
        begun.set()
        await end.wait()

    docs.register = held
    first = asyncio.create_task(make())
    await begun.wait()
    docs.register = register
    second = await make()
    end.set()
    with pytest.raises(Conflict) as refused:
        await first
    assert refused.value.code == "domain_taken"
    assert {source.project_id for source in docs.registered} == {second.id}


async def test_project_whose_caller_leaves_is_removed_again(make, docs):
    begun, register = asyncio.Event(), docs.register

    async def held(source):
        await register(source)
        begun.set()
        await asyncio.Event().wait()

    docs.register = held
    making = asyncio.create_task(make())
    await begun.wait()
    making.cancel()
    await asyncio.wait([making])
    assert docs.registered == []


async def test_project_that_was_stored_for_a_caller_who_left_keeps_its_repository(store, views, docs):
    class Left:
        """The store, to a caller who leaves while an append is under way."""

        def __getattr__(self, name):
            return getattr(store, name)

        async def append_all(self, writes):
            await store.append_all(writes)
            raise asyncio.CancelledError

    organization = await create_organization(store, "Acme", METADATA)
    await views.catch_up()
    new = ProjectSettings(organization.id, "Guide", "/docs", "main", "", "guide", "local")
    with pytest.raises(asyncio.CancelledError):
        await create_project(Left(), views, docs, {}, new, METADATA)
    assert [source.repository for source in docs.registered] == ["/docs"]
