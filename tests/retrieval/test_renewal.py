"""An index made from the one before is the index that reading everything would have made."""

import os
import shutil
import signal
import sqlite3
import zlib
from collections.abc import Callable, Mapping
from contextlib import closing
from multiprocessing import get_context
from pathlib import Path

import pytest

from service.domain.search import Source
from service.retrieval.index.archive import blob_of
from service.retrieval.index.atomic_folder import is_whole, seal
from service.retrieval.index.build import IndexReport, build_index, renew_from_archive, renew_index
from service.retrieval.site.pages import PAGE_SECONDS
from tests.retrieval.sites import DOMAIN, archive_of, build

PAGES = 30
Files = Mapping[str, str]


def page(number: int, text: str = "Fly it.", links: str = "") -> str:
    return f"---\ntitle: Kite {number}\n---\n\n{text}\n\n## Part {number}\n\nMore of kite {number}. {links}\n"


def mintlify() -> dict[str, str]:
    pages = ",".join(f'"kites/k{number}"' for number in range(PAGES))
    files = {f"docs/kites/k{number}.mdx": page(number) for number in range(PAGES)}
    files |= {
        "docs/docs.json": '{"navigation": {"pages": [' + pages + "]}}",
        "docs/kites/k1.mdx": page(1, links="See [the second](/kites/k2) and [lone kites](./k3)."),
        "docs/kites/k4.mdx": "import S from '/snippets/storm.mdx'\n\n" + page(4, "<S />"),
        "docs/kites/k5.mdx": page(5, links="[the second](k2.mdx), [gone](/kites/missing)"),
        "docs/kites/k6.mdx": "---\ntitle: Six\ndraft: true\n---\nHidden.",
        "docs/snippets/storm.mdx": "Beware of zylon in a storm.\n",
        "docs/notes.txt": "No page.",
        "README.md": "# Not of the site\n",
    }
    return files


def sphinx() -> dict[str, str]:
    listed = "".join(f"   k{number}\n" for number in range(PAGES))
    files = {f"k{number}.rst": f"Kite {number}\n=======\n\nSee :doc:`k2`.\n" for number in range(PAGES)}
    return {**files, "conf.py": "project = 'Kites'\n", "index.rst": f"Kites\n=====\n\n.. toctree::\n\n{listed}"}


Change = dict[str, str | None]
CHANGES: dict[str, Change] = {
    "text": {"docs/kites/k1.mdx": page(1, "Use silk.", links="See [the third](/kites/k3).")},
    "title": {"docs/kites/k2.mdx": page(2).replace("Kite 2", "The second kite")},
    "readers": {"docs/kites/k2.mdx": page(2).replace("title:", "groups: [staff]\ntitle:")},
    "address": {"docs/kites/k2.mdx": page(2).replace("title:", "slug: second\ntitle:")},
    "aliases": {"docs/kites/k7.mdx": page(7).replace("title:", "aliases: [/kites/missing]\ntitle:")},
    "snippet": {"docs/snippets/storm.mdx": "Beware of silk in a storm.\n"},
    "snippet gone": {"docs/snippets/storm.mdx": None},
    "added": {"docs/kites/missing.mdx": page(99)},
    "gone": {"docs/kites/k2.mdx": None},
    "moved": {"docs/kites/k3.mdx": None, "docs/other/k3.mdx": page(3)},
    "hidden": {"docs/kites/k2.mdx": page(2).replace("title:", "draft: true\ntitle:")},
    "shown": {"docs/kites/k6.mdx": page(6)},
    "broken": {"docs/kites/k2.mdx": "\0"},
    "navigation": {"docs/docs.json": '{"navigation": {"pages": ["kites/k3", {"group": "X", "pages": ["kites/k2"]}]}}'},
    "instructions": {"docs/.docsmith/assistant.md": "Say please."},
    "no page": {"docs/notes.txt": "Still none."},
    "nothing": {},
}


def after(files: Files, change: Change) -> dict[str, str]:
    changed: dict[str, str | None] = {**files, **change}
    return {path: text for path, text in changed.items() if text is not None}


def blobs(change: Change) -> dict[str, str | None]:
    return {path: None if text is None else blob_of(text.encode()) for path, text in change.items()}


def renew(
    before: Path,
    target: Path,
    files: Files,
    change: Change,
    *,
    docs_folder: str = "docs",
    progress: Callable[[int, int], None] = lambda _done, _all: None,
    page_seconds: float = PAGE_SECONDS,
) -> IndexReport | None:
    def read(path: str, limit: int) -> bytes | None:
        return files[path].encode()[:limit] if path in files else None

    return renew_index(
        before, target, read, blobs(change), docs_folder=docs_folder, commit="2" * 40, progress=progress,
        page_seconds=page_seconds,
    )  # fmt: skip


