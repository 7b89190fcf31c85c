"""The embedded code host's repositories over HTTP, with plain git as the client."""

import asyncio
import base64
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from aiohttp import ClientSession, web
from aiohttp.test_utils import TestServer
from dulwich.object_format import DEFAULT_OBJECT_FORMAT
from dulwich.objects import Blob, Commit, ObjectID, ShaFile, Tree
from dulwich.pack import PackChunkGenerator, full_unpacked_object

from service.adapters.git.dulwich_docs import DulwichDocs
from service.adapters.git.import_repository import import_repository
from service.adapters.git.remote.remotes import Remote
from service.adapters.git.repositories import opened
from service.adapters.hosted.git_http import GitLimits, git_routes
from service.domain.errors import Forbidden
from service.ports.docs_source import Source
from service.web.http.entrance import Entrance
from tests.contracts.docs_source import FILES, commit

GIT = shutil.which("git")
needs_git = pytest.mark.skipif(GIT is None, reason="there is no git on this machine")

KEY = "dsk_admin"
PUSH_LIMIT = 3_000_000
ZERO = "0" * 40


class Git:
    """The command line, without the configuration of whoever runs the tests."""

    def __init__(self, home: Path) -> None:
        self.home = home
        home.mkdir()
        (home / ".gitconfig").write_text(
            "[user]\n\tname = Ada\n\temail = ada@example.com\n[advice]\n\tdetachedHead=0\n"
        )

    async def run(self, *words: str, cwd: Path | None = None, config: dict[str, str] | None = None) -> tuple[int, str]:
        options = [option for key, value in (config or {}).items() for option in ("-c", f"{key}={value}")]
        process = await asyncio.create_subprocess_exec(
            GIT, *options, *words, cwd=cwd or self.home, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            env={"PATH": os.environ["PATH"], "HOME": str(self.home), "GIT_TERMINAL_PROMPT": "0"},
        )  # fmt: skip
        output, _ = await asyncio.wait_for(process.communicate(), 60)
        return process.returncode, output.decode().strip()

    async def __call__(self, *words: str, cwd: Path | None = None, **config: str) -> str:
        code, output = await self.run(*words, cwd=cwd, config={k.replace("_", "."): v for k, v in config.items()})
        assert code == 0, output
        return output


@pytest.fixture
def git(tmp_path):
    return Git(tmp_path / "home")


@pytest.fixture
def hosted(tmp_path):
    folder = tmp_path / "folder"
    for path, text in FILES.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    import_repository(tmp_path / "data" / "hosted" / "p1.git", Remote("", str(folder)), "main")
    return tmp_path / "data" / "hosted"


@pytest.fixture
def repository(hosted):
    return hosted / "p1.git"


@pytest.fixture
async def server(hosted):
    async def authorize(request, _project_id):
        header = request.headers.get("Authorization", "").removeprefix("Basic ")
        is_known = base64.b64decode(header).decode().partition(":")[2] == KEY
        return "" if is_known else None

    app = web.Application(middlewares=[Entrance().enter])
    app.add_routes(git_routes(lambda name: hosted / f"{name}.git", authorize, limits=GitLimits(push_bytes=PUSH_LIMIT)))
    serving = TestServer(app)
    await serving.start_server(auto_decompress=False)
    async with serving:
        yield serving


@pytest.fixture
def url(server):
    return f"http://docsmith:{KEY}@127.0.0.1:{server.port}/hosted/p1.git"


@pytest.fixture
async def work(git, url, tmp_path):
    """A clone, as a person has it."""
    await git("clone", "--quiet", url, str(tmp_path / "work"))
    return tmp_path / "work"


async def commit_file(git, work, path, text, message="Change it"):
    (work / path).parent.mkdir(parents=True, exist_ok=True)
    (work / path).write_text(text)
    await git("add", "--all", cwd=work)
    await git("commit", "--quiet", "--message", message, cwd=work)
    return await git("rev-parse", "HEAD", cwd=work)


def tip(repository, ref):
    with opened(repository) as opened_repository:
        return opened_repository.refs[ref.encode()].decode()


def grow(repository, commits):
    """Give the branch a history."""
    with opened(repository) as opened_repository:
        for number in range(commits):
            blob = Blob.from_string(b"%d\n" % number)
            before = opened_repository[opened_repository.refs[b"refs/heads/main"]]
            tree = opened_repository[before.tree]
            tree.add(b"n.md", 0o100644, blob.id)
            made = Commit()
            made.tree, made.parents, made.message = tree.id, [before.id], b"%d\n" % number
            made.author = made.committer = b"Ada <ada@example.com>"
            made.author_time = made.commit_time = before.commit_time + 1
            made.author_timezone = made.commit_timezone = 0
            for one in (blob, tree, made):
                opened_repository.object_store.add_object(one)
            opened_repository.refs[b"refs/heads/main"] = made.id


