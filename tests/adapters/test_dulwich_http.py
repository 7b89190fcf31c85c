"""DulwichDocs against git's own HTTP server."""

import asyncio
import base64
import shutil

import pytest
import urllib3
from msgspec.structs import replace

from service.adapters.git.dulwich_docs import DulwichDocs
from service.adapters.git.folder import import_folder
from service.adapters.git.remote.clients import OwnOrigin
from service.adapters.git.remote.remotes import remote_of, with_token
from service.adapters.git.repositories import create
from service.domain.errors import Conflict, Forbidden, Invalid, RateLimited, Unavailable
from service.ports.docs_source import Source
from tests.contracts.docs_source import FILES, TransportContract, commit
from tests.fakes.git_server import GIT, GitServer, git

pytestmark = pytest.mark.skipif(GIT is None, reason="there is no git on this machine")

TOKEN = "s3cret-t0ken"


@pytest.fixture
async def server(tmp_path):
    folder = tmp_path / "folder"
    for path, text in FILES.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    (tmp_path / "served").mkdir()
    create(tmp_path / "served" / "their.git", lambda made: import_folder(made, folder, "main"), branch="main")
    git("config", "receive.fsckObjects", "true", cwd=tmp_path / "served" / "their.git")
    serving = GitServer(tmp_path / "served", password=TOKEN)
    async with serving.server:
        yield serving


@pytest.fixture
def repository(server):
    return server.root / "their.git"


@pytest.fixture
def docs(tmp_path):
    return DulwichDocs(tmp_path / "data", env={"THEIR_TOKEN": TOKEN, "OLD_TOKEN": "0ld"})


@pytest.fixture
def source(server):
    return Source("p1", server.url("their.git"), "main", "", "gitea", git_token_env="THEIR_TOKEN")


@pytest.fixture
def someone_pushes(repository, tmp_path):
    async def push(branch, path, text):
        work = tmp_path / "their-work"
        shutil.rmtree(work, ignore_errors=True)
        await asyncio.to_thread(git, "clone", "--quiet", str(repository), str(work))
        exists = git("branch", "--remotes", "--list", f"origin/{branch}", cwd=work)
        git("checkout", "--quiet", *(["-B", branch, f"origin/{branch}"] if exists else ["-b", branch]), cwd=work)
        (work / path).write_text(text)
        git("add", "--all", cwd=work)
        git("commit", "--quiet", "--message", "Theirs", cwd=work)
        git("push", "--quiet", "origin", branch, cwd=work)
        return git("rev-parse", "HEAD", cwd=work)

    return push


class TestGitsOwnServer(TransportContract):
    @pytest.fixture
    def docs(self, docs):
        return docs

    @pytest.fixture
    def source(self, source):
        return source

    @pytest.fixture
    def someone_pushes(self, someone_pushes):
        return someone_pushes


async def test_gits_fsck_finds_nothing_wrong_with_what_was_pushed(docs, source, repository):
    base = (await docs.fetch(source)).base_commit
    written = await docs.write_commit(
        source, commit(base, {"docs/index.md": "New\n", "a/b/c.md": "c\n", "src/main.py": None})
    )
    await docs.push(source, branch="docs/x", commit=written.commit)
    assert git("fsck", "--strict", "--no-dangling", cwd=repository) == ""
    assert git("rev-parse", "docs/x", cwd=repository) == written.commit
    assert git("diff", "--name-status", "main", "docs/x", cwd=repository).split() == [
        "A", "a/b/c.md", "M", "docs/index.md", "D", "src/main.py",
    ]  # fmt: skip


async def test_only_what_changed_travels(docs, source, server):
    base = (await docs.fetch(source)).base_commit
    clone = docs._data / "repos" / "p1.git"
    assert (clone / "shallow").read_text().split() == [base]
    written = await docs.write_commit(source, commit(base, {"docs/index.md": "New\n"}))
    await docs.push(source, branch="docs/x", commit=written.commit)
    packs = list((server.root / "their.git" / "objects").glob("[0-9a-f][0-9a-f]/*"))
    assert len(packs) == 4  # git unpacks a small push: a blob, two trees and the commit


@pytest.mark.parametrize("variable", ["", "OLD_TOKEN"])
async def test_missing_and_refused_credentials_are_distinguished(docs, server, variable):
    source = Source("p1", server.url("their.git"), "main", "", "gitea", git_token_env=variable)
    with pytest.raises(Forbidden, match="refused the token" if variable else "asks for credentials") as refused:
        await docs.fetch(source)
    assert "0ld" not in str(refused.value)
    assert refused.value.code == ("token_refused" if variable else "token_missing")


async def test_a_variable_that_is_not_set_is_named(docs, source):
    with pytest.raises(Forbidden, match="NO_TOKEN_FILE") as refused:
        await docs.fetch(replace(source, git_token_env="NO_TOKEN"))
    assert refused.value.code == "token_missing"