def contents(index: Path) -> dict[str, object]:
    """What an index says, without its own numbers of pages."""
    with closing(sqlite3.connect(index / "pages.db")) as db:
        paths = dict(db.execute("SELECT id, path FROM pages"))
        meta = dict(db.execute("SELECT key, value FROM meta"))
        del meta["renewed"], meta["layout"]
        return {
            "meta": meta,
            "pages": sorted(
                (*row[:-1], zlib.decompress(row[-1]) if row[-1] else b"")
                for row in db.execute(
                    "SELECT path, url, title, description, version, language, tags, groups, position, is_default,"
                    " anchors, placed, links FROM pages"
                )
            ),
            "addresses": [(key, paths[page], url) for key, page, url in db.execute("SELECT * FROM addresses")],
            "sections": sorted(
                (paths[id_ >> 16], id_ & 0xFFFF, *rest, zlib.decompress(text))
                for id_, text, *rest in db.execute(
                    "SELECT id, text, heading, heading_path, anchor, start_line, end_line, path, hash FROM sections"
                )
            ),
            "files": [
                (path, blob, paths.get(page)) for path, blob, page in db.execute("SELECT path, blob, page FROM files")
            ],
            "layout": [path for (path,) in db.execute("SELECT path FROM files WHERE is_layout")],
            "names": sorted((paths[page], name, times) for page, name, times in db.execute("SELECT * FROM names")),
            "outside": list(db.execute("SELECT * FROM outside WHERE blob != ''")),
            "uses": list(db.execute("SELECT * FROM uses")),
            "skipped": list(db.execute("SELECT * FROM skipped")),
        }


@pytest.fixture(scope="module")
def kites(tmp_path_factory):
    """An index to start from, which nothing may change."""
    target = tmp_path_factory.mktemp("kites") / "index"
    build(mintlify(), target, docs_folder="docs")
    yield target
    assert is_whole(target)


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_renewed_index_equals_one_built_from_the_start(kites, tmp_path, change):
    files = after(mintlify(), change)
    report = renew(kites, tmp_path / "renewed", files, change)
    whole = build(files, tmp_path / "whole", docs_folder="docs", commit="2" * 40)
    assert report is not None
    assert contents(tmp_path / "renewed") == contents(tmp_path / "whole")
    assert (report.pages, report.sections, report.skipped) == (whole.pages, whole.sections, whole.skipped)
    assert report.read <= 2
    assert is_whole(tmp_path / "renewed")


async def test_words_are_of_the_newest_commit_after_many_renewals(indexed, tmp_path):
    files = mintlify()
    await indexed.fill(files, docs_folder="docs")
    for number, name in enumerate(("text", "title", "snippet", "added")):
        files = after(files, CHANGES[name])
        before = indexed.index.path_of(DOMAIN, indexed.index.served(DOMAIN))
        assert renew(before, indexed.index.path_of(DOMAIN, f"renewed-{number}"), files, CHANGES[name]) is not None
        await indexed.index.use(DOMAIN, f"renewed-{number}")
    assert await indexed.paths("zylon") == []
    assert set(await indexed.paths("silk")) == {"docs/kites/k1.mdx", "docs/kites/k4.mdx"}
    assert await indexed.paths("lone") == [], "no page calls k3 so any more"
    assert set(await indexed.paths("third")) == {"docs/kites/k1.mdx", "docs/kites/k3.mdx"}
    assert "docs/kites/missing.mdx" in await indexed.paths("kite 99")
    found = await indexed.index.search(DOMAIN, "second kite")
    assert (found.commit, found.sections[0].title) == ("2" * 40, "The second kite")
    assert "Use silk." in await indexed.text("/kites/k1")


async def test_page_slow_to_index_is_left_out_with_reason(indexed):
    await indexed.fill(mintlify(), docs_folder="docs")
    before = indexed.index.path_of(DOMAIN, indexed.index.served(DOMAIN))
    change: Change = {"docs/docs.json": '{"navigation": {"versions": [{"version": "9", "pages": ["kites/k3"]}]}}'}
    target = indexed.index.path_of(DOMAIN, "renewed")
    report = renew(before, target, after(mintlify(), change), change, page_seconds=1e-6)  # reads none, indexes k3
    assert report is not None
    assert (report.read, report.late) == (0, 1)
    assert {one.path: one.reason for one in report.skipped}["docs/kites/k3.mdx"] == (
        "Indexing its words took longer than 1e-06 seconds."
    )
    await indexed.index.use(DOMAIN, "renewed")
    assert "docs/kites/k3.mdx" not in await indexed.paths("kite 3")
    assert "docs/kites/k2.mdx" in await indexed.paths("kite 2")


