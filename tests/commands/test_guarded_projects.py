"""Projects as people without access to this machine make them: what they may name, and where their tokens are."""

import asyncio
import io
import zipfile
from dataclasses import replace as with_fields
from datetime import UTC, datetime, timedelta

import pytest

from eventstore import Metadata, SQLiteEventStore, Views
from service.adapters.git.dulwich_docs import DulwichDocs
from service.commands.guarded_projects import (
    GuardedProjects,
    NamedContext,
    NewProject,
    ProjectEdit,
    forget_unused_tokens,
)
from service.commands.organizations import create_organization
from service.commands.projects import create_project
from service.domain.errors import BodyTooLarge, Conflict, Forbidden, Invalid, RateLimited, Unavailable
from service.domain.projects.contexts import ContextRepository
from service.domain.projects.settings import ProjectSettings
from service.ports.docs_source import NewCommit
from service.projections import all_projections
from service.queries.projects import context_sources, get_project, source_of, token_ids
from service.runtime import uploads
from service.runtime.uploads import Uploads
from tests.fakes.code_host import FakeCodeHost
from tests.fakes.docs_source import FakeDocsSource

METADATA = Metadata(actor="person:test")
TOKEN = "glpat-" + "s3cret" * 5
URL = "https://git.example/octo/guide"