@needs_git
class TestReading:
    @pytest.mark.parametrize("version", ["0", "1", "2"])
    async def test_a_clone_has_every_file(self, git, url, tmp_path, version):
        await git("clone", "--quiet", url, str(tmp_path / "work"), protocol_version=version)
        work = tmp_path / "work"
        assert (await git("-c", "core.quotePath=off", "ls-files", cwd=work)).splitlines() == sorted(FILES)
        assert await git("symbolic-ref", "HEAD", cwd=work) == "refs/heads/main"
        assert await git("fsck", "--strict", cwd=work) == ""

    async def test_a_clone_by_path_is_the_same(self, git, work, repository, tmp_path):
        await git("clone", "--quiet", str(repository), str(tmp_path / "by-path"))
        assert await git("rev-parse", "HEAD^{tree}", cwd=tmp_path / "by-path") == await git(
            "rev-parse", "HEAD^{tree}", cwd=work
        )
        assert await git("fsck", "--strict", cwd=repository) == ""

    async def test_a_shallow_clone_can_be_deepened_and_completed(self, git, url, repository, tmp_path):
        grow(repository, 20)
        work = tmp_path / "work"
        await git("clone", "--quiet", "--depth", "1", url, str(work))
        assert await git("rev-list", "--count", "HEAD", cwd=work) == "1"
        await git("fetch", "--quiet", "--depth", "5", cwd=work)
        assert await git("rev-list", "--count", "HEAD", cwd=work) == "5"
        await git("fetch", "--quiet", "--unshallow", cwd=work)
        assert await git("rev-list", "--count", "HEAD", cwd=work) == "21"
        assert await git("fsck", "--strict", cwd=work) == ""

    async def test_a_fetch_brings_what_is_new(self, git, work, repository):
        grow(repository, 3)
        await git("fetch", "--quiet", cwd=work)
        assert await git("rev-list", "--count", "main..origin/main", cwd=work) == "3"
        await git("fetch", "--quiet", cwd=work)

    async def test_a_fetch_with_a_long_history_of_its_own_is_answered(self, git, work, repository):
        """Many haves: several rounds, and a request that git compresses."""
        for number in range(120):
            await git("commit", "--quiet", "--allow-empty", "--message", f"{number}", cwd=work)
        grow(repository, 2)
        await git("fetch", "--quiet", cwd=work)
        assert await git("rev-list", "--count", "main..origin/main", cwd=work) == "2"

    async def test_pull_requests_can_be_fetched(self, git, work, repository):
        with opened(repository) as opened_repository:
            opened_repository.refs[b"refs/pull/1/head"] = opened_repository.refs[b"refs/heads/main"]
        await git("fetch", "--quiet", "origin", "pull/1/head", cwd=work)
        assert await git("rev-parse", "FETCH_HEAD", cwd=work) == tip(repository, "refs/heads/main")


