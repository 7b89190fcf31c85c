"""From an archive of documentation files to one SQLite file that search reads.

Two passes, so that no more than a page's text is held at a time: pages are parsed and written as they come, with their
links; when all are known, they get their URLs, and what other pages call them becomes words to find them by.

Title, headings, link texts and body are full-text tables of their own: each has its own lengths and word counts, which
is what lets their BM25 scores be added up (DESIGN, "Search"). A section's row id is its page's number and its own, so
that sections are grouped by page without a look-up.
"""

import json
import os
import re
import sqlite3
import tarfile
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from itertools import pairwise
from pathlib import Path

from msgspec import Struct

from service.domain.sites import Skipped
from service.retrieval.inline import words_of
from service.retrieval.markdown import MAX_PAGE_BYTES, ParsedPage, parse_page
from service.retrieval.navigation import (
    MAX_CONFIG_BYTES,
    Layout,
    Site,
    SiteBuilder,
    SitePage,
    detect_layout,
    is_external,
    resolve_link,
)

FORMAT = "1"
PAGE_SHIFT = 16
MAX_SECTIONS = 1 << PAGE_SHIFT
MAX_LINK_WORDS = 2000
"""Characters of what other pages call one."""
INSTRUCTIONS = ".docsmith/assistant.md"
MAX_INSTRUCTIONS = 8_000
"""Characters of the site owner's word to the assistant: they are part of every prompt."""
COMMON = 0.02
"""Words in more of the sections than this are counted at building, so that a query knows them by a look-up."""

SCHEMA = """
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE pages(
    id INTEGER PRIMARY KEY, path TEXT NOT NULL, url TEXT NOT NULL, title TEXT NOT NULL, description TEXT NOT NULL,
    version TEXT NOT NULL, language TEXT NOT NULL, tags TEXT NOT NULL, groups TEXT NOT NULL, position INTEGER NOT NULL,
    is_default INTEGER NOT NULL, anchors TEXT NOT NULL, content BLOB NOT NULL
);
CREATE TABLE addresses(key TEXT PRIMARY KEY, page INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE sections(
    id INTEGER PRIMARY KEY, heading TEXT NOT NULL, heading_path TEXT NOT NULL, anchor TEXT NOT NULL, text TEXT NOT NULL,
    start_line INTEGER NOT NULL, end_line INTEGER NOT NULL
);
CREATE TABLE common(term TEXT PRIMARY KEY, sections INTEGER NOT NULL) WITHOUT ROWID;
CREATE TEMP TABLE mentions(page INTEGER NOT NULL, href TEXT NOT NULL, text TEXT NOT NULL);
"""
FULL_TEXT = "CREATE VIRTUAL TABLE {} USING fts5(words, content='', tokenize=\"{}\")"
TOKENIZER = "porter unicode61 remove_diacritics 2"
FIELDS = ("titles", "headings", "links", "bodies")

Progress = Callable[[int, int], None]


class IndexReport(Struct, frozen=True):
    pages: int
    sections: int
    skipped: tuple[Skipped, ...]
    seconds: float


def build_index(archive: Path, target: Path, *, docs_folder: str, commit: str, progress: Progress) -> IndexReport:
    """Index the pages in an uncompressed tar archive, whose names are paths in the repository.

    ``target`` appears whole or not at all. ``progress`` is told how many of how many pages are read, now and then.
    A page that cannot be read is in the report's ``skipped`` and stops nothing. Raises OSError and tarfile.TarError
    for the archive itself.
    """
    began = time.monotonic()
    target.parent.mkdir(parents=True, exist_ok=True)
    for stale in target.parent.glob(f".{target.name}.*.building"):
        stale.unlink(missing_ok=True)
    building = target.with_name(f".{target.name}.{os.getpid()}.building")
    try:
        with _Archive(archive) as files, closing(sqlite3.connect(building, isolation_level=None)) as db:
            writer = _Writer(db, files, docs_folder)
            writer.write(commit, progress)
        with building.open("rb+") as written:
            os.fsync(written.fileno())
        building.replace(target)
    finally:
        building.unlink(missing_ok=True)
    return IndexReport(writer.pages, writer.sections, tuple(writer.skipped), round(time.monotonic() - began, 3))


class _Archive:
    """Plain files of a tar archive by name."""

    def __init__(self, archive: Path) -> None:
        self._tar = tarfile.open(archive, "r:")  # noqa: SIM115  (closed by __exit__)
        self._members: dict[str, tarfile.TarInfo] = {}
        for member in self._tar:
            if member.isfile():
                self._members[member.name.removeprefix("./").strip("/")] = member

    def __enter__(self) -> "_Archive":
        return self

    def __exit__(self, *_: object) -> None:
        self._tar.close()

    @property
    def names(self) -> Iterable[str]:
        return self._members.keys()

    def read(self, name: str, limit: int = MAX_CONFIG_BYTES) -> bytes | None:
        """Up to ``limit`` bytes; None when there is no such file."""
        member = self._members.get(name)
        content = self._tar.extractfile(member) if member is not None else None
        if content is None:
            return None
        with content:
            return content.read(limit)


