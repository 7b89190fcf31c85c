"""DulwichDocs keeps the contract over every way to a repository, and stays calm before hostile ones."""

import asyncio
import os
import shutil
import stat
import tarfile
import time
from pathlib import Path

import pytest
from dulwich.objects import Blob, Commit, ObjectID, Tree
from dulwich.repo import Repo
from msgspec.structs import replace

from service.adapters.git import names as git_names
from service.adapters.git import objects as git_objects
from service.adapters.git.dulwich_docs import DulwichDocs, clear_clone
from service.adapters.git.import_repository import import_repository
from service.adapters.git.listings import Listings
from service.adapters.git.objects import MAX_BLOB_BYTES
from service.adapters.git.remote.remotes import Remote
from service.adapters.git.repositories import STALE_SECONDS, branch_commit, commit_of, opened
from service.adapters.hosted.code_host import HostedCodeHost
from service.domain.errors import Damaged, Forbidden, Invalid, NotFound, Unavailable
from service.ports.docs_source import Source
from service.runtime.file_locks import locked
from tests.contracts.docs_source import AT, AUTHOR, FILES, DocsSourceContract, commit
from tests.fakes.docs_source import FakeDocsSource

LOCAL = Source("p1", "", "main", "", "local")


def write_folder(folder: Path) -> Path:
    for path, text in FILES.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder


def commit_to(path: Path, branch: str, file: str, text: str) -> str:
    """Someone else's commit, by the same library but not by a push."""
    with opened(path) as repository:
        parent = branch_commit(repository, branch) or branch_commit(repository, "main")
        base = commit_of(repository, parent.decode())
        written = git_objects.write_commit(repository, commit(parent.decode(), {file: text}, "Theirs\n"), base)
        repository.refs[f"refs/heads/{branch}".encode()] = ObjectID(written.commit.encode())
        return written.commit


def make_repository(path: Path, tree: Tree, *objects: Blob | Tree) -> str:
    """A bare repository whose branch ``main`` is a commit of the tree, whatever it holds."""
    with Repo.init_bare(path, mkdir=True, default_branch=b"main") as repository:
        repository.object_store.add_objects([(one, None) for one in (*objects, tree)])
        made = Commit()
        made.tree, made.author, made.message = tree.id, AUTHOR.encode(), b"Made up\n"
        made.committer = made.author
        made.author_time = made.commit_time = int(AT.timestamp())
        made.author_timezone = made.commit_timezone = 0
        repository.object_store.add_object(made)
        repository.refs[b"refs/heads/main"] = made.id
        return made.id.decode()


class TestFakeDocsSource(DocsSourceContract):
    @pytest.fixture
    def docs(self):
        return FakeDocsSource(FILES)

    @pytest.fixture
    def source(self):
        return LOCAL

    @pytest.fixture
    def someone_pushes(self, docs, source):
        async def push(branch, path, text):
            parent = docs.branches.get(branch, docs.branches["main"])
            written = await docs.write_commit(source, commit(parent, {path: text}, "Theirs\n"))
            docs.branches[branch] = written.commit
            return written.commit

        return push


@pytest.fixture(scope="module")
def taken_in(tmp_path_factory):
    """A data folder whose project p1 was made from a plain folder: copied for each test, to save them a process."""
    data = tmp_path_factory.mktemp("taken-in")
    folder = write_folder(tmp_path_factory.mktemp("folder"))
    import_repository(data / "hosted" / "p1.git", Remote("", str(folder)), "main")
    return data


class TestOnAFolder(DocsSourceContract):
    @pytest.fixture
    def data(self, taken_in, tmp_path):
        return shutil.copytree(taken_in, tmp_path / "data")

    @pytest.fixture
    def docs(self, data):
        return DulwichDocs(data, env={})

    @pytest.fixture
    def source(self, tmp_path):
        return replace(LOCAL, repository=str(write_folder(tmp_path / "folder")))

    @pytest.fixture
    def someone_pushes(self, data):
        async def push(branch, path, text):
            return commit_to(data / "hosted" / "p1.git", branch, path, text)

        return push


