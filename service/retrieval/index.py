"""From an archive of documentation files to a folder that search reads: its pages in SQLite, its words in tantivy.

Two passes, so that no more than a page's text is held at a time: pages are parsed and written as they come, with their
links; when all are known, they get their URLs and readers, and their words are indexed, with what other pages call
them.

The text of each section is kept, compressed, and that of the whole page: either is read at once. The last file written
is a list of all others with their sums: an index that has lost or changed a byte is known before it answers.
"""

import hashlib
import json
import os
import re
import shutil
import sqlite3
import tarfile
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from pathlib import Path

from msgspec import Struct

from service.domain.sites import Skipped
from service.retrieval.inline import words_of
from service.retrieval.markdown import ParsedPage
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
from service.retrieval.pages import PageReader
from service.retrieval.vectors import content_hash
from service.retrieval.words import PAGE_SHIFT, Audience, WordsWriter

FORMAT = "4"
PAGES_FILE = "pages.db"
SUMS_FILE = "sums.json"
MAX_SECTIONS = 1 << PAGE_SHIFT
MAX_LINK_WORDS = 2000
"""Characters of what other pages call one."""
INSTRUCTIONS = ".docsmith/assistant.md"
MAX_INSTRUCTIONS = 8_000
"""Characters of the site owner's word to the assistant: they are part of every prompt."""

LEFT_SECONDS = 2 * 3600
"""After which an archive that nobody has cleared away has no reader any more."""
LEFT_BY_WRITERS = (".tantivy-writer.lock", ".tantivy-meta.lock")

SCHEMA = """
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE pages(
    id INTEGER PRIMARY KEY, path TEXT NOT NULL, url TEXT NOT NULL, title TEXT NOT NULL, description TEXT NOT NULL,
    version TEXT NOT NULL, language TEXT NOT NULL, tags TEXT NOT NULL, groups TEXT NOT NULL, position INTEGER NOT NULL,
    is_default INTEGER NOT NULL, anchors TEXT NOT NULL, content BLOB NOT NULL
);
CREATE TABLE addresses(key TEXT PRIMARY KEY, page INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE sections(
    id INTEGER PRIMARY KEY, heading TEXT NOT NULL, heading_path TEXT NOT NULL, anchor TEXT NOT NULL,
    text BLOB NOT NULL, start_line INTEGER NOT NULL, end_line INTEGER NOT NULL,
    hash BLOB
);
CREATE TEMP TABLE mentions(page INTEGER NOT NULL, href TEXT NOT NULL, text TEXT NOT NULL);
"""
Progress = Callable[[int, int], None]


class IndexReport(Struct, frozen=True):
    pages: int
    sections: int
    skipped: tuple[Skipped, ...]
    seconds: float


def build_index(archive: Path, target: Path, *, docs_folder: str, commit: str, progress: Progress) -> IndexReport:
    """Index the pages in an uncompressed tar archive, whose names are paths in the repository.

    ``target``, a folder, appears whole or not at all. ``progress`` is told how many of how many pages are read, now
    and then. A page that cannot be read is in the report's ``skipped`` and stops nothing. Raises OSError and
    tarfile.TarError for the archive itself.
    """
    began = time.monotonic()
    target.parent.mkdir(parents=True, exist_ok=True)
    _clear_away(target.parent)
    building = target.with_name(f".{target.name}.{os.getpid()}.building")
    try:
        building.mkdir(mode=0o700)
        with _Archive(archive) as files, closing(sqlite3.connect(building / PAGES_FILE, isolation_level=None)) as db:
            writer = _Writer(db, building, files, docs_folder)
            writer.write(commit, progress)
        _seal(building)
        if target.exists():
            shutil.rmtree(target)
        building.replace(target)
        _sync(target.parent)
    finally:
        shutil.rmtree(building, ignore_errors=True)
    return IndexReport(writer.pages, writer.sections, tuple(writer.skipped), round(time.monotonic() - began, 3))


def _clear_away(folder: Path) -> None:
    """What processes that were killed have left beside the indexes of a domain."""
    for left in folder.glob(".*"):
        if left.suffix == ".tar":
            try:
                if left.stat().st_mtime < time.time() - LEFT_SECONDS:
                    left.unlink()
            except FileNotFoundError:
                continue
        elif left.suffix == ".removed" or (left.suffix == ".building" and not _runs(left.stem.rpartition(".")[2])):
            shutil.rmtree(left, ignore_errors=True)


def _runs(process: str) -> bool:
    try:
        os.kill(int(process), 0)
    except (ValueError, ProcessLookupError):
        return False
    except PermissionError:
        return True
    return int(process) != os.getpid()


def _seal(folder: Path) -> None:
    """Everything on the disk for good, with the sums that ``is_whole`` checks."""
    for name in LEFT_BY_WRITERS:
        for file in folder.rglob(name):
            file.unlink()
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    sums = {str(file.relative_to(folder)): _sum(file) for file in files}
    (folder / SUMS_FILE).write_text(json.dumps(sums, indent=0), encoding="utf-8")
    for file in [*files, folder / SUMS_FILE, *(each for each in folder.rglob("*") if each.is_dir()), folder]:
        _sync(file)


