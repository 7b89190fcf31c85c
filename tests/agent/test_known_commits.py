"""Facts of a commit that jobs share: read once, renewed only where the next commit differs, and not kept for ever."""

import pytest
from msgspec.structs import replace

from service.agent.checks import gates
from service.agent.checks.links.links import Links
from service.agent.commit_files import KnownCommits
from service.agent.tools.arguments import Search
from service.agent.tools.searching import search
from service.agent.workspace import Workspace
from tests.agent.journal import SOURCE
from tests.fakes.docs_source import FakeDocsSource

SITE = {
    "mkdocs.yml": "nav:\n  - a.md\n  - guides/b.md\n",
    "docs/a.md": "# A\n\nSee [B](guides/b.md#part) and [C](c.md).\n",
    "docs/c.md": "---\nslug: sea\n---\n\n# C\n",
    "docs/guides/b.md": "# B\n\n## Part\n\nBack to [A](../a.md).\n",
}
RENAME = {"docs/guides/b.md": None, "docs/guides/d.md": SITE["docs/guides/b.md"]}


class Counting(FakeDocsSource):
    """Counts the files that are read."""

    def __init__(self, files):
        super().__init__(files)
        self.read = 0

    async def read_files(self, source, blobs):
        self.read += len(blobs)
        return await super().read_files(source, blobs)


async def found_in(docs, changes, known, commit=""):
    commit = commit or (await docs.fetch(SOURCE)).base_commit
    workspace = await Workspace.open(docs, SOURCE, commit, changes, known=known)
    links = Links(workspace)
    docs.read = 0
    await links.views()
    read = docs.read
    broken = await links.broken_by_changes()
    return read, broken, await gates.check(workspace, links)


async def test_next_job_at_a_commit_reads_no_page_for_the_site():
    docs, known = Counting(SITE), KnownCommits()
    first = await found_in(docs, RENAME, known)
    second = await found_in(docs, RENAME, known)
    assert first[0] == 3
    assert second[0] == 0
    assert second[1:] == first[1:]
    assert ("docs/a.md", "guides/d.md#part") in [(link.path, link.meant) for link in second[1]]


@pytest.mark.parametrize(
    ("changes", "read"),
    [
        ({"docs/c.md": "---\nslug: a\n---\n\n# C\n"}, 1),
        ({"docs/new.md": "# New\n\n[C](c.md)\n", "docs/a.md": "# A\n\n[B](/guides/b/)\n"}, 2),
        ({"mkdocs.yml": "nav:\n  - c.md\n"}, 0),
    ],
)
async def test_next_commit_is_known_as_if_read_whole(changes, read):
    docs, known = Counting(SITE), KnownCommits()
    await found_in(docs, {}, known)
    commit = docs.change("main", changes)
    renewed = await found_in(docs, RENAME, known, commit)
    whole = await found_in(docs, RENAME, KnownCommits(), commit)
    assert renewed[0] == read
    assert renewed[1:] == whole[1:]


async def test_commits_beyond_the_limit_are_forgotten():
    docs, known = Counting(SITE), KnownCommits(kept_bytes=5_000, characters=1)
    first = docs.branches["main"]
    await found_in(docs, {}, known, first)
    await found_in(docs, {}, known, docs.change("main", {"docs/c.md": "# C\n"}))
    assert (await found_in(docs, {}, known, first))[0] > 0


async def test_jobs_do_not_see_each_others_changes():
    docs, known = Counting(SITE), KnownCommits()
    commit = (await docs.fetch(SOURCE)).base_commit
    one = await Workspace.open(docs, SOURCE, commit, {}, known=known)
    other = await Workspace.open(docs, SOURCE, commit, {}, known=known)
    one.apply(await one.write("docs/new.md", "# New\n"))
    one.apply(await one.delete("docs/c.md"))
    assert not other.exists("docs/new.md")
    assert await other.write("docs/New.md", "# Another\n")
    assert [link.path for link in (await Links(other).report()).broken] == []
    assert [link.path for link in (await Links(one).report()).broken] == ["docs/a.md"]


async def searched(docs, known, source=SOURCE):
    commit = (await docs.fetch(source)).base_commit
    workspace = await Workspace.open(docs, source, commit, {}, known=known)
    docs.read = 0
    found = await search(workspace, None, "docs", Search("Part"))
    return docs.read, found.result


async def test_next_job_searches_texts_that_are_known():
    docs, known, little = Counting(SITE), KnownCommits(), KnownCommits(characters=40)
    first = await searched(docs, known)
    assert first[0] == len(SITE)
    assert await searched(docs, known) == (0, first[1])
    assert (await searched(docs, little))[1] == first[1]
    assert (await searched(docs, little))[0] > 0


async def test_texts_are_not_shared_between_projects():
    docs, known = Counting(SITE), KnownCommits()
    first = await searched(docs, known)
    assert await searched(docs, known, replace(SOURCE, project_id="p2")) == first
