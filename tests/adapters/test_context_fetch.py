"""Context repositories are fetched with some history, from public addresses, and removed when they are no context."""

import shutil
import subprocess

import pytest
from msgspec.structs import replace

from service.adapters.git.dulwich_docs import DulwichDocs
from service.adapters.git.remote.context_fetch import HISTORY
from service.domain.errors import Forbidden, Invalid, Unavailable
from service.ports.docs_source import Source

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="makes repositories with git; install git to run")


class Repository:
    def __init__(self, folder):
        self.folder = folder
        folder.mkdir()
        self.git("init", "-q", "-b", "trunk")

    def git(self, *arguments):
        who = ["-c", "user.name=Ada", "-c", "user.email=ada@example.com"]
        run = ["git", "-C", str(self.folder), *who, *arguments]
        return subprocess.run(run, check=True, capture_output=True, text=True).stdout.strip()

    def commit(self, text):
        (self.folder / "kite.py").write_text(text, encoding="utf-8")
        self.git("add", ".")
        self.git("commit", "-q", "-m", text)
        return self.git("rev-parse", "HEAD")


@pytest.fixture
def code(tmp_path):
    made = Repository(tmp_path / "kite")
    made.commit("one")
    return made


@pytest.fixture
def docs(tmp_path):
    return DulwichDocs(tmp_path / "data", env={})


def source_of(repository, **more):
    return Source("p1", str(repository), "", "", "github", context="code", **more)


@pytest.mark.slow
async def test_default_branch_is_fetched_and_followed(code, docs):
    source = source_of(code.folder)
    first = await docs.fetch(source)
    assert first.ref == "trunk"
    second = code.commit("two")
    assert (await docs.fetch(source)).base_commit == second
    (file,) = await docs.list_files(source, second)
    assert await docs.read_file(source, file.blob) == b"two"
    (earlier,) = await docs.list_files(source, first.base_commit)  # a resumed job reads what it read before
    assert await docs.read_file(source, earlier.blob) == b"one"


async def test_tag_and_branch_are_fetched_by_name(code, docs):
    tagged = code.git("rev-parse", "HEAD")
    code.git("tag", "-a", "v1", "-m", "one")
    code.git("branch", "stable")
    code.commit("two")
    for ref in ("v1", "stable"):
        fetched = await docs.fetch(replace(source_of(code.folder), ref=ref))
        assert (fetched.ref, fetched.base_commit) == (ref, tagged)
    with pytest.raises(Invalid, match="no branch or tag 'gone'"):
        await docs.fetch(replace(source_of(code.folder), ref="gone"))


async def test_history_is_fetched_only_so_far(code, docs, tmp_path):
    for number in range(HISTORY + 5):
        code.commit(str(number))
    head = (await docs.fetch(source_of(code.folder))).base_commit
    (clone,) = (tmp_path / "data" / "repos").glob("*.git")
    assert len(code.git("-C", str(clone), "rev-list", head).split()) == HISTORY


@pytest.mark.parametrize(
    "url", ["http://localhost:1/x.git", "https://127.0.0.1/x", "http://[::1]:1/x", "http://0x7f.1/x"]
)
async def test_guarded_source_reaches_no_private_address(docs, url):
    with pytest.raises(Forbidden, match="not an address of the public internet"):
        await docs.fetch(source_of(url, guarded=True))


async def test_internal_source_may_reach_this_machine(docs):
    with pytest.raises(Unavailable, match="cannot be reached"):
        await docs.fetch(source_of("http://localhost:1/x.git"))


async def test_clone_of_removed_context_is_removed(code, docs, tmp_path):
    source = source_of(code.folder)
    await docs.fetch(source)
    await docs.keep_contexts(source, [source])
    assert len(list((tmp_path / "data" / "repos").glob("*.git"))) == 1
    await docs.keep_contexts(source, [replace(source, repository="https://git.example/kite.git")])
    assert list((tmp_path / "data" / "repos").glob("*.git")) == []
