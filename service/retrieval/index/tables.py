"""The SQLite half of an index: its pages and sections, and what the index of a later commit needs to know of this one.

What a page is made from is kept with it (the facts that place it, its links, the files that it includes), so that when
some files change no other page is read again.
"""

import json
import sqlite3
import zlib
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from service.domain.sites import Skipped
from service.markup.languages.detection import known_language
from service.markup.links import is_external
from service.markup.prose import words_of
from service.markup.terms import names_in, term_key
from service.retrieval.index.stored import CHANGELOG, RELEASE_POST, pack_page, section_ids
from service.retrieval.index.vectors import content_hash
from service.retrieval.material.boilerplate import is_release_post, says_history
from service.retrieval.readers.entries import decode_entries
from service.retrieval.readers.markdown import ParsedPage
from service.retrieval.search.words import PAGE_SHIFT, Audience
from service.retrieval.site.navigation import Layout, Placed, Site, SitePage
from service.retrieval.site.translations import Copy, groups_of

MAX_SECTIONS = 1 << PAGE_SHIFT
MOST_ASKED_FOR = 1000
"""Pages beyond which all are read."""

SCHEMA = """
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE pages(
    id INTEGER PRIMARY KEY, path TEXT NOT NULL, url TEXT NOT NULL, title TEXT NOT NULL, description TEXT NOT NULL,
    version TEXT NOT NULL, language TEXT NOT NULL, tags TEXT NOT NULL, groups TEXT NOT NULL, position INTEGER NOT NULL,
    is_default INTEGER NOT NULL, anchors TEXT NOT NULL,
    text_language TEXT NOT NULL, copy_group INTEGER NOT NULL, -- 0 without copies (``translations.groups_of``)
    linked INTEGER NOT NULL, is_history INTEGER NOT NULL, -- how often other pages link to it; ``_history``
    placed TEXT NOT NULL,
    links BLOB NOT NULL,
    content BLOB NOT NULL -- ``unpack_page``
);
CREATE TABLE addresses(key TEXT PRIMARY KEY, page INTEGER NOT NULL, is_url INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE sections(
    id INTEGER PRIMARY KEY, heading TEXT NOT NULL, heading_path TEXT NOT NULL, anchor TEXT NOT NULL,
    text BLOB NOT NULL, start_line INTEGER NOT NULL, end_line INTEGER NOT NULL,
    entries TEXT NOT NULL, -- as JSON
    path TEXT NOT NULL, -- of the file that it is from; empty for the page's own
    url TEXT NOT NULL, -- of the page that is made of it alone; empty where it is on the page
    hash BLOB,
    is_code INTEGER NOT NULL -- its heading is a name in code
);
-- Every file of the commit, what git calls its content, its page, and whether it said how the site is laid out.
CREATE TABLE files(path TEXT PRIMARY KEY, blob BLOB NOT NULL, page INTEGER, is_layout INTEGER NOT NULL DEFAULT 0)
    WITHOUT ROWID;
-- What other pages call a page.
CREATE TABLE names(page INTEGER, name TEXT, times INTEGER NOT NULL, PRIMARY KEY(page, name)) WITHOUT ROWID;
-- Files that a page was made from besides its own, also those that were looked for and not found.
CREATE TABLE uses(file TEXT, page TEXT, PRIMARY KEY(file, page)) WITHOUT ROWID;
CREATE INDEX uses_by_page ON uses(page);
-- Files that a page shows and that were not found, as the page names them.
CREATE TABLE missing(page TEXT, target TEXT, PRIMARY KEY(page, target)) WITHOUT ROWID;
-- Files outside the documentation that pages asked for, and what git calls their content; empty for those not shown.
CREATE TABLE outside(path TEXT PRIMARY KEY, blob TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE skipped(path TEXT PRIMARY KEY, reason TEXT NOT NULL) WITHOUT ROWID;
"""

Mentions = Mapping[tuple[str, str], int]
"""How often a page links to an address by a name: address and name."""


class IndexedSection(Struct, frozen=True, gc=False):
    """As the words of a section are indexed."""

    id: int
    headings: tuple[str, ...]
    text: str
    terms: tuple[str, ...] = ()
    """That it explains one by one."""
    keys: tuple[str, ...] = ()
    """Those of the terms that it is the section of (``service.markup.terms``)."""


