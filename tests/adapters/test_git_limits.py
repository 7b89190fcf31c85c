"""Git clients that stall, flood or lie, over raw sockets, while others clone and push."""

import asyncio
import gzip
import hashlib
import os
import shutil
import struct
import zlib
from collections import Counter
from contextlib import asynccontextmanager

import pytest
from aiohttp import ClientSession, web
from aiohttp.test_utils import TestServer
from dulwich.objects import Blob, Tree

from service.adapters.git.repositories import opened
from service.adapters.hosted.git_http import GitLimits, git_routes
from service.domain.errors import Unavailable
from service.runtime.shares import Shares
from service.web.http.entrance import Entrance
from tests.adapters.test_git_http import (  # noqa: F401  (fixtures)
    ZERO,
    commit_file,
    commit_of,
    git,
    hosted,
    needs_git,
    pkt,
    repository,
    tip,
)

TIMEOUT = 60
HEAD = (
    b"POST /hosted/%s.git/git-%s HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-git-%s-request\r\n"
    b"Content-Length: %d\r\n\r\n"
)


@pytest.fixture
def counted():
    """Bounds that were reached."""
    return Counter()


@pytest.fixture
def serving(hosted, counted):  # noqa: F811
    """Two projects, p1 and p2, under given limits."""
    shutil.copytree(hosted / "p1.git", hosted / "p2.git")

    @asynccontextmanager
    async def serve(**options):
        async def everyone(_request, _project_id):
            return ""

        def count(bound, times=1):
            counted[bound] += times

        app = web.Application(middlewares=[Entrance().enter])
        app.add_routes(git_routes(lambda name: hosted / f"{name}.git", everyone, count_bound=count, **options))
        server = TestServer(app)
        await server.start_server(auto_decompress=False)
        async with server:
            yield server

    return serve


def url(server, project="p1"):
    return f"http://127.0.0.1:{server.port}/hosted/{project}.git"