class TestTakingIn:
    async def test_folder_commit_leaves_out_links_and_foreign_folders(self, tmp_path):
        folder = write_folder(tmp_path / "folder")
        (folder / "link.md").symlink_to("/etc/passwd")
        (folder / "loop").symlink_to(folder)
        for path in (".git/config", "node_modules/left-pad/index.js", "docs/node_modules/x"):
            if path.startswith(".git"):
                continue
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text("x")
        (folder / "run.sh").write_text("#!/bin/sh\n")
        (folder / "run.sh").chmod(0o755)
        source = replace(LOCAL, repository=str(folder))
        docs = DulwichDocs(tmp_path / "data", env={})
        await docs.register(source)
        fetched = await docs.fetch(source)
        listed = {file.path: file.executable for file in await docs.list_files(source, fetched.base_commit)}
        assert listed == dict.fromkeys(FILES, False) | {"run.sh": True}
        with opened(tmp_path / "data" / "hosted" / "p1.git") as repository:
            assert commit_of(repository, fetched.base_commit).author == b"Docsmith <docsmith@localhost>"
            assert commit_of(repository, fetched.base_commit).parents == []
            assert repository.refs.follow(b"HEAD")[0][-1] == b"refs/heads/main"

    async def test_the_mode_of_a_file_survives_its_change(self, tmp_path):
        folder = write_folder(tmp_path / "folder")
        (folder / "src/main.py").chmod(0o755)
        source = replace(LOCAL, repository=str(folder))
        docs = DulwichDocs(tmp_path / "data", env={})
        await docs.register(source)
        base = (await docs.fetch(source)).base_commit
        written = await docs.write_commit(source, commit(base, {"src/main.py": "x\n", "new.py": "y\n"}))
        modes = {file.path: file.executable for file in await docs.list_files(source, written.commit)}
        assert (modes["src/main.py"], modes["new.py"]) == (True, False)

    async def test_a_branch_comes_with_its_history(self, taken_in, tmp_path):
        their = shutil.copytree(taken_in / "hosted" / "p1.git", tmp_path / "their.git")
        commit_to(their, "main", "README.md", "Second\n")
        third = commit_to(their, "main", "README.md", "Third\n")
        commit_to(their, "secret", "README.md", "Not asked for\n")
        source = replace(LOCAL, repository=str(their))
        docs = DulwichDocs(tmp_path / "data", env={})
        await docs.register(source)
        assert (await docs.fetch(source)).base_commit == third
        with opened(tmp_path / "data" / "hosted" / "p1.git") as repository:
            assert len(list(repository.get_walker([third.encode()]))) == 3
            assert repository.get_refs().keys() == {b"HEAD", b"refs/heads/main"}

    @pytest.mark.parametrize(
        ("head", "branches", "default"),
        [
            (b"trunk", {"trunk", "main"}, "trunk"),
            (b"gone", {"main", "other"}, "main"),
            (b"gone", {"master", "other"}, "master"),
            (b"gone", {"only"}, "only"),
        ],
    )
    async def test_the_default_branch_is_heads_or_the_likeliest(self, tmp_path, head, branches, default):
        repository = tmp_path / "theirs.git"
        made = make_repository(repository, Tree())
        with Repo(repository) as opened_:
            del opened_.refs[b"refs/heads/main"]
            for name in branches:
                opened_.refs[f"refs/heads/{name}".encode()] = ObjectID(made.encode())
            opened_.refs.set_symbolic_ref(b"HEAD", b"refs/heads/" + head)
        source = replace(LOCAL, repository=str(repository), ref="")
        assert await DulwichDocs(tmp_path / "data", env={}).default_branch(source) == default

    @pytest.mark.parametrize(("branches", "says"), [((), "no commits yet"), (("a", "b"), "name one: a, b")])
    async def test_repository_without_a_default_branch_is_reported(self, tmp_path, branches, says):
        repository = tmp_path / "theirs.git"
        made = make_repository(repository, Tree())
        with Repo(repository) as opened_:
            del opened_.refs[b"refs/heads/main"]
            for name in branches:
                opened_.refs[f"refs/heads/{name}".encode()] = ObjectID(made.encode())
        with pytest.raises(Invalid, match=says):
            await DulwichDocs(tmp_path / "data", env={}).default_branch(replace(LOCAL, repository=str(repository)))

    async def test_import_stays_when_the_original_changes_or_goes(self, tmp_path):
        folder = write_folder(tmp_path / "folder")
        source = replace(LOCAL, repository=str(folder))
        docs = DulwichDocs(tmp_path / "data", env={})
        await docs.register(source)
        before = await docs.fetch(source)
        shutil.rmtree(folder)
        await docs.register(source)
        assert await docs.fetch(source) == before

    async def test_two_processes_may_take_in_the_same_project_at_once(self, tmp_path):
        source = replace(LOCAL, repository=str(write_folder(tmp_path / "folder")))
        one, other = DulwichDocs(tmp_path / "data", env={}), DulwichDocs(tmp_path / "data", env={})
        await asyncio.gather(one.register(source), other.register(source))
        assert await one.fetch(source) == await other.fetch(source)
        assert not list((tmp_path / "data" / "hosted").glob(".*.new"))

    async def test_leftovers_of_a_killed_import_are_removed(self, tmp_path):
        left = tmp_path / "data" / "hosted" / ".p1.git.abc.new"
        left.mkdir(parents=True)
        await DulwichDocs(tmp_path / "data", env={}).register(
            replace(LOCAL, repository=str(write_folder(tmp_path / "folder")))
        )
        assert not left.exists()

    async def test_what_was_imported_or_begun_is_forgotten(self, tmp_path):
        docs = DulwichDocs(tmp_path / "data", env={})
        await docs.register(replace(LOCAL, repository=str(write_folder(tmp_path / "folder"))))
        (tmp_path / "data" / "hosted" / ".p1.git.abc.new").mkdir()
        await docs.forget(LOCAL)
        assert not list((tmp_path / "data" / "hosted").glob("*p1.git"))
        assert not list((tmp_path / "data" / "hosted").glob(".p1.git.*.new"))

    async def test_errors_say_what_to_do(self, taken_in, tmp_path):
        docs = DulwichDocs(tmp_path / "data", env={"EMPTY": " "})
        empty = tmp_path / "empty"
        empty.mkdir()
        cases = [
            (replace(LOCAL, repository=str(tmp_path / "none")), Invalid, "is not a folder"),
            (replace(LOCAL, repository=str(empty)), Invalid, "no files"),
            (replace(LOCAL, repository=str(taken_in / "hosted/p1.git"), ref="trunk"), Invalid, "It has: main"),
            (replace(LOCAL, repository="git@github.com:o/r.git"), Invalid, "https://"),
            (replace(LOCAL, repository="ssh://git@github.com/o/r.git"), Invalid, "https://"),
            (replace(LOCAL, repository="https://user:pass@github.com/o/r.git"), Invalid, "no credentials"),
            (Source("p1", "https://x.example/r", "main", "", "github", git_token_env="NONE"), Forbidden, "NONE"),
            (Source("p1", "https://x.example/r", "main", "", "github", git_token_env="EMPTY"), Forbidden, "EMPTY"),
            (Source("p1", str(tmp_path / "none"), "main", "", "gitea"), Invalid, "no git repository"),
            (Source("p1", str(taken_in / "hosted/p1.git"), "trunk", "", "gitea"), Invalid, "no branch 'trunk'"),
            (Source("p1", "http://127.0.0.1:1/r", "main", "", "gitea"), Unavailable, "127.0.0.1"),
            (Source("../p1", "x", "main", "", "local"), NotFound, "Project not found"),
        ]
        for source, kind, words in cases:
            with pytest.raises(kind, match=words):
                await docs.register(source)
        assert not (tmp_path / "data" / "hosted" / "p1.git").exists()