def test_pages_that_define_the_layout_are_renewed_too(tmp_path):
    build(sphinx(), tmp_path / "before")
    change: Change = {"k3.rst": "Kite 3\n=======\n\nSilk.\n"}
    report = renew(tmp_path / "before", tmp_path / "after", after(sphinx(), change), change, docs_folder="")
    build(after(sphinx(), change), tmp_path / "whole", commit="2" * 40)
    assert report is not None
    assert report.read == 1
    assert contents(tmp_path / "after") == contents(tmp_path / "whole")


HUGO = {
    "hugo.toml": "",
    "content/docs/_index.md": "---\ntitle: Docs\n---\n{{% render-list-of-pages-in-section path=/docs %}}\n",
    **{
        f"content/docs/k{number}.md": f"---\ntitle: K{number}\nweight: {number}\n---\nFly.\n" for number in range(1, 20)
    },
}


@pytest.mark.parametrize(
    "change",
    [
        {"content/docs/k2.md": "---\ntitle: K2\nweight: 90\n---\nFly.\n"},
        {"content/docs/k2.md": "---\ntitle: K2\ndraft: true\n---\nFly.\n"},
        {"content/docs/k2.md": None, "content/docs/k30.md": "---\ntitle: K30\n---\nNew.\n"},
    ],
    ids=["weight", "draft", "added and gone"],
)
def test_front_matter_of_hugo_is_renewed_for_the_whole_site(tmp_path, change):
    build(HUGO, tmp_path / "before")
    report = renew(tmp_path / "before", tmp_path / "after", after(HUGO, change), change, docs_folder="")
    build(after(HUGO, change), tmp_path / "whole", commit="2" * 40)
    assert report is not None
    assert contents(tmp_path / "after") == contents(tmp_path / "whole")


TERMS = {
    **HUGO,
    "content/terms/index.md": "---\ntitle: Terms\nlayout: glossary\n---\n",
    "content/terms/bridle.md": "---\ntitle: Bridle\nid: bridle\n---\nIt holds.\n",
    "content/words/_index.md": "---\ntitle: Words\ncascade:\n  build: {render: never, list: local}\n"
    "build: {render: always}\n---\nWords.\n",
    "content/words/spar.md": "---\ntitle: Spar\n---\nIt spans.\n\n## Use\n\nBend it.\n",
    "content/words/staff.md": "---\ntitle: Staff\ngroups: [staff]\n---\nOnly for us.\n",
}


@pytest.mark.parametrize(
    ("change", "read"),
    [
        ({"content/words/spar.md": "---\ntitle: Spar\n---\nIt bends.\n"}, 1),
        ({"content/words/tail.md": "---\ntitle: Tail\n---\nIt steadies.\n"}, 1),
        ({"content/terms/bridle.md": None}, 1),
        ({"content/words/spar.md": "---\ntitle: Spar\nbuild: {render: always}\n---\nIt spans.\n"}, 2),
        ({"content/words/spar.md": "---\ntitle: Spar\ndraft: true\n---\nIt spans.\n"}, 1),
    ],
    ids=["text", "added", "gone", "a page now", "a draft now"],
)
def test_page_is_renewed_with_the_files_that_it_shows(tmp_path, change, read):
    build(TERMS, tmp_path / "before")
    report = renew(tmp_path / "before", tmp_path / "after", after(TERMS, change), change, docs_folder="")
    build(after(TERMS, change), tmp_path / "whole", commit="2" * 40)
    assert report is not None
    assert report.read == read
    assert contents(tmp_path / "after") == contents(tmp_path / "whole")