class _Writer:
    def __init__(self, db: sqlite3.Connection, files: _Archive, docs_folder: str) -> None:
        self.pages = 0
        self.sections = 0
        self.skipped: list[Skipped] = []
        self._db = db
        self._files = files
        self._ids: dict[str, int] = {}
        self._docs_folder = docs_folder.strip("/")
        self._layout: Layout = detect_layout(files.names, files.read, docs_folder=self._docs_folder)
        self._builder = SiteBuilder(self._layout, files.names)

    def write(self, commit: str, progress: Progress) -> None:
        for pragma in ("journal_mode = OFF", "synchronous = OFF", "locking_mode = EXCLUSIVE", "cache_size = -65536"):
            self._db.execute(f"PRAGMA {pragma}")
        self._db.executescript(SCHEMA)
        for field in FIELDS:
            self._db.execute(FULL_TEXT.format(field, TOKENIZER))
        self._db.execute("BEGIN")
        paths = sorted(name for name in self._files.names if self._layout.is_page(name))
        for done, path in enumerate(paths):
            if done % 100 == 0:
                progress(done, len(paths))
            self._read_page(path)
        site = self._builder.site()
        self._write_site(site)
        self._write_links(site)
        self._write_meta(site, commit)
        self._db.execute("COMMIT")
        progress(len(paths), len(paths))

    def _read_page(self, path: str) -> None:
        def include(target: str) -> bytes | None:
            candidates = self._layout.included(path, target)
            return next(
                (data for name in candidates if (data := self._files.read(name, MAX_PAGE_BYTES)) is not None), None
            )

        parsed = parse_page(self._files.read(path, MAX_PAGE_BYTES + 1) or b"", path, self._layout.dialect, include)
        if isinstance(parsed, Skipped):
            self.skipped.append(parsed)
            return
        if self._layout.is_hidden(parsed.facts):
            self.skipped.append(Skipped(path, "It is a draft, or hidden."))
            return
        if not parsed.sections:
            self.skipped.append(Skipped(path, "It has no text."))
            return
        self._builder.add(parsed)
        self.pages += 1
        page = self._ids[path] = self.pages
        self._db.execute(
            "INSERT INTO pages VALUES (?, ?, '', '', ?, '', '', '', '', -1, 1, ?, ?)",
            (
                page,
                path,
                parsed.description,
                json.dumps(sorted(parsed.anchors)),
                zlib.compress(parsed.content.encode(), 1),
            ),
        )
        self._db.executemany(
            "INSERT INTO mentions VALUES (?, ?, ?)",
            ((page, link.href, link.text) for link in parsed.links if link.text and not is_external(link.href)),
        )
        self._write_sections(page, parsed)

    def _write_sections(self, page: int, parsed: ParsedPage) -> None:
        rows, headings, bodies = [], [], []
        for index, section in enumerate(parsed.sections[:MAX_SECTIONS]):
            section_id = page << PAGE_SHIFT | index
            path = json.dumps(section.heading_path, ensure_ascii=False)
            rows.append(
                (section_id, section.heading, path, section.anchor, section.text, section.start_line, section.end_line)
            )
            body = words_of(section.text)
            if index == 0 and parsed.description and parsed.description not in body:
                body = f"{parsed.description}\n{body}"
            if section.heading_path:
                headings.append((section_id, searchable(" / ".join(section.heading_path))))
            bodies.append((section_id, searchable(body)))
        self._db.executemany("INSERT INTO sections VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
        self._db.executemany("INSERT INTO headings(rowid, words) VALUES (?, ?)", headings)
        self._db.executemany("INSERT INTO bodies(rowid, words) VALUES (?, ?)", bodies)
        self.sections += len(rows)

    def _write_site(self, site: Site) -> None:
        def row(path: str, page: SitePage) -> tuple[object, ...]:
            return (
                page.url, page.title, page.version, page.language, _bracketed(page.tags), _bracketed(page.groups),
                page.order, page.is_default, self._ids[path],
            )  # fmt: skip

        self._db.executemany(
            "UPDATE pages SET url = ?, title = ?, version = ?, language = ?, tags = ?, groups = ?, position = ?,"
            " is_default = ? WHERE id = ?",
            (row(path, page) for path, page in site.pages.items()),
        )
        self._db.executemany(
            "INSERT INTO titles(rowid, words) VALUES (?, ?)",
            ((self._ids[path] << PAGE_SHIFT, searchable(page.title)) for path, page in site.pages.items()),
        )
        addresses = {key: self._ids[path] for key, path in site.paths.items()}
        for path, page in self._ids.items():
            addresses.setdefault("/" + path.casefold(), page)
            addresses.setdefault("/" + path.rpartition(".")[0].casefold(), page)
        self._db.executemany("INSERT INTO addresses VALUES (?, ?)", addresses.items())

    def _write_links(self, site: Site) -> None:
        """What others call a page, each name once however often it is used, the commonest first."""
        paths = {page: path for path, page in self._ids.items()}
        tails = _unique_tails(site.pages)
        known: dict[tuple[str, str], str | None] = {}
        names: dict[int, Counter[str]] = {}
        for page, href, text in self._db.execute("SELECT page, href, text FROM mentions"):
            path = paths[page]
            place = "" if href.startswith("/") else path
            if (place, href) not in known:
                target = resolve_link(path, href, site)
                known[place, href] = target or tails.get(_tail_key(href))
            found = known[place, href]
            if found is not None and found != path:
                names.setdefault(self._ids[found], Counter())[text] += 1
        self._db.executemany(
            "INSERT INTO links(rowid, words) VALUES (?, ?)",
            ((page << PAGE_SHIFT, searchable(_called(counts))) for page, counts in names.items()),
        )

    def _write_meta(self, site: Site, commit: str) -> None:
        self._db.execute("CREATE VIRTUAL TABLE temp.vocabulary USING fts5vocab('main', 'bodies', 'row')")
        self._db.execute(
            "INSERT INTO common SELECT term, doc FROM temp.vocabulary WHERE doc > ?", (int(COMMON * self.sections),)
        )
        self._db.execute("DROP TABLE temp.vocabulary")
        for field in FIELDS:
            self._db.execute(f"INSERT INTO main.{field}({field}) VALUES ('optimize')")  # noqa: S608  (ours)
        meta = {"format": FORMAT, "commit": commit, "docs_folder": self._docs_folder, "kind": site.kind}
        meta |= {"pages": str(self.pages), "sections": str(self.sections), "instructions": self._instructions()}
        self._db.executemany("INSERT INTO meta VALUES (?, ?)", meta.items())

    def _instructions(self) -> str:
        """Of the site's owner to the assistant: in the docs folder, or else in the nearest folder above that has it."""
        folder = self._docs_folder
        while True:
            data = self._files.read(f"{folder}/{INSTRUCTIONS}" if folder else INSTRUCTIONS, 4 * MAX_INSTRUCTIONS)
            if data is not None or not folder:
                break
            folder = folder.rpartition("/")[0]
        text = (data or b"").decode("utf-8", "replace").replace("\x00", "").lstrip("\ufeff").strip()
        if len(text) > MAX_INSTRUCTIONS:
            reason = f"It has more than {MAX_INSTRUCTIONS} characters; the assistant is told the first ones."
            self.skipped.append(Skipped(f"{folder}/{INSTRUCTIONS}" if folder else INSTRUCTIONS, reason))
        return text[:MAX_INSTRUCTIONS]


def _bracketed(words: Iterable[str]) -> str:
    """As text that ``instr`` can look up a whole word in."""
    return "".join(f"\n{word.casefold()}\n" for word in words)


def _called(counts: Mapping[str, int]) -> str:
    words, size = [], 0
    for text, _ in sorted(counts.items(), key=lambda item: -item[1]):
        size += len(text) + 3
        if size > MAX_LINK_WORDS:
            break
        words.append(text)
    return " / ".join(words)


def _unique_tails(paths: Iterable[str]) -> dict[str, str]:
    """Pages by the end of their path, where that end is one page's only: some sites link by no more than that."""
    found: dict[str, str | None] = {}
    for path in paths:
        parts = path.rpartition(".")[0].casefold().split("/")
        if parts[-1] in ("index", "_index", "readme"):
            parts.pop()
        for length in (1, 2, 3):
            if length <= len(parts):
                tail = "/".join(parts[-length:])
                found[tail] = path if tail not in found else None
    return {tail: path for tail, path in found.items() if path is not None}


def _tail_key(href: str) -> str:
    target = href.partition("#")[0].partition("?")[0].strip("/").casefold()
    return re.sub(r"^(?:\.\./|\./)+|\.(?:mdx?|markdown|html?)$|/(?:_?index|readme)$", "", target)


_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002fa1f]+")


def searchable(text: str) -> str:
    """Scripts that write no spaces become overlapping pairs of characters; all else is left to the tokenizer."""
    return text if text.isascii() else _UNSPACED.sub(_pairs, text)


def _pairs(match: re.Match[str]) -> str:
    run = match[0]
    return " " + (" ".join(map("".join, pairwise(run))) or run) + " "