class TestDerivedClone:
    async def test_a_deleted_clone_of_a_hosted_repository_is_made_again(self, taken_in, tmp_path):
        data = shutil.copytree(taken_in, tmp_path / "data")
        docs = DulwichDocs(data, env={})
        base = (await docs.fetch(LOCAL)).base_commit
        shutil.rmtree(data / "repos")
        assert {file.path for file in await docs.list_files(LOCAL, base)} == set(FILES)

    async def test_a_deleted_clone_of_a_remote_is_fetched_again_by_commit(self, taken_in, tmp_path):
        their = shutil.copytree(taken_in / "hosted" / "p1.git", tmp_path / "their.git")
        source = Source("p1", str(their), "main", "", "gitea")
        docs = DulwichDocs(tmp_path / "data", env={})
        base = (await docs.fetch(source)).base_commit
        commit_to(their, "main", "README.md", "Later\n")
        shutil.rmtree(tmp_path / "data" / "repos")
        assert {file.path for file in await docs.list_files(source, base)} == set(FILES)
        with pytest.raises(NotFound):
            await docs.list_files(source, "1" * 40)

    async def test_the_data_folder_can_be_moved(self, taken_in, tmp_path):
        data = shutil.copytree(taken_in, tmp_path / "data")
        docs = DulwichDocs(data, env={})
        base = (await docs.fetch(LOCAL)).base_commit
        moved = data.rename(tmp_path / "moved")
        assert await DulwichDocs(moved, env={}).list_files(LOCAL, base)


