"""The log as a SQLite file: writing a batch. For a thread to call.

What SQLite and Python do that the code below counts on:

- WAL with ``synchronous=FULL`` makes each commit durable before it returns (https://sqlite.org/pragma.html).
- The WAL cannot start over while any snapshot is held, so reads go by pages, each a statement of its own.
- ``PRAGMA data_version`` changes when, and only when, another connection has committed.
- The sqlite3 module releases the GIL around each step of a statement and must get it back after it; against a busy
  event loop each such change of hands may wait for the interpreter's switch interval (5 ms). So a batch is a few
  statements, and what can be known in memory is not asked of the file.
- A commit whose flush fails (``SQLITE_IOERR_FSYNC``) is rolled back, but its pages are in the WAL file with valid sums:
  if the process ends before the next commit writes over them, recovery finds them and the events are there
  (https://sqlite.org/fileformat2.html#walformat). Which of these it will be cannot be known, so the outcome is unknown.
"""

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from eventstore.appending.batch import Batch, Draft, Keys, Outcome, Row, obtain_keys, outcome_of_repeat
from eventstore.appending.known_end import BEGINNING, KNOWN_STREAMS, LookFirst, look_first, time_of
from eventstore.errors import DuplicateEventId, EventStoreError, OutcomeUnknown, StoreLost
from eventstore.events import Append
from eventstore.log.chain import GENESIS
from eventstore.sqlite import files
from eventstore.sqlite.log_reader import FileReader
from eventstore.sqlite.wal_size import WalKeeper
from eventstore.vault import Vault

Synchronous = Literal["FULL", "NORMAL", "OFF"]

_INSERT = (
    "INSERT INTO events (position, stream, stream_version, id, type, schema_version, recorded_at, metadata, data,"
    " sealed, hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_INSERT_NEXT = (
    "INSERT INTO events (position, stream, stream_version, id, type, schema_version, recorded_at, metadata, data,"
    " sealed, hash) VALUES (?1, CASE WHEN (SELECT hash FROM events WHERE position = ?1 - 1) IS ?12 THEN ?2 END,"
    " ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)"
)
"""Only after the event that is expected there: else the stream is NULL, which the table refuses. INSERT with SELECT
from the same table takes 2 µs more: SQLite keeps its rows in a temporary table first.
"""


def open_log(
    path: Path,
    *,
    synchronous: Synchronous,
    read_only: bool,
    busy_timeout_seconds: float,
) -> sqlite3.Connection:
    """Return a connection to the log, made or brought up to date if need be.

    Raises:
        StoreUnavailable and its kinds, StoreCorrupt.
    """
    try:
        db = (
            files.connect_offline(path) if read_only else files.connect(path, busy_timeout_seconds=busy_timeout_seconds)
        )
        try:
            if not read_only:
                files.use_wal(db, path)
                db.execute(f"PRAGMA synchronous = {synchronous}")
                # Kept long, the WAL is written over in place: making a file longer costs a flush as much again.
                db.execute(f"PRAGMA journal_size_limit = {64 << 20}")
                files.migrate(db, files.LOG_MIGRATIONS, files.LOG_ID, path, keep=True)
            else:
                files.check(db, files.LOG_MIGRATIONS, files.LOG_ID, path)
        except BaseException:
            db.close()
            raise
    except sqlite3.Error as error:
        raise files.explained(error, path) from error
    return db


