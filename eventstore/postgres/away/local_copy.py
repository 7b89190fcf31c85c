"""A copy of the log's rows in a SQLite file of this machine: what is read while the database is away.

It is derived, as views are, and made again when it is deleted. What is personal in it is sealed under the keys of the
vault, as in every copy. Each row is checked against the chain before it is kept. So the copy is also a witness: a log
that does not hold its last event, after a failover say, has lost what was acknowledged.
"""

import contextlib
import sqlite3
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self, TypeVar

from eventstore.backend import LogReader
from eventstore.errors import StoreCorrupt, StoreLost, StoreNewer
from eventstore.log.chain import GENESIS, event_hash
from eventstore.log.stored import COLUMNS
from eventstore.log.witnesses import Witness
from eventstore.sqlite import files
from eventstore.sqlite.log_reader import FileReader

T = TypeVar("T")

Row = tuple[Any, ...]
"""The columns of ``COLUMNS``, with texts as texts."""

_INSERT = f"INSERT INTO events ({COLUMNS}) VALUES ({', '.join('?' * 11)})"  # noqa: S608 - our own text
_WHOLE = "CREATE TABLE IF NOT EXISTS whole (one INTEGER PRIMARY KEY CHECK (one = 1)) STRICT"
"""It has a row once the copy had reached the end of the log: since then it is behind by moments only."""


class LocalCopy:
    """The copy, to which one thread adds and which any thread may read."""

    def __init__(self, path: Path, db: sqlite3.Connection) -> None:
        self._path, self._db = path, db
        self._local = threading.local()
        self._lock = threading.Lock()
        self._connections: list[sqlite3.Connection] = []
        row = db.execute("SELECT position, hash FROM events ORDER BY position DESC LIMIT 1").fetchone()
        self._end: tuple[int, bytes] = row or (0, GENESIS)
        self.is_whole = db.execute("SELECT 1 FROM whole").fetchone() is not None
        self._is_closed = False

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open the file, made if need be; one that is damaged, or of another program, is made again.

        Raises:
            StoreUnavailable and its kinds.
        """
        try:
            return cls(path, _opened(path))
        except (StoreCorrupt, StoreNewer):
            remove_copy(path)
        except sqlite3.Error as error:
            found = files.explained(error, path)
            if not isinstance(found, StoreCorrupt):  # a full disk, say: the copy is as good as before
                raise found from error
            remove_copy(path)
        try:
            return cls(path, _opened(path))
        except sqlite3.Error as error:
            raise files.explained(error, path) from error

    @property
    def witness(self) -> Witness:
        position, hash_ = self._end  # both of one moment
        return Witness("the copy on this machine", position, hash_)

    def add(self, rows: Sequence[Row], *, is_end: bool) -> None:
        """Keep the rows that follow. ``is_end``: the log had no more.

        Raises:
            StoreLost: they do not follow the last event that is here.
            StoreUnavailable and its kinds: about the file.
        """
        position, previous = self._end
        for row in rows:
            position += 1
            at, stream, version, id_, type_, schema_version, recorded_at, metadata, data, sealed, hash_ = row
            previous = event_hash(
                previous, at, stream.encode(), version, id_.encode(), type_.encode(), schema_version,
                recorded_at.encode(), metadata.encode(), data.encode(), sealed,
            )  # fmt: skip
            if at != position or previous != hash_:
                raise StoreLost(f"position {position} does not follow what this machine has seen of the log before it")
        try:
            with files.transaction(self._db):
                self._db.executemany(_INSERT, rows)
                if is_end and not self.is_whole:
                    self._db.execute("INSERT OR IGNORE INTO whole VALUES (1)")
        except sqlite3.Error as error:
            raise files.explained(error, self._path) from error
        self._end = (position, previous)
        self.is_whole = self.is_whole or is_end

    def read(self, work: Callable[[LogReader], T]) -> T:
        """Call a function with the calling thread's own reader. Raises StoreUnavailable and its kinds, StoreCorrupt."""
        try:
            reader: FileReader | None = getattr(self._local, "reader", None)
            if reader is None:
                db = files.connect_offline(self._path)
                with self._lock:
                    self._connections.append(db)
                reader = self._local.reader = FileReader(db)
            return work(reader)
        except sqlite3.Error as error:
            raise files.explained(error, self._path) from error

    def close(self) -> None:
        """Close the connections; no thread is reading any more. Again does nothing."""
        if not self._is_closed:
            self._is_closed = True
            for db in (*self._connections, self._db):
                db.close()


def remove_copy(path: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def _opened(path: Path) -> sqlite3.Connection:
    with contextlib.ExitStack() as undo:
        db = files.connect(path)
        undo.callback(db.close)
        files.use_wal(db, path)
        db.execute("PRAGMA synchronous = NORMAL")  # what a power cut takes back is read again
        files.migrate(db, files.LOG_MIGRATIONS, files.LOG_ID, path)
        db.execute(_WHOLE)
        undo.pop_all()
        return db
