"""People go on working on the folder or repository that a hosted one was made from."""

import os

import pytest
from dulwich.refs import Ref
from msgspec.structs import replace

from service.adapters.git.dulwich_docs import DulwichDocs
from service.adapters.git.import_repository import import_repository
from service.adapters.git.objects import list_files, read_blobs
from service.adapters.git.remote.remotes import Remote
from service.adapters.git.repositories import branch_commit, commit_of, opened
from service.adapters.git.upstream_sync import TAKEN_IN, refresh, state_of
from service.domain.errors import Conflict, Invalid
from tests.adapters.test_dulwich_docs import LOCAL, commit_to, make_repository, write_folder
from tests.contracts.docs_source import FILES


class Hosted:
    """A hosted repository and where it came from."""

    def __init__(self, path, origin):
        self.path, self.origin = path, origin
        self.remote = Remote("", str(origin))
        import_repository(path, self.remote, "main")

    def refresh(self):
        return refresh(self.path, self.remote, "main")

    def head(self):
        with opened(self.path) as repository:
            return branch_commit(repository, "main").decode()

    def parents(self):
        with opened(self.path) as repository:
            return [parent.decode() for parent in commit_of(repository, self.head()).parents]

    def files(self):
        with opened(self.path) as repository:
            listed = list_files(repository, commit_of(repository, self.head()))
            contents = read_blobs(repository, [file.blob for file in listed])
        return {file.path: contents[file.blob].decode() for file in listed}


@pytest.fixture
def hosted(tmp_path):
    return Hosted(tmp_path / "hosted" / "p1.git", write_folder(tmp_path / "folder"))


@pytest.fixture
def of_git(tmp_path):
    from dulwich.objects import Blob, Tree

    blob, tree = Blob.from_string(b"# Read me\n"), Tree()
    tree.add(b"README.md", 0o100644, blob.id)
    make_repository(tmp_path / "theirs.git", tree, blob)
    return Hosted(tmp_path / "hosted" / "p1.git", tmp_path / "theirs.git")


def test_changes_in_a_folder_are_imported(hosted):
    (hosted.origin / "docs/index.md").write_text("# Changed\n")
    (hosted.origin / "docs/new.md").write_text("# New\n")
    (hosted.origin / "README.md").unlink()
    before = hosted.head()
    assert hosted.refresh()
    expected = {**FILES, "docs/index.md": "# Changed\n", "docs/new.md": "# New\n"}
    del expected["README.md"]
    assert hosted.files() == expected
    assert hosted.parents() == [before]
    assert not hosted.refresh()
    (hosted.origin / "docs/new.md").unlink()
    assert hosted.refresh()
    assert "docs/new.md" not in hosted.files()


def test_a_folder_that_did_not_change_makes_no_commit(hosted):
    before = hosted.head()
    os.utime(hosted.origin / "README.md")
    assert not hosted.refresh()
    assert hosted.head() == before


def test_changes_merged_here_stay(hosted):
    here = commit_to(hosted.path, "main", "docs/guide/start.md", "# Merged here\n")
    (hosted.origin / "docs/index.md").write_text("# Changed\n")
    assert hosted.refresh()
    assert hosted.files() == FILES | {"docs/guide/start.md": "# Merged here\n", "docs/index.md": "# Changed\n"}
    assert hosted.parents()[0] == here
    (hosted.origin / "docs/index.md").write_text("# Changed again\n")
    assert hosted.refresh()
    assert hosted.files()["docs/index.md"] == "# Changed again\n"
    assert hosted.files()["docs/guide/start.md"] == "# Merged here\n"


def test_file_changed_on_both_sides_stops_all_until_they_agree(hosted):
    here = commit_to(hosted.path, "main", "docs/index.md", "# Here\n")
    (hosted.origin / "docs/index.md").write_text("# There\n")
    (hosted.origin / "docs/new.md").write_text("# New\n")
    for _ in range(2):
        with pytest.raises(Conflict, match=r"docs/index\.md was changed"):
            hosted.refresh()
    assert hosted.head() == here
    (hosted.origin / "docs/index.md").write_text("# Here\n")
    assert hosted.refresh()
    assert hosted.files()["docs/index.md"] == "# Here\n"
    assert hosted.files()["docs/new.md"] == "# New\n"


def test_a_crash_before_the_end_is_made_up_for(hosted):
    (hosted.origin / "docs/index.md").write_text("# Changed\n")
    assert hosted.refresh()
    after = hosted.head()
    with opened(hosted.path) as repository:
        repository.refs.remove_if_equals(Ref(TAKEN_IN), None)
    assert not hosted.refresh()
    assert hosted.head() == after
    (hosted.origin / "docs/index.md").write_text("# Changed again\n")
    assert hosted.refresh()
    assert hosted.files()["docs/index.md"] == "# Changed again\n"


def test_commits_of_a_repository_are_imported_as_they_are(of_git):
    assert not of_git.refresh()
    theirs = commit_to(of_git.origin, "main", "a.md", "A\n")
    assert of_git.refresh()
    assert of_git.head() == theirs
    here = commit_to(of_git.path, "main", "b.md", "B\n")
    assert not of_git.refresh()
    later = commit_to(of_git.origin, "main", "c.md", "C\n")
    assert of_git.refresh()
    assert of_git.parents() == [here, later]
    assert of_git.files().keys() == {"README.md", "a.md", "b.md", "c.md"}
    assert not of_git.refresh()


def test_missing_folder_is_reported(hosted):
    hosted.origin.rename(hosted.origin.with_name("moved"))
    with pytest.raises(Invalid, match="is not a folder"):
        hosted.refresh()
    assert hosted.files() == FILES


def test_the_state_of_a_folder_changes_with_its_files(hosted):
    states = {state_of(hosted.remote, "main")}
    (hosted.origin / "docs/index.md").write_text("# Changed\n")
    states.add(state_of(hosted.remote, "main"))
    (hosted.origin / "docs/index.md").rename(hosted.origin / "docs/renamed.md")
    states.add(state_of(hosted.remote, "main"))
    (hosted.origin / "node_modules").mkdir()
    (hosted.origin / "node_modules" / "x.js").write_text("x")
    states.add(state_of(hosted.remote, "main"))
    assert len(states) == 3


async def test_only_a_hosted_repository_has_something_to_take_in(tmp_path):
    folder = write_folder(tmp_path / "folder")
    docs = DulwichDocs(tmp_path / "data", env={})
    source = replace(LOCAL, repository=str(folder))
    await docs.register(source)
    before = (await docs.fetch(source)).base_commit
    assert not await docs.refresh(replace(source, code_host="github"))
    (folder / "docs/index.md").write_text("# Changed\n")
    assert await docs.refresh(source)
    after = (await docs.fetch(source)).base_commit
    assert set((await docs.changes(source, before, after)).blobs) == {"docs/index.md"}
    assert not await docs.refresh(source)