def is_whole(folder: Path) -> bool:
    """Whether every file of an index is as it was written. Reads all of them."""
    try:
        sums = json.loads((folder / SUMS_FILE).read_text(encoding="utf-8"))
        return bool(sums) and all(_sum(folder / name) == known for name, known in sums.items())
    except (OSError, ValueError, AttributeError):
        return False


def _sum(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _sync(file: Path) -> None:
    descriptor = os.open(file, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


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
    def __init__(self, db: sqlite3.Connection, folder: Path, files: _Archive, docs_folder: str) -> None:
        self.pages = 0
        self.sections = 0
        self.skipped: list[Skipped] = []
        self._db = db
        self._folder = folder
        self._files = files
        self._ids: dict[str, int] = {}
        self._docs_folder = docs_folder.strip("/")
        self._layout: Layout = detect_layout(files.names, files.read, docs_folder=self._docs_folder)
        self._reader = PageReader(self._layout, files.read)
        self._builder = SiteBuilder(self._layout, files.names)

    def write(self, commit: str, progress: Progress) -> None:
        for pragma in ("journal_mode = OFF", "synchronous = OFF", "locking_mode = EXCLUSIVE", "cache_size = -65536"):
            self._db.execute(f"PRAGMA {pragma}")
        self._db.executescript(SCHEMA)
        self._db.execute("BEGIN")
        paths = sorted(name for name in self._files.names if self._layout.is_page(name))
        for done, path in enumerate(paths):
            if done % 100 == 0:
                progress(done, len(paths))
            self._read_page(path)
        site = self._builder.site()
        self._write_site(site)
        self._write_words(site, self._names(site))
        self._write_meta(site, commit)
        self._db.execute("COMMIT")
        progress(len(paths), len(paths))

    def _read_page(self, path: str) -> None:
        parsed = self._reader.page(path)
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
                zlib.compress(parsed.content.encode(), 6),
            ),
        )
        self._db.executemany(
            "INSERT INTO mentions VALUES (?, ?, ?)",
            ((page, link.href, link.text) for link in parsed.links if link.text and not is_external(link.href)),
        )
        self._write_sections(page, parsed)

    def _write_sections(self, page: int, parsed: ParsedPage) -> None:
        rows = []
        for index, section in enumerate(parsed.sections[:MAX_SECTIONS]):
            path = json.dumps(section.heading_path, ensure_ascii=False)
            section_id, text = page << PAGE_SHIFT | index, zlib.compress(section.text.encode(), 6)
            rows.append((section_id, section.heading, path, section.anchor, text, section.start_line, section.end_line))
        self._db.executemany("INSERT INTO sections VALUES (?, ?, ?, ?, ?, ?, ?, NULL)", rows)
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
        addresses = {key: self._ids[path] for key, path in site.paths.items()}
        for path, page in self._ids.items():
            addresses.setdefault("/" + path.casefold(), page)
            addresses.setdefault("/" + path.rpartition(".")[0].casefold(), page)
        self._db.executemany("INSERT INTO addresses VALUES (?, ?)", addresses.items())

    def _write_words(self, site: Site, names: Mapping[int, Mapping[str, int]]) -> None:
        words = WordsWriter(self._folder)
        for path, page in site.pages.items():
            page_id = self._ids[path]
            audience = Audience(page.version, page.language, page.tags, page.groups)
            words.add_page(page_id, page.title, _called(names.get(page_id, {})), audience)
            (description,) = self._db.execute("SELECT description FROM pages WHERE id = ?", (page_id,)).fetchone()
            hashes = []
            for section, heading_path, text in self._db.execute(
                "SELECT id, heading_path, text FROM sections WHERE id BETWEEN ? AND ?",
                (page_id << PAGE_SHIFT, (page_id + 1 << PAGE_SHIFT) - 1),
            ):
                body, headings = words_of(zlib.decompress(text).decode()), json.loads(heading_path)
                hashes.append((content_hash(page.title, headings, body), section))
                if section == page_id << PAGE_SHIFT and description and description not in body:
                    body = f"{description}\n{body}"
                words.add_section(section, " / ".join(headings), body, audience)
            self._db.executemany("UPDATE sections SET hash = ? WHERE id = ?", hashes)
        words.finish()

    def _names(self, site: Site) -> dict[int, Counter[str]]:
        """What others call a page, by its id, with how often."""
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
        return names

    def _write_meta(self, site: Site, commit: str) -> None:
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
    """Each name once however often it is used, the commonest first."""
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
    return re.sub(r"^(?:\.\./|\./)+|\.(?:mdx?|markdown|html?|rst|ipynb)$|/(?:_?index|readme)$", "", target)