@needs_git
class TestPushing:
    async def test_a_new_branch_and_more_on_it(self, git, work, repository):
        await git("switch", "--quiet", "--create", "docs/x", cwd=work)
        for text in ("One\n", "Two\n"):
            made = await commit_file(git, work, "docs/index.md", text)
            await git("push", "--quiet", "origin", "docs/x", cwd=work)
            assert tip(repository, "refs/heads/docs/x") == made
        assert await git("fsck", "--strict", cwd=repository) == ""

    async def test_a_large_push_comes_in_pieces(self, git, work, repository):
        made = await commit_file(git, work, "large.bin", os.urandom(1_000_000).hex())
        await git("push", "--quiet", "origin", "main", cwd=work, http_postBuffer="65536")
        assert tip(repository, "refs/heads/main") == made

    async def test_too_large_a_push_is_refused(self, git, work, repository):
        before = tip(repository, "refs/heads/main")
        await commit_file(git, work, "large.bin", os.urandom(PUSH_LIMIT).hex())
        code, output = await git.run("push", "--quiet", "origin", "main", cwd=work)
        assert code != 0
        assert "413" in output or "hung up" in output
        assert tip(repository, "refs/heads/main") == before
        assert not list((repository / "objects" / "pack").glob("tmp*"))

    async def test_from_a_shallow_clone(self, git, url, repository, tmp_path):
        grow(repository, 5)
        work = tmp_path / "shallow"
        await git("clone", "--quiet", "--depth", "1", url, str(work))
        made = await commit_file(git, work, "docs/index.md", "New\n")
        await git("push", "--quiet", "origin", "main", cwd=work)
        assert tip(repository, "refs/heads/main") == made
        assert await git("fsck", "--strict", cwd=repository) == ""

    async def test_commits_of_others_are_not_overwritten_unless_forced(self, git, work, repository):
        grow(repository, 1)
        before = tip(repository, "refs/heads/main")
        await commit_file(git, work, "docs/index.md", "New\n")
        code, output = await git.run("push", "origin", "main", cwd=work)
        assert code != 0
        assert "fetch first" in output
        assert tip(repository, "refs/heads/main") == before
        code, output = await git.run("push", "--force", "origin", "main", cwd=work)
        assert code != 0
        assert "the default branch takes no forced pushes" in output
        assert tip(repository, "refs/heads/main") == before

    async def test_branches_and_tags_but_not_the_current_can_be_deleted(self, git, work, repository):
        await git("tag", "--annotate", "v1", "--message", "One", cwd=work)
        await git("push", "--quiet", "origin", "v1", "main:other", cwd=work)
        assert tip(repository, "refs/heads/other") == tip(repository, "refs/heads/main")
        assert tip(repository, "refs/tags/v1") == await git("rev-parse", "v1", cwd=work)
        await git("push", "--quiet", "--delete", "origin", "other", "v1", cwd=work)
        code, output = await git.run("push", "--delete", "origin", "main", cwd=work)
        assert code != 0
        assert "deletion of the current branch" in output
        with opened(repository) as opened_repository:
            assert opened_repository.get_refs().keys() == {b"HEAD", b"refs/heads/main"}

    @pytest.mark.parametrize("ref", ["refs/pull/1/head", "refs/docsmith/x", "refs/notes/x"])
    async def test_our_own_refs_cannot_be_pushed(self, git, work, repository, ref):
        code, output = await git.run("push", "origin", f"main:{ref}", cwd=work)
        assert code != 0
        assert "hidden ref" in output
        assert not (repository / ref).exists()

    async def test_of_an_atomic_push_all_or_nothing_happens(self, git, work, repository):
        code, output = await git.run("push", "--atomic", "origin", "main:good", "main:refs/pull/1/head", cwd=work)
        assert code != 0
        assert "atomic" in output
        with opened(repository) as opened_repository:
            assert opened_repository.get_refs().keys() == {b"HEAD", b"refs/heads/main"}

    async def test_no_hook_runs(self, git, work, repository, tmp_path):
        for name in ("pre-receive", "update", "post-receive"):
            (repository / "hooks").mkdir(exist_ok=True)
            (repository / "hooks" / name).write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\nexit 1\n")
            (repository / "hooks" / name).chmod(0o755)
        made = await commit_file(git, work, "docs/index.md", "New\n")
        await git("push", "--quiet", "origin", "main", cwd=work)
        assert tip(repository, "refs/heads/main") == made
        assert not (tmp_path / "ran").exists()

    async def test_pushes_of_many_branches_at_once_all_arrive(self, git, work, repository, url, tmp_path):
        async def one(number):
            clone = tmp_path / f"clone{number}"
            await git("clone", "--quiet", url, str(clone))
            made = await commit_file(git, clone, f"{number}.md", "x\n")
            await git("push", "--quiet", "origin", f"main:docs/{number}", cwd=clone)
            assert tip(repository, f"refs/heads/docs/{number}") == made

        await asyncio.gather(*(one(number) for number in range(6)))

    async def test_of_pushes_to_one_branch_at_once_one_wins(self, git, url, repository, tmp_path):
        async def one(number):
            clone = tmp_path / f"clone{number}"
            await git("clone", "--quiet", url, str(clone))
            made = await commit_file(git, clone, f"{number}.md", "x\n")
            return clone, made

        made = dict(await asyncio.gather(*(one(number) for number in range(4))))
        results = await asyncio.gather(*(git.run("push", "--quiet", "origin", "main", cwd=clone) for clone in made))
        assert sorted(code == 0 for code, _ in results) == [False, False, False, True]
        assert tip(repository, "refs/heads/main") in made.values()


def pkt(text):
    return b"%04x" % (len(text) + 4) + text