class FileWriter:
    """See LogWriter."""

    def __init__(
        self, db: sqlite3.Connection, path: Path, vault: Vault, clock: Callable[[], datetime], wal: WalKeeper
    ) -> None:
        self._db, self._path, self._vault, self._clock, self._wal = db, path, vault, clock, wal
        self._reader = FileReader(db)
        self._data_version = -1
        self.identity = ""
        self._position, self._hash, self._recorded_at = 0, GENESIS, BEGINNING
        self._versions: dict[str, int] = {}
        self._is_ending = False
        """A statement that ends a transaction is under way."""

    def commit(self, appends: Sequence[Sequence[Append]], *, wants_events: bool) -> Batch:
        self._wal.require_space()
        try:
            keys = obtain_keys(self._vault, appends)
            if self._data_version != -1:
                try:
                    return self._commit_at_once(appends, keys, wants_events)
                except (sqlite3.IntegrityError, LookFirst):
                    self._roll_back()
            try:
                return self._commit(appends, keys, wants_events)
            except sqlite3.IntegrityError:
                self._roll_back()
                # An id that is stored already, which nothing looked for because it hardly happens: find out whose.
                batches = [self._commit_one(append, keys, wants_events) for append in appends]
        except sqlite3.Error as error:
            outcome = self._explained(error)
            self._roll_back()
            return Batch([outcome] * len(appends), [], 0)
        except MemoryError as error:  # as Python has SQLite's
            is_known = not self._is_ending
            self._roll_back()
            if is_known:
                raise
            raise OutcomeUnknown(_unknown(self._path, error)) from error
        except BaseException:
            self._roll_back()
            raise
        return Batch.joined(batches)

    def tidy(self) -> None:
        self._wal.tidy()

    def close(self) -> None:
        self._wal.close()
        self._db.close()

    def _commit_one(self, append: Sequence[Append], keys: Keys, wants_events: bool) -> Batch:
        try:
            return self._commit([append], keys, wants_events)
        except sqlite3.IntegrityError:
            self._roll_back()
            error: EventStoreError = DuplicateEventId("an event with the id of one of these is stored already")
        except sqlite3.Error as failure:
            error = self._explained(failure)
            self._roll_back()
        return Batch([error], [], 0)

    def _commit_at_once(self, appends: Sequence[Sequence[Append]], keys: Keys, wants_events: bool) -> Batch:
        """Store what is expected to fit, without a look at what other processes did: a lone append is one statement.

        Had another process written since, it would have taken the first position of these, and storing them would fail.

        Raises:
            sqlite3.IntegrityError, LookFirst: nothing was stored, for reasons to be found out.
        """
        draft = Draft(self._position, self._hash, self._now(), keys, wants_events, self.identity)
        before, previous = self._position, self._hash if self._position else None
        outcomes = [draft.add(append, self._version_of, look_first) for append in appends]
        rows = draft.rows
        if len(rows) == 1:
            self._end(_INSERT_NEXT, (*rows[0], previous))
        elif rows:
            self._db.execute("BEGIN IMMEDIATE")
            self._db.execute(_INSERT_NEXT, (*rows[0], previous))
            self._insert(rows[1:])
            self._end("COMMIT")
        return self._done(draft, outcomes, before)

    def _commit(self, appends: Sequence[Sequence[Append]], keys: Keys, wants_events: bool) -> Batch:
        db = self._db
        db.execute("BEGIN IMMEDIATE")
        (data_version,) = db.execute("PRAGMA data_version").fetchone()
        if data_version != self._data_version:  # another process has written: what was known is old
            self._require_known_event()
            row = db.execute("SELECT position, hash, recorded_at FROM events ORDER BY position DESC LIMIT 1").fetchone()
            self._position, self._hash, recorded_at = row or (0, GENESIS, "")
            self._recorded_at = time_of(recorded_at)
            self._versions.clear()
        draft = Draft(self._position, self._hash, self._now(), keys, wants_events, self.identity)
        before = self._position
        outcomes = [self._add(append, draft) for append in appends]
        self._insert(draft.rows)
        self._end("COMMIT")
        self._data_version = data_version
        return self._done(draft, outcomes, before)

    def _now(self) -> datetime:
        """Return the time, or that of the last event if the clock has gone back: times in the log never do."""
        return max(self._clock().astimezone(UTC), self._recorded_at)

    def _require_known_event(self) -> None:
        """Raise StoreLost when the last event that this process knows is not there any more."""
        if self._position:
            row = self._db.execute("SELECT hash FROM events WHERE position = ?", (self._position,)).fetchone()
            if row != (self._hash,):
                raise StoreLost(f"{self._path.name} does not hold position {self._position} as it was stored")

    def _done(self, draft: Draft, outcomes: list[Outcome], before: int) -> Batch:
        """Note what is in the file now, and return it as a batch."""
        self._position, self._hash = draft.position, draft.hash
        if draft.position > before:
            self._recorded_at = draft.now
        self._versions |= draft.versions
        if len(self._versions) > KNOWN_STREAMS:
            self._versions.clear()
        return Batch(outcomes, draft.events, draft.position if draft.position > before else 0)

    def _end(self, statement: str, values: Sequence[Any] = ()) -> None:
        """Run the statement that makes a transaction durable."""
        self._is_ending = True
        self._db.execute(statement, values)
        self._is_ending = False

    def _explained(self, error: sqlite3.Error) -> EventStoreError:
        if self._is_ending and _may_be_stored(error):
            return OutcomeUnknown(_unknown(self._path, error))
        return files.explained(error, self._path)

    def _insert(self, rows: list[Row]) -> None:
        if rows:
            # One statement for many rows was tried: no faster, and no better beside a busy event loop.
            self._db.executemany(_INSERT, rows)

    def _roll_back(self) -> None:
        self._data_version = -1  # look again
        self._is_ending = False
        if self._db.in_transaction:  # SQLite has already rolled back after some errors
            self._db.execute("ROLLBACK")

    def _version_of(self, stream: str) -> int:
        version = self._versions.get(stream)
        if version is None:
            version = self._versions[stream] = self._reader.stream_version(stream)
        return version

    def _add(self, append: Sequence[Append], draft: Draft) -> Outcome:
        def stored_already(append: Sequence[Append]) -> Outcome | None:
            self._insert(draft.rows)  # the first try may be among them: its caller gave up waiting, and asks again
            draft.rows.clear()
            return outcome_of_repeat(append, self._rows_of, self._vault)

        return draft.add(append, self._version_of, stored_already)

    def _rows_of(self, stream: str, after: int, limit: int) -> Iterable[tuple[Any, ...]]:
        return self._reader.of_stream(stream, after=after, limit=limit)


def _unknown(path: Path, error: Exception) -> str:
    return f"{path.name}: {str(error) or 'out of memory'}; whether the events were stored is not known"


def _may_be_stored(error: sqlite3.Error) -> bool:
    """Return whether a failed statement at the end of a transaction may have written all of it."""
    code = int(getattr(error, "sqlite_errorcode", 0))
    is_before_the_end = code in {sqlite3.SQLITE_IOERR_READ, sqlite3.SQLITE_IOERR_SHORT_READ, sqlite3.SQLITE_IOERR_WRITE}
    return files.primary_code(error) == sqlite3.SQLITE_IOERR and not is_before_the_end
