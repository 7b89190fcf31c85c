"""The file of the projections' tables: how far each projection is, and applying events. For threads to call.

Derived from the log, with any backend; ``Views`` keeps it up to date.
"""

import contextlib
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from eventstore.errors import EventStoreError, StoreCorrupt, StoreUnavailable
from eventstore.events import RecordedEvent
from eventstore.sqlite import files

APPLICATION_ID = 0x45765677
"""'EvVw'."""

_REACHED = "UPDATE checkpoints SET position = ?, hash = ? WHERE name = ?"
_FAULTS_OF_THE_FILE = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_NOTADB,
    sqlite3.SQLITE_READONLY,
}


class Projection(Protocol):
    """Turns events into rows. It runs on a thread of its own, and uses nothing but its tables and the events."""

    @property
    def name(self) -> str:
        """With its version, such as ``jobs-1``: under a new name it starts again with fresh tables."""

    @property
    def tables(self) -> str:
        """The SQL script that makes its tables; their names are no other registered projection's."""

    def apply(self, db: sqlite3.Connection, events: Sequence[RecordedEvent]) -> None:
        """Write what these events mean, in order, in the transaction that is open; neither commit nor roll back.

        An error here is taken for a fault of the projection, unless it comes from a full or locked file.
        """


class Run:
    """A projection and how far it is, by what this process has last seen in the file."""

    def __init__(self, projection: Projection) -> None:
        self.projection, self.name = projection, projection.name
        self.position = 0
        self.hash: bytes | None = None
        self.failed: str | None = None


def open_file(path: Path) -> sqlite3.Connection:
    """Open the file to write, making it or bringing it up to date if need be.

    Raises:
        StoreUnavailable and its kinds, StoreCorrupt.
    """
    try:
        db = files.connect(path)
        try:
            files.use_wal(db, path)
            db.execute("PRAGMA synchronous = NORMAL")  # what a power cut takes back is derived again
            db.execute("PRAGMA secure_delete = ON")  # rows may be of people who want to be forgotten
            files.migrate(db, "eventstore.sqlite.migrations.views", APPLICATION_ID, path)
        except BaseException:
            db.close()
            raise
    except sqlite3.Error as error:
        raise explained(error, path) from error
    return db


def prepare(db: sqlite3.Connection, path: Path, runs: Sequence[Run]) -> None:
    """Drop the tables of projections that are no more, make those of new ones, read how far the others are."""
    try:
        with files.transaction(db):
            scripts = {run.name: run.projection.tables for run in runs}
            for name, script in db.execute("SELECT name, tables FROM checkpoints").fetchall():
                if scripts.get(name) != script:
                    _drop(db, name)
            for run in runs:
                row = db.execute("SELECT position, hash FROM checkpoints WHERE name = ?", (run.name,)).fetchone()
                if row is None:
                    _create(db, run)
                else:
                    run.position, run.hash = row
    except sqlite3.Error as error:
        if is_of_the_file(error):
            raise explained(error, path) from error
        raise


def read_positions(db: sqlite3.Connection, path: Path, runs: Sequence[Run]) -> None:
    """Read how far the projections are, in a file that must have all tables; else raise StoreUnavailable."""
    try:
        for run in runs:
            sql = "SELECT position, hash, tables FROM checkpoints WHERE name = ?"
            row = db.execute(sql, (run.name,)).fetchone()
            if row is None or row[2] != run.projection.tables:
                raise StoreUnavailable(f"{path.name} was made by another version of this program")
            run.position, run.hash, _ = row
    except sqlite3.Error as error:
        raise explained(error, path) from error


def start_over(db: sqlite3.Connection, path: Path, run: Run) -> None:
    """Let a projection begin with fresh tables, unless another process has seen to it."""
    try:
        with files.transaction(db):
            row = db.execute("SELECT position, hash FROM checkpoints WHERE name = ?", (run.name,)).fetchone()
            if row == (run.position, run.hash):
                _drop(db, run.name)
                _create(db, run)
            elif row is not None:
                run.position, run.hash = row
    except sqlite3.Error as error:
        raise explained(error, path) from error


def _create(db: sqlite3.Connection, run: Run) -> None:
    before = _objects(db).keys()
    files.execute_script(db, run.projection.tables)
    db.executemany("INSERT INTO objects VALUES (?, ?)", [(run.name, name) for name in _objects(db).keys() - before])
    db.execute("INSERT INTO checkpoints VALUES (?, 0, NULL, ?)", (run.name, run.projection.tables))
    run.position, run.hash = 0, None


