"""Search indexes on a disk that fails, and in a process that dies: old answers or new ones, never none, never half."""

import asyncio
from asyncio.subprocess import DEVNULL
from pathlib import Path

import pytest
from dulwich.objects import Blob, Commit, Tree
from dulwich.repo import Repo

from tests.end_to_end.fuzzing import UNLIMITED
from tests.service_process import PROGRAM, service_in, write_docs

MANY = 400


def pages(word):
    return {f"page-{number}.md": f"# Page {number}\n\nThe {word} of number {number}.\n" for number in range(MANY)}


@pytest.fixture
async def own(tmp_path):
    """A service that these tests may harm."""
    with service_in(tmp_path, environment=UNLIMITED) as service:
        await asyncio.to_thread(service.set_up, write_docs(tmp_path / "docs", pages("zebra")))
        await asyncio.to_thread(service.start)
        yield service


def commit(service, files):
    """Onto the branch that the site shows, in the embedded code host's repository."""
    with Repo(str(service.data / "hosted" / f"{service.project_id}.git")) as repository:
        tree, new = Tree(), Commit()
        for name, text in files.items():
            blob = Blob.from_string(text.encode())
            repository.object_store.add_object(blob)
            tree.add(name.encode(), 0o100644, blob.id)
        repository.object_store.add_object(tree)
        new.tree, new.parents, new.message = tree.id, [repository.refs[b"refs/heads/main"]], b"Change"
        new.author = new.committer = b"Ann <ann@example.com>"
        new.author_time = new.commit_time = 1_760_000_000
        new.author_timezone = new.commit_timezone = 0
        repository.object_store.add_object(new)
        repository.refs[b"refs/heads/main"] = new.id


def index_of(service):
    return next(folder for folder in (service.data / "index" / "kite").iterdir() if folder.name[0] != ".")


async def search(http, one, own=None):
    """Search by one instance, or by any of them."""
    url = f"{one.url}/discovery/v1/search/kite"
    async with http.post(url, json={"query": "zebra quagga"}, headers=(own or one).assistant) as response:
        return response.status, await response.json()


async def readiness(http, service):
    async with http.get(f"{service.url}/readyz") as response:
        return response.status, (await response.json())["reasons"]


async def until(claim, *, seconds=120):
    """Ask again until it holds."""
    async with asyncio.timeout(seconds):
        while not await claim():  # noqa: ASYNC110 - files tell nobody
            await asyncio.sleep(0)  # else a claim that asks nobody would never let the time run out


def gone(*files):
    async def are_gone():
        return not any(file.exists() for file in files)

    return are_gone


async def test_damaged_index_is_reported_and_rebuilt(http, own, tmp_path):
    own.stop()
    files = [index_of(one) / "pages.db" for one in own.each]
    for file in files:
        content = bytearray(file.read_bytes())
        content[len(content) // 2] ^= 0xFF
        file.write_bytes(content)
    hosted = own.data / "hosted" / f"{own.project_id}.git"
    hosted.rename(tmp_path / "away")  # nothing to make it from, nor to make a repository from again
    (tmp_path / "docs").rename(tmp_path / "docs-away")
    await asyncio.to_thread(own.start)
    for one in own.each:
        status, reasons = await readiness(http, one)
        assert status == 503
        assert "damaged" in reasons["index kite"]
        status, told = await search(http, own)
        assert (status, told["code"]) == (503, "index_broken")

    own.stop()
    (tmp_path / "away").rename(hosted)
    (tmp_path / "docs-away").rename(tmp_path / "docs")
    await asyncio.to_thread(own.start)  # nobody asks for an index

    for one in own.each:

        async def is_ready(one=one):
            return (await readiness(http, one)) == (200, {})

        await until(is_ready)
        status, found = await search(http, own)
        assert (status, len(found)) == (200, 10)
    await until(gone(*files))  # a moment after the new one answers


async def test_index_damaged_while_it_is_read_is_rebuilt(http, own):
    for _ in own.each:
        assert (await search(http, own))[0] == 200
    damaged = index_of(own)
    for folder in own.folders:
        with (folder / "index" / own.domain / damaged.name / "pages.db").open("r+b") as file:
            size = file.seek(0, 2)
            for at in range(4096, size, 512):
                file.seek(at)
                file.write(b"\xde\xad" * 32)

    for one in own.each:

        async def is_made_anew(one=one):
            status, found = await search(http, one, own)
            assert status in (200, 503)
            return status == 200 and len(found) == 10 and index_of(one).name != damaged.name

        await until(is_made_anew)
        assert await readiness(http, one) == (200, {})


@pytest.mark.slow
async def test_old_index_answers_while_its_successors_maker_is_killed(http, own):
    _, before = await search(http, own)
    folder = own.data / "index" / own.domain
    commit(own, pages("quagga"))
    command = [*PROGRAM, "index", own.domain, "--data", str(own.data)]
    making = await asyncio.create_subprocess_exec(*command, stdout=DEVNULL, stderr=DEVNULL, env=own.variables)
    try:

        async def has_begun():
            assert making.returncode is None
            assert await search(http, own) == (200, before)
            return any(".building-" in each.name for each in folder.iterdir())

        await until(has_begun)
    finally:
        making.kill()
        await making.wait()
    # Its child, whose id is in the name, ends a moment after it; what the living make is left alone.
    children = [each.name.split(".")[-2] for each in folder.iterdir() if each.name.endswith(".building")]
    await until(gone(*(Path("/proc", pid) for pid in children)))
    assert await search(http, own) == (200, before)
    own.kill()
    await asyncio.to_thread(own.start)
    assert await search(http, own) == (200, before)

    seen = set()
    making = await asyncio.create_subprocess_exec(*command, stdout=DEVNULL, stderr=DEVNULL, env=own.variables)

    async def is_new():
        status, found = await search(http, own)
        assert status == 200
        words = {"quagga" if "quagga" in each["content"] else "zebra" for each in found}
        assert len(found) == 10
        assert len(words) == 1  # of one index, whole
        seen.update(words)
        return words == {"quagga"}

    try:
        await until(is_new)
    finally:
        assert await making.wait() == 0
    assert seen == {"zebra", "quagga"}
    await until(gone(*(each for each in folder.iterdir() if each.name.endswith((".building", ".removed")))))