async def test_text_of_a_file_is_found_on_the_page_that_shows_it(indexed):
    await indexed.fill(TERMS)
    search = indexed.index.search
    found = [(await search(DOMAIN, query, limit=1)).sections[0] for query in ("what spans", "bend", "what holds")]
    assert [(one.path, one.url, one.title, one.heading_path, one.start_line, one.end_line) for one in found] == [
        ("content/words/spar.md", "/words#spar", "Words", ("Spar",), 4, 5),
        ("content/words/spar.md", "/words#use", "Words", ("Spar", "Use"), 6, 8),
        ("content/terms/bridle.md", "/terms#term-bridle", "Terms", ("Bridle",), 5, 5),
    ]
    sources = [Source(1, one.path, one.url, one.title, one.heading, one.start_line, 0, "1" * 40) for one in found]
    again = await indexed.index.sections_at(DOMAIN, sources)
    assert [one.text for one in again if one is not None] == [one.text for one in found]
    page = await indexed.index.read_page(DOMAIN, "content/words/spar.md")
    assert page is not None
    assert page.path == "content/words/_index.md"
    assert page.content == "Words.\n\n## Spar\n\nIt spans.\n\n## Use\n\nBend it."
    assert {one.path: one.reason for one in await indexed.index.skipped(DOMAIN)} == {
        "content/terms/bridle.md": "Shown on content/terms/index.md.",
        "content/words/spar.md": "Shown on content/words/_index.md.",
        "content/words/staff.md": "Its front matter, or that of a section above it, says that it is not rendered.",
    }
    assert [one.path for one in (await indexed.index.check(DOMAIN)).findings["skipped"].first] == [
        "content/words/staff.md"
    ]


SHOWING = {
    **{f"docs/k{number}.md": f"# Kite {number}\n\nFly.\n" for number in range(10)},
    "mkdocs.yml": "site_name: Kites\nmarkdown_extensions: [pymdownx.snippets]\n",
    "docs/k1.md": '# Kite 1\n\n```python\n--8<-- "examples/fly.py"\n```\n',
    "docs/k2.md": '# Kite 2\n\n--8<-- "examples/new.txt"\n--8<-- ".env"\n--8<-- "../../secret.txt"\n--8<-- "a.key"\n',
    "docs/k3.md": '# Kite 3\n\n--8<-- "examples/long.txt"\n\nText.\n',
    "examples/fly.py": "fly(zylon)\n",
    "examples/long.txt": "long " * 240_000,
    ".env": "TOKEN=hush",
    "a.key": "hush",
    "secret.txt": "hush",
}


def fill_showing(files: Files, target: Path) -> IndexReport:
    """Make an index from an archive of the documentation folder, with a reader of the whole commit."""
    exported = {path: text for path, text in files.items() if path.startswith("docs/") or path == "mkdocs.yml"}
    archive = archive_of(exported, target.with_suffix(".tar"))
    return build_index(
        archive, target, docs_folder="docs", commit="2" * 40, progress=lambda _done, _all: None,
        outside=lambda path, limit: files[path].encode()[:limit] if path in files else None,
    )  # fmt: skip


def test_pages_show_files_outside_their_folder(tmp_path):
    fill_showing(SHOWING, tmp_path / "index")
    texts = "\n".join(str(row[-1]) for row in contents(tmp_path / "index")["sections"])
    assert "fly(zylon)" in texts
    assert "hush" not in texts
    assert "long long" not in texts
    with closing(sqlite3.connect(tmp_path / "index" / "pages.db")) as db:
        assert dict(db.execute("SELECT path, blob FROM outside WHERE blob != ''")) == {
            "examples/fly.py": blob_of(b"fly(zylon)\n")
        }
        assert db.execute("SELECT count(*) FROM files WHERE path NOT LIKE 'docs/%'").fetchone() == (1,)


@pytest.mark.parametrize(
    ("change", "read"),
    [
        ({"examples/fly.py": "fly(silk)\n"}, 1),
        ({"examples/fly.py": None}, 1),
        ({"examples/new.txt": "Look.\n"}, 1),
        ({"docs/k5.md": '# Kite 5\n\n--8<-- "examples/fly.py"\n'}, 1),
        ({"docs/k1.md": "# Kite 1\n"}, 1),
        ({"examples/other.txt": "No page shows it."}, 0),
    ],
    ids=["text", "gone", "added", "shown by another", "not shown any more", "of no page"],
)
def test_files_outside_the_folder_are_renewed(tmp_path, change, read):
    fill_showing(SHOWING, tmp_path / "before")
    files = after(SHOWING, change)
    docs = {path: text for path, text in change.items() if path.startswith("docs/")}
    report = renew(tmp_path / "before", tmp_path / "after", files, docs)
    fill_showing(files, tmp_path / "whole")
    assert report is not None
    assert report.read == read
    assert contents(tmp_path / "after") == contents(tmp_path / "whole")


