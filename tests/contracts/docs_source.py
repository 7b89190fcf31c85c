"""What every DocsSource does. A subclass gives the fixtures ``docs``, ``source`` (a repository with ``FILES`` on its
branch ``main``) and ``someone_pushes``.
"""

import pickle
import tarfile
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from hashlib import sha1

import pytest
from msgspec.structs import replace

from service.domain.errors import Conflict, Invalid, NotFound
from service.ports.docs_source import DocsSource, MergedCommit, NewCommit, Source

FILES = {
    "README.md": "# Read me\n",
    "docs/guide/start.md": "# Start\n\nInstall it.\n",
    "docs/index.md": "# Welcome\n",
    "docs/naïve page.md": "Ünïcödé\n",
    "mkdocs.yml": "site_name: Example\n",
    "src/main.py": "print()\n",
}
AT = datetime(2026, 3, 14, 9, 26, 53, tzinfo=UTC)
AUTHOR = "Ada Lovelace <ada@example.com>"

REFUSED_PATHS = [
    "", "/", "/etc/passwd", "../x", "docs/../x", "docs/./x", "docs//x", "docs/", ".git", ".git/config",
    "docs/.GIT/hooks/x", "docs/.git ", "docs/.git.", "docs/GIT~1/config", "docs/.git::$INDEX_ALLOCATION/x",
    "docs/.g\u200cit/config", "docs\\.git\\config", "a\nb.md", "a\0b.md", "a\x7fb.md", ".gitmodules",
    "x" * 300, "/".join("d" * 80), "docs/index.md/x", "docs", "readme.md", "DOCS/x.md", "docs/nai\u0308ve page.md",
    "docs/\ud800.md",
]  # fmt: skip

SomeonePushes = Callable[[str, str, str], Awaitable[str]]
"""A branch, a path, its new text: someone else commits it there. Returns the commit."""


def commit(parent: str, changes: dict[str, str | None], message: str = "docs: change it\n") -> NewCommit:
    return NewCommit(parent, changes, AUTHOR, message, AT)


def _blob(text: str) -> str:
    return sha1(f"blob {len(text)}\0{text}".encode()).hexdigest()


