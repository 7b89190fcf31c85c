import os
import sqlite3
from contextlib import closing
from multiprocessing import get_context
from pathlib import Path

import pytest

from service.domain.sites import Skipped
from service.retrieval.index.build import MAX_INSTRUCTIONS, IndexReport, build_index, is_whole
from service.runtime.scratch import hold
from tests.retrieval.sites import COMMIT, DOMAIN, archive_of, build


def test_report_lists_what_was_indexed_and_what_was_skipped(tmp_path):
    report = build(
        {
            "a.md": "# A\n\nText.\n\n## Part\n\nMore.\n",
            "b.mdx": "Text.",
            "latin.md": "caf\xe9".encode("latin-1"),
            "binary.md": b"\0\1",
            "draft.md": "---\ndraft: true\n---\nText.",
            "unlisted.md": "---\nsearchable: false\n---\nText.",
            "empty.md": "",
            "picture.png": b"\0",
        },
        tmp_path / "index",
    )
    assert (report.pages, report.sections) == (2, 3)
    assert set(report.skipped) == {
        Skipped("latin.md", "It is not UTF-8 text."),
        Skipped("binary.md", "It is not text."),
        Skipped("draft.md", "It is a draft, or hidden."),
        Skipped("unlisted.md", "It is a draft, or hidden."),
        Skipped("empty.md", "It has no text."),
    }
    assert report.seconds >= 0


async def test_snippets_are_found_on_the_pages_that_show_them(indexed):
    snippet = "Rotate the zebra.\n"
    await indexed.fill(
        {
            "docs/docs.json": '{"navigation": {"pages": ["a", "b/c"]}}',
            "docs/snippets/x.mdx": snippet,
            "docs/a.mdx": 'import X from "/snippets/x.mdx"\n\n# A\n\n<X />\n',
            "docs/b/c.mdx": "import X from '../snippets/x.mdx'\n\n# C\n\nText. <X />\n",
            "docs/b/d.mdx": 'import X from "../../../../etc/passwd.md"\n\n# D\n\n<X />Text.\n',
        },
        docs_folder="docs",
    )
    assert set(await indexed.paths("zebra")) == {"docs/a.mdx", "docs/b/c.mdx"}


def test_an_index_appears_whole(tmp_path):
    target = tmp_path / "site" / "index"
    build({"a.md": "Text."}, target)
    assert [file.name for file in target.parent.iterdir()] == ["index"]
    assert is_whole(target)
    with closing(sqlite3.connect(target / "pages.db")) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_a_failed_build_leaves_nothing_and_the_old_index_alone(tmp_path):
    target = tmp_path / "index"
    build({"a.md": "Text."}, target)
    archive = archive_of({"b.md": "Other."}, tmp_path / "docs.tar")

    def stop(_done: int, _all: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_index(archive, target, docs_folder="", commit=COMMIT, progress=stop)
    assert is_whole(target)
    assert {file.name for file in tmp_path.iterdir()} == {"index", "docs.tar"}


def test_leftovers_of_killed_builds_are_removed(tmp_path):
    """A folder that its owner has locked is of a living one."""
    for name in (".other.building-a", ".old.removed", ".mine.building-b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "pages.db").write_bytes(b"half")
    (tmp_path / ".old.tar").write_bytes(b"")
    lock = hold(tmp_path / ".mine.building-b")
    build({"a.md": "Text."}, tmp_path / "index")
    assert {each.name for each in tmp_path.iterdir()} == {"index", ".mine.building-b"}
    os.close(lock)


def test_progress_is_reported(tmp_path):
    archive = archive_of({f"{n}.md": "Text." for n in range(250)}, tmp_path / "docs.tar")
    told: list[tuple[int, int]] = []
    build_index(archive, tmp_path / "index", docs_folder="", commit=COMMIT, progress=lambda *both: told.append(both))
    assert told == [(0, 250), (100, 250), (200, 250), (250, 250)]


def _build_in_child(archive: Path, target: Path) -> IndexReport:
    return build_index(archive, target, docs_folder="docs", commit=COMMIT, progress=print_nothing)


def print_nothing(_done: int, _all: int) -> None:
    pass


def test_building_works_in_a_process_of_its_own(tmp_path):
    archive = archive_of({"docs/a.md": "Text.", "mkdocs.yml": "nav: [{Name: a.md}]"}, tmp_path / "docs.tar")
    with get_context("spawn").Pool(1) as pool:
        report = pool.apply(_build_in_child, (archive, tmp_path / "index"))
    assert report.pages == 1


def test_the_same_archive_gives_the_same_index(tmp_path):
    files = {"a.md": "# A\n\nSee [b](b.md).", "b.md": "# B\n\nText."}
    build(files, tmp_path / "one")
    build(files, tmp_path / "two")
    assert (tmp_path / "one/pages.db").read_bytes() == (tmp_path / "two/pages.db").read_bytes()


def test_an_archive_without_pages_gives_an_index_without_pages(tmp_path):
    assert build({"main.py": "x"}, tmp_path / "index").pages == 0


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({}, ""),
        ({".docsmith/assistant.md": "\ufeff Call them spaces.\n"}, "Call them spaces."),
        ({".docsmith/assistant.md": "Root.", "docs/.docsmith/assistant.md": "Folder."}, "Folder."),
        ({".docsmith/assistant.md": "a\0b"}, "ab"),
    ],
)
async def test_owner_text_is_of_the_indexed_commit_and_is_no_page(indexed, files, told):
    report = await indexed.fill({"docs/a.md": "# Spaces\n\nText.", **files}, docs_folder="docs")
    assert report.pages == 1
    for query in ("text", "", "nothing-has-this"):
        assert (await indexed.index.search(DOMAIN, query)).instructions == told
    await indexed.fill({"docs/a.md": "# Spaces\n\nText."}, docs_folder="docs")
    assert (await indexed.index.search(DOMAIN, "text")).instructions == ""


async def test_owner_instructions_are_bounded(indexed):
    report = await indexed.fill({"a.md": "# A", ".docsmith/assistant.md": "é" * 20_000})
    assert (await indexed.index.search(DOMAIN, "a")).instructions == "é" * MAX_INSTRUCTIONS
    assert [one.path for one in report.skipped] == [".docsmith/assistant.md"]


async def test_addresses_are_percent_encoded_outside_of_the_index(indexed):
    names = ["My Setup/VS Code", "a#b", "what?", "100%", "über"]
    await indexed.fill({f"{name}.md": f"# T\n\n## Part\n\nWord{at}.\n" for at, name in enumerate(names)})
    encoded = ["/My%20Setup/VS%20Code", "/a%23b", "/what%3F", "/100%25", "/über"]
    for at, (name, address) in enumerate(zip(names, encoded, strict=True)):
        (section, *_) = (await indexed.index.search(DOMAIN, f"word{at}")).sections
        assert section.url == f"{address}#part"
        for asked in (address, f"{name}.md", f"{address}#part"):
            page = await indexed.index.read_page(DOMAIN, asked)
            assert (page.path, page.url) == (f"{name}.md", address)
    assert {page.url for page in (await indexed.index.list_pages(DOMAIN)).pages} == set(encoded)