def test_position_of_a_page_of_docusaurus_moves_the_others(tmp_path):
    files = {f"docs/k{number}.md": f"# Kite {number}\n\nFly.\n" for number in range(10)}
    files |= {"docusaurus.config.js": "export default {presets: [['classic', {docs: {path: 'docs'}}]]};\n"}
    change: Change = {"docs/k7.md": "---\nsidebar_position: 1\n---\n\n# Kite 7\n\nFly.\n"}
    build(files, tmp_path / "before")
    report = renew(tmp_path / "before", tmp_path / "after", after(files, change), change, docs_folder="")
    build(after(files, change), tmp_path / "whole", commit="2" * 40)
    assert report is not None
    assert report.read == 1
    assert contents(tmp_path / "after") == contents(tmp_path / "whole")


@pytest.mark.parametrize(
    "change",
    [
        {f"docs/kites/k{number}.mdx": page(number, "Silk.") for number in range(PAGES // 2)},
        {"docs/docs.json": None, "mkdocs.yml": "docs_dir: docs\n"},
    ],
    ids=["many pages", "another generator"],
)
def test_too_much_at_once_is_read_whole(kites, tmp_path, change):
    assert renew(kites, tmp_path / "renewed", after(mintlify(), change), change) is None
    assert list(tmp_path.iterdir()) == []


def test_renewals_come_to_an_end(kites, tmp_path):
    files, before = mintlify(), kites
    for number in range(PAGES):
        change: Change = {"docs/kites/k9.mdx": page(9, f"Version {number}.")}
        files = after(files, change)
        if renew(before, tmp_path / str(number), files, change) is None:
            break
        before = tmp_path / str(number)
    assert 2 <= number <= PAGES // 5


@pytest.mark.parametrize("file", ["pages.db", "sums.json", "sections/meta.json", "pages/meta.json"])
def test_a_damaged_index_is_not_renewed(kites, tmp_path, file):
    shutil.copytree(kites, tmp_path / "before")
    with (tmp_path / "before" / file).open("r+b") as damaged:
        damaged.write(b"\0")
    assert renew(tmp_path / "before", tmp_path / "after", mintlify(), {}) is None
    assert not (tmp_path / "after").exists()


def test_an_index_that_another_version_made_is_not_renewed(kites, tmp_path):
    shutil.copytree(kites, tmp_path / "before")
    with closing(sqlite3.connect(tmp_path / "before" / "pages.db")) as db, db:
        db.execute("UPDATE meta SET value = '0.0.1' WHERE key = 'made_by'")
    seal(tmp_path / "before")
    assert renew(tmp_path / "before", tmp_path / "after", mintlify(), {}) is None


def test_damage_in_a_shared_file_is_found_in_the_renewed_index(kites, tmp_path):
    shutil.copytree(kites, tmp_path / "before")
    segment = max((tmp_path / "before" / "sections").glob("*.idx"))
    with segment.open("r+b") as damaged:
        damaged.write(b"\0\0\0\0")
    renew(tmp_path / "before", tmp_path / "after", mintlify(), {})
    assert not is_whole(tmp_path / "after")


def test_changes_are_found_by_comparing_contents(kites, tmp_path):
    change = CHANGES["moved"]
    archive = archive_of(after(mintlify(), change), tmp_path / "docs.tar")
    report = renew_from_archive(
        kites, archive, tmp_path / "after", docs_folder="docs", commit="2" * 40, progress=lambda _done, _all: None
    )
    assert report is not None
    assert report.read == 1
    build(after(mintlify(), change), tmp_path / "whole", docs_folder="docs", commit="2" * 40)
    assert contents(tmp_path / "after") == contents(tmp_path / "whole")


def _killed_while_renewing(before: Path, target: Path) -> None:
    def kill(_done: int, _all: int) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    change = CHANGES["text"]
    renew(before, target, after(mintlify(), change), change, progress=kill)


async def test_killed_renewal_leaves_old_answers_and_can_be_repeated(indexed):
    await indexed.fill(mintlify(), docs_folder="docs")
    before = indexed.index.path_of(DOMAIN, indexed.index.served(DOMAIN))
    child = get_context("spawn").Process(target=_killed_while_renewing, args=(before, before.with_name("next")))
    child.start()
    child.join()
    assert child.exitcode == -signal.SIGKILL
    assert [each.name for each in before.parent.iterdir() if not each.name.startswith(".")] == [before.name]
    assert [each for each in before.parent.iterdir() if each.name.startswith(".")] != []
    assert is_whole(before)
    assert await indexed.paths("zylon") == ["docs/kites/k4.mdx"]
    assert renew(before, before.with_name("next"), after(mintlify(), CHANGES["text"]), CHANGES["text"]) is not None
    assert {each.name for each in before.parent.iterdir()} == {before.name, "next"}
    await indexed.index.use(DOMAIN, "next")
    assert await indexed.paths("silk") == ["docs/kites/k1.mdx"]