class TestManyJobs:
    async def test_small_pushes_leave_no_pack_each(self, taken_in, tmp_path):
        data = shutil.copytree(taken_in, tmp_path / "data")
        docs = DulwichDocs(data, env={})
        base = (await docs.fetch(LOCAL)).base_commit
        for number in range(10):
            written = await docs.write_commit(LOCAL, commit(base, {"docs/index.md": f"{number}\n"}))
            await docs.push(LOCAL, branch=f"docs/{number}", commit=written.commit)
        assert len(list((data / "hosted" / "p1.git" / "objects" / "pack").glob("*.pack"))) == 1

    async def test_push_from_an_older_commit_adds_only_new_objects(self, taken_in, tmp_path):
        data = shutil.copytree(taken_in, tmp_path / "data")
        hosted = data / "hosted" / "p1.git"
        for number in range(120):
            commit_to(hosted, "main", "history.md", f"{number}\n")
        docs = DulwichDocs(data, env={})
        written = await docs.write_commit(LOCAL, commit((await docs.fetch(LOCAL)).base_commit, {"new.md": "new\n"}))
        commit_to(hosted, "main", "history.md", "moved on\n")
        await docs.fetch(LOCAL)
        before = set((hosted / "objects").rglob("*"))
        await docs.push(LOCAL, branch="docs/new", commit=written.commit)
        added = [file for file in set((hosted / "objects").rglob("*")) - before if file.is_file()]
        assert len(added) == 3  # the file, its folder and the commit

    async def test_clone_remembers_few_of_its_fetched_branches(self, taken_in, tmp_path):
        data = shutil.copytree(taken_in, tmp_path / "data")
        elsewhere = Source("p2", str(data / "hosted" / "p1.git"), "main", "", "gitea")
        docs, clone = DulwichDocs(data, env={}), data / "repos" / "p2.git"
        base = (await docs.fetch(elsewhere)).base_commit
        written = await docs.write_commit(elsewhere, commit(base, {"new.md": "new\n"}))
        for number in range(150):
            branch = clone / "refs" / "remotes" / "origin" / "docs" / str(number)
            branch.parent.mkdir(exist_ok=True)
            branch.write_text(f"{base}\n")
        await docs.push(elsewhere, branch="docs/new", commit=written.commit)
        assert (await docs.fetch(elsewhere, branch="docs/new")).branch_commit == written.commit
        left = [file for file in (clone / "refs" / "remotes" / "origin").rglob("*") if file.is_file()]
        assert sorted(file.name for file in left) == ["main", "new"]

    async def test_jobs_may_write_and_push_at_once(self, taken_in, tmp_path):
        data = shutil.copytree(taken_in, tmp_path / "data")
        instances = [DulwichDocs(data, env={}) for _ in range(3)]
        base = (await instances[0].fetch(LOCAL)).base_commit

        async def job(number):
            docs = instances[number % 3]
            written = await docs.write_commit(LOCAL, commit(base, {"same.md": "same\n", f"{number % 4}.md": "x\n"}))
            await docs.push(LOCAL, branch=f"docs/{number}", commit=written.commit)
            assert (await docs.fetch(LOCAL, branch=f"docs/{number}")).branch_commit == written.commit

        await asyncio.gather(*(job(number) for number in range(12)))

    async def test_a_lock_that_a_killed_process_left_is_broken(self, taken_in, tmp_path):
        data = shutil.copytree(taken_in, tmp_path / "data")
        docs = DulwichDocs(data, env={})
        elsewhere = Source("p2", str(data / "hosted" / "p1.git"), "main", "", "gitea")
        await docs.fetch(elsewhere)
        lock = data / "repos" / "p2.git" / "refs" / "remotes" / "origin" / "main.lock"
        lock.touch()
        await docs.fetch(elsewhere)
        assert not lock.exists()

    async def test_killed_service_leaves_no_code_host_branch_locked(self, taken_in, tmp_path):
        data = shutil.copytree(taken_in, tmp_path / "data")
        docs = DulwichDocs(data, env={})
        base = (await docs.fetch(LOCAL)).base_commit
        written = await docs.write_commit(LOCAL, commit(base, {"new.md": "new\n"}))
        lock = data / "hosted" / "p1.git" / "refs" / "heads" / "docs" / "new.lock"
        lock.parent.mkdir(parents=True)
        lock.touch()
        with pytest.raises(Unavailable) as refused:
            await docs.push(LOCAL, branch="docs/new", commit=written.commit)
        assert str(tmp_path) not in str(refused.value)  # who asked for the job is told this
        await HostedCodeHost(data, base_url=lambda: "http://x").recover()
        await docs.push(LOCAL, branch="docs/new", commit=written.commit)

    async def test_unfinished_objects_of_a_killed_push_are_removed(self, taken_in, tmp_path):
        data = shutil.copytree(taken_in, tmp_path / "data")
        objects = data / "hosted" / "p1.git" / "objects"
        (objects / "tmp_objdir-incoming-x" / "objects").mkdir(parents=True)
        (objects / "0a").mkdir(exist_ok=True)
        left = [objects / "tmp_objdir-incoming-x", objects / "0a" / "tmp_obj_y", objects / "pack" / "tmp_pack_z"]
        for file in left[1:]:
            file.touch()
        os.utime(left[1], (time.time() - STALE_SECONDS - 60,) * 2)
        await HostedCodeHost(data, base_url=lambda: "http://x").recover()
        assert not [path for path in left if path.exists()]
        assert (await DulwichDocs(data, env={}).fetch(LOCAL)).base_commit

    def test_unfinished_objects_are_removed_from_an_idle_clone(self, tmp_path):
        objects = tmp_path / "repos" / "p.git" / "objects"
        left = [objects / "pack" / "tmp_pack_x", objects / "pack" / "tmpabc.pack", objects / "tmp_pack_y"]
        left[0].parent.mkdir(parents=True)
        for file in left:
            file.touch()
        with locked(tmp_path / "repos" / ".p.git.lock"):
            clear_clone(tmp_path / "repos" / "p.git")
            assert all(file.exists() for file in left)
        clear_clone(tmp_path / "repos" / "p.git")
        assert not any(file.exists() for file in left)

    async def test_object_that_another_job_is_writing_stays(self, taken_in, tmp_path):
        data = shutil.copytree(taken_in, tmp_path / "data")
        docs = DulwichDocs(data, env={})
        elsewhere = Source("p2", str(data / "hosted" / "p1.git"), "main", "", "gitea")
        await docs.fetch(elsewhere)
        folder = data / "repos" / "p2.git" / "objects" / "0a"
        folder.mkdir(exist_ok=True)
        written, left = folder / "tmp_obj_x", folder / "tmp_obj_y"
        written.touch()
        left.touch()
        os.utime(left, (time.time() - STALE_SECONDS - 60,) * 2)
        await docs.fetch(elsewhere)
        assert (written.exists(), left.exists()) == (True, False)