def push_body(commands, objects):
    lines = b"".join(
        pkt(f"{old} {new} {ref}".encode() + (b"\0report-status delete-refs" if number == 0 else b""))
        for number, (old, new, ref) in enumerate(commands)
    )
    records = [full_unpacked_object(one) for one in objects]
    pack = PackChunkGenerator(DEFAULT_OBJECT_FORMAT, num_records=len(records), records=iter(records))
    return lines + b"0000" + b"".join(pack)


def commit_of(tree: ObjectID, *parents: ObjectID) -> Commit:
    made = Commit()
    made.tree, made.parents, made.message = tree, list(parents), b"x\n"
    made.author = made.committer = b"A <a@example.com>"
    made.author_time = made.commit_time = 1
    made.author_timezone = made.commit_timezone = 0
    return made


class TestHostilePushes:
    @pytest.fixture
    async def post(self, server):
        async def send(commands: list[tuple[str, str, str]], objects: list[ShaFile]) -> bytes:
            async with (
                ClientSession() as session,
                session.post(
                    f"http://127.0.0.1:{server.port}/hosted/p1.git/git-receive-pack",
                    data=push_body(commands, objects),
                    headers={
                        "Content-Type": "application/x-git-receive-pack-request",
                        "Authorization": "Basic " + base64.b64encode(f"docsmith:{KEY}".encode()).decode(),
                    },
                ) as answer,
            ):
                assert answer.status == 200
                return await answer.read()

        return send

    async def test_a_pack_whose_objects_are_not_all_there_is_refused(self, post, repository):
        blob, tree = Blob.from_string(b"x"), Tree()
        tree.add(b"x.md", 0o100644, blob.id)
        head = commit_of(tree.id)
        for objects in ([tree, head], [head], [blob, head]):
            answer = await post([(ZERO, head.id.decode(), "refs/heads/x")], objects)
            assert b"missing necessary objects" in answer
        assert not (repository / "refs" / "heads" / "x").exists()
        answer = await post([(ZERO, head.id.decode(), "refs/heads/x")], [])
        assert b"missing necessary objects" in answer  # what was refused has not been kept
        answer = await post([(ZERO, head.id.decode(), "refs/heads/x")], [blob, tree, head])
        assert b"ok refs/heads/x" in answer

    @pytest.mark.parametrize(
        "name", [b".git", b".GIT", b"git~1", b".git ", b"..", b".", ".g\u200cit".encode(), b".git::$INDEX_ALLOCATION"]
    )
    async def test_trees_that_harm_a_checkout_are_refused(self, post, repository, name):
        inner, blob = Tree(), Blob.from_string(b"x")
        inner.add(b"config", 0o100644, blob.id)
        tree = Tree()
        tree.add(name, 0o040000, inner.id)
        head = commit_of(tree.id)
        answer = await post([(ZERO, head.id.decode(), "refs/heads/x")], [blob, inner, tree, head])
        assert b"unpack ok" not in answer
        assert b"ng refs/heads/x" in answer
        assert not (repository / "refs" / "heads" / "x").exists()

    @pytest.mark.parametrize(
        "name",
        [
            b".gitmodules", b".GitModules", b".gitmodules .", b".gitmodules::$DATA", b"gitmod~1", b"GI7EBA~1",
            b"gi7eb~10", ".gitm\u200codules".encode(), b"x\\.gitmodules", b".gitattributes", b"gitatt~2", b"gi7d29~3",
        ],
    )  # fmt: skip
    async def test_links_named_as_files_of_git_are_refused(self, post, repository, name):
        target, page = Blob.from_string(b"../../config"), Blob.from_string(b"x")
        for mode, refused in ((0o120000, True), (0o100644, False)):
            inner, tree = Tree(), Tree()
            inner.add(name, mode, target.id)
            tree.add(b"docs", 0o040000, inner.id)
            head = commit_of(tree.id)
            answer = await post([(ZERO, head.id.decode(), "refs/heads/x")], [target, page, inner, tree, head])
            assert (b"gitmodulesSymlink" in answer) == refused
            assert (repository / "refs" / "heads" / "x").exists() == (not refused)

    async def test_a_branch_is_a_commit(self, post, repository):
        blob = Blob.from_string(b"x")
        answer = await post([(ZERO, blob.id.decode(), "refs/heads/x")], [blob])
        assert b"ng refs/heads/x not a commit" in answer

    @pytest.mark.parametrize(
        "ref",
        [
            "HEAD", "refs/heads/../../config", "refs/heads/a..b", "refs/heads/x.lock", "x", "refs/heads/HEAD",
            "refs/tags/HEAD", "refs/heads/-x",
        ],
    )  # fmt: skip
    async def test_names_that_are_no_branch_are_refused(self, post, repository, ref):
        head = tip(repository, "refs/heads/main")
        answer = await post([(ZERO, head, ref)], [])
        assert f"ng {ref} ".encode() in answer
        assert tip(repository, "refs/heads/main") == head

    async def test_a_branch_moves_only_from_where_the_client_saw_it(self, post, repository):
        head = tip(repository, "refs/heads/main")
        with opened(repository) as opened_repository:
            tree = opened_repository[head.encode()].tree
        new = commit_of(tree, ObjectID(head.encode()))
        answer = await post([("1" * 40, new.id.decode(), "refs/heads/main")], [new])
        assert b"ng refs/heads/main fetch first" in answer
        assert tip(repository, "refs/heads/main") == head