class TransportContract:
    """How commits come and go."""

    @pytest.fixture
    def docs(self) -> DocsSource:
        raise NotImplementedError

    @pytest.fixture
    def source(self) -> Source:
        raise NotImplementedError

    @pytest.fixture
    def someone_pushes(self) -> SomeonePushes:
        raise NotImplementedError

    async def files(self, docs: DocsSource, source: Source, of: str) -> dict[str, str]:
        listed = await docs.list_files(source, of)
        contents = await docs.read_files(source, [file.blob for file in listed])
        return {file.path: contents[file.blob].decode() for file in listed}

    async def test_a_repository_can_be_registered_twice(self, docs, source):
        await docs.register(source)
        await docs.register(source)
        fetched = await docs.fetch(source)
        assert await self.files(docs, source, fetched.base_commit) == FILES

    async def test_what_was_forgotten_can_be_registered_again(self, docs, source):
        await docs.register(source)
        await docs.forget(source)
        await docs.forget(source)
        await docs.register(source)
        assert await self.files(docs, source, (await docs.fetch(source)).base_commit)

    async def test_default_branch_is_the_one_the_repository_shows(self, docs, source, someone_pushes):
        await docs.register(source)
        await someone_pushes("docs/x", "README.md", "Theirs\n")
        assert await docs.default_branch(replace(source, ref="nowhere")) == "main"

    async def test_a_branch_that_does_not_exist_is_refused(self, docs, source):
        await docs.register(source)
        with pytest.raises(Invalid, match="nowhere"):
            await docs.fetch(replace(source, ref="nowhere"))

    async def test_fetching_again_finds_the_same_commit(self, docs, source):
        await docs.register(source)
        first = await docs.fetch(source)
        assert await docs.fetch(source) == first
        assert first.branch_commit is None

    async def test_branch_is_fetched_with_the_ref_when_it_exists(self, docs, source, someone_pushes):
        await docs.register(source)
        assert (await docs.fetch(source, branch="docs/x")).branch_commit is None
        theirs = await someone_pushes("docs/x", "docs/index.md", "Theirs\n")
        fetched = await docs.fetch(source, branch="docs/x")
        assert fetched.branch_commit == theirs
        assert (await self.files(docs, source, theirs))["docs/index.md"] == "Theirs\n"

    async def test_pushes_of_others_to_the_ref_are_fetched(self, docs, source, someone_pushes):
        await docs.register(source)
        before = await docs.fetch(source)
        theirs = await someone_pushes("main", "docs/index.md", "Theirs\n")
        after = await docs.fetch(source)
        assert (after.base_commit, before.base_commit != theirs) == (theirs, True)
        assert (await self.files(docs, source, theirs))["docs/index.md"] == "Theirs\n"
        assert (await self.files(docs, source, before.base_commit))["docs/index.md"] == FILES["docs/index.md"]

    async def test_history_names_the_commits_of_a_file(self, docs, source, someone_pushes):
        await docs.register(source)
        before = (await docs.fetch(source)).base_commit
        first = await someone_pushes("main", "docs/index.md", "One\n")
        await someone_pushes("main", "README.md", "Theirs\n")
        last = await someone_pushes("main", "docs/index.md", "Two\n")
        base = (await docs.fetch(source)).base_commit
        past = await docs.history(source, base, "docs/index.md", limit=10)
        assert [one.commit for one in past.commits] == [last, first, before]
        assert all(one.author and one.subject for one in past.commits)
        assert past.is_whole
        assert len((await docs.history(source, base, "docs/index.md", limit=2)).commits) == 2
        assert len((await docs.history(source, base, "", limit=10)).commits) == 4
        assert not (await docs.history(source, base, "nowhere.md", limit=10)).commits

    async def test_commit_of_the_history_tells_its_changes(self, docs, source, someone_pushes):
        await docs.register(source)
        first = await someone_pushes("main", "docs/index.md", "One\n")
        base = await someone_pushes("main", "README.md", "Theirs\n")
        assert (await docs.fetch(source)).base_commit == base
        changed = await docs.changed_by(source, base, first[:8], [])
        assert changed.commit.commit == first
        (file,) = changed.files
        contents = await docs.read_files(source, [file.old, file.new])
        assert (contents[file.old].decode(), contents[file.new]) == (FILES["docs/index.md"], b"One\n")
        assert not (await docs.changed_by(source, base, first, ["src"])).files
        with pytest.raises(NotFound):
            await docs.changed_by(source, base, "0" * 12, [])

    async def test_commits_and_branches_are_compared(self, docs, source, someone_pushes):
        await docs.register(source)
        before = (await docs.fetch(source)).base_commit
        released = await someone_pushes("v1.0", "docs/index.md", "Released\n")
        await someone_pushes("main", "docs/index.md", "One\n")
        await someone_pushes("main", "README.md", "Theirs\n")
        base = (await docs.fetch(source)).base_commit
        changed = await docs.compared(source, base, before[:10], "", [])
        assert changed.commit.commit == base
        assert [file.path for file in changed.files] == ["README.md", "docs/index.md"]
        (file,) = (await docs.compared(source, base, "v1.0", base, ["docs"])).files
        contents = await docs.read_files(source, [file.old, file.new])
        assert [contents[file.old], contents[file.new]] == [b"Released\n", b"One\n"]
        assert (await docs.compared(source, base, before, "v1.0", ["docs/index.md"])).commit.commit == released
        for name in ("0" * 12, "v9", "..", "a b"):
            with pytest.raises(NotFound):
                await docs.compared(source, base, name, "", [])

    async def test_a_push_makes_the_branch_and_can_be_repeated(self, docs, source):
        await docs.register(source)
        base = (await docs.fetch(source)).base_commit
        written = await docs.write_commit(source, commit(base, {"docs/index.md": "New\n"}))
        await docs.push(source, branch="docs/x", commit=written.commit)
        await docs.push(source, branch="docs/x", commit=written.commit)
        fetched = await docs.fetch(source, branch="docs/x")
        assert (fetched.base_commit, fetched.branch_commit) == (base, written.commit)

    async def test_a_second_push_moves_the_branch_forward(self, docs, source):
        await docs.register(source)
        base = (await docs.fetch(source)).base_commit
        first = await docs.write_commit(source, commit(base, {"docs/index.md": "One\n"}))
        await docs.push(source, branch="docs/x", commit=first.commit)
        second = await docs.write_commit(source, commit(first.commit, {"docs/index.md": "Two\n"}))
        await docs.push(source, branch="docs/x", commit=second.commit)
        assert (await docs.fetch(source, branch="docs/x")).branch_commit == second.commit

    async def test_a_push_after_the_ref_moved_still_makes_the_branch(self, docs, source, someone_pushes):
        await docs.register(source)
        base = (await docs.fetch(source)).base_commit
        await someone_pushes("main", "README.md", "Theirs\n")
        written = await docs.write_commit(source, commit(base, {"docs/index.md": "New\n"}))
        await docs.push(source, branch="docs/x", commit=written.commit)
        assert (await docs.fetch(source, branch="docs/x")).branch_commit == written.commit

    async def test_a_branch_with_other_commits_is_not_overwritten(self, docs, source, someone_pushes):
        await docs.register(source)
        base = (await docs.fetch(source)).base_commit
        theirs = await someone_pushes("docs/x", "docs/index.md", "Theirs\n")
        written = await docs.write_commit(source, commit(base, {"docs/index.md": "Ours\n"}))
        with pytest.raises(Conflict) as refused:
            await docs.push(source, branch="docs/x", commit=written.commit)
        assert refused.value.code == "branch_moved"
        assert (await docs.fetch(source, branch="docs/x")).branch_commit == theirs


