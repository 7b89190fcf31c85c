"""The embedded code host: pull requests, their pages, merging and closing, whatever happens in between."""

import asyncio
import re
import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pytest
from dulwich.objects import Commit, ObjectID, Tree
from dulwich.repo import MemoryRepo
from msgspec.structs import replace

from service.adapters.git import objects as git_objects
from service.adapters.git.history import History
from service.adapters.git.import_repository import import_repository
from service.adapters.git.objects import Objects
from service.adapters.git.remote.remotes import Remote
from service.adapters.git.repositories import branch_commit, commit_of, opened
from service.adapters.hosted.code_host import HostedCodeHost
from service.adapters.hosted.diff import FILES_PER_PAGE, LINE_STEPS, MAX_LINES, Diff, compared
from service.domain.errors import Conflict, NotFound
from service.domain.texts.comparison import Effort
from service.ports.code_host import MAX_SHOWN_LINE, DiffHunk, DiffLine
from service.ports.docs_source import NewCommit, Source
from service.web.pages.pull_request_views import Place, make_file, make_page
from tests.contracts.code_host import NEW, CodeHostContract
from tests.fakes.code_host import FakeCodeHost
from tests.patches import hunks_of, patch_of

SOURCE = Source("p1", "", "main", "", "local")
PLACE = Place("../../", "", "1-token")
NOW = datetime(2026, 3, 14, 9, 26, 53, tzinfo=UTC)
FILES = {
    "README.md": "# Read me\n",
    "docs/one.md": "".join(f"Line {number}\n" for number in range(1, 41)),
    "docs/two.md": "Two\n",
    "docs/old/name.md": "".join(f"A line to recognise {number}\n" for number in range(12)),
}