class TestTheDoor:
    async def statuses(self, server, path, *, key="", method="GET", **more):
        headers = {"X-Request-Id": "same", **more.pop("headers", {})}
        if key:
            headers["Authorization"] = "Basic " + base64.b64encode(f"docsmith:{key}".encode()).decode()
        async with (
            ClientSession() as session,
            session.request(method, f"http://127.0.0.1:{server.port}{path}", headers=headers, **more) as answer,
        ):
            return answer.status, answer.headers.get("WWW-Authenticate"), await answer.read()

    async def test_without_a_key_every_project_looks_alike(self, server):
        answers = set()
        for project in ("p1", "nope"):
            for path, method in (
                ("info/refs?service=git-upload-pack", "GET"),
                ("info/refs?service=git-receive-pack", "GET"),
                ("info/refs", "GET"),
                ("git-upload-pack", "POST"),
                ("git-receive-pack", "POST"),
            ):
                for key in ("", "wrong"):
                    answers.add(await self.statuses(server, f"/hosted/{project}.git/{path}", key=key, method=method))
        ((status, challenge, _),) = answers
        assert (status, challenge) == (401, 'Basic realm="docsmith"')

    @pytest.mark.parametrize(
        ("path", "method", "status"),
        [
            ("/hosted/nope.git/info/refs?service=git-upload-pack", "GET", 404),
            ("/hosted/p1.git/info/refs", "GET", 403),
            ("/hosted/p1.git/info/refs?service=git-upload-archive", "GET", 403),
            ("/hosted/p1.git/git-upload-archive", "POST", 404),
            ("/hosted/p1.git/git-upload-pack", "POST", 415),
            ("/hosted/p1.git/config", "GET", 404),
            ("/hosted/p1.git/HEAD", "GET", 404),
            ("/hosted/..%2fp1.git/info/refs?service=git-upload-pack", "GET", 404),
            ("/hosted/.p1.git/info/refs?service=git-upload-pack", "GET", 404),
        ],
    )
    async def test_only_the_protocol_is_served(self, server, path, method, status):
        assert (await self.statuses(server, path, key=KEY, method=method))[0] == status

    @pytest.mark.parametrize(
        "body", [b"", b"0000", b"zzzz", b"0009done\n", b"0032want " + b"1" * 40 + b"\n0000", b"\0" * 99]
    )
    @pytest.mark.parametrize("service", ["git-upload-pack", "git-receive-pack"])
    async def test_nonsense_is_answered_and_leaves_nothing(self, server, repository, service, body):
        before = sorted(repository.rglob("*"))
        status, _, _ = await self.statuses(
            server, f"/hosted/p1.git/{service}", key=KEY, method="POST", data=body,
            headers={"Content-Type": f"application/x-{service}-request"},
        )  # fmt: skip
        assert status in (200, 400)
        assert sorted(repository.rglob("*")) == before


async def test_our_own_client_fetches_and_pushes(server, hosted, tmp_path, repository):
    docs = DulwichDocs(tmp_path / "elsewhere", env={"KEY": KEY, "WRONG": "wrong"})
    source = Source("r1", f"http://127.0.0.1:{server.port}/hosted/p1.git", "main", "", "gitea", git_token_env="KEY")
    await docs.register(source)
    base = (await docs.fetch(source)).base_commit
    assert {file.path for file in await docs.list_files(source, base)} == set(FILES)
    written = await docs.write_commit(source, commit(base, {"docs/index.md": "New\n"}))
    await docs.push(source, branch="docs/x", commit=written.commit)
    assert tip(repository, "refs/heads/docs/x") == written.commit
    assert (await docs.fetch(source, branch="docs/x")).branch_commit == written.commit
    wrong = Source("r2", source.repository, "main", "", "gitea", git_token_env="WRONG")
    with pytest.raises(Forbidden):
        await docs.register(wrong)
