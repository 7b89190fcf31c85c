"""What a repository holds and an index does not is listed with its reason, by a renewal as by reading everything."""

import pytest
from dulwich.objects import Blob, Commit, ObjectID, Tree

from service.adapters.git.dulwich_docs import DulwichDocs
from service.adapters.git.repositories import opened
from service.domain.errors import Invalid
from service.ports.docs_source import Source
from service.retrieval.index.build import build_index, renew_index
from service.retrieval.search.query import SiteIndexes
from tests.adapters.test_dulwich_docs import make_repository
from tests.contracts.docs_source import AUTHOR, commit

MIB = 1 << 20
PAGE = Blob.from_string(b"# Page\n\nText.\n")
OTHER = Blob.from_string(b"# Other\n\nText.\n")
LARGE = Blob.from_string(b"<p>Text." + b" " * (4 * MIB) + b"</p>")
TARGET = Blob.from_string(b"elsewhere.md")
INNER = Tree()
INNER.add(b"inner.md", 0o100644, PAGE.id)
KINDS = {
    "page": (0o100644, PAGE.id),
    "other": (0o100644, OTHER.id),
    "large": (0o100644, LARGE.id),
    "link": (0o120000, TARGET.id),
    "module": (0o160000, ObjectID(b"1" * 40)),
    "folder": (0o040000, INNER.id),
    "none": None,
}
Entries = dict[bytes, tuple[int, ObjectID] | None]


def tree_of(entries: Entries) -> Tree:
    tree = Tree()
    for name, entry in entries.items():
        if entry is not None:
            tree.add(name, *entry)
    return tree


class Site:
    """A repository that somebody else keeps, and our index of it."""

    def __init__(self, tmp_path):
        self._docs = DulwichDocs(tmp_path / "data", env={})
        self._path, self._at = tmp_path / "theirs.git", tmp_path
        self.source = Source("p1", str(self._path), "main", "", "gitea")
        self._commits, self._built = [], 0

    def commit(self, entries: Entries, *objects: Blob | Tree) -> None:
        tree = tree_of(entries)
        if not self._commits:
            self._commits.append(make_repository(self._path, tree, PAGE, OTHER, LARGE, TARGET, INNER, *objects))
            return
        with opened(self._path) as repository:
            made = Commit()
            made.tree, made.author, made.message = tree.id, AUTHOR.encode(), b"Change\n"
            made.parents = [ObjectID(self._commits[-1].encode())]
            made.committer, made.author_time, made.commit_time = made.author, 1, 1
            made.author_timezone = made.commit_timezone = 0
            for one in (*objects, tree, made):
                repository.object_store.add_object(one)
            repository.refs[b"refs/heads/main"] = made.id
            self._commits.append(made.id.decode())

    async def build(self) -> dict[str, str]:
        commit = (await self._docs.fetch(self.source)).base_commit
        await self._docs.export(self.source, commit, self._at / "site.tar")
        target = self._target()
        build_index(self._at / "site.tar", target, docs_folder=self.source.docs_folder, commit=commit, progress=ignore)
        return await self._skipped(target.name)

    async def renew(self) -> dict[str, str]:
        before = self._at / "index" / "kites" / f"i{self._built}"
        commit = (await self._docs.fetch(self.source)).base_commit
        changes = await self._docs.changes(self.source, self._commits[-2], commit)
        target = self._target()
        with changes.open() as read:
            report = renew_index(
                before, target, read, changes.blobs, docs_folder=self.source.docs_folder, commit=commit,
                progress=ignore, left_out=changes.left_out,
            )  # fmt: skip
        assert report is not None
        return await self._skipped(target.name)

    def _target(self):
        self._built += 1
        return self._at / "index" / "kites" / f"i{self._built}"

    async def _skipped(self, name: str) -> dict[str, str]:
        shown = SiteIndexes(self._at / "shown")  # serving an index removes the older ones
        copied = self._at / "shown" / "kites" / name
        copied.parent.mkdir(parents=True, exist_ok=True)
        copied.symlink_to(self._at / "index" / "kites" / name)
        await shown.use("kites", name)
        try:
            return {one.path: one.reason for one in await shown.skipped("kites")}
        finally:
            await shown.close()


def ignore(_done: int, _total: int) -> None:
    pass


@pytest.fixture
def site(tmp_path):
    return Site(tmp_path)


async def test_left_out_files_are_listed_with_their_reasons(site):
    site.commit(
        {
            b"a.md": KINDS["page"],
            b"large.html": KINDS["large"],
            b"link.md": KINDS["link"],
            b"latest": KINDS["link"],
            b"v1.2": KINDS["link"],
            b"logo.png": KINDS["link"],
            b"LICENSE.md": KINDS["link"],
            b"api": KINDS["module"],
            b"bad\x01name.md": KINDS["page"],
            b"bad\\folder": KINDS["folder"],
            b"caf\xe9.md": KINDS["page"],
            b"n" * 300 + b".md": KINDS["page"],
            b"openapi.json": KINDS["link"],
            b"mkdocs.yml": KINDS["link"],
            b".github": KINDS["link"],
            b"node_modules": KINDS["link"],
        }
    )
    found = await site.build()
    assert {path: reason.partition(".")[0].partition(":")[0] for path, reason in found.items()} == {
        "large.html": "It is larger than 4 MiB",
        "link.md": "It is a symbolic link, which is not followed",
        "latest": "It is a symbolic link, which is not followed",
        "v1.2": "It is a symbolic link, which is not followed",
        "api": "It is a submodule",
        "bad\\x01name.md": "Its name has control characters, or is one that git keeps for itself",
        "bad\\folder": "Its name has a backslash, which parts folders on Windows",
        "caf\\xe9.md": "Its name is not UTF-8",
        "n" * 300 + ".md": "Its name is longer than 255 bytes",
        "openapi.json": "It is a symbolic link, which is not followed",
        "mkdocs.yml": "It is a symbolic link, which is not followed",
    }


