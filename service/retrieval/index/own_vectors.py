"""Vectors that a site gives itself: directions of its words (``learning``), and of each section by its words.

They are in a file beside the domain's indexes: words by their term, sections by the hash of their content, so a renewed
index needs only what changed. The words are learned again when much has changed.
"""

import asyncio
import json
import sqlite3
import threading
import zlib
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from service.domain.projects.values import DOMAIN
from service.markup.prose import words_of
from service.retrieval.index.bit_vectors import cosine_with, encode
from service.retrieval.index.learning import MAX_LEARNED, direction_of, learn, weights_of
from service.retrieval.index.stored import PAGES_FILE
from service.retrieval.index.vectors import meant
from service.retrieval.search.analysis import analyzer, indexed
from service.retrieval.search.words import PAGE_SHIFT

FILE = ".words.db"
RELEARNED = 0.2
"""The part of the sections that may be new before the words are learned again."""
CHARACTERS_A_WORD = 6
READ_AT_ONCE = 500
MAX_OPEN = 64

Direction = tuple[float, bytes]
"""Rarity and direction of a word, as ``learn`` returns them."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS words(term TEXT PRIMARY KEY, rarity REAL NOT NULL, direction BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS vectors(hash BLOB PRIMARY KEY, vector BLOB NOT NULL) WITHOUT ROWID;
"""


def update_own_vectors(index: Path) -> int:
    """Give every section of an index its vector, beside the index; return how many have got one. Takes about 5 s for a
    site of 7,000 sections that is learned, and moments for one that has changed little.
    """
    with (
        closing(sqlite3.connect(f"{(index / PAGES_FILE).absolute().as_uri()}?mode=ro&immutable=1", uri=True)) as pages,
        closing(sqlite3.connect(index.parent / FILE, isolation_level=None)) as own,
    ):
        own.execute("PRAGMA journal_mode = WAL")
        own.executescript(_SCHEMA)
        wanted = {key: section for section, key in pages.execute("SELECT id, hash FROM sections") if key}
        held = {key for (key,) in own.execute("SELECT hash FROM vectors")}
        missing = [section for key, section in wanted.items() if key not in held]
        own.execute("BEGIN IMMEDIATE")
        if len(missing) > RELEARNED * len(wanted):
            known = learn([terms for _, terms in _terms_of(pages, _sample(pages, sorted(wanted.values())))])
            own.execute("DELETE FROM words")
            own.execute("DELETE FROM vectors")
            own.executemany("INSERT INTO words VALUES (?, ?, ?)", ((term, *found) for term, found in known.items()))
            missing = sorted(wanted.values())
        else:
            rows = own.execute("SELECT term, rarity, direction FROM words") if missing else ()
            known = {term: (rarity, direction) for term, rarity, direction in rows}
            own.executemany("DELETE FROM vectors WHERE hash = ?", [(key,) for key in held - wanted.keys()])
        own.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", _vectors_of(pages, missing, known))
        own.execute("COMMIT")
        return len(missing)


def _sample(pages: sqlite3.Connection, sections: Sequence[int]) -> Sequence[int]:
    """Return the sections that are learned from, at equal distances."""
    (packed,) = pages.execute("SELECT coalesce(sum(length(text)), 0) FROM sections").fetchone()
    words = 2 * int(packed) // CHARACTERS_A_WORD  # text is packed to about half
    return sections[:: max(1, -(-words // MAX_LEARNED))]


def _terms_of(pages: sqlite3.Connection, sections: Sequence[int]) -> Iterator[tuple[bytes, list[str]]]:
    stems, same = analyzer(), dict[str, str]()
    for at in range(0, len(sections), READ_AT_ONCE):
        asked = ",".join(map(str, sections[at : at + READ_AT_ONCE]))
        for key, title, language, path, text in pages.execute(
            "SELECT sections.hash, pages.title, text_language, heading_path, text FROM sections"  # noqa: S608  (numbers)
            f" JOIN pages ON pages.id = sections.id >> {PAGE_SHIFT} WHERE sections.id IN ({asked}) ORDER BY sections.id"
        ):
            whole = meant(title, json.loads(path), words_of(zlib.decompress(text).decode()))
            yield key, [same.setdefault(term, term) for term in stems.analyze(indexed(whole, language))]


def _vectors_of(
    pages: sqlite3.Connection, sections: Sequence[int], known: Mapping[str, Direction]
) -> Iterator[tuple[bytes, bytes]]:
    for key, terms in _terms_of(pages, sections):
        direction = direction_of(weights_of(terms), known)
        yield key, (encode(direction) if direction is not None else None) or b""


class OwnVectors:
    """The vectors of one domain, to read from any thread."""

    def __init__(self, folder: Path) -> None:
        """Raise sqlite3.Error when there are none."""
        uri = f"{(folder / FILE).absolute().as_uri()}?mode=rw"  # SQLite writes beside a log, also to read
        self._db = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
        self._lock = threading.Lock()

    def close(self) -> None:
        with self._lock:
            self._db.close()

    def nearness(self, terms: Mapping[str, float]) -> Callable[[Sequence[bytes]], Mapping[bytes, float]] | None:
        """Return a function from sections, by the hash of their content, to their cosines with a question of these
        terms; None where the site has none of the words.
        """
        marks = ",".join("?" * len(terms))
        try:
            rows = self._rows(f"SELECT term, rarity, direction FROM words WHERE term IN ({marks})", list(terms))  # noqa: S608
        except sqlite3.OperationalError:
            return None  # they are being made for the first time
        direction = direction_of(terms, {term: (rarity, found) for term, rarity, found in rows})
        cosine = cosine_with(direction) if direction is not None else None
        if cosine is None:
            return None

        def near(hashes: Sequence[bytes]) -> Mapping[bytes, float]:
            found: dict[bytes, float] = {}
            for at in range(0, len(hashes), READ_AT_ONCE):
                part = hashes[at : at + READ_AT_ONCE]
                marks = ",".join("?" * len(part))
                for key, vector in self._rows(f"SELECT hash, vector FROM vectors WHERE hash IN ({marks})", part):  # noqa: S608
                    each = cosine(vector)
                    if each is not None:
                        found[key] = each
            return found

        return near

    def _rows(self, query: str, values: Sequence[object]) -> list[Any]:
        with self._lock:
            return self._db.execute(query, values).fetchall()


class OwnVectorsOfSites:
    """The own vectors of all domains under a folder; for the event loop."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._open: OrderedDict[str, tuple[int, OwnVectors]] = OrderedDict()
        """With the number of the file that was opened: a domain may be removed and created again."""

    async def of_domain(self, domain: str) -> OwnVectors | None:
        """Return the vectors; None for a domain that has none (yet)."""
        if not DOMAIN.fullmatch(domain) or ".." in domain:
            return None
        known = self._open.get(domain)
        found = await asyncio.to_thread(_opened, self._root / domain, known)
        if found is None:
            return None
        self._open[domain] = found
        self._open.move_to_end(domain)
        if len(self._open) > MAX_OPEN:
            self._open.popitem(last=False)  # closed once no one reads it
        return found[1]

    def close(self) -> None:
        for _, vectors in self._open.values():
            vectors.close()
        self._open.clear()


def _opened(folder: Path, known: tuple[int, OwnVectors] | None) -> tuple[int, OwnVectors] | None:
    try:
        number = (folder / FILE).stat().st_ino
        return known if known is not None and known[0] == number else (number, OwnVectors(folder))
    except (OSError, sqlite3.Error):
        return None