class TestHostileRepositories:
    """CODEHOSTS: what has been seen in the wild, or would be."""

    @pytest.fixture
    def docs(self, tmp_path):
        return DulwichDocs(tmp_path / "data", env={})

    async def fetched(self, docs, tmp_path, tree, *objects):
        made = make_repository(tmp_path / "hostile.git", tree, *objects)
        source = Source("h1", str(tmp_path / "hostile.git"), "main", "", "gitea")
        fetched = await docs.fetch(source)
        assert fetched.base_commit == made
        return source, made

    async def test_only_plain_safely_named_files_are_listed_and_exported(self, docs, tmp_path):
        page, other = Blob.from_string(b"page\n"), Blob.from_string(b"other\n")
        target = Blob.from_string(b"/etc/passwd")
        inner = Tree()
        inner.add(b"config", 0o100644, other.id)
        tree = Tree()
        for name in (
            b".git", b".GIT", b".git ", b".git.", b"GIT~1", b".git::$INDEX_ALLOCATION", ".g\u200cit".encode(),
            b"..", b".", b"docs\\.git", b"new\nline", b"\xff\xfe", b"esc\x1b[0m",
        ):  # fmt: skip
            tree.add(name, 0o040000, inner.id)
            tree.add(name + b".md" if name in (b"new\nline", b"\xff\xfe") else name, 0o040000, inner.id)
        tree.add(b"link.md", 0o120000, target.id)
        tree.add(b"sub", 0o160000, ObjectID(b"1" * 40))
        tree.add(b"README.md", 0o100644, page.id)
        tree.add(b"readme.md", 0o100644, other.id)
        tree.add(b"setuid.md", 0o104755, page.id)
        tree.add(b"-rf", 0o100664, page.id)
        source, made = await self.fetched(docs, tmp_path, tree, page, other, target, inner)
        listed = {file.path for file in await docs.list_files(source, made)}
        assert listed == {"README.md", "readme.md", "setuid.md", "-rf"}
        await docs.export(source, made, tmp_path / "out.tar")
        with tarfile.open(tmp_path / "out.tar") as tar:
            assert {member.name for member in tar.getmembers() if member.isreg()} == listed
            assert all(stat.S_IMODE(member.mode) in (0o644, 0o755) for member in tar.getmembers())

    async def test_nothing_is_written_through_a_link_or_a_submodule(self, docs, tmp_path):
        page, target = Blob.from_string(b"page\n"), Blob.from_string(b"/etc")
        pointer = Blob.from_string(b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")
        tree = Tree()
        tree.add(b"link", 0o120000, target.id)
        tree.add(b"sub", 0o160000, ObjectID(b"1" * 40))
        tree.add(b"page.md", 0o100644, page.id)
        tree.add(b"big.png", 0o100644, pointer.id)
        source, made = await self.fetched(docs, tmp_path, tree, page, target, pointer)
        for path in ("link", "link/passwd", "sub", "sub/x.md", "big.png"):
            for text in ("x", None):
                with pytest.raises(Invalid):
                    await docs.write_commit(source, commit(made, {path: text}))
        written = await docs.write_commit(source, commit(made, {"page.md": "new\n"}))
        with opened(tmp_path / "data" / "repos" / "h1.git") as repository:
            after = {e.path: (e.mode, e.sha) for e in repository.object_store[written.tree.encode()].items()}
        assert after[b"link"] == (0o120000, target.id)
        assert after[b"sub"] == (0o160000, b"1" * 40)

    async def test_strange_entries_next_to_a_change_keep_mode_and_name(self, docs, tmp_path):
        page = Blob.from_string(b"page\n")
        tree = Tree()
        for name, mode in ((b"old-mode.md", 0o100664), (b"\xff", 0o100644), (b"README.md", 0o100755)):
            tree.add(name, mode, page.id)
        source, made = await self.fetched(docs, tmp_path, tree, page)
        written = await docs.write_commit(source, commit(made, {"README.md": "new\n", "old-mode.md": "new\n"}))
        with opened(tmp_path / "data" / "repos" / "h1.git") as repository:
            after = {e.path: e.mode for e in repository.object_store[written.tree.encode()].items()}
        assert after == {b"old-mode.md": 0o100664, b"\xff": 0o100644, b"README.md": 0o100755}

    async def test_huge_file_is_reported_without_being_inflated(self, docs, tmp_path):
        huge, page = Blob.from_string(bytes(10 * MAX_BLOB_BYTES)), Blob.from_string(b"page\n")
        tree = Tree()
        tree.add(b"huge.md", 0o100644, huge.id)
        tree.add(b"page.md", 0o100644, page.id)
        source, made = await self.fetched(docs, tmp_path, tree, huge, page)
        with pytest.raises(Invalid, match="too large"):
            await docs.read_file(source, huge.id.decode())
        assert await docs.read_files(source, [huge.id.decode(), page.id.decode()]) == {page.id.decode(): b"page\n"}
        await docs.export(source, made, tmp_path / "out.tar")
        with tarfile.open(tmp_path / "out.tar") as tar:
            assert [member.name for member in tar if member.isfile()] == ["page.md"]
        with opened(tmp_path / "data" / "repos" / "h1.git") as repository:
            assert git_objects.Objects(repository).size(huge.id) == 10 * MAX_BLOB_BYTES

    async def test_tree_of_a_hundred_million_paths_is_counted_and_refused(self, docs, tmp_path):
        blob = Blob.from_string(b"x")
        trees = []
        below, mode = blob.id, 0o100644
        for _ in range(8):
            tree = Tree()
            for number in range(10):
                tree.add(b"%d" % number, mode, below)
            trees.append(tree)
            below, mode = tree.id, 0o040000
        source, made = await self.fetched(docs, tmp_path, trees[-1], blob, *trees[:-1])
        with pytest.raises(Invalid, match="more than"):
            await docs.list_files(source, made)

    async def test_a_deep_tree_is_refused(self, docs, tmp_path):
        blob = Blob.from_string(b"x")
        trees: list[Tree] = []
        below, mode = blob.id, 0o100644
        for _ in range(1_500):
            tree = Tree()
            tree.add(b"d", mode, below)
            trees.append(tree)
            below, mode = tree.id, 0o040000
        source, made = await self.fetched(docs, tmp_path, trees[-1], blob, *trees[:-1])
        with pytest.raises(Invalid, match="deeper"):
            await docs.list_files(source, made)

    async def test_the_configuration_of_the_user_has_no_influence(self, taken_in, tmp_path, monkeypatch):
        home = tmp_path / "home"
        home.mkdir()
        their = shutil.copytree(taken_in / "hosted" / "p1.git", tmp_path / "their.git")
        (home / ".gitconfig").write_text(
            f'[url "{tmp_path}/nowhere"]\n\tinsteadOf = {their}\n[init]\n\tdefaultBranch = evil\n'
            "[core]\n\thooksPath = /nowhere\n[user]\n\tname = Evil\n\temail = evil@example.com\n"
        )
        monkeypatch.setenv("HOME", str(home))
        monkeypatch.setenv("GIT_AUTHOR_NAME", "Evil")
        source = Source("p1", str(their), "main", "", "gitea")
        docs = DulwichDocs(tmp_path / "data", env={})
        base = (await docs.fetch(source)).base_commit
        written = await docs.write_commit(source, commit(base, {"README.md": "x\n"}))
        await docs.push(source, branch="docs/x", commit=written.commit)
        with opened(their) as repository:
            assert branch_commit(repository, "docs/x") == written.commit.encode()
            assert commit_of(repository, written.commit).committer == AUTHOR.encode()


def test_lookalikes_of_dot_git():
    for name in (
        ".git",
        ".GiT",
        ".git.",
        ".git ",
        ".git . .",
        "git~1",
        "GIT~1",
        ".git::$INDEX_ALLOCATION",
        ".g\u200dit",
    ):
        assert git_names.is_dot_git(name), name
    for name in (".github", ".gitignore", "git", "a.git", ".gitlab-ci.yml", "git~2"):
        assert not git_names.is_dot_git(name), name


def test_tree_of_another_clone_is_not_listed(tmp_path):
    blob, tree, listings = Blob.from_string(b"secret"), Tree(), Listings()
    tree.add(b"plans.md", stat.S_IFREG | 0o644, blob.id)
    theirs = make_repository(tmp_path / "theirs", tree, blob)
    with Repo.init_bare(tmp_path / "ours", mkdir=True) as ours, opened(tmp_path / "theirs") as other:
        ours.object_store.add_object(other[theirs.encode()])
    assert [file.path for file in listings.of_commit(tmp_path / "theirs", theirs)] == ["plans.md"]
    with pytest.raises(Damaged):
        listings.of_commit(tmp_path / "ours", theirs)