@pytest.fixture
async def store(tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    async with await SQLiteEventStore.open(data / "events.db", vault_path=data / "keys.db") as store:
        yield store


@pytest.fixture
async def views(tmp_path, store):
    views = await Views.open(tmp_path / "data" / "views.db", store, all_projections())
    yield views
    await views.close()


@pytest.fixture
async def organization(store, views):
    made = await create_organization(store, "Acme", METADATA)
    await views.catch_up()
    return made.id


@pytest.fixture
def docs():
    return FakeDocsSource({"index.md": "# Hi\n"})


@pytest.fixture
def host():
    return FakeCodeHost()


@pytest.fixture
def projects(tmp_path, store, views, docs, host):
    (tmp_path / "allowed" / "guide").mkdir(parents=True)
    folders = (str(tmp_path / "allowed"),)
    return GuardedProjects(store, views, docs, {"gitea": host}, store, tmp_path / "data", folders, allow_private=False)


async def created(projects, organization, **fields):
    made = await projects.create(organization, NewProject(name="Guide", **fields), METADATA)
    await projects.views.catch_up()
    return await get_project(projects.views, made.id)


async def test_token_is_kept_in_the_vault_alone(projects, organization, store, tmp_path):
    project = await created(projects, organization, repository=URL, code_host="gitea", token=TOKEN)
    assert await store.find_secret(project.token_id) == TOKEN
    assert (project.guarded, project.git_token_env, project.domain) == (True, "", "guide")
    files = b"".join(path.read_bytes() for path in (tmp_path / "data").rglob("*") if path.is_file())
    assert TOKEN.encode() not in files
    assert TOKEN not in repr(NewProject("Guide", URL, token=TOKEN)) + repr(ProjectEdit(token=TOKEN))


async def test_refused_project_leaves_no_token(projects, organization, store, host):
    host.errors = [Forbidden("no", code="token_refused")]
    with pytest.raises(Forbidden):
        await created(projects, organization, repository=URL, code_host="gitea", token=TOKEN)
    assert await store.secret_names() == []


@pytest.mark.parametrize("token", ["two words", "a\nb", "ü", "x" * 5_000, " "])
async def test_bad_tokens_are_refused(projects, organization, token):
    with pytest.raises(Invalid, match="token"):
        await created(projects, organization, repository=URL, code_host="gitea", token=token)


@pytest.mark.parametrize(
    "repository",
    ["file:///etc", "ssh://git@host/x", "git@host:x", "upload://abcdefgh/x.zip", "ext::sh -c x", "", "http://["],
)
async def test_only_web_addresses_and_allowed_folders_can_be_named(projects, organization, repository):
    with pytest.raises((Invalid, Forbidden)):
        await created(projects, organization, repository=repository)


async def test_folders_are_those_below_the_named_ones(projects, organization, tmp_path):
    (tmp_path / "allowed" / "out").symlink_to("/etc")
    for folder in ("/etc", "..", str(tmp_path / "allowed" / ".." / "data"), str(tmp_path / "allowed" / "out"), "/none"):
        with pytest.raises(Forbidden, match="may not be read"):
            await created(projects, organization, repository=folder)
    project = await created(projects, organization, repository=str(tmp_path / "allowed" / "guide"))
    assert (project.repository, project.guarded) == (str(tmp_path / "allowed" / "guide"), True)


async def test_without_named_folders_none_is_read(projects, organization, tmp_path):
    with pytest.raises(Forbidden, match="local_folders"):
        await created(with_fields(projects, folders=()), organization, repository=str(tmp_path / "allowed" / "guide"))


async def test_own_data_is_never_read(projects, organization, tmp_path):
    wide = with_fields(projects, folders=(str(tmp_path),))
    for folder in (tmp_path / "data", tmp_path / "data" / "hosted", tmp_path):
        with pytest.raises(Forbidden, match="may not be read"):
            await created(wide, organization, repository=str(folder))


async def test_token_never_travels_unencrypted(projects, organization):
    for addresses in ({"repository": "http://git.example/x"}, {"repository": URL, "api_url": "http://git.example/api"}):
        with pytest.raises(Invalid, match="unencrypted"):
            await created(projects, organization, code_host="gitea", token=TOKEN, **addresses)


async def test_another_address_needs_the_token_again(projects, organization, store, views, docs, host):
    """Else whoever may change a project could have its token sent to a server of theirs."""
    of_terminal = ProjectSettings(
        organization, "Old", URL, "main", "", "old", "gitea", git_token_env="OPERATORS_SECRET"
    )  # fmt: skip
    made = await create_project(store, views, docs, {"gitea": host}, of_terminal, METADATA)
    await views.catch_up()
    for edit in (ProjectEdit(repository="https://evil.example/x"), ProjectEdit(api_url="https://evil.example/api")):
        with pytest.raises(Invalid, match="token again"):
            await projects.change(made.id, edit, METADATA)
    await projects.change(made.id, ProjectEdit(repository="https://new.example/x", token=TOKEN), METADATA)
    await views.catch_up()
    project = await get_project(views, made.id)
    assert (project.git_token_env, project.guarded) == ("", True)
    assert await store.find_secret(project.token_id) == TOKEN


async def test_new_token_replaces_the_old_one(projects, organization, store, views):
    before = await created(projects, organization, repository=URL, code_host="gitea", token=TOKEN)
    await projects.change(before.id, ProjectEdit(token="another"), METADATA)
    await views.catch_up()
    after = await get_project(views, before.id)
    assert list(await store.secret_names()) == [after.token_id]
    assert await store.find_secret(after.token_id) == "another"


class Meanwhile(FakeCodeHost):
    """A code host during whose next check something else is done."""

    act = None

    async def check_repository(self, source):
        act, self.act = self.act, None
        if act is not None:
            await act()
        return await super().check_repository(source)


async def test_token_stays_with_the_address_that_it_was_entered_for(projects, organization, store, views):
    projects.code_hosts["gitea"] = host = Meanwhile()
    made = await created(projects, organization, repository=URL, code_host="gitea", token=TOKEN)
    moved = ProjectEdit(repository="https://elsewhere.example/x", token="of-elsewhere")

    async def move():
        await projects.change(made.id, moved, METADATA)

    host.act = move
    await projects.change(made.id, ProjectEdit(token="another"), METADATA)
    await views.catch_up()
    after = await get_project(views, made.id)
    assert (after.repository, await store.find_secret(after.token_id)) == (URL, "another")


async def test_contexts_keep_what_the_terminal_alone_may_set(projects, organization, store, views, docs, host):
    old = ContextRepository("code", "https://git.internal/kite", token_env="KITE", internal=True)
    settings = ProjectSettings(
        organization, "Old", URL, "main", "", "old", "gitea", git_token_env="TOKEN", contexts=(old,)
    )
    made = await create_project(store, views, docs, {"gitea": host}, settings, METADATA)
    kept = NamedContext("code", "https://git.internal/kite", ref="next")
    other = NamedContext("more", "https://git.example/more", public=True)
    await projects.change(made.id, ProjectEdit(contexts=(kept, other)), METADATA)
    await views.catch_up()
    first, second = (await get_project(views, made.id)).contexts
    assert (first.token_env, first.internal, first.ref) == ("KITE", True, "next")
    assert (second.token_env, second.internal, second.public) == ("", False, True)
    with pytest.raises(Invalid):
        await projects.change(made.id, ProjectEdit(contexts=(NamedContext("code", "/etc"),)), METADATA)


async def test_token_of_a_context_is_kept_with_its_address(projects, organization, store, views):
    code = NamedContext("code", "https://git.example/code", token="of-code")
    more = NamedContext("more", "https://git.example/more")
    project = await created(projects, organization, repository=URL, contexts=(code, more))
    first, second = project.contexts
    assert (await store.find_secret(first.token_id), second.token_id) == ("of-code", "")
    assert "of-code" not in repr(code)

    async def changed(*contexts):
        await projects.change(project.id, ProjectEdit(contexts=contexts), METADATA)
        await views.catch_up()
        return (await get_project(views, project.id)).contexts

    kept, new = await changed(
        NamedContext("code", code.repository, ref="v2"), NamedContext("more", more.repository, token="of-more")
    )
    assert kept.token_id == first.token_id
    assert await store.find_secret(new.token_id) == "of-more"
    assert {one.token_id for one in context_sources(project.id, (kept, new))} == await token_ids(views)
    (moved,) = await changed(NamedContext("code", "https://evil.example/code"))
    assert (moved.token_id, list(await store.secret_names())) == ("", [])


async def test_entered_token_of_a_context_replaces_the_variable(projects, organization, store, views, docs, host):
    old = ContextRepository("code", "https://git.example/kite", token_env="KITE")
    settings = ProjectSettings(organization, "Old", URL, "main", "", "old", "gitea", git_token_env="T", contexts=(old,))
    made = await create_project(store, views, docs, {"gitea": host}, settings, METADATA)
    entered = NamedContext("code", old.repository, token="entered")
    await projects.change(made.id, ProjectEdit(contexts=(entered,)), METADATA)
    await views.catch_up()
    (context,) = (await get_project(views, made.id)).contexts
    assert (context.token_env, await store.find_secret(context.token_id)) == ("", "entered")


async def test_refused_contexts_leave_no_token(projects, organization, store):
    project = await created(projects, organization, repository=URL)
    for wrong in (
        NamedContext("b", "http://git.example/b", token="y"),
        NamedContext("B", "https://x.example", token="y"),
    ):
        good = NamedContext("a", "https://git.example/a", token="x")
        with pytest.raises(Invalid):
            await projects.change(project.id, ProjectEdit(contexts=(good, wrong)), METADATA)
    assert list(await store.secret_names()) == []


async def test_tokens_of_killed_processes_are_forgotten(projects, organization, store):
    project = await created(projects, organization, repository=URL, code_host="gitea", token=TOKEN)
    await store.keep_secret("left", "by a killed process")
    await forget_unused_tokens(store, [project.token_id], datetime.now(UTC) + timedelta(days=2))
    assert list(await store.secret_names()) == [project.token_id]


async def test_token_of_a_project_being_created_stays(store):
    await store.keep_secret("begun", "in another process")
    await forget_unused_tokens(store, [], datetime.now(UTC))
    assert list(await store.secret_names()) == ["begun"]


async def test_organization_has_its_share_of_new_projects(projects, organization, docs):
    asked, answer = [], asyncio.Event()

    async def register(source):
        asked.append(source.repository)
        await answer.wait()

    docs.register = register
    wanted = [NewProject(f"Guide {number}", f"{URL}{number}", ref="main") for number in range(8)]
    async with asyncio.timeout(60):
        tasks = [asyncio.ensure_future(projects.create(organization, new, METADATA)) for new in wanted]
        refused, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        assert all(isinstance(one.exception(), Unavailable) for one in refused)
        assert len(asked) <= 2
        answer.set()
        results = await asyncio.gather(*tasks, return_exceptions=True)
    assert [isinstance(one, Unavailable) for one in results] == [False] * 6 + [True] * 2
    assert len(asked) == 6


def zipped(files):
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return made.getvalue()


async def pieces(content, size=7):
    for at in range(0, len(content), size):
        yield content[at : at + size]


@pytest.fixture
def real(projects, tmp_path):
    return with_fields(projects, docs=DulwichDocs(tmp_path / "data", env={}))


async def test_uploaded_files_become_a_hosted_repository(real, organization, tmp_path):
    received = Uploads(tmp_path / "data").received
    async with received(organization, "../kite docs.zip", pieces(zipped({"kite/docs/a.md": "# A\n"}))) as upload:
        made = await real.create(organization, NewProject("Kite"), METADATA, upload=upload)
    await real.views.catch_up()
    source = source_of(await get_project(real.views, made.id))
    assert source.repository.startswith("upload://")
    assert source.repository.endswith("/kite docs.zip")
    commit = (await real.docs.fetch(source)).base_commit
    assert [file.path for file in await real.docs.list_files(source, commit)] == ["docs/a.md"]
    assert list((tmp_path / "data" / "uploads").iterdir()) == []
    assert not await real.docs.refresh(source)


async def test_new_upload_keeps_what_was_merged_here(real, organization, tmp_path):
    files = {"kept.md": "# Kept\n", "changed.md": "# Old\n", "removed.md": "# Removed\n"}

    async def upload_again(project_id, files):
        async with Uploads(tmp_path / "data").received(organization, "x.zip", pieces(zipped(files))) as upload:
            return await real.upload_again(project_id, upload, METADATA)

    async def now():
        commit = (await real.docs.fetch(source)).base_commit
        return commit, {one.path: one.blob for one in await real.docs.list_files(source, commit)}

    async with Uploads(tmp_path / "data").received(organization, "x.zip", pieces(zipped(files))) as upload:
        made = await real.create(organization, NewProject("Kite"), METADATA, upload=upload)
    await real.views.catch_up()
    source = source_of(await get_project(real.views, made.id))
    commit, _ = await now()
    change = NewCommit(
        commit, {"kept.md": "# Merged\n"}, "Ada <ada@example.com>", "Merge\n", datetime(2026, 1, 2, tzinfo=UTC)
    )
    merged = await real.docs.write_commit(source, change)
    await real.docs.push(source, branch="main", commit=merged.commit)

    alternates = {"HEAD": "ref: refs/heads/main\n", "objects/info/alternates": "/\n", "refs/heads/main": "0" * 40}
    new = {"kept.md": files["kept.md"], "changed.md": "# New\n", "added.md": "# Added\n", **alternates}
    assert (await upload_again(made.id, new)).warnings == ()
    commit, after = await now()
    assert set(after) == set(new)
    contents = await real.docs.read_files(source, [after["kept.md"], after["changed.md"]])
    assert list(contents.values()) == [b"# Merged\n", b"# New\n"]
    again = await upload_again(made.id, new)
    assert ("same files" in again.warnings[0], (await now())[0]) == (True, commit)
    with pytest.raises(Conflict, match=r"kept\.md was changed") as refused:
        await upload_again(made.id, {**new, "kept.md": "# Another\n"})
    assert (refused.value.code, (await now())[0]) == ("diverged", commit)
    assert list((tmp_path / "data" / "uploads").iterdir()) == []


async def test_project_of_a_folder_takes_no_upload(projects, organization, tmp_path):
    project = await created(projects, organization, repository=str(tmp_path / "allowed" / "guide"))
    async with Uploads(tmp_path / "data").received(organization, "x.zip", pieces(zipped({"a.md": "# A"}))) as upload:
        with pytest.raises(Conflict) as refused:
            await projects.upload_again(project.id, upload, METADATA)
    assert refused.value.code == "not_uploaded"


async def test_uploaded_git_folders_are_files_and_no_repository(real, organization, tmp_path):
    """A bare repository's layout could borrow the objects of others' repositories on this machine."""
    victim = tmp_path / "data" / "hosted" / "victim.git" / "objects"
    victim.mkdir(parents=True)
    sent = zipped({
        "HEAD": "ref: refs/heads/main\n", "objects/info/alternates": f"{victim}\n", "refs/heads/main": "0" * 40,
        "config": "[core]\nbare = true\n", ".git/HEAD": "ref: refs/heads/main\n", "index.md": "# Hi\n",
    })  # fmt: skip
    async with Uploads(tmp_path / "data").received(organization, "x.zip", pieces(sent)) as upload:
        made = await real.create(organization, NewProject("Kite"), METADATA, upload=upload)
    await real.views.catch_up()
    source = source_of(await get_project(real.views, made.id))
    hosted = tmp_path / "data" / "hosted" / f"{made.id}.git"
    assert not (hosted / "objects" / "info" / "alternates").exists()
    commit = (await real.docs.fetch(source)).base_commit
    assert "objects/info/alternates" in [file.path for file in await real.docs.list_files(source, commit)]


async def test_refused_uploads_leave_nothing(tmp_path):
    taker = Uploads(tmp_path)
    for content in (b"no archive", zipped({"../evil.md": "x"}), zipped({"bomb.md": bytes(32 << 20)}), b""):
        with pytest.raises(Invalid):
            async with taker.received("acme", "x.zip", pieces(content, 65_536)):
                pytest.fail("it was accepted")
    assert list((tmp_path / "uploads").iterdir()) == []


async def test_upload_of_more_than_200_mib_is_cut_off(tmp_path):
    sent = 0

    async def endless():
        nonlocal sent
        while True:
            sent += 1 << 20
            yield bytes(1 << 20)

    with pytest.raises(BodyTooLarge, match="200 MiB"):
        async with Uploads(tmp_path).received("acme", "x.zip", endless()):
            pytest.fail("it was accepted")
    assert sent == (201 << 20)
    assert list((tmp_path / "uploads").iterdir()) == []


async def test_slow_uploads_of_others_do_not_stop_one(tmp_path):
    received, all_slow = Uploads(tmp_path).received, asyncio.Event()
    sending = 0

    async def slow():
        nonlocal sending
        sending += 1
        if sending == 2 * 8:
            all_slow.set()
        yield b"P"
        await asyncio.Event().wait()

    async def send_slowly(organization):
        async with received(organization, "x.zip", slow()):
            pytest.fail("it was accepted")

    async with asyncio.timeout(60):
        tasks = [asyncio.ensure_future(send_slowly(f"slow-{number // 2}")) for number in range(2 * 8)]
        await all_slow.wait()
        async with received("acme", "x.zip", pieces(zipped({"a.md": "# A"}))) as upload:
            assert upload.unpacked is not None
        for one in tasks:
            one.cancel()
        await asyncio.wait(tasks)


async def test_uploads_of_killed_processes_are_removed(tmp_path):
    left = tmp_path / "uploads" / f"{uploads.PREFIX}abcd1234"
    left.mkdir(parents=True)
    (left / "sent.zip").write_bytes(b"x")
    uploads.remove_uploads(tmp_path)
    assert list((tmp_path / "uploads").iterdir()) == []


async def test_failed_project_of_an_upload_can_be_tried_again(real, organization, tmp_path):
    received = Uploads(tmp_path / "data").received
    for _ in range(2):
        async with received(organization, "x.zip", pieces(zipped({"a.md": "# A\n"}))) as upload:
            with pytest.raises(Invalid):
                await real.create(organization, NewProject("Kite", domain="Not a domain"), METADATA, upload=upload)
    assert list((tmp_path / "data" / "uploads").iterdir()) == []


async def test_projects_and_uploads_are_counted_before_they_are_made(projects, organization, docs, tmp_path):
    asked = []

    async def accept(*counted):
        asked.append(counted[:2])
        if len(asked) > 1:
            raise RateLimited("too many")

    async def pieces():
        yield b""

    limited = with_fields(projects, accept=accept)
    await created(limited, organization, repository=URL)
    with pytest.raises(RateLimited):
        await limited.create(organization, NewProject(name="Other", repository=URL), METADATA)
    with pytest.raises(RateLimited):
        async with Uploads(tmp_path, accept=lambda owner: accept("uploads", owner)).received("org", "x.zip", pieces()):
            pass
    assert asked == [("projects", organization), ("projects", organization), ("uploads", "org")]