async def stalled(server, project="p1", service=b"receive-pack", body=b"00", size=1000):
    """A connection that has sent the beginning of a body."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port, limit=1024)
    writer.write(HEAD % (project.encode(), service, service, size) + body)
    await writer.drain()
    return reader, writer


async def status(reader):
    return int((await reader.readline()).split()[1])


async def post(server, service, body, **headers):
    async with (
        ClientSession() as session,
        session.post(
            f"{url(server)}/git-{service}", data=body,
            headers={"Content-Type": f"application/x-git-{service}-request", **headers},
        ) as answer,
    ):  # fmt: skip
        return answer.status, await answer.read()


def sealed(pack):
    return pack + hashlib.sha1(pack).digest()


def header(objects, version=2):
    return b"PACK" + struct.pack(">II", version, objects)


@needs_git
@pytest.mark.parametrize("service", [b"receive-pack", b"upload-pack"])
async def test_stalled_bodies_do_not_hold_up_others(serving, git, tmp_path, service):  # noqa: F811
    async with asyncio.timeout(TIMEOUT), serving() as server:
        connections = [await stalled(server, "p1", service) for _ in range(20)]
        await git("clone", "--quiet", url(server, "p2"), str(tmp_path / "work"))
        await commit_file(git, tmp_path / "work", "new.md", "New\n")
        await git("push", "--quiet", "origin", "main", cwd=tmp_path / "work")
        for _, writer in connections:
            writer.close()


async def test_body_that_stalls_is_refused(serving, counted):
    async with asyncio.timeout(TIMEOUT), serving(limits=GitLimits(piece_seconds=0.2)) as server:
        reader, writer = await stalled(server)
        assert await status(reader) == 408
        writer.close()
    assert counted == {"git_bodies": 1}


async def test_body_that_trickles_is_refused(serving, counted):
    async with asyncio.timeout(TIMEOUT), serving(limits=GitLimits(piece_seconds=30, body_seconds=0.3)) as server:
        reader, writer = await stalled(server, size=100_000)
        answer = asyncio.create_task(status(reader))
        while not (await asyncio.wait([answer], timeout=0.05))[0]:
            writer.write(b"0")
        assert answer.result() == 408
        writer.close()
    assert counted == {"git_bodies": 1}


@pytest.fixture
def large(repository):  # noqa: F811
    """A request for more than the buffers between two sockets hold."""
    with opened(repository) as bare:
        blob, tree = Blob.from_string(os.urandom(20_000_000)), Tree()
        tree.add(b"large.bin", 0o100644, blob.id)
        head = commit_of(tree.id)
        for one in (blob, tree, head):
            bare.object_store.add_object(one)
        bare.refs[b"refs/heads/large"] = head.id
    return pkt(b"want %s side-band-64k thin-pack ofs-delta\n" % head.id) + b"00000009done\n"


@needs_git
@pytest.mark.slow
async def test_client_that_reads_nothing_holds_no_turn(serving, git, tmp_path, large):  # noqa: F811
    async with asyncio.timeout(TIMEOUT), serving(limits=GitLimits(working=1, working_each=(1, 1))) as server:
        reader, writer = await stalled(server, "p1", b"upload-pack", large, len(large))
        assert await status(reader) == 200
        await git("clone", "--quiet", "--single-branch", url(server, "p1"), str(tmp_path / "work"))
        writer.transport.abort()


@pytest.mark.slow
async def test_client_that_reads_nothing_is_cut_off(serving, counted, large):
    async with asyncio.timeout(TIMEOUT), serving(limits=GitLimits(piece_seconds=1)) as server:
        reader, writer = await stalled(server, "p1", b"upload-pack", large, len(large))
        assert await status(reader) == 200
        while not counted["git_answers"]:  # noqa: ASYNC110  (reading would take what is not to be taken)
            await asyncio.sleep(0.01)
        with pytest.raises((asyncio.IncompleteReadError, ConnectionResetError)):
            await reader.readexactly(20_000_000)
        writer.close()


@needs_git
async def test_push_goes_on_when_its_client_leaves(serving, repository):  # noqa: F811
    head, moved = tip(repository, "refs/heads/main"), asyncio.Event()

    async def pushed(_request, project_id):
        assert project_id == "p1"
        moved.set()

    body = pkt(f"{ZERO} {head} refs/heads/x\0report-status".encode()) + b"0000" + sealed(header(0))
    async with asyncio.timeout(TIMEOUT), serving(pushed=pushed) as server:
        _, writer = await stalled(server, body=body, size=len(body))
        while not (repository / "refs" / "heads" / "x").exists():  # noqa: ASYNC110  (another process makes it)
            await asyncio.sleep(0.001)
        writer.transport.abort()
        await moved.wait()
    assert tip(repository, "refs/heads/x") == head


COMMANDS = pkt(f"{ZERO} {'1' * 40} refs/heads/x\0report-status".encode()) + b"0000"
PACKS = {
    "empty": b"",
    "no pack": b"junk" * 20,
    "cut": header(1),
    "of another version": sealed(header(1, 9)),
    "of more objects than there are": header(2**32 - 1),
    "not compressed": sealed(header(1) + b"\x33abcdef"),
    "of an unknown kind": sealed(header(1) + b"\x53" + zlib.compress(b"abc")),
    "of another size": sealed(header(1) + b"\xbf\xff\x7f" + zlib.compress(b"abc")),
    "of no size": sealed(header(1) + b"\xbf" + b"\xff" * 30 + b"\x7f" + zlib.compress(b"abc")),
    "delta of nothing": sealed(header(1) + b"\x73" + b"\1" * 20 + zlib.compress(b"abc")),
    "delta of itself": sealed(header(1) + b"\x63\x00" + zlib.compress(b"\x03\x03\x03abc")),
    "no commit": sealed(header(1) + b"\x13" + zlib.compress(b"abc")),
    "cut tree": sealed(header(1) + b"\x2a" + zlib.compress(b"100644 x\0ab")),
    "with another sum": header(0) + b"\0" * 20,
}


async def test_malformed_packs_are_bad_requests(serving, repository):  # noqa: F811
    before = sorted(repository.rglob("*"))
    async with serving() as server:
        answers = {name: (await post(server, "receive-pack", COMMANDS + pack))[0] for name, pack in PACKS.items()}
    assert answers == dict.fromkeys(PACKS, 400)
    assert sorted(repository.rglob("*")) == before


async def test_floods_of_empty_packets_are_bad_requests(serving, repository):  # noqa: F811
    want = pkt(f"want {tip(repository, 'refs/heads/main')} side-band-64k thin-pack ofs-delta\n".encode())
    async with serving() as server:
        for before in (b"", want, want + b"0000"):
            assert (await post(server, "upload-pack", before + b"0004" * 100_000))[0] == 400
        for before in (b"", COMMANDS[:-4]):
            assert (await post(server, "receive-pack", before + b"0004" * 100_000))[0] == 400


@pytest.mark.parametrize("service", ["upload-pack", "receive-pack"])
async def test_false_encodings_are_bad_requests(serving, service):
    async with serving() as server:
        for encoding in ("gzip", "deflate"):
            assert (await post(server, service, COMMANDS, **{"Content-Encoding": encoding}))[0] == 400
        bomb = gzip.compress(b"0004" * 20_000_000)
        assert (await post(server, "upload-pack", bomb, **{"Content-Encoding": "gzip"}))[0] == 413


async def test_long_reference_name_is_refused(serving, repository):  # noqa: F811
    head = tip(repository, "refs/heads/main")
    body = pkt(f"{ZERO} {head} refs/heads/{'x/' * 3000}x\0report-status".encode()) + b"0000" + sealed(header(0))
    async with serving() as server:
        answered, text = await post(server, "receive-pack", body)
    assert answered == 200
    assert b"funny refname" in text


@needs_git
async def test_partial_clone_is_a_whole_clone(serving, git, tmp_path, repository):  # noqa: F811
    async with serving() as server:
        await git("clone", "--filter=blob:none", url(server), str(tmp_path / "work"))
        assert await git("rev-list", "--objects", "--missing=print", "--all", cwd=tmp_path / "work") == await git(
            "rev-list", "--objects", "--all", cwd=repository
        )
        await git("fetch", "--filter=tree:0", "origin", cwd=tmp_path / "work")
        async with ClientSession() as session, session.get(f"{url(server)}/info/refs?service=git-upload-pack") as said:
            assert b"filter" not in await said.read()
        want = f"want {tip(repository, 'refs/heads/main')} side-band-64k thin-pack ofs-delta\n"
        asked = pkt(want.encode()) + pkt(b"filter blob:none") + b"00000009done\n"
        assert (await post(server, "upload-pack", asked))[0] == 400


@needs_git
@pytest.mark.parametrize("allowed", [False, True])
async def test_forced_push_to_default_branch_takes_a_setting(serving, git, tmp_path, repository, allowed):  # noqa: F811
    work = tmp_path / "work"
    async with serving(allow_force_push=allowed) as server:
        await git("clone", "--quiet", url(server), str(work))
        pushed = await commit_file(git, work, "new.md", "New\n")
        await git("push", "--quiet", "origin", "main", "main:docs/x", cwd=work)
        await git("commit", "--quiet", "--amend", "--message", "Other", cwd=work)
        code, output = await git.run("push", "--force", "origin", "main", cwd=work)
        await git("push", "--quiet", "--force", "origin", "main:docs/x", cwd=work)
        amended = await git("rev-parse", "HEAD", cwd=work)
    assert (code == 0) == allowed
    assert ("takes no forced pushes" in output) == (not allowed)
    assert tip(repository, "refs/heads/main") == (amended if allowed else pushed)
    assert tip(repository, "refs/heads/docs/x") == amended


class TestShares:
    def shares(self, slots=2, each=(2, 1), waiting=2, seconds=TIMEOUT):
        self.counted = Counter()
        return Shares(
            slots, each, waiting=waiting, seconds=seconds,
            on_refused=lambda: self.counted.update({"git_turns": 1}),
        )  # fmt: skip

    async def test_owner_at_its_share_waits_while_others_begin(self):
        shares, order = self.shares(slots=3), []
        full, end = asyncio.Event(), asyncio.Event()

        async def one(name, *owners):
            async with shares.slot(*owners):
                order.append(name)
                if len(order) == 3:
                    full.set()
                await end.wait()

        async with asyncio.timeout(TIMEOUT), asyncio.TaskGroup() as group:
            for name, owners in (
                ("first", ("a", "a1")), ("second", ("a", "a1")), ("third", ("a", "a2")), ("fourth", ("a", "a3")),
                ("fifth", ("b", "b1")),
            ):  # fmt: skip
                group.create_task(one(name, *owners))
            await full.wait()
            assert order == ["first", "third", "fifth"]
            end.set()
        assert sorted(order) == ["fifth", "first", "fourth", "second", "third"]

    async def test_those_that_wait_have_a_bound(self):
        shares = self.shares(waiting=1)
        async with shares.slot("a", "a1"):
            waiting = asyncio.create_task(shares.slot("a", "a1").__aenter__())
            await asyncio.sleep(0)
            with pytest.raises(Unavailable):
                async with shares.slot("a", "a1"):
                    pass
            waiting.cancel()
            await asyncio.wait([waiting])
        async with shares.slot("a", "a1"):  # the one that left holds nothing
            pass
        assert self.counted == {"git_turns": 1}

    async def test_waiting_ends(self):
        shares = self.shares(seconds=0.05)
        async with shares.slot("a", "a1"):
            with pytest.raises(Unavailable):
                async with shares.slot("a", "a1"):
                    pass
        assert self.counted == {"git_turns": 1}
