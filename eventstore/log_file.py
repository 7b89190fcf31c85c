"""The log as a SQLite file: writing a batch. For a thread to call.

What SQLite and Python do that the code below counts on:

- WAL with ``synchronous=FULL`` makes each commit durable before it returns (https://sqlite.org/pragma.html).
- The WAL cannot start over while any snapshot is held, so reads go by pages, each a statement of its own.
- ``PRAGMA data_version`` changes when, and only when, another connection has committed.
- The sqlite3 module lets go of the GIL around each step of a statement and must get it back after it; against a busy
  event loop each such change of hands may wait for the interpreter's switch interval (5 ms). So a batch is a few
  statements, and what can be known in memory is not asked of the file.
- A commit whose flush fails (``SQLITE_IOERR_FSYNC``) is rolled back, but its pages are in the WAL file with valid sums:
  if the process ends before the next commit writes over them, recovery finds them and the events are there
  (https://sqlite.org/fileformat2.html#walformat). Nobody can say which of these it will be, so the outcome is unknown.
"""

import os
import sqlite3
import struct
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import msgspec

from eventstore import files
from eventstore.chain import GENESIS, event_hash, naming_log
from eventstore.errors import (
    DuplicateEventId,
    EventStoreError,
    OutcomeUnknown,
    StoreLost,
    WrongExpectedVersion,
)
from eventstore.events import Append, Appended, Metadata, NewEvent, RecordedEvent
from eventstore.log_rows import COLUMNS, recorded_events
from eventstore.validation import check_event
from eventstore.vault import Key, Vault

Synchronous = Literal["FULL", "NORMAL", "OFF"]

_INSERT = (
    "INSERT INTO events (position, stream, stream_version, id, type, schema_version, recorded_at, metadata, data,"
    " sealed, hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_INSERT_NEXT = (
    "INSERT INTO events (position, stream, stream_version, id, type, schema_version, recorded_at, metadata, data,"
    " sealed, hash) SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11"
    " WHERE (SELECT hash FROM events WHERE position = ?1 - 1) IS ?12"
)
"""Only after the event that is expected there."""
_KNOWN_STREAMS = 8_192
_BEGINNING = datetime.min.replace(tzinfo=UTC)

Outcome = Appended | Exception
_Keys = dict[str, Key | EventStoreError]
"""Of the subjects of a batch: the key, or why there is none."""
_Row = tuple[int, str, int, str, str, int, str, str, str, bytes | None, bytes]