async def test_a_token_can_be_in_a_file_and_may_change(server, source, tmp_path):
    file = tmp_path / "token"
    docs = DulwichDocs(tmp_path / "data", env={"THEIR_TOKEN_FILE": str(file)})
    for content, problem in (
        (None, "cannot be read: No such file"),
        (b"\n", "is empty"),
        (b"a b", "does not hold a token"),
    ):
        if content is not None:
            file.write_bytes(content)
        with pytest.raises(Forbidden, match=problem):
            await docs.fetch(source)
    file.write_text(f"{TOKEN}\n")
    assert (await docs.fetch(source)).base_commit


async def test_a_token_can_be_asked_for_when_it_is_needed(server, source, tmp_path):
    asked = []

    async def token_of(one):
        asked.append(one)
        return TOKEN

    docs = DulwichDocs(tmp_path / "data", env={}, token_of=token_of)
    base = (await docs.fetch(source)).base_commit
    written = await docs.write_commit(source, commit(base, {"docs/index.md": "New\n"}))
    await docs.push(source, branch="docs/x", commit=written.commit)
    assert asked == [source, source]


async def test_the_token_is_sent_as_each_code_host_wants_it(docs, server):
    for code_host, user in (("github", "x-access-token"), ("gitea", "x-access-token"), ("gitlab", "oauth2")):
        source = Source("p1", server.url("their.git"), "main", "", code_host, git_token_env="THEIR_TOKEN")
        await docs.fetch(source)
        sent = base64.b64decode(server.requests[-1][2].removeprefix("Basic ")).decode()
        assert sent == f"{user}:{TOKEN}"


async def test_a_token_is_written_nowhere(docs, source, tmp_path):
    base = (await docs.fetch(source)).base_commit
    written = await docs.write_commit(source, commit(base, {"docs/index.md": "New\n"}))
    await docs.push(source, branch="docs/x", commit=written.commit)
    secrets = (TOKEN.encode(), base64.b64encode(f"x-access-token:{TOKEN}".encode()))
    for file in (tmp_path / "data").rglob("*"):
        assert file.is_dir() or not any(secret in file.read_bytes() for secret in secrets), file
    assert TOKEN not in repr(with_token(remote_of(source.repository), "gitea", TOKEN))


async def test_a_redirect_to_another_origin_is_not_followed(docs, source, server):
    base = (await docs.fetch(source)).base_commit
    written = await docs.write_commit(source, commit(base, {"docs/index.md": "New\n"}))
    other = GitServer(server.root)
    async with other.server:
        server.redirect_to = other.url("")[:-1]
        for asked in (docs.fetch(source), docs.push(source, branch="docs/x", commit=written.commit)):
            with pytest.raises(Conflict, match=f"sends us on to {other.url('their.git')}") as failed:
                await asked
            assert failed.value.code == "repository_moved"
        assert other.requests == []


@pytest.mark.parametrize(
    ("location", "is_followed"),
    [
        ("/new.git/info/refs", True),
        ("http://git.example/new.git", True),
        ("https://git.example/their.git", True),
        ("https://git.example:8443/their.git", False),
        ("http://git.example.evil.example/their.git", False),
        ("http://git.example@evil.example/their.git", False),
        ("//169.254.169.254/latest", False),
        ("http://[::1/", False),
        ("http://git.example:99999999/", False),
        ("file:///etc/passwd", False),
    ],
)
def test_which_redirects_are_followed(location, is_followed):
    answer = urllib3.HTTPResponse(status=302, headers={"Location": location})
    try:
        OwnOrigin(2, redirect=3).increment("GET", "http://git.example/their.git/info/refs", response=answer)
    except Conflict:
        assert not is_followed
    else:
        assert is_followed


async def test_circular_redirects_are_called_that(docs, source, server):
    server.redirect_to = server.url("")[:-1]
    with pytest.raises(Conflict, match="redirects in a circle, or more than 3 times") as moved:
        await docs.fetch(source)
    assert "Max retries" not in str(moved.value)
    assert moved.value.code == "repository_moved"


async def test_redirect_within_the_origin_keeps_the_token(docs, source, server):
    server.renamed = {"old.git": "their.git"}
    old = replace(source, repository=server.url("old.git"))
    base = (await docs.fetch(old)).base_commit
    written = await docs.write_commit(old, commit(base, {"docs/index.md": "New\n"}))
    await docs.push(old, branch="docs/x", commit=written.commit)
    assert (await docs.fetch(source, branch="docs/x")).branch_commit == written.commit