class DocsSourceContract(TransportContract):
    """All of it."""

    async def test_files_are_listed_in_the_order_of_their_paths(self, docs, source):
        await docs.register(source)
        fetched = await docs.fetch(source)
        listed = await docs.list_files(source, fetched.base_commit)
        assert [file.path for file in listed] == sorted(FILES)
        content = FILES["docs/index.md"].encode()
        blob = sha1(b"blob %d\0" % len(content) + content).hexdigest()
        assert {file.path: file.blob for file in listed}["docs/index.md"] == blob

    async def test_a_file_is_read_by_its_blob(self, docs, source):
        await docs.register(source)
        fetched = await docs.fetch(source)
        by_path = {file.path: file.blob for file in await docs.list_files(source, fetched.base_commit)}
        assert (await docs.read_file(source, by_path["README.md"])).decode() == FILES["README.md"]

    async def test_missing_commits_are_not_found(self, docs, source):
        await docs.register(source)
        await docs.fetch(source)
        for name in ["0" * 40, "HEAD", "../../etc/passwd", ""]:
            with pytest.raises(NotFound):
                await docs.list_files(source, name)
            with pytest.raises(NotFound):
                await docs.read_file(source, name)
            with pytest.raises(NotFound):
                await docs.write_commit(source, commit(name, {"a.md": "a"}))

    async def test_a_commit_changes_what_it_names_and_nothing_else(self, docs, source):
        await docs.register(source)
        base = (await docs.fetch(source)).base_commit
        changes = {
            "docs/index.md": "New\n",
            "docs/new/deep/page.md": "Page\n",
            "docs/guide/start.md": None,
            "src/main.py": None,
        }
        written = await docs.write_commit(source, commit(base, changes))
        expected = FILES | changes
        kept = {path: text for path, text in expected.items() if text is not None}
        assert await self.files(docs, source, written.commit) == kept
        before = {file.path: file for file in await docs.list_files(source, base)}
        after = {file.path: file for file in await docs.list_files(source, written.commit)}
        assert before["README.md"] == after["README.md"]

    async def test_the_same_commit_has_the_same_id_as_git_gives_it(self, docs, source):
        await docs.register(source)
        base = (await docs.fetch(source)).base_commit
        new = commit(base, {"docs/index.md": "New ü\n"}, "docs: say it\n\nWhy: ü\n")
        first = await docs.write_commit(source, new)
        assert await docs.write_commit(source, new) == first
        assert first.tree == "fcd6c54d8fbe1217d95985cc9adf30c44735c8cc"
        who = f"{AUTHOR} {int(AT.timestamp())} +0000"
        text = f"tree {first.tree}\nparent {base}\nauthor {who}\ncommitter {who}\n\n{new.message}".encode()
        assert first.commit == sha1(b"commit %d\0" % len(text) + text).hexdigest()

    async def test_changes_between_two_commits_are_listed_and_read(self, docs, source):
        source = replace(source, docs_folder="docs")
        await docs.register(source)
        base = (await docs.fetch(source)).base_commit
        changes = {
            "docs/guide/start.md": None,
            "docs/guide/start.md/now/a/folder.md": "Deep\n",
            "docs/index.md": "New\n",
            "docs/large.md": "x" * (2 * 1024 * 1024 + 1),
            "docs/.docsmith/assistant.md": "Say please.\n",
            "mkdocs.yml": "site_name: Changed\n",
            "README.md": "# Not of the site\n",
            "src/main.py": None,
        }
        gone = await docs.write_commit(source, commit(base, {"docs/guide/start.md": None}))
        del changes["docs/guide/start.md"]
        written = await docs.write_commit(source, commit(gone.commit, changes))
        found = await docs.changes(source, base, written.commit)
        assert found.blobs.get("docs/large.md") is None
        assert {path: blob for path, blob in found.blobs.items() if path != "docs/large.md"} == {
            "docs/guide/start.md": None,
            "docs/guide/start.md/now/a/folder.md": _blob("Deep\n"),
            "docs/index.md": _blob("New\n"),
            "docs/.docsmith/assistant.md": _blob("Say please.\n"),
            "mkdocs.yml": _blob("site_name: Changed\n"),
        }
        with pickle.loads(pickle.dumps(found)).open() as read:
            assert read("docs/index.md", 100) == b"New\n"
            assert read("docs/index.md", 2) == b"Ne"
            assert read("docs/naïve page.md", 100).decode() == FILES["docs/naïve page.md"]
            for path in ("docs/large.md", "docs", "docs/nothing.md", "docs/index.md/x", "", "../docs/index.md"):
                assert read(path, 100) is None
        assert (await docs.changes(source, written.commit, written.commit)).blobs == {}
        assert await docs.changes(source, "1" * 40, written.commit) is None
        with pytest.raises(NotFound):
            await docs.changes(source, base, "1" * 40)

    async def test_merge_has_what_both_parents_changed(self, docs, source, someone_pushes):
        await docs.register(source)
        base = (await docs.fetch(source)).base_commit
        ours = await docs.write_commit(source, commit(base, {"docs/index.md": "# Ours\n", "new.md": "New\n"}))
        await docs.push(source, branch="docs/job", commit=ours.commit)
        await someone_pushes("main", "mkdocs.yml", "site_name: Theirs\n")
        theirs = await someone_pushes("main", "docs/index.md", "# Theirs\n")
        found = await docs.merge_base(source, branch="docs/job", commit=ours.commit, base_commit=theirs)
        assert found == base
        assert (await docs.fetch(source, branch="docs/job")).base_commit == theirs
        new = commit(ours.commit, {"docs/index.md": "# Both\n", "docs/guide/start.md": None})
        new = replace(new, merged=MergedCommit(theirs, base))
        written = await docs.write_commit(source, new)
        assert await docs.write_commit(source, new) == written
        files = await self.files(docs, source, written.commit)
        assert (files["docs/index.md"], files["mkdocs.yml"]) == ("# Both\n", "site_name: Theirs\n")
        assert files["new.md"] == "New\n"
        assert "docs/guide/start.md" not in files
        body = f"tree {written.tree}\nparent {ours.commit}\nparent {theirs}\n"
        who = f"{AUTHOR} {int(AT.timestamp())} +0000"
        content = f"{body}author {who}\ncommitter {who}\n\n{new.message}"
        assert written.commit == sha1(f"commit {len(content)}\0{content}".encode()).hexdigest()
        await docs.push(source, branch="docs/job", commit=written.commit)
        found = await docs.merge_base(source, branch="docs/job", commit=written.commit, base_commit=theirs)
        assert found == theirs
        with pytest.raises(Conflict) as refused:
            await docs.write_commit(source, replace(new, changes={}))
        assert refused.value.code == "merge_conflict"

    async def test_commit_can_have_a_written_one_as_parent(self, docs, source):
        await docs.register(source)
        base = (await docs.fetch(source)).base_commit
        first = await docs.write_commit(source, commit(base, {"a.md": "a\n"}))
        second = await docs.write_commit(source, commit(first.commit, {"b.md": "b\n"}))
        assert {"a.md", "b.md"} <= (await self.files(docs, source, second.commit)).keys()

    async def test_a_file_can_change_the_case_of_its_name(self, docs, source):
        await docs.register(source)
        base = (await docs.fetch(source)).base_commit
        written = await docs.write_commit(source, commit(base, {"README.md": None, "readme.md": "x\n"}))
        assert "readme.md" in await self.files(docs, source, written.commit)

    async def test_a_path_that_is_unsafe_or_taken_is_refused(self, docs, source):
        await docs.register(source)
        base = (await docs.fetch(source)).base_commit
        for path in REFUSED_PATHS:
            with pytest.raises(Invalid) as refused:
                await docs.write_commit(source, commit(base, {path: "x"}))
            assert refused.value.code == "bad_path", path

    async def test_a_file_that_is_not_there_cannot_be_deleted(self, docs, source):
        await docs.register(source)
        base = (await docs.fetch(source)).base_commit
        with pytest.raises(Invalid):
            await docs.write_commit(source, commit(base, {"docs/none.md": None}))

    async def test_the_export_holds_the_docs_and_the_site_configuration(self, docs, source, tmp_path):
        await docs.register(source)
        base = (await docs.fetch(source)).base_commit
        archive = tmp_path / "docs.tar"
        await docs.export(replace(source, docs_folder="docs"), base, archive)
        with tarfile.open(archive) as tar:
            exported = {member.name: tar.extractfile(member).read().decode() for member in tar.getmembers()}
        expected = {path for path in FILES if path.startswith("docs/")} | {"mkdocs.yml"}
        assert exported == {path: text for path, text in FILES.items() if path in expected}
        await docs.export(replace(source, docs_folder=""), base, archive)
        with tarfile.open(archive) as tar:
            assert set(tar.getnames()) == set(FILES)

    async def test_folders_of_a_hugo_site_are_exported_from_above(self, docs, source, tmp_path):
        await docs.register(source)
        base = (await docs.fetch(source)).base_commit
        kept = {"config/_default/hugo.toml", "layouts/shortcodes/note.html"}
        texts = dict.fromkeys((*kept, "layouts/index.html", "src/config/_default/hugo.toml", "config/x.toml"), "x")
        written = await docs.write_commit(source, commit(base, texts))
        archive = tmp_path / "docs.tar"
        await docs.export(replace(source, docs_folder="docs"), written.commit, archive)
        with tarfile.open(archive) as tar:
            assert texts.keys() & set(tar.getnames()) == kept

    async def test_owner_instructions_are_exported_from_folders_above(self, docs, source, tmp_path):
        await docs.register(source)
        base = (await docs.fetch(source)).base_commit
        texts = {".docsmith/assistant.md": "Be brief.\n", ".docsmith/other.md": "x", "src/.docsmith/assistant.md": "x"}
        written = await docs.write_commit(source, commit(base, dict(texts)))
        archive = tmp_path / "docs.tar"
        await docs.export(replace(source, docs_folder="docs"), written.commit, archive)
        with tarfile.open(archive) as tar:
            assert texts.keys() & set(tar.getnames()) == {".docsmith/assistant.md"}