class PageTables:
    """The tables of an index that is being written. An unfinished one is discarded, so no write waits for the disk."""

    def __init__(self, file: Path, *, new: bool) -> None:
        self._db = sqlite3.connect(file, isolation_level=None)
        self._more_sections = 0
        """Than ``meta`` says: counting them reads the whole file."""
        for pragma in ("journal_mode = OFF", "synchronous = OFF", "locking_mode = EXCLUSIVE", "cache_size = -65536"):
            self._db.execute(f"PRAGMA {pragma}")
        if new:
            self._db.executescript(SCHEMA)
        self._db.execute("BEGIN")

    def finish(self) -> None:
        self._db.execute("COMMIT")

    def close(self) -> None:
        self._db.close()

    # The whole

    def meta(self) -> dict[str, str]:
        return dict(self._db.execute("SELECT key, value FROM meta"))

    def set_meta(self, values: Mapping[str, str]) -> None:
        self._db.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", values.items())

    def file_names(self) -> frozenset[str]:
        return frozenset(path for (path,) in self._db.execute("SELECT path FROM files"))

    def set_blobs(self, blobs: Mapping[str, str | None]) -> None:
        rows = [(path, bytes.fromhex(blob)) for path, blob in blobs.items() if blob is not None]
        self._db.executemany(
            "INSERT INTO files(path, blob) VALUES (?, ?) ON CONFLICT(path) DO UPDATE SET blob = excluded.blob", rows
        )
        gone = [(path,) for path, blob in blobs.items() if blob is None]
        self._db.executemany("DELETE FROM files WHERE path = ?", gone)

    def set_layout_files(self, paths: Iterable[str]) -> None:
        self._db.execute("UPDATE files SET is_layout = 0 WHERE is_layout")
        self._db.executemany("UPDATE files SET is_layout = 1 WHERE path = ?", [(path,) for path in paths])

    def is_file(self, path: str) -> bool:
        return self._one("SELECT 1 FROM files WHERE path = ?", path) is not None

    def is_layout_file(self, path: str) -> bool:
        return self._one("SELECT 1 FROM files WHERE path = ? AND is_layout", path) is not None

    def pages_that_use(self, file: str) -> list[str]:
        return [page for (page,) in self._db.execute("SELECT page FROM uses WHERE file = ?", (file,))]

    def outside(self) -> dict[str, str]:
        return dict(self._db.execute("SELECT path, blob FROM outside"))

    def set_outside(self, asked: Mapping[str, str]) -> None:
        """Keep the files outside the documentation that pages still ask for."""
        self._db.execute("DELETE FROM outside")
        self._db.executemany("INSERT INTO outside VALUES (?, ?)", asked.items())
        self._db.execute("DELETE FROM outside WHERE path NOT IN (SELECT file FROM uses)")

    def skip(self, one: Skipped) -> None:
        self._db.execute("INSERT OR REPLACE INTO skipped VALUES (?, ?)", (one.path, one.reason))

    def unskip(self, path: str) -> None:
        self._db.execute("DELETE FROM skipped WHERE path = ?", (path,))

    def skipped(self) -> list[Skipped]:
        return [Skipped(*row) for row in self._db.execute("SELECT path, reason FROM skipped ORDER BY path")]

    def counts(self) -> tuple[int, int]:
        """Return the numbers of pages and sections."""
        pages = int(str(self._one("SELECT count(*) FROM files WHERE page IS NOT NULL")))
        return pages, int(self.meta().get("sections", 0)) + self._more_sections

    # Pages

    def page_id(self, path: str) -> int | None:
        found = self._one("SELECT page FROM files WHERE path = ?", path)
        return found if isinstance(found, int) else None

    def page_path(self, page: int) -> str:
        return str(self._one("SELECT path FROM pages WHERE id = ?", page))

    def page_ids(self) -> dict[str, int]:
        """Return the pages' ids by path, in the order of the paths."""
        return dict(self._db.execute("SELECT path, page FROM files WHERE page IS NOT NULL ORDER BY path"))

    def put_page(self, parsed: ParsedPage, place: Placed) -> int:
        """Write a page instead of its earlier version, with its id, or as a new one. It is placed later."""
        page, group = self.page_id(parsed.path), 0
        if page is None:
            page = int(str(self._one("SELECT coalesce(max(id), 0) + 1 FROM pages")))
            self._db.execute("UPDATE files SET page = ? WHERE path = ?", (page, parsed.path))
        else:
            group = int(str(self._one("SELECT copy_group FROM pages WHERE id = ?", page)))
            self._forget_sections(page)
        links = Counter((link.href, link.text) for link in parsed.links if link.text and not is_external(link.href))
        sections = parsed.sections[:MAX_SECTIONS]
        self._more_sections += len(sections)
        self._db.execute(
            "INSERT OR REPLACE INTO pages VALUES (?, ?, '', '', ?, '', '', '', '', -1, 1, ?, '', ?,"
            " (SELECT coalesce(sum(times), 0) FROM names WHERE page = ?), 0, ?, ?, ?)",
            (
                page,
                parsed.path,
                parsed.description,
                json.dumps(sorted(parsed.anchors)),
                group,
                page,
                _encoded(place),
                _packed(json.dumps([[*link, times] for link, times in links.items()])) if links else b"",
                pack_page(parsed.content, [section.text for section in sections]),
            ),
        )
        self._db.executemany(
            "INSERT INTO sections VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL, ?)",
            (
                (
                    page << PAGE_SHIFT | number,
                    section.heading,
                    json.dumps(section.heading_path, ensure_ascii=False),
                    section.anchor,
                    _packed(section.text),
                    section.start_line,
                    section.end_line,
                    msgspec.json.encode(section.entries).decode() if section.entries else "",
                    section.path,
                    section.url,
                    section.is_code,
                )
                for number, section in enumerate(sections)
            ),
        )
        return page

    def remove_page(self, page: int) -> None:
        self._forget_sections(page)
        self._db.execute("DELETE FROM names WHERE page = ?", (page,))
        path = self._one("SELECT path FROM pages WHERE id = ?", page)
        self._db.execute("UPDATE files SET page = NULL WHERE path = ?", (path,))
        self._db.execute("DELETE FROM uses WHERE page = ?", (path,))
        self._db.execute("DELETE FROM missing WHERE page = ?", (path,))
        self._db.execute("DELETE FROM pages WHERE id = ?", (page,))

    def _forget_sections(self, page: int) -> None:
        deleted = self._db.execute("DELETE FROM sections WHERE id BETWEEN ? AND ?", section_ids(page))
        self._more_sections -= deleted.rowcount

    def set_used(self, path: str, files: Iterable[str], missing: Iterable[str]) -> None:
        """Keep the files that a page was made from, and those that were not found as it names them."""
        self._db.execute("DELETE FROM missing WHERE page = ?", (path,))
        self._db.executemany("INSERT INTO missing VALUES (?, ?)", [(path, target) for target in missing])
        self._db.execute("DELETE FROM uses WHERE page = ?", (path,))
        self._db.executemany("INSERT INTO uses VALUES (?, ?)", [(file, path) for file in files])

    def placed(self, page: int) -> Placed:
        return _decoded(str(self._one("SELECT placed FROM pages WHERE id = ?", page)))

    def all_placed(self) -> Iterator[Placed]:
        """Yield the places of all pages, in the order of their paths."""
        for (text,) in self._db.execute("SELECT placed FROM pages ORDER BY path"):
            yield _decoded(text)

    def mentions(self, page: int) -> Mentions:
        (links,) = self._db.execute("SELECT links FROM pages WHERE id = ?", (page,)).fetchone()
        return _mentions(links)

    def all_mentions(self) -> Iterator[tuple[str, Mentions]]:
        """By path, of the pages that have any."""
        for path, links in self._db.execute("SELECT path, links FROM pages WHERE links != x'' ORDER BY path"):
            yield path, _mentions(links)

    # Their places

    def place(self, shown: Mapping[int, SitePage]) -> list[int]:
        """Returns the pages of which anything that is indexed with their words is another than before."""
        columns = "id, url, title, version, language, tags, groups, text_language, position, is_default, is_history"
        if len(shown) < MOST_ASKED_FOR:
            asked = ",".join(map(str, shown))
            found = self._db.execute(f"SELECT {columns} FROM pages WHERE id IN ({asked})")  # noqa: S608  (numbers)
        else:
            found = self._db.execute(f"SELECT {columns} FROM pages")  # noqa: S608  (ours)
        before = {page: row for page, *row in found}
        changed = []
        for page, one in shown.items():
            row = [
                one.url, one.title, one.version, one.language, _bracketed(one.tags), _bracketed(one.groups),
                one.text_language, one.order, int(one.is_default), _history(one.path, one.title),
            ]  # fmt: skip
            if before[page] == row:
                continue
            self._db.execute(
                "UPDATE pages SET url = ?, title = ?, version = ?, language = ?, tags = ?, groups = ?,"
                " text_language = ?, position = ?, is_default = ?, is_history = ? WHERE id = ?",
                (*row, page),
            )
            if before[page][1:7] != row[1:7]:
                changed.append(page)
        return changed

    def set_copies(self, shown: Mapping[int, SitePage]) -> None:
        """Group the pages that are copies of one another."""
        blobs = dict(self._db.execute("SELECT page, blob FROM files WHERE page IS NOT NULL"))
        copies = {
            page: Copy(one.copy_key, one.language, one.version, one.text_language, blobs.get(page, b""))
            for page, one in shown.items()
        }
        self._db.execute("UPDATE pages SET copy_group = 0 WHERE copy_group")
        groups = [(group, page) for page, group in groups_of(copies).items()]
        self._db.executemany("UPDATE pages SET copy_group = ? WHERE id = ?", groups)

    def main_language(self, told: str) -> str:
        """Return the site's own language; ``told``: by its configuration. Pages outside of all folders of languages are
        in it; where there are none, it is English, or the language of most pages.
        """
        rows = self._db.execute(
            "SELECT language, text_language, count(*) FROM pages GROUP BY 1, 2 ORDER BY 3 DESC, 2"
        ).fetchall()
        outside = [text for place, text, _ in rows if not known_language(place)]
        placed_in = [known_language(place) for place, _, _ in rows if known_language(place)]
        if known := known_language(told):
            return known
        return next(iter(outside), "en" if "en" in placed_in or not placed_in else placed_in[0])

    def set_addresses(self, site: Site, ids: Mapping[str, int], shown_on: Mapping[str, str]) -> None:
        """URLs; beside them a page answers to its path, with and without its suffix, and to those of files that it
        shows.
        """
        addresses = {key: (ids[path], True) for key, path in site.paths.items()}
        shown = {path: ids[page] for path, page in shown_on.items() if page in ids}
        for path, page in (*ids.items(), *shown.items()):
            addresses.setdefault("/" + path.casefold(), (page, False))
            addresses.setdefault("/" + path.rpartition(".")[0].casefold(), (page, False))
        before = {key: (page, bool(is_url)) for key, page, is_url in self._db.execute("SELECT * FROM addresses")}
        gone = [(key,) for key in before if key not in addresses]
        self._db.executemany("DELETE FROM addresses WHERE key = ?", gone)
        new = ((key, *found) for key, found in sorted(addresses.items()) if before.get(key) != found)
        self._db.executemany("INSERT OR REPLACE INTO addresses VALUES (?, ?, ?)", new)

    def stored_site(self, layout: Layout) -> Site:
        """The pages as they are placed, looked up one by one."""
        return Site(layout.kind, layout.docs_folder, _StoredPages(self._db), _StoredPaths(self._db), frozenset())

    # What is indexed of them

    def names(self, page: int) -> dict[str, int]:
        return dict(self._db.execute("SELECT name, times FROM names WHERE page = ?", (page,)))

    def all_names(self) -> dict[int, dict[str, int]]:
        found: dict[int, dict[str, int]] = {}
        for page, name, times in self._db.execute("SELECT page, name, times FROM names"):
            found.setdefault(page, {})[name] = times
        return found

    def set_names(self, page: int, names: Mapping[str, int]) -> None:
        self._db.execute("DELETE FROM names WHERE page = ?", (page,))
        self._db.executemany("INSERT INTO names VALUES (?, ?, ?)", [(page, *item) for item in names.items()])
        self._db.execute("UPDATE pages SET linked = ? WHERE id = ?", (sum(names.values()), page))

    def title_of(self, page: int) -> tuple[str, Audience]:
        title, version, language, tags, groups, text_language = self._db.execute(
            "SELECT title, version, language, tags, groups, text_language FROM pages WHERE id = ?", (page,)
        ).fetchone()
        return title, Audience(version, language, _unbracketed(tags), _unbracketed(groups), text_language)

    def headings_in(self, languages: Container[str]) -> Iterator[tuple[str, str]]:
        """Yield the language and the text of each title and heading of the pages in some languages."""
        pages = {
            page: (language, title)
            for page, language, title in self._db.execute("SELECT id, text_language, title FROM pages")
            if language in languages
        }
        yield from pages.values()
        for section, heading in self._db.execute("SELECT id, heading FROM sections") if pages else ():
            if heading and section >> PAGE_SHIFT in pages:
                yield pages[section >> PAGE_SHIFT][0], heading

    def sections_of(self, page: int) -> list[IndexedSection]:
        """The words of a page's sections. Their hashes are renewed on the way, the page's title being part of them."""
        title, description = self._db.execute("SELECT title, description FROM pages WHERE id = ?", (page,)).fetchone()
        found, hashes = list[IndexedSection](), []
        above: tuple[str, ...] = ()
        for section, heading_path, text, entries in self._db.execute(
            "SELECT id, heading_path, text, entries FROM sections WHERE id BETWEEN ? AND ?", section_ids(page)
        ):
            body, headings = words_of(zlib.decompress(text).decode()), tuple(json.loads(heading_path))
            hashes.append((content_hash(title, headings, body), section))
            if section == page << PAGE_SHIFT and description and description not in body:
                body = f"{description}\n{body}"
            terms = tuple(entry.term for entry in decode_entries(entries)) if entries else ()
            opened = _opened(above, headings) if found else (title, *headings)
            above = headings
            keys = dict.fromkeys(term_key(name) for text in (*opened, *terms) for name in names_in(text))
            found.append(IndexedSection(section, headings, body, terms, tuple(filter(None, keys))))
        self._db.executemany("UPDATE sections SET hash = ? WHERE id = ?", hashes)
        return found

    def _one(self, query: str, *values: object) -> object:
        row = self._db.execute(query, values).fetchone()
        return None if row is None else row[0]