@pytest.mark.parametrize(("name", "mib"), [("a.html", 3), ("a.ipynb", 9), ("openapi.json", 7)])
@pytest.mark.slow
async def test_file_up_to_its_readers_limit_is_read(site, name, mib):
    texts = {
        "a.html": b"<p>Text.</p>" + b" " * (mib * MIB),
        "a.ipynb": b'{"cells": [{"cell_type": "markdown", "source": "Text."}]}' + b" " * (mib * MIB),
        "openapi.json": b'{"openapi": "3.0.0", "paths": {"/a": {"get": {"summary": "Text"}}}}' + b" " * (mib * MIB),
    }
    blob = Blob.from_string(texts[name])
    site.commit({name.encode(): (0o100644, blob.id), b"b.md": KINDS["page"]}, blob)
    assert await site.build() == {}
    site.commit({name.encode(): (0o100644, blob.id), b"b.md": KINDS["other"]})
    assert await site.build() == {}


async def test_renewal_lists_what_reading_everything_lists(site):
    pages = {f"p{number}.md".encode(): KINDS["page"] for number in range(500)}
    names = {(one, two): f"{one}-{two}.html".encode() for one in KINDS for two in KINDS}
    odd = {(one, two): f"{one}\x01{two}".encode() for one in KINDS for two in KINDS}
    before, after = (
        {**pages, **{name: KINDS[pair[at]] for group in (names, odd) for pair, name in group.items()}} for at in (0, 1)
    )
    site.commit(before)
    first = await site.build()
    site.commit(after)
    renewed = await site.renew()
    assert renewed == await site.build()
    assert renewed.keys() - first.keys()
    assert first.keys() - renewed.keys()


async def test_documentation_folder_that_is_a_link_is_listed(site):
    site.source = Source("p1", site.source.repository, "main", "docs", "gitea")
    site.commit({b"docs": KINDS["folder"], b"mkdocs.yml": KINDS["page"]})
    assert await site.build() == {}
    site.commit({b"docs": KINDS["link"], b"mkdocs.yml": KINDS["link"]})
    assert set(await site.build()) == {"docs", "mkdocs.yml"}


async def test_links_and_odd_names_of_a_folder_are_listed(tmp_path):
    folder = tmp_path / "docs"
    (folder / "v2").mkdir(parents=True)
    (folder / "v2" / "a.md").write_text("# A\n\nText.\n")
    (folder / "latest").symlink_to("v2")
    (folder / "same.md").symlink_to(folder / "v2" / "a.md")
    (folder / "secret.md").symlink_to(tmp_path / "elsewhere" / "secret.md")
    (folder / ".gitmodules").symlink_to("v2/a.md")
    (folder / "tab\t.md").write_text("# Tab\n\nText.\n")
    (folder / "back\\slash.md").write_text("# Back\n\nText.\n")
    site = Site(tmp_path)
    site.source = Source("p1", str(folder), "main", "", "local")
    await DulwichDocs(tmp_path / "data", env={}).register(site.source)
    found = await site.build()
    assert set(found) == {"latest", "same.md", "secret.md", "tab\\t.md", "back\\slash.md"}
    with opened(tmp_path / "data" / "hosted" / "p1.git") as repository:
        store = repository.object_store
        tree = {entry.path: store[entry.sha] for entry in store[store[repository.head()].tree].items()}
    assert tree[b"same.md"].data == b"v2/a.md"
    assert tree[b"secret.md"].data == b"outside-of-this-folder"
    assert b".gitmodules" not in tree


@pytest.mark.parametrize(
    ("one", "other", "difference"),
    [
        ("caf\u00e9.md", "cafe\u0301.md", "in Unicode normalisation only"),
        ("a.md", "A.md", "in case only"),
        ("caf\u00e9.md", "CAFE\u0301.md", "in case and Unicode normalisation only"),
    ],
)
async def test_names_that_are_alike_are_refused_with_the_difference(tmp_path, one, other, difference):
    (tmp_path / "docs").mkdir()
    for name in (one, other):
        (tmp_path / "docs" / name).write_text("# A\n")
    docs = DulwichDocs(tmp_path / "data", env={})
    with pytest.raises(Invalid, match=difference):
        await docs.register(Source("p1", str(tmp_path / "docs"), "main", "", "local"))
    source = Source("p2", str(tmp_path / "one"), "main", "", "local")
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / one).write_text("# A\n")
    await docs.register(source)
    base = (await docs.fetch(source)).base_commit
    with pytest.raises(Invalid, match=difference):
        await docs.write_commit(source, commit(base, {other: "x\n"}))
