"""Checks a log from its file alone.

The chain covers the rows, and ``verify`` the rest of the file: the schema, which has to be what this program makes; the
constants of the file's header; and the structure with the indexes, by SQLite's integrity check, since an index that
hides an event hides it from those who look for its stream. A change to any byte of the file is found, except where it
has no meaning, so that no reader finds anything else than before (tests/eventstore/pages.py knows these bytes from
the file format, https://sqlite.org/fileformat2.html):

- space in pages that no cell uses: SQLite writes it before it reads it;
- the header's change counter, schema cookie and numbers of versions, which show caches and people that the file was
  written, and the size in pages, where those say that it is old;
- in each row the type of the position's own field, which is empty: the position is the row's key.
"""

import sqlite3
import threading
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from eventstore.errors import EventStoreError, StoreCorrupt
from eventstore.log.chain import GENESIS, Checkpoint, Verified
from eventstore.log.stored import COLUMNS
from eventstore.log.verifying import Verification
from eventstore.sqlite import files
from eventstore.sqlite.wal import has_first_page

_TYPES = (
    "typeof(stream) = 'text' AND typeof(id) = 'text' AND typeof(type) = 'text' AND typeof(recorded_at) = 'text'"
    " AND typeof(metadata) = 'text' AND typeof(data) = 'text' AND typeof(sealed) <> 'text' AND typeof(hash) = 'blob'"
)
"""A text that is turned into a blob has the same bytes and hash, but is not found by its value."""
_SCHEMA = "SELECT type, name, tbl_name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite^_stat%' ESCAPE '^'"
_LITESTREAM = {
    (
        "table",
        "_litestream_seq",
        "_litestream_seq",
        "CREATE TABLE _litestream_seq (id INTEGER PRIMARY KEY, seq INTEGER)",
    ),
    ("table", "_litestream_lock", "_litestream_lock", "CREATE TABLE _litestream_lock (id INTEGER)"),
}
"""Tables that Litestream puts into a file that it copies. They hold nothing of the log, and nothing of the log refers
to them; whatever else has such a name is a stranger.
"""
_HEADER = {
    0: b"SQLite format 3\0",
    20: b"\x00\x40\x20\x20",  # no space kept back in pages; fractions that are fixed
    44: b"\x00\x00\x00\x04" + bytes(8) + b"\x00\x00\x00\x01",  # format of the schema; no vacuuming by itself; UTF-8
    64: bytes(4),
    72: bytes(20),
}
"""The header's constants (https://sqlite.org/fileformat2.html#the_database_header)."""
_FIRST_PAGE = 4096
_PAGE = 200
"""Rows in one read: few enough to be hashed while they are still in the processor's cache."""


def verify(
    path: Path,
    *,
    from_position: int = 1,
    checkpoints: Sequence[Checkpoint] = (),
    progress: Callable[[int, int], None] | None = None,
    structure: bool = True,
) -> Verified:
    """Check the log from a position on, with nothing but the file: it may be in use, or a copy on a read-only disk.

    Events are read in pages, without holding a snapshot. A check that starts later than at 1 trusts the hash that is
    stored for the event before. The log must also contain each of the ``checkpoints``, earlier ones too; verify their
    signatures first. ``progress`` is called after each page with the position reached and the last one.

    The file's structure and indexes are checked meanwhile on another thread, all of them wherever the events begin.
    That is one statement, of about two seconds for a million events, and while it runs the WAL of a log in use cannot
    start over; without ``structure`` it is left out.

    Raises:
        StoreUnavailable, StoreCorrupt: the file cannot be read as a log at all.
        StoreNewer: a newer program made it.
    """
    header = _header_of(path)  # before there is a connection, whose locks closing the file would let go of
    with closing(files.connect_offline(path)) as db:
        try:
            if problem := _problem_of_file(db, path, header):
                return Verified(0, GENESIS, 0, problem)
            checking = _StructureCheck(path) if structure else None
            try:
                db.text_factory = bytes  # as stored: it is what is hashed, and saves decoding
                source = _FileSource(db, _TYPES if checking is None else "1")
                verified = Verification(source, checkpoints, progress).run(from_position)
            finally:
                found = None if checking is None else checking.result()
            if found is not None and verified.is_sound:
                # It looked at the values' types, too: if one of those is wrong, say where.
                verified = Verification(_FileSource(db, _TYPES), checkpoints, None).run(from_position)
        except sqlite3.DatabaseError as error:
            raise files.explained(error, path) from error
        except UnicodeDecodeError as error:  # of SQLite's message about a damaged schema
            raise StoreCorrupt(f"{path.name}: its schema is damaged", file=path.name) from error
    if found is not None and verified.is_sound:
        return Verified(verified.position, verified.hash, 0, found)
    return verified