class _StoredPages(Mapping[str, SitePage]):
    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def __contains__(self, path: object) -> bool:
        return (
            self._db.execute("SELECT 1 FROM files WHERE path = ? AND page IS NOT NULL", (path,)).fetchone() is not None
        )

    def __getitem__(self, path: str) -> SitePage:
        row = self._db.execute(
            "SELECT url, title FROM pages WHERE id = (SELECT page FROM files WHERE path = ?)", (path,)
        ).fetchone()
        if row is None:
            raise KeyError(path)
        return SitePage(path, str(row[0]), str(row[1]), frozenset())

    def __iter__(self) -> Iterator[str]:
        return (path for (path,) in self._db.execute("SELECT path FROM files WHERE page IS NOT NULL ORDER BY path"))

    def __len__(self) -> int:
        return sum(1 for _ in self)


class _StoredPaths(Mapping[str, str]):
    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def __getitem__(self, key: str) -> str:
        row = self._db.execute(
            "SELECT path FROM pages WHERE id = (SELECT page FROM addresses WHERE key = ? AND is_url)", (key,)
        ).fetchone()
        if row is None:
            raise KeyError(key)
        return str(row[0])

    def __iter__(self) -> Iterator[str]:
        return (key for (key,) in self._db.execute("SELECT key FROM addresses WHERE is_url"))

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _history(path: str, title: str) -> int:
    """Return the kind of a page about what changed; 0 for others."""
    if says_history(path, (title,)):
        return CHANGELOG
    return RELEASE_POST if is_release_post(path, title) else 0


def _opened(before: Sequence[str], headings: Sequence[str]) -> Sequence[str]:
    """Return the headings that begin with a section; ``before``: those above and of the section before it. One that a
    heading without a text of its own stands above begins both.
    """
    same = next((at for at, pair in enumerate(zip(before, headings, strict=False)) if pair[0] != pair[1]), None)
    return headings[min(len(before), len(headings)) if same is None else same :]


def _packed(text: str) -> bytes:
    return zlib.compress(text.encode(), 6)


def _mentions(links: bytes) -> Mentions:
    if not links:
        return {}
    return {(href, name): times for href, name, times in json.loads(zlib.decompress(links))}


def _encoded(page: Placed) -> str:
    kept = [page.path, page.title, page.has_own_title, page.front_matter, page.text_language]
    return json.dumps(kept, separators=(",", ":"))


def _decoded(text: str) -> Placed:
    return Placed(*json.loads(text))


def _bracketed(words: Sequence[str]) -> str:
    """Return the words as a text in which ``instr`` can look up a whole word."""
    if not words:
        return ""
    return "".join(f"\n{' '.join(word.casefold().split())}\n" for word in words)


def _unbracketed(text: str) -> tuple[str, ...]:
    return tuple(word for word in text.split("\n") if word)
