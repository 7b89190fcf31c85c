"""Hosted repositories in a folder that several instances share, and on another instance."""

import shutil
from datetime import UTC, datetime

import pytest
from dulwich.objects import ObjectID
from msgspec.structs import replace

from service.adapters.git.dulwich_docs import DulwichDocs
from service.adapters.git.import_repository import import_repository
from service.adapters.git.remote.remotes import Remote
from service.adapters.git.repositories import move_ref, opened
from service.adapters.hosted.code_host import HostedCodeHost
from service.domain.errors import KeptElsewhere, NotShared, Unavailable
from service.ports.code_host import NewPullRequest
from service.ports.docs_source import NewCommit, Source
from service.runtime.hosted_place import HostedPlace, noting_asked

SOURCE = Source("p1", "hosted/p1.git", "main", "", "local")
NEW = NewPullRequest(title="One", body="", head="docs/one", base="main", draft=False)
AUTHOR, NOW = "Ada Lovelace <ada@example.com>", datetime(2026, 1, 2, tzinfo=UTC)


@pytest.fixture
def shared(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "index.md").write_text("# Kite\n")
    import_repository(tmp_path / "shared" / "p1.git", Remote("", str(tmp_path / "folder")), "main")
    return tmp_path / "shared"


def instance(tmp_path, shared, name):
    data = tmp_path / name
    place = HostedPlace(data, str(shared))
    return DulwichDocs(data, env={}, place=place), HostedCodeHost(data, base_url=lambda: "http://x", place=place)


async def pushed(docs, branch, text):
    base = (await docs.fetch(SOURCE)).base_commit
    written = await docs.write_commit(SOURCE, NewCommit(base, {"index.md": text}, AUTHOR, "docs: it\n", NOW))
    await docs.push(SOURCE, branch=branch, commit=written.commit)


async def test_pull_request_of_one_instance_is_the_others_too(tmp_path, shared):
    docs, host = instance(tmp_path, shared, "one")
    _, other = instance(tmp_path, shared, "two")
    await pushed(docs, "docs/zero", "# Zero\n")
    await other.open_pull_request(SOURCE, replace(NEW, head="docs/zero"))
    await pushed(docs, "docs/one", "# One\n")
    opened_there = await host.open_pull_request(SOURCE, NEW)
    assert await other.open_pull_request(SOURCE, NEW) == opened_there
    assert opened_there.number == 2


async def test_instance_reads_what_another_pushed(tmp_path, shared):
    (docs, _), (other, _) = instance(tmp_path, shared, "one"), instance(tmp_path, shared, "two")
    await pushed(docs, "docs/one", "# One\n")
    fetched = await other.fetch(SOURCE, branch="docs/one")
    assert [file.path for file in await other.list_files(SOURCE, fetched.branch_commit)] == ["index.md"]


async def test_clone_follows_repositories_that_were_moved(tmp_path, shared):
    data = tmp_path / "one"
    shutil.copytree(shared, data / "hosted")
    base = (await DulwichDocs(data, env={}).fetch(SOURCE)).base_commit
    shutil.rmtree(data / "hosted")
    docs, _ = instance(tmp_path, shared, "one")
    assert [file.path for file in await docs.list_files(SOURCE, base)] == ["index.md"]


async def test_work_of_other_instances_is_left_alone_at_a_start(tmp_path, shared):
    _, host = instance(tmp_path, shared, "one")
    at_work = shared / "p1.git" / "objects" / "tmp_objdir-incoming-x"
    at_work.mkdir()
    lock = shared / "p1.git" / "refs" / "heads" / "main.lock"
    lock.touch()
    await host.recover()
    assert at_work.exists()
    assert lock.exists()
    with opened(shared / "p1.git") as repository, pytest.raises(Unavailable):
        move_ref(repository, b"refs/heads/main", None, ObjectID(repository.head()))


async def test_folder_that_is_not_safely_shared_is_not_written(tmp_path, shared):
    docs, host = instance(tmp_path, shared, "one")
    await pushed(docs, "docs/one", "# One\n")
    number = (await host.open_pull_request(SOURCE, NEW)).number
    token = await host.token("p1", number)
    place = HostedPlace(tmp_path / "one", str(shared))
    place.trouble = "locks are not seen"
    docs = DulwichDocs(tmp_path / "one", env={}, place=place)
    host = HostedCodeHost(tmp_path / "one", base_url=lambda: "http://x", place=place)
    for act in (
        docs.push(SOURCE, branch="docs/two", commit="1" * 40), docs.refresh(SOURCE), docs.fetch(SOURCE),
        host.open_pull_request(SOURCE, NEW), host.merge("p1", number, token, now=NOW),
        host.update_pull_request(SOURCE, number, title="Two", body=""), host.close("p1", number, token, now=NOW),
    ):  # fmt: skip
        with pytest.raises(NotShared):
            await act
    place.trouble = None
    assert (await host.get_pull_request(SOURCE, number)).title == "One"
    merged = await host.merge("p1", number, token, now=NOW)
    assert merged.pull_request.state == "merged"


async def test_repository_of_another_instance_is_refused(tmp_path):
    place = HostedPlace(tmp_path, is_here=False)
    docs = DulwichDocs(tmp_path, env={}, place=place)
    host = HostedCodeHost(tmp_path, base_url=lambda: "http://x", place=place)
    for act in (
        docs.register(SOURCE), docs.fetch(SOURCE), docs.list_files(SOURCE, "1" * 40), docs.refresh(SOURCE),
        host.open_pull_request(SOURCE, NEW), host.token("p1", 1), host.check_repository(SOURCE),
    ):  # fmt: skip
        with noting_asked() as asked, pytest.raises(KeptElsewhere):
            await act
        assert asked.for_repository
    assert not (tmp_path / "hosted").exists()
    assert not (tmp_path / "repos").exists()