def _header_of(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(100)
    except OSError:
        return b""  # connecting says what is wrong


def _problem_of_file(db: sqlite3.Connection, path: Path, header: bytes) -> str | None:
    """Return what is wrong with the header or the schema, which no event's hash covers.

    The version comes first: what a newer program makes is unknown here, and no sign of tampering.

    Raises StoreNewer.
    """
    if db.execute("PRAGMA application_id").fetchone() != (files.LOG_ID,):
        return "the file says that it belongs to another program"
    (version,) = db.execute("PRAGMA user_version").fetchone()
    migrations = files.scripts(files.LOG_MIGRATIONS)
    files.require_known(version, len(migrations), path)
    if path.stat().st_size > _FIRST_PAGE and not has_first_page(path):  # else the beginning is still in the WAL
        for at, constant in _HEADER.items():
            if header[at : at + len(constant)] != constant:
                return f"byte {at} of the file, or one after it, is not what it must be"
        if header[18:20] not in {b"\x01\x01", b"\x02\x02"}:  # a copy need not be in WAL mode
            return "byte 18 or 19 of the file is not what it must be"
    if version < 1:
        return "the file has an unknown version"
    with closing(sqlite3.connect(":memory:")) as fresh:
        for script in migrations[:version]:
            files.execute_script(fresh, script)
        schemas = [set(one.execute(_SCHEMA).fetchall()) for one in (fresh, db)]
    if schemas[0] != schemas[1] - _LITESTREAM:
        return "its tables, indexes or triggers are not those that this program makes"
    return None


class _StructureCheck:
    """SQLite's own check, on another thread: it computes without Python, beside the hashes."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._found: str | None = None
        self._thread = threading.Thread(target=self._run, name="eventstore-structure")
        self._thread.start()

    def _run(self) -> None:
        try:
            with closing(files.connect_offline(self._path)) as db:
                (found,) = db.execute("PRAGMA integrity_check(1)").fetchone()
                self._found = None if found == "ok" else str(found)
        except (sqlite3.Error, EventStoreError, UnicodeDecodeError) as error:
            self._found = str(error)

    def result(self) -> str | None:
        self._thread.join()
        return self._found


class _FileSource:
    """See LogSource; ``types`` is the expression for whether a row's values have the right types."""

    def __init__(self, db: sqlite3.Connection, types: str) -> None:
        self._db, self._types = db, types

    def first(self) -> int | None:
        (first,) = self._db.execute("SELECT min(position) FROM events").fetchone()
        return None if first is None else int(first)

    def head(self) -> int:
        (head,) = self._db.execute("SELECT max(position) FROM events").fetchone()
        return int(head)

    def first_metadata(self) -> bytes:
        row = self._db.execute("SELECT metadata FROM events WHERE position = 1").fetchone()
        return b"" if row is None else bytes(row[0])

    def hash_at(self, position: int) -> bytes | None:
        row = self._db.execute("SELECT hash FROM events WHERE position = ?", (position,)).fetchone()
        return None if row is None else row[0]

    def position_of(self, stream: bytes, version: int) -> int | None:
        row = self._db.execute(
            "SELECT position FROM events WHERE stream = ? AND stream_version = ?", (stream.decode(), version)
        ).fetchone()
        return None if row is None else int(row[0])

    def page(self, after: int) -> tuple[list[tuple[Any, ...]], str | None]:
        return self._page(after, _PAGE)

    def _page(self, after: int, size: int) -> tuple[list[tuple[Any, ...]], str | None]:
        """Return the next rows; if the file is damaged there, those before the damage, and SQLite's message."""
        try:
            # NOT INDEXED: in the table's own order, so that an index which hides a row cannot hide it from here.
            return self._db.execute(
                f"SELECT {self._types}, {COLUMNS} FROM events NOT INDEXED"  # noqa: S608 - our own text
                " WHERE position > ? ORDER BY position LIMIT ?",
                (after, size),
            ).fetchall(), None
        except sqlite3.DatabaseError as error:
            if not isinstance(files.explained(error, Path("events.db")), StoreCorrupt):
                raise
            if size == 1:
                return [], str(error)
        rows: list[tuple[Any, ...]] = []
        while True:
            some, damage = self._page(rows[-1][1] if rows else after, size=1)
            if not some:
                return rows, damage
            rows += some
            if len(rows) >= size:
                return rows, None