def open_log(
    path: Path,
    *,
    synchronous: Synchronous,
    read_only: bool,
    busy_timeout_seconds: float = files.BUSY_TIMEOUT_SECONDS,
) -> sqlite3.Connection:
    """A connection to the log, made or brought up to date if need be.

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
                # Kept long, the WAL is written over in place: making a file longer costs a flush as much again. Letting
                # it grow before it starts over, beyond SQLite's 1,000 pages, was tried: no faster at any load.
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


class Batch:
    """What became of some appends: an outcome for each, and the events of those that were stored."""

    __slots__ = ("events", "last", "outcomes")

    def __init__(self, outcomes: list[Outcome], events: list[RecordedEvent], last: int) -> None:
        self.outcomes = outcomes
        self.events = events
        """Empty when they were not wanted."""
        self.last = last
        """The position of the last event stored; 0 when there is none."""


class _LookFirst(Exception):
    """What is known of the file may be old."""


class LogWriter:
    """The one connection of this process that writes; used by one thread at a time."""

    def __init__(self, db: sqlite3.Connection, path: Path, vault: Vault, clock: Callable[[], datetime]) -> None:
        self._db, self._path, self._vault, self._clock = db, path, vault, clock
        self._data_version = -1
        self._position, self._hash, self._recorded_at = 0, GENESIS, _BEGINNING
        self._versions: dict[str, int] = {}
        self._is_ending = False
        """A statement that ends a transaction is under way."""

    def commit(self, appends: Sequence[Sequence[Append]], *, wants_events: bool) -> Batch:
        """Store each append, whole or not at all, and all that can be stored in one transaction.

        An append that is refused does not touch its neighbours. What cannot be said of one append (the disk is full,
        the file is locked) is every append's outcome.
        """
        try:
            keys = self._obtain_keys(appends)
            if self._data_version != -1:
                try:
                    return self._commit_at_once(appends, keys, wants_events)
                except (sqlite3.IntegrityError, _LookFirst):
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
        except BaseException:
            self._roll_back()
            raise
        return Batch(
            [outcome for batch in batches for outcome in batch.outcomes],
            [event for batch in batches for event in batch.events],
            max(batch.last for batch in batches),
        )

    def close(self) -> None:
        self._db.close()

    def _commit_one(self, append: Sequence[Append], keys: _Keys, wants_events: bool) -> Batch:
        try:
            return self._commit([append], keys, wants_events)
        except sqlite3.IntegrityError:
            self._roll_back()
            error: EventStoreError = DuplicateEventId("an event with the id of one of these is stored already")
        except sqlite3.Error as failure:
            error = self._explained(failure)
            self._roll_back()
        return Batch([error], [], 0)

    def _commit_at_once(self, appends: Sequence[Sequence[Append]], keys: _Keys, wants_events: bool) -> Batch:
        """Store what is expected to fit, without a look at what other processes did: a lone append is one statement.

        Had another process written since, it would have taken the first position of these, and storing them would fail.

        Raises:
            sqlite3.IntegrityError, _LookFirst: nothing was stored, for reasons to be found out.
        """
        draft = _Draft(self._position, self._hash, self._now(), keys, wants_events)
        before, previous = self._position, self._hash if self._position else None
        outcomes = [self._add(append, draft, looks_first=True) for append in appends]
        rows = draft.rows
        if len(rows) == 1:
            if self._end(_INSERT_NEXT, (*rows[0], previous)).rowcount != 1:
                raise _LookFirst
        elif rows:
            self._db.execute("BEGIN IMMEDIATE")
            if self._db.execute(_INSERT_NEXT, (*rows[0], previous)).rowcount != 1:
                raise _LookFirst
            self._insert(rows[1:])
            self._end("COMMIT")
        return self._done(draft, outcomes, before)

    def _commit(self, appends: Sequence[Sequence[Append]], keys: _Keys, wants_events: bool) -> Batch:
        db = self._db
        db.execute("BEGIN IMMEDIATE")
        (data_version,) = db.execute("PRAGMA data_version").fetchone()
        if data_version != self._data_version:  # another process has written: what was known is old
            self._require_known_event()
            row = db.execute("SELECT position, hash, recorded_at FROM events ORDER BY position DESC LIMIT 1").fetchone()
            self._position, self._hash, recorded_at = row or (0, GENESIS, "")
            self._recorded_at = _time_of(recorded_at)
            self._versions.clear()
        draft = _Draft(self._position, self._hash, self._now(), keys, wants_events)
        before = self._position
        outcomes = [self._add(append, draft) for append in appends]
        self._insert(draft.rows)
        self._end("COMMIT")
        self._data_version = data_version
        return self._done(draft, outcomes, before)

    def _now(self) -> datetime:
        """The time, or that of the last event if the clock has gone back: times in the log never do."""
        return max(self._clock().astimezone(UTC), self._recorded_at)

    def _require_known_event(self) -> None:
        """Raise StoreLost when the last event that this process knows is not there any more."""
        if self._position:
            row = self._db.execute("SELECT hash FROM events WHERE position = ?", (self._position,)).fetchone()
            if row != (self._hash,):
                raise StoreLost(f"{self._path.name} does not hold position {self._position} as it was stored any more")

    def _done(self, draft: "_Draft", outcomes: list[Outcome], before: int) -> Batch:
        """What is in the file now."""
        self._position, self._hash = draft.position, draft.hash
        if draft.position > before:
            self._recorded_at = draft.now
        self._versions |= draft.versions
        if len(self._versions) > _KNOWN_STREAMS:
            self._versions.clear()
        return Batch(outcomes, draft.events, draft.position if draft.position > before else 0)

    def _add(self, append: Sequence[Append], draft: "_Draft", *, looks_first: bool = False) -> Outcome:
        """Take one append into the draft, whole, or leave the draft as it was.

        Raises:
            _LookFirst: it does not fit what is known, which may be old.
        """
        before = draft.state()
        versions: dict[str, int] = {}
        try:
            for part in append:
                stream = part.stream
                actual = versions.get(stream)
                if actual is None:
                    actual = draft.versions.get(stream)
                if actual is None:
                    actual = self._version_of(stream)
                if actual != part.expected_version:
                    if looks_first:
                        raise _LookFirst
                    draft.restore(before)
                    already = self._stored_already(append, draft)
                    return already or WrongExpectedVersion(stream, part.expected_version, actual)
                versions[stream] = actual + len(part.events)
                draft.add(part)
        except (ValueError, TypeError, struct.error, EventStoreError) as error:
            draft.restore(before)
            return error
        draft.versions |= versions
        return Appended(draft.position, versions[append[-1].stream])

    def _end(self, statement: str, values: Sequence[Any] = ()) -> sqlite3.Cursor:
        """Run the statement that makes a transaction durable."""
        self._is_ending = True
        ended = self._db.execute(statement, values)
        self._is_ending = False
        return ended

    def _explained(self, error: sqlite3.Error) -> EventStoreError:
        if self._is_ending and _may_be_stored(error):
            return OutcomeUnknown(f"{self._path.name}: {error}; whether the events were stored is not known")
        return files.explained(error, self._path)

    def _insert(self, rows: list[_Row]) -> None:
        if rows:
            # One statement for many rows was tried: no faster, and no better beside a busy event loop.
            self._db.executemany(_INSERT, rows)

    def _obtain_keys(self, appends: Sequence[Sequence[Append]]) -> _Keys:
        subjects = {
            part.stream
            for append in appends
            for part in append
            if any(event.personal is not None for event in part.events)
        }
        if not subjects:
            return {}
        try:
            return self._vault.obtain(subjects)
        except EventStoreError as error:
            return dict.fromkeys(subjects, error)

    def _roll_back(self) -> None:
        self._data_version = -1  # look again
        self._is_ending = False
        if self._db.in_transaction:  # SQLite has already rolled back after some errors
            self._db.execute("ROLLBACK")

    def _version_of(self, stream: str) -> int:
        version = self._versions.get(stream)
        if version is None:
            (version,) = self._db.execute(
                "SELECT coalesce(max(stream_version), 0) FROM events WHERE stream = ?", (stream,)
            ).fetchone()
            self._versions[stream] = version
        return version

    def _stored_already(self, append: Sequence[Append], draft: "_Draft") -> Outcome | None:
        """Where these very events went before, when this append repeats one that was stored; an error when it has only
        their ids.
        """
        if not all(event.id for part in append for event in part.events):
            return None
        self._insert(draft.rows)  # the first try may be among them: its caller gave up waiting, and asks again
        draft.rows.clear()
        appended = None
        for part in append:
            rows = self._db.execute(
                f"SELECT {COLUMNS} FROM events"  # noqa: S608 - our text
                " WHERE stream = ? AND stream_version > ? ORDER BY stream_version LIMIT ?",
                (part.stream, part.expected_version, len(part.events)),
            ).fetchall()
            if [row[3] for row in rows] != [event.id for event in part.events]:
                return None
            for stored, event in zip(recorded_events(rows, self._vault), part.events, strict=True):
                if not _is_same(stored, event):
                    return DuplicateEventId(f"event {event.id} is stored already, at {stored.position}, and differs")
            appended = Appended(rows[-1][0], rows[-1][2])
        return appended


def _time_of(recorded_at: str) -> datetime:
    try:
        return datetime.fromisoformat(recorded_at).astimezone(UTC)
    except (ValueError, OverflowError):  # in a log that was tampered with
        return _BEGINNING


def _may_be_stored(error: sqlite3.Error) -> bool:
    """Whether a failed statement at the end of a transaction may have written all of it."""
    code = int(getattr(error, "sqlite_errorcode", 0))
    is_before_the_end = code in {sqlite3.SQLITE_IOERR_READ, sqlite3.SQLITE_IOERR_SHORT_READ, sqlite3.SQLITE_IOERR_WRITE}
    return files.primary_code(error) in {sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOMEM} and not is_before_the_end


def _is_same(stored: RecordedEvent, event: NewEvent) -> bool:
    """Whether an event is the stored one of its id; of personal fields that are gone, that cannot be asked any more."""
    return (stored.type, stored.data, stored.schema_version, stored.metadata) == (
        event.type,
        event.data,
        event.schema_version,
        event.metadata,
    ) and (stored.personal == event.personal or ((stored.erased or stored.damaged) and event.personal is not None))


class _Draft:
    """The rows of a batch as it is being put together, and where they leave the log."""

    def __init__(self, position: int, hash: bytes, now: datetime, keys: _Keys, wants_events: bool) -> None:  # noqa: A002
        self.position, self.hash, self.versions = position, hash, dict[str, int]()
        self.rows: list[_Row] = []
        self.events: list[RecordedEvent] = []
        self._keys, self._wants_events = keys, wants_events
        self.now, self._recorded_at = now, now.isoformat(timespec="microseconds")
        self._recorded_at_bytes = self._recorded_at.encode()
        self._random = self._milliseconds = ""
        self._metadata: tuple[Metadata | None, bytes, str] = (None, b"", "")

    def _new_id(self) -> str:
        """A random id that sorts by time, so that the index of ids grows at its end (as UUID version 7, RFC 9562)."""
        if not self._random:
            self._random = os.urandom(100).hex()
            self._milliseconds = f"{time.time_ns() // 1_000_000:012x}"
        random, self._random = self._random[:20], self._random[20:]
        return self._milliseconds + random

    def state(self) -> tuple[int, bytes, int, int]:
        return self.position, self.hash, len(self.rows), len(self.events)

    def restore(self, state: tuple[int, bytes, int, int]) -> None:
        self.position, self.hash, rows, events = state
        del self.rows[rows:], self.events[events:]

    def add(self, part: Append) -> None:
        stream, stream_bytes = part.stream, part.stream.encode()
        version, position, previous = part.expected_version, self.position, self.hash
        for event in part.events:
            version += 1
            position += 1
            check_event(event, stream)
            id_ = event.id or self._new_id()
            id_bytes, data = id_.encode(), event.data
            known, metadata_bytes, metadata = self._metadata
            if event.metadata is not known:
                metadata_bytes = _encode_metadata(event.metadata)
                metadata = metadata_bytes.decode()
                self._metadata = (event.metadata, metadata_bytes, metadata)
            if position == 1:  # the metadata alone: an event of its own would need a stream that nobody else writes
                metadata_bytes = naming_log(metadata_bytes, os.urandom(16).hex())
                metadata, self._metadata = metadata_bytes.decode(), (None, b"", "")
            sealed = None
            if event.personal is not None:
                key = self._keys[stream]
                if isinstance(key, EventStoreError):
                    raise key
                sealed = key.seal(event.personal, stream_bytes, version, id_bytes)
            previous = event_hash(
                previous, position, stream_bytes, version, id_bytes, event.type.encode(), event.schema_version,
                self._recorded_at_bytes, metadata_bytes, data, sealed,
            )  # fmt: skip
            self.rows.append(
                (
                    position, stream, version, id_, event.type, event.schema_version, self._recorded_at, metadata,
                    data.decode(), sealed, previous,
                )
            )  # fmt: skip
            if self._wants_events:
                self.events.append(
                    RecordedEvent(
                        position, stream, version, event.type, data, event.personal, False, event.schema_version,
                        event.metadata, id_, self.now, previous,
                    )
                )  # fmt: skip
        self.position, self.hash = position, previous


_encode_metadata = msgspec.json.Encoder().encode