class Repository:
    """The hosted repository, and a person at work in it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def tip(self, branch: str) -> str:
        with opened(self.path) as repository:
            return branch_commit(repository, branch).decode()

    def commit(self, branch: str, changes: dict[str, str | None], *, onto: str = "") -> str:
        with opened(self.path) as repository:
            parent = onto or (branch_commit(repository, branch) or branch_commit(repository, "main")).decode()
            new = NewCommit(parent, changes, "Ada <ada@example.com>", f"Change {branch}\n\nWhy.\n", NOW)
            written = git_objects.write_commit(repository, new, commit_of(repository, parent))
            self.point(branch, written.commit)
            return written.commit

    def point(self, branch: str, commit: str) -> None:
        with opened(self.path) as repository:
            repository.refs[f"refs/heads/{branch}".encode()] = ObjectID(commit.encode())

    def delete(self, branch: str) -> None:
        with opened(self.path) as repository:
            repository.refs.remove_if_equals(f"refs/heads/{branch}".encode(), None)

    def files(self, branch: str) -> dict[str, str]:
        with opened(self.path) as repository:
            listed = git_objects.list_files(repository, commit_of(repository, self.tip(branch)))
            contents = git_objects.read_blobs(repository, [file.blob for file in listed])
            return {file.path: contents[file.blob].decode() for file in listed}

    def parents(self, commit: str) -> list[str]:
        with opened(self.path) as repository:
            return [parent.decode() for parent in commit_of(repository, commit).parents]


@pytest.fixture(scope="module")
def taken_in(tmp_path_factory):
    folder, data = tmp_path_factory.mktemp("folder"), tmp_path_factory.mktemp("taken-in")
    for path, text in FILES.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    import_repository(data / "hosted" / "p1.git", Remote("", str(folder)), "main")
    repository = Repository(data / "hosted" / "p1.git")
    repository.commit("docs/one", {"docs/one.md": FILES["docs/one.md"].replace("Line 20\n", "Line twenty\n")})
    repository.commit("docs/two", {"docs/two.md": "Two, changed\n"})
    return data


@pytest.fixture
def data(taken_in, tmp_path):
    return shutil.copytree(taken_in, tmp_path / "data")


@pytest.fixture
def repository(data):
    return Repository(data / "hosted" / "p1.git")


@pytest.fixture
def code_host(data):
    return HostedCodeHost(data, base_url=lambda: "http://docs.example:8080")


def token(pull_request):
    return re.fullmatch(r"http://docs\.example:8080/hosted/p1/pulls/\d+-(.+)", pull_request.url)[1]


@pytest.fixture
async def opened_pull(code_host):
    return await code_host.open_pull_request(SOURCE, NEW)


class TestFakeCodeHost(CodeHostContract):
    @pytest.fixture
    def code_host(self):
        return FakeCodeHost()

    @pytest.fixture
    def source(self):
        return SOURCE

    @pytest.fixture
    def close(self, code_host):
        async def close(pull_request):
            code_host.end(pull_request.number, "closed")

        return close

    @pytest.fixture
    def merge(self, code_host):
        async def merge(pull_request):
            code_host.end(pull_request.number, "merged")

        return merge


class TestHostedCodeHost(CodeHostContract):
    @pytest.fixture
    def code_host(self, code_host):
        return code_host

    @pytest.fixture
    def source(self):
        return SOURCE

    @pytest.fixture
    def close(self, code_host):
        async def close(pull_request):
            await code_host.close("p1", pull_request.number, token(pull_request), now=NOW)

        return close

    @pytest.fixture
    def merge(self, code_host):
        async def merge(pull_request):
            await code_host.merge("p1", pull_request.number, token(pull_request), now=NOW)

        return merge


class TestOpening:
    async def test_its_address_cannot_be_guessed_and_its_commit_has_a_ref(self, opened_pull, repository):
        assert len(token(opened_pull)) >= 22  # of 64 characters each: 132 bits
        with opened(repository.path) as git:
            assert git.refs[b"refs/pull/1/head"].decode() == repository.tip("docs/one")

    async def test_two_openings_at_once_are_one_pull_request(self, data):
        hosts = [HostedCodeHost(data, base_url=lambda: "http://docs.example:8080") for _ in range(6)]
        found = await asyncio.gather(*(host.open_pull_request(SOURCE, NEW) for host in hosts))
        assert len(set(found)) == 1

    async def test_those_of_other_branches_are_not_read(self, code_host, data, repository, opened_pull):
        """Thousands may be open."""
        (data / "hosted" / "p1.git" / "docsmith" / "pulls" / "1.json").write_text("damaged")
        assert (await code_host.open_pull_request(SOURCE, replace(NEW, head="docs/two"))).number == 2

    async def test_pull_request_older_than_the_branch_index_is_found(self, code_host, data, opened_pull):
        shutil.rmtree(data / "repos" / "p1.heads")
        assert await code_host.open_pull_request(SOURCE, NEW) == opened_pull

    async def test_crash_around_noting_a_branch_spoils_nothing(self, code_host, data, repository):
        heads = data / "repos" / "p1.heads"
        first = await code_host.open_pull_request(SOURCE, replace(NEW, head="docs/two"))
        assert first.number == 1
        (noted,) = heads.iterdir()
        with noted.open("ab") as file:
            file.write(b"\n2\n\n3")  # of a number that was never given, and half of another line
        await code_host.close("p1", 1, token(first), now=NOW)
        again = await code_host.open_pull_request(SOURCE, replace(NEW, head="docs/two"))
        assert again.number == 2
        assert await code_host.open_pull_request(SOURCE, replace(NEW, head="docs/two")) == again

    async def test_numbers_are_given_once(self, code_host, repository):
        for number in range(12):
            repository.commit(f"docs/n{number}", {f"n{number}.md": "x\n"})
        heads = [replace(NEW, head=f"docs/n{number}") for number in range(12)]
        found = await asyncio.gather(*(code_host.open_pull_request(SOURCE, new) for new in heads))
        assert sorted(pull.number for pull in found) == list(range(1, 13))

    @pytest.mark.parametrize(
        ("new", "code"),
        [
            (replace(NEW, head="docs/none"), "no_such_branch"),
            (replace(NEW, base="none"), "no_such_branch"),
            (replace(NEW, head="../../HEAD"), "no_such_branch"),
            (replace(NEW, head="main"), "no_commits"),
        ],
    )
    async def test_pull_request_that_cannot_be_opened_is_refused(self, code_host, new, code):
        with pytest.raises(Conflict) as refused:
            await code_host.open_pull_request(SOURCE, new)
        assert refused.value.code == code

    @pytest.mark.parametrize("project_id", ["p2", "../p1", "p1.git/..", ""])
    async def test_a_repository_that_does_not_exist_is_not_found(self, code_host, project_id):
        with pytest.raises(NotFound):
            await code_host.open_pull_request(replace(SOURCE, project_id=project_id), NEW)

    async def test_after_it_was_closed_a_new_one_is_opened(self, code_host, opened_pull):
        await code_host.close("p1", 1, token(opened_pull), now=NOW)
        again = await code_host.open_pull_request(SOURCE, NEW)
        assert (again.number, again.state) == (2, "open")


class TestPage:
    async def test_page_shows_what_the_head_adds(self, code_host, opened_pull, repository):
        repository.commit("main", {"README.md": "Not part of it\n"})
        page = await code_host.page("p1", 1, token(opened_pull))
        assert page.pull_request == opened_pull
        assert page.body == NEW.body
        assert [commit.commit for commit in page.commits] == [repository.tip("docs/one")]
        assert page.commits[0].author == "Ada <ada@example.com>"
        assert page.commits[0].message == "Change docs/one\n\nWhy.\n"
        assert page.commits[0].committed_at == NOW
        (file,) = page.files
        assert (file.path, file.kind, file.added, file.removed) == ("docs/one.md", "changed", 1, 1)
        assert file.hunks == hunks_of(
            "@@ -17,7 +17,7 @@\n Line 17\n Line 18\n Line 19\n-Line 20\n+Line twenty\n Line 21\n Line 22\n Line 23\n"
        )
        assert page.mergeable
        assert not page.truncated

    async def test_a_wrong_token_and_a_wrong_number_look_alike(self, code_host, opened_pull):
        right = token(opened_pull)
        messages = set()
        for project_id, number, given in [
            ("p1", 1, "wrong"), ("p1", 1, ""), ("p1", 1, right + "x"), ("p1", 2, right), ("p1", -1, right),
            ("p2", 1, right), ("../p1", 1, right), ("p1", 1, "\ud800"),
        ]:  # fmt: skip
            for call in (
                code_host.page(project_id, number, given),
                code_host.merge(project_id, number, given, now=NOW),
                code_host.close(project_id, number, given, now=NOW),
            ):
                with pytest.raises(NotFound) as refused:
                    await call
                messages.add(str(refused.value))
        assert len(messages) == 1
        assert (await code_host.page("p1", 1, right)).pull_request.state == "open"

    async def test_later_commits_of_the_head_appear(self, code_host, opened_pull, repository):
        later = repository.commit("docs/one", {"docs/new.md": "New\n"})
        page = await code_host.page("p1", 1, token(opened_pull))
        assert {file.path for file in page.files} == {"docs/one.md", "docs/new.md"}
        assert len(page.commits) == 2
        with opened(repository.path) as git:
            assert git.refs[b"refs/pull/1/head"].decode() == later

    async def test_every_kind_of_change_is_described(self, code_host, repository):
        moved = FILES["docs/old/name.md"].replace("recognise 3\n", "recognise three\n")
        repository.commit(
            "docs/kinds",
            {
                "docs/old/name.md": None,
                "docs/new/name.md": moved,
                "docs/two.md": None,
                "docs/added.md": "No newline at its end",
                "docs/binary.md": "a\0b",
            },
        )
        opened_pull = await code_host.open_pull_request(SOURCE, replace(NEW, head="docs/kinds"))
        files = {file.path: file for file in (await code_host.page("p1", 1, token(opened_pull))).files}
        assert {path: file.kind for path, file in files.items()} == {
            "docs/added.md": "added",
            "docs/binary.md": "added",
            "docs/new/name.md": "moved",
            "docs/two.md": "deleted",
        }
        assert files["docs/new/name.md"].old_path == "docs/old/name.md"
        assert (files["docs/new/name.md"].added, files["docs/new/name.md"].removed) == (1, 1)
        assert files["docs/added.md"].hunks == [
            DiffHunk(0, 1, [DiffLine("added", "No newline at its end", ends_file_without_newline=True)])
        ]
        assert files["docs/two.md"].hunks == [DiffHunk(1, 0, [DiffLine("removed", "Two")])]
        assert (files["docs/binary.md"].binary, files["docs/binary.md"].hunks) == (True, ())

    async def test_many_files_come_page_by_page(self, code_host, repository):
        paths = [f"many/{number:03}.md" for number in range(FILES_PER_PAGE + 20)]
        repository.commit("docs/many", dict.fromkeys(paths, "x\n"))
        opened_pull = await code_host.open_pull_request(SOURCE, replace(NEW, head="docs/many"))
        first = await code_host.page("p1", 1, token(opened_pull))
        rest = await code_host.page("p1", 1, token(opened_pull), first_file=FILES_PER_PAGE + 1)
        assert [file.path for page in (first, rest) for file in page.files] == paths
        assert (first.file_count, rest.file_count, rest.truncated) == (len(paths), len(paths), False)
        assert {(len(file.hunks), file.added, file.lines) for file in first.files} == {(1, 1, 2)}
        shown = await code_host.file("p1", 1, token(opened_pull), place=len(paths), version=first.version)
        assert (shown.file.path, shown.file.hunks) == (paths[-1], hunks_of("@@ -0,0 +1 @@\n+x\n"))

    async def test_long_file_has_a_page_with_its_beginning(self, code_host, repository):
        repository.commit("docs/large", {"large.md": "0123456789\n" * 100_000, "small.md": "x\n"})
        opened_pull = await code_host.open_pull_request(SOURCE, replace(NEW, head="docs/large"))
        page = await code_host.page("p1", 1, token(opened_pull))
        large, small = page.files
        assert (large.hunks, large.added, small.hunks) == (None, 100_000, hunks_of("@@ -0,0 +1 @@\n+x\n"))
        shown = (await code_host.file("p1", 1, token(opened_pull), place=1, version=page.version)).file
        assert (len(shown.hunks[0].lines) + 1, shown.is_cut, shown.added) == (MAX_LINES, True, 100_000)

    async def test_files_beyond_the_lines_of_a_page_stand_apart(self, code_host, repository):
        repository.commit("docs/much", {f"much/{number}.md": "x\n" * 390 for number in range(7)})
        opened_pull = await code_host.open_pull_request(SOURCE, replace(NEW, head="docs/much"))
        page = await code_host.page("p1", 1, token(opened_pull))
        assert [file.hunks is None for file in page.files] == [False] * 5 + [True] * 2

    async def test_lines_that_look_like_a_patch_are_text(self, code_host, repository):
        lines = ["@@ -1 +1 @@", "+++ b/x.md", "\\ No newline at end of file", "-", "x" * 3_000]
        repository.commit("docs/odd", {"odd.md": "\r\n".join(lines)})
        opened_pull = await code_host.open_pull_request(SOURCE, replace(NEW, head="docs/odd"))
        (file,) = (await code_host.page("p1", 1, token(opened_pull))).files
        *short, long = [line for hunk in file.hunks for line in hunk.lines]
        assert [line.text.removesuffix("\r") for line in short] == lines[:-1]
        assert (len(long.text), long.is_cut, long.ends_file_without_newline) == (MAX_SHOWN_LINE, True, True)
        assert file.lines == 1 + len(lines) + 1

    async def test_texts_of_a_file_before_and_after(self, code_host, repository):
        changes = {
            "docs/two.md": "2\n",
            "README.md": None,
            "new.md": "New\n",
            "a.bin": "\0",
            "long.md": "x\n" * (3 << 20),
        }
        repository.commit("docs/one", changes)
        opened = await code_host.open_pull_request(SOURCE, NEW)
        page = await code_host.page("p1", opened.number, token(opened))
        found = {}
        for place in range(1, len(page.files) + 1):
            one = await code_host.texts("p1", 1, token(opened), place=place, version=page.version)
            found[one.path] = (one.before, one.after, one.is_text)
        found.pop("docs/one.md", None)
        assert found == {
            "README.md": ("# Read me\n", None, True), "a.bin": (None, None, False),
            "docs/two.md": ("Two\n", "2\n", True), "long.md": (None, None, False), "new.md": (None, "New\n", True),
        }  # fmt: skip
        with pytest.raises(NotFound):
            await code_host.texts("p1", 1, token(opened), place=9, version=page.version)
        with pytest.raises(NotFound):
            await code_host.texts("p1", 1, "wrong", place=1, version=page.version)
        repository.commit("docs/one", {"more.md": "More\n"})
        with pytest.raises(Conflict):
            await code_host.texts("p1", 1, token(opened), place=1, version=page.version)

    async def test_file_of_other_commits_is_a_conflict(self, code_host, opened_pull, repository):
        page = await code_host.page("p1", 1, token(opened_pull))
        repository.commit("docs/one", {"docs/new.md": "New\n"})
        with pytest.raises(Conflict):
            await code_host.file("p1", 1, token(opened_pull), place=1, version=page.version)
        newer = await code_host.page("p1", 1, token(opened_pull))
        with pytest.raises(NotFound):
            await code_host.file("p1", 1, token(opened_pull), place=9, version=newer.version)
        with pytest.raises(NotFound):
            await code_host.file("p1", 1, "wrong", place=1, version=newer.version)

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ("", "x" * 1_900_000),
            ("&\x01" * 200_000 + "\n", "&\x02" * 200_000 + "\n"),
            ("a\rb\r" * 100_000, "a\rc\r" * 100_000),
            ("".join(f"{'.!' * 200}{number}\n" for number in range(163)),
             "".join(f"{'.?' * 200}{number}\n" for number in range(163))),
            ("\n".join("ab" * 5_000), "\n".join("ac" * 5_000)),
            ("\n" * 100_000, "x\n" * 50_000 + "\n" * 50_000),
        ],
        ids=["one line", "control characters", "carriage returns", "punctuation", "letters", "empty lines"],
    )  # fmt: skip
    async def test_page_of_any_diff_is_bounded(self, code_host, repository, old, new):
        files = {f"{number}.md": old for number in range(5)}
        repository.commit("main", files)
        repository.commit("docs/hostile", dict.fromkeys(files, new))
        opened_pull = await code_host.open_pull_request(SOURCE, replace(NEW, head="docs/hostile"))
        page = await code_host.page("p1", 1, token(opened_pull))
        shown = await code_host.file("p1", 1, token(opened_pull), place=1, version=page.version)
        for made in (make_page(page, PLACE, ""), make_file(shown, 1, PLACE)):
            assert len(made.html) < 4_000_000
            assert made.html.count("<tr") <= MAX_LINES + 2


class TestMerging:
    async def test_a_fast_forward_where_possible(self, code_host, opened_pull, repository):
        page = await code_host.merge("p1", 1, token(opened_pull), now=NOW)
        assert page.pull_request.state == "merged"
        assert page.merge_commit == repository.tip("main") == repository.tip("docs/one")
        assert page.closed_at == NOW
        assert not page.mergeable
        assert [file.path for file in page.files] == ["docs/one.md"]
        assert len(page.commits) == 1

    async def test_a_merge_commit_where_the_base_moved(self, code_host, opened_pull, repository):
        ours = repository.commit("main", {"README.md": "Ours\n", "docs/old/more.md": "More\n"})
        page = await code_host.merge("p1", 1, token(opened_pull), now=NOW)
        assert repository.parents(page.merge_commit) == [ours, repository.tip("docs/one")]
        assert page.merge_commit == repository.tip("main")
        merged = repository.files("main")
        assert (merged["README.md"], merged["docs/old/more.md"]) == ("Ours\n", "More\n")
        assert "Line twenty\n" in merged["docs/one.md"]
        assert [file.path for file in page.files] == ["docs/one.md"]

    async def test_only_the_commits_of_a_version_are_merged(self, code_host, opened_pull, repository):
        shown = await code_host.page("p1", 1, token(opened_pull))
        repository.commit("docs/one", {"docs/later.md": "Pushed later\n"})
        with pytest.raises(Conflict) as refused:
            await code_host.merge("p1", 1, token(opened_pull), now=NOW, version=shown.version)
        assert refused.value.code == "branch_moved"
        assert "docs/later.md" not in repository.files("main")
        repository.commit("main", {"README.md": "Ours\n"})
        shown = await code_host.page("p1", 1, token(opened_pull))
        repository.commit("main", {"README.md": "Ours again\n"})  # a page is about the branch, not about its base
        page = await code_host.merge("p1", 1, token(opened_pull), now=NOW, version=shown.version)
        assert page.pull_request.state == "merged"

    async def test_a_file_that_both_changed_is_a_conflict(self, code_host, opened_pull, repository):
        ours = repository.commit("main", {"docs/one.md": "Ours\n"})
        assert not (await code_host.page("p1", 1, token(opened_pull))).mergeable
        with pytest.raises(Conflict, match=r"docs/one\.md") as refused:
            await code_host.merge("p1", 1, token(opened_pull), now=NOW)
        assert refused.value.code == "merge_conflict"
        assert repository.tip("main") == ours
        assert (await code_host.page("p1", 1, token(opened_pull))).pull_request.state == "open"

    async def test_changes_of_different_lines_are_merged(self, code_host, opened_pull, repository):
        ours = FILES["docs/one.md"].replace("Line 2\n", "Line two\n")
        repository.commit("main", {"docs/one.md": ours})
        assert (await code_host.page("p1", 1, token(opened_pull))).mergeable
        await code_host.merge("p1", 1, token(opened_pull), now=NOW)
        assert "Line two\n" in repository.files("main")["docs/one.md"]
        assert "Line twenty\n" in repository.files("main")["docs/one.md"]

    @pytest.mark.parametrize(
        ("ours", "theirs", "merges"),
        [
            ({"docs/two.md": None}, {"docs/two.md": "Changed\n"}, False),
            ({"docs/two.md": "Changed\n"}, {"docs/two.md": None}, False),
            ({"docs/two.md": "Same\n"}, {"docs/two.md": "Same\n"}, True),
            ({"docs/two.md": None}, {"docs/two.md": None}, True),
            ({"new.md": "One\n"}, {"new.md": "Another\n"}, False),
            ({"new": "A file\n"}, {"new/page.md": "A folder\n"}, False),
            ({"new/one.md": "1\n"}, {"new/two.md": "2\n"}, True),
            ({"docs/old/name.md": None}, {"docs/old/other.md": "x\n"}, True),
            ({"docs/old/name.md": None}, {"docs/two.md": None}, True),
        ],
    )
    async def test_both_sides_against_where_they_parted(self, code_host, repository, ours, theirs, merges):
        repository.commit("docs/theirs", theirs)
        opened_pull = await code_host.open_pull_request(SOURCE, replace(NEW, head="docs/theirs"))
        repository.commit("main", ours)
        page = await code_host.page("p1", 1, token(opened_pull))
        assert page.mergeable == merges
        if not merges:
            return
        await code_host.merge("p1", 1, token(opened_pull), now=NOW)
        expected = {path: text for path, text in (FILES | ours | theirs).items() if text is not None}
        assert repository.files("main") == expected

    async def test_merging_again_changes_nothing(self, code_host, opened_pull, repository):
        first = await code_host.merge("p1", 1, token(opened_pull), now=NOW)
        repository.commit("main", {"README.md": "Later\n"})
        assert await code_host.merge("p1", 1, token(opened_pull), now=datetime.now(UTC)) == first

    async def test_merges_at_once_are_one(self, data, opened_pull, repository):
        repository.commit("main", {"README.md": "Ours\n"})
        hosts = [HostedCodeHost(data, base_url=lambda: "http://docs.example:8080") for _ in range(5)]
        pages = await asyncio.gather(*(host.merge("p1", 1, token(opened_pull), now=NOW) for host in hosts))
        assert {page.merge_commit for page in pages} == {repository.tip("main")}

    async def test_pull_request_merged_with_git_is_merged(self, code_host, opened_pull, repository):
        repository.point("main", repository.tip("docs/one"))
        page = await code_host.page("p1", 1, token(opened_pull))
        assert page.pull_request.state == "merged"
        assert page.merge_commit == repository.tip("main")
        assert [file.path for file in page.files] == ["docs/one.md"]
        with pytest.raises(Conflict):
            await code_host.close("p1", 1, token(opened_pull), now=NOW)

    async def test_a_crash_between_the_branch_and_the_record_is_mended(self, code_host, opened_pull, repository, data):
        file = repository.path / "docsmith" / "pulls" / "1.json"
        before = file.read_bytes()
        repository.commit("main", {"README.md": "Ours\n"})
        merged = await code_host.merge("p1", 1, token(opened_pull), now=NOW)
        file.write_bytes(before)  # as if the process had died before it was written
        again = await code_host.merge("p1", 1, token(opened_pull), now=NOW)
        assert (again.merge_commit, again.pull_request.state) == (merged.merge_commit, "merged")
        assert repository.tip("main") == merged.merge_commit

    async def test_a_head_that_was_deleted_can_still_be_merged(self, code_host, opened_pull, repository):
        head = repository.tip("docs/one")
        repository.delete("docs/one")
        assert (await code_host.merge("p1", 1, token(opened_pull), now=NOW)).merge_commit == head

    async def test_a_closed_one_is_not_merged(self, code_host, opened_pull, repository):
        main = repository.tip("main")
        closed = await code_host.close("p1", 1, token(opened_pull), now=NOW)
        assert (closed.pull_request.state, closed.closed_at, closed.mergeable) == ("closed", NOW, False)
        assert await code_host.close("p1", 1, token(opened_pull), now=datetime.now(UTC)) == closed
        with pytest.raises(Conflict) as refused:
            await code_host.merge("p1", 1, token(opened_pull), now=NOW)
        assert refused.value.code == "pull_request_closed"
        assert repository.tip("main") == main

    @pytest.mark.skipif(shutil.which("git") is None, reason="there is no git on this machine")
    async def test_git_finds_nothing_wrong(self, code_host, opened_pull, repository):
        repository.commit("main", {"README.md": "Ours\n"})
        await code_host.merge("p1", 1, token(opened_pull), now=NOW)
        git = await asyncio.create_subprocess_exec(
            "git", "fsck", "--strict", "--no-dangling",
            cwd=repository.path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        output, _ = await git.communicate()
        assert (git.returncode, output) == (0, b"")


class TestHistory:
    @pytest.mark.parametrize("clock", ["true", "seconds", "wrong"])
    def test_ancestors_are_exact_whatever_the_clocks_said(self, clock):
        for seed in range(60):
            random = Random(seed)
            repository, names, above = MemoryRepo(), [], {}
            for number in range(random.randint(3, 25)):
                made = Commit()
                made.tree, made.message = Tree().id, b"%d" % number
                made.parents = random.sample(names[-6:], min(len(names), random.choice([1, 1, 1, 2])))
                made.author = made.committer = b"A <a@example.com>"
                time = {"true": number, "seconds": number // 5, "wrong": random.randint(0, 20)}[clock]
                made.author_time = made.commit_time = time
                made.author_timezone = made.commit_timezone = 0
                repository.object_store.add_object(made)
                names.append(made.id)
                above[made.id] = {made.id}.union(*(above[parent] for parent in made.parents))
            for _ in range(20):
                one, other = random.choice(names), random.choice(names)
                common = above[one] & above[other]
                best = {name for name in common if not any(name != x and name in above[x] for x in common)}
                history = History(repository)
                assert history.is_ancestor(one, other) == (one in above[other])
                assert history.merge_base(one, other) in (best or {None})
                assert {name for name, _ in history.between(one, other)} == above[other] - above[one]


class TestUnifiedDiff:
    CASES = (
        ("", ""), ("", "a\n"), ("a\n", ""), ("a", "a\n"), ("a\n", "a"), ("a\nb\nc\n", "a\nx\nc\n"),
        ("".join(f"{n}\n" for n in range(50)), "".join(f"{n}\n" for n in range(50) if n not in (3, 30, 49))),
        ("a\n" * 30, "a\n" * 29 + "b"), ("a\r\nb\r\n", "a\nb\n"), ("x\n" * 9, "y\nx\n" * 9),
        ("\n".join("abcdefghijklmnopqrstuvwxyz"), "\n".join("abXdefghijklmnopqrstuvYxyz")),
    )  # fmt: skip

    @pytest.mark.skipif(shutil.which("git") is None, reason="there is no git on this machine")
    def test_git_applies_every_patch(self, tmp_path):
        for number, (old, new) in enumerate(self.CASES):
            hunks, _, _ = compared(old.encode(), new.encode(), Effort(LINE_STEPS))
            if not hunks:
                assert old == new
                continue
            file = tmp_path / f"{number}.md"
            file.write_bytes(old.encode())
            text = f"--- a/{number}.md\n+++ b/{number}.md\n{patch_of(hunks)}"
            subprocess.run(["git", "apply", "-p1", "-"], input=text.encode(), cwd=tmp_path, check=True)
            assert file.read_bytes() == new.encode()

    def test_files_without_a_line_in_common_are_compared_in_no_time(self):
        old = "".join(f"{number} old\n" for number in range(20_000)).encode()
        new = "".join(f"{number} new\n" for number in range(20_000)).encode()
        _, added, removed = compared(old, new, Effort(LINE_STEPS))
        assert (added, removed) == (20_000, 20_000)

    def test_equal_trees_are_not_entered(self, taken_in):
        with opened(taken_in / "hosted" / "p1.git") as repository:
            tree = commit_of(repository, branch_commit(repository, "main").decode()).tree
            found = Diff(Objects(repository), tree, tree)
            assert (len(found), found.is_cut) == (0, False)


async def test_too_deeply_nested_folders_are_left_out_of_the_page(code_host, repository):
    opened_pull = await code_host.open_pull_request(SOURCE, NEW)
    with opened(repository.path) as bare:
        tip = commit_of(bare, repository.tip(NEW.head))
        inner = tip.tree
        for _ in range(3_000):
            folder = Tree()
            folder.add(b"deeper", 0o40000, inner)
            bare.object_store.add_object(folder)
            inner = ObjectID(folder.id)
        commit = tip.copy()
        commit.tree, commit.parents = inner, [ObjectID(tip.id)]
        bare.object_store.add_object(commit)
        repository.point(NEW.head, commit.id.decode())
    page = await code_host.page("p1", opened_pull.number, token(opened_pull))
    assert page.truncated
    assert page.mergeable
    repository.commit("main", {"docs/two.md": "Changed meanwhile\n"})
    page = await code_host.page("p1", opened_pull.number, token(opened_pull))
    assert page.truncated