def _drop(db: sqlite3.Connection, projection: str) -> None:
    for (name,) in db.execute("SELECT name FROM objects WHERE projection = ?", (projection,)).fetchall():
        # Looked up again each time: a table takes its indexes along, a virtual table those behind it.
        if (kind := _objects(db).get(name)) is not None and not _is_shadow(db, name):
            db.execute(f'DROP {kind} "{name}"')
    db.execute("DELETE FROM objects WHERE projection = ?", (projection,))
    db.execute("DELETE FROM checkpoints WHERE name = ?", (projection,))


def _objects(db: sqlite3.Connection) -> dict[str, str]:
    return dict(
        db.execute("SELECT name, type FROM sqlite_master WHERE name NOT LIKE 'sqlite^_%' ESCAPE '^'").fetchall()
    )


def _is_shadow(db: sqlite3.Connection, name: str) -> bool:
    """Return whether a table belongs to a virtual one, and goes with it."""
    row = db.execute("SELECT type FROM pragma_table_list WHERE schema = 'main' AND name = ?", (name,)).fetchone()
    return bool(row == ("shadow",))


def apply(db: sqlite3.Connection, runs: Sequence[Run], events: Sequence[RecordedEvent]) -> None:
    """Apply events, which follow one another without gaps, to the projections that have not had them."""
    with files.transaction(db):
        reached = _apply_to_all(db, runs, events) or [_apply_to(db, run, events) for run in runs]
    for run, position in zip(runs, reached, strict=True):
        run.position = position


def _apply_to_all(db: sqlite3.Connection, runs: Sequence[Run], events: Sequence[RecordedEvent]) -> list[int] | None:
    """Apply events in few statements to projections that are all where they begin; None when that cannot be done."""
    positions = dict(db.execute("SELECT name, position FROM checkpoints").fetchall())
    if any(positions.get(run.name) != events[0].position - 1 for run in runs):
        return None
    db.execute("SAVEPOINT projections")
    try:
        for run in runs:
            run.projection.apply(db, events)
    except MemoryError:  # SQLite's too
        raise
    except Exception as error:  # a projection's edge: whose fault it is, and how far the others come, is found out
        if isinstance(error, sqlite3.Error) and is_of_the_file(error):
            raise
        db.execute("ROLLBACK TO projections")
        db.execute("RELEASE projections")
        return None
    db.execute("RELEASE projections")
    last = events[-1]
    db.executemany(_REACHED, [(last.position, last.hash, run.name) for run in runs])
    return [last.position] * len(runs)


def _apply_to(db: sqlite3.Connection, run: Run, events: Sequence[RecordedEvent]) -> int:
    row = db.execute("SELECT position FROM checkpoints WHERE name = ?", (run.name,)).fetchone()
    if row is None:
        run.failed = "another process, with other projections, has dropped its tables"
        return run.position
    position = int(row[0])
    done = position + 1 - events[0].position
    if not 0 <= done < len(events):  # another process has applied them all, or begun again
        return position
    todo = events[done:] if done else events
    last = _apply_safely(db, run, todo)
    if last is None:
        return position
    db.execute(_REACHED, (last.position, last.hash, run.name))
    return last.position


def _apply_safely(db: sqlite3.Connection, run: Run, events: Sequence[RecordedEvent]) -> RecordedEvent | None:
    """Apply all events, or those before the first that fails; return the last one applied."""
    db.execute("SAVEPOINT projection")
    try:
        run.projection.apply(db, events)
    except MemoryError:
        raise
    except Exception as error:  # a projection's edge: its fault must not stop the others
        if isinstance(error, sqlite3.Error) and is_of_the_file(error):
            raise
        db.execute("ROLLBACK TO projection")
        if len(events) > 1:
            last = None
            for event in events:
                if _apply_safely(db, run, [event]) is None:
                    break
                last = event
        else:
            last = None
            run.failed = f"event {events[0].position} ({events[0].type}): {type(error).__name__}: {error}"
    else:
        last = events[-1]
    db.execute("RELEASE projection")
    return last


def damage_mark(path: Path) -> Path:
    """Return the file that is there once a file of views was found damaged: who alone uses them deletes both."""
    return path.with_name(f"{path.name}-damaged")


def explained(error: sqlite3.Error, path: Path) -> EventStoreError:
    """Return our error for SQLite's, and leave the mark of damage when that is what it says."""
    found = files.explained(error, path)
    if isinstance(found, StoreCorrupt):
        with contextlib.suppress(OSError):
            damage_mark(path).touch()
    return found


def is_of_the_file(error: sqlite3.Error) -> bool:
    """Return whether the file is at fault, and not a statement."""
    return files.primary_code(error) in _FAULTS_OF_THE_FILE