@pytest.mark.parametrize(
    ("status", "kind", "code"),
    [
        (403, Forbidden, "rights_missing"),
        (404, Invalid, "no_such_repository"),
        (500, Unavailable, "code_host_unavailable"),
        (503, Unavailable, "code_host_unavailable"),
        (429, RateLimited, "rate_limited"),
        (408, Unavailable, "code_host_unavailable"),
        (425, Unavailable, "code_host_unavailable"),
        (400, Invalid, "bad_repository"),
        (410, Invalid, "bad_repository"),
    ],
)
async def test_error_for_a_server_status_says_what_to_do(docs, source, server, status, kind, code):
    server.status = status
    with pytest.raises(kind) as failed:
        await docs.register(source)
    assert failed.value.code == code


@pytest.mark.parametrize("status", [429, 503])
async def test_time_that_a_git_server_asks_for_is_known(docs, source, server, status):
    server.status, server.status_headers = status, {"Retry-After": "77"}
    with pytest.raises(Unavailable) as failed:
        await docs.register(source)
    assert failed.value.retry_after_seconds == 77
    assert len(server.requests) == 1


@pytest.mark.parametrize("name", ["update", "pre-receive"])
async def test_protected_branch_has_its_own_error(docs, source, server, name):
    hook = server.root / "their.git" / "hooks" / name
    hook.parent.mkdir()
    hook.write_text("#!/bin/sh\necho You are not allowed to push to protected branches >&2\nexit 1\n")
    hook.chmod(0o755)
    base = (await docs.fetch(source)).base_commit
    written = await docs.write_commit(source, commit(base, {"docs/index.md": "New\n"}))
    with pytest.raises(Conflict, match=r"hook declined.*not allowed to push to protected branches") as refused:
        await docs.push(source, branch="docs/x", commit=written.commit)
    assert refused.value.code == "branch_protected"


async def test_commit_below_a_branch_tip_is_fetched_where_allowed(docs, source, server, someone_pushes):
    base = (await docs.fetch(source)).base_commit
    await someone_pushes("main", "README.md", "Later\n")
    shutil.rmtree(docs._data / "repos")
    assert {file.path for file in await docs.list_files(source, base)} == set(FILES)


async def test_missing_server_is_reported_in_few_words(docs):
    with pytest.raises(Unavailable, match=r"^http://127.0.0.1:1/x.git cannot be reached: Connection refused\.$"):
        await docs.default_branch(Source("p1", "http://127.0.0.1:1/x.git", "main", "", "local"))


async def test_context_is_fetched_with_its_own_token(docs, source, server, someone_pushes, repository):
    context = replace(source, ref="", context="code")
    first = await docs.fetch(context)
    assert first.ref == "main"
    newest = await someone_pushes("main", "kite.py", "def fly(): ...\n")
    git("tag", "v1", "main", cwd=repository)
    tagged = await docs.fetch(replace(context, ref="v1"))
    assert (tagged.ref, tagged.base_commit) == ("v1", newest)
    past = await docs.history(context, newest, "", limit=5)
    assert [one.commit for one in past.commits] == [newest, first.base_commit]
    with pytest.raises(Forbidden, match="refused the token"):
        await docs.fetch(replace(context, git_token_env="OLD_TOKEN"))


@pytest.mark.parametrize("name", ["", "code"])
async def test_tags_are_compared(docs, source, someone_pushes, repository, name):
    asked = replace(source, context=name)
    git("-c", "user.name=A", "-c", "user.email=a@example.com", "tag", "-a", "v1", "-m", "one", "main", cwd=repository)
    await someone_pushes("main", "kite.py", "def fly(): ...\n")
    git("tag", "v2", "main", cwd=repository)
    newest = await someone_pushes("main", "kite.py", "def fly(height): ...\n")
    assert (await docs.fetch(asked)).base_commit == newest
    (file,) = (await docs.compared(asked, newest, "v1", "v2", [])).files
    assert (file.path, file.old) == ("kite.py", None)
    assert (await docs.read_files(asked, [file.new]))[file.new] == b"def fly(): ...\n"
    assert len((await docs.compared(asked, newest, "v2", "", ["kite.py"])).files) == 1
    assert not (await docs.compared(asked, newest, "v2", "", ["docs"])).files


async def test_commit_of_a_lost_context_clone_is_fetched_again(docs, source, someone_pushes):
    context = replace(source, ref="", context="code")
    recorded = (await docs.fetch(context)).base_commit
    await docs.keep_contexts(source, [])
    await someone_pushes("main", "kite.py", "def fly(): ...\n")
    assert [file.path for file in await docs.list_files(context, recorded)] == sorted(FILES)


async def test_guard_refuses_a_git_server_on_this_machine(tmp_path, source):
    context = replace(source, context="code", guarded=True)
    with pytest.raises(Forbidden, match="not an address of the public internet"):
        await DulwichDocs(tmp_path / "data", env={"THEIR_TOKEN": TOKEN}).fetch(context)
    allowed = DulwichDocs(tmp_path / "other", env={"THEIR_TOKEN": TOKEN}, allow_private=True)
    assert (await allowed.fetch(context)).ref == "main"
