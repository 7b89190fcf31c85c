"""Whether a log in a SQLite file still holds what it held before (witnesses.py).

Its WAL may also hold transactions that SQLite does not see any more (wal.py).
"""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from eventstore.errors import EventStoreError
from eventstore.log.chain import GENESIS
from eventstore.log.witnesses import Loss, Witness, loss_of
from eventstore.sqlite import files
from eventstore.sqlite.wal import has_lost_transactions


def witnesses_in_views(path: Path) -> list[Witness]:
    """Return how far each view is. A file that is missing or cannot be read has nothing to say: it is rebuilt."""
    try:
        with closing(files.connect_offline(path)) as db:
            rows = db.execute("SELECT name, position, hash FROM checkpoints WHERE hash IS NOT NULL").fetchall()
    except (sqlite3.Error, EventStoreError):
        return []
    return [Witness(f"the view {name}", position, hash_) for name, position, hash_ in rows]


def witnesses_in_copy(path: Path, positions: Sequence[int] = ()) -> list[Witness]:
    """Return how far the copy of a log in another storage is, if there is one that can be read; with ``positions``,
    what it has at these, in order.
    """
    which = f"WHERE position IN ({', '.join('?' * len(positions))}) ORDER BY position"
    if not positions:
        which = "ORDER BY position DESC LIMIT 1"
    try:
        with closing(files.connect_offline(path)) as db:
            rows = db.execute(f"SELECT position, hash FROM events {which}", tuple(positions)).fetchall()  # noqa: S608 - our own text
    except (sqlite3.Error, EventStoreError):
        return []
    return [Witness("the copy on this machine", position, hash_) for position, hash_ in rows]


def find_loss(log: Path, witnesses: Sequence[Witness]) -> Loss | None:
    """Compare a log with its witnesses, without changing any file; None when it holds what all of them have seen.

    Raises:
        StoreUnavailable and its kinds, StoreCorrupt: the log cannot be read.
    """
    with closing(files.connect_offline(log)) as db:
        try:
            position, hash_ = 0, GENESIS
            if is_log := _is_log(db):
                files.check(db, files.LOG_MIGRATIONS, files.LOG_ID, log)
                head = db.execute("SELECT position, hash FROM events ORDER BY position DESC LIMIT 1").fetchone()
                position, hash_ = head or (position, hash_)
            differ = [one for one in witnesses if not (is_log and _holds(db, one))]
            if not differ and not has_lost_transactions(db, log):
                return None
        except sqlite3.Error as error:
            raise files.explained(error, log) from error
    return loss_of(position, hash_, witnesses, differ)


def not_held(log: Path, witnesses: Sequence[Witness]) -> list[Witness]:
    """Return those whose event is not in the log, at its position.

    Raises:
        StoreUnavailable and its kinds, StoreCorrupt: the log cannot be read.
    """
    with closing(files.connect_offline(log)) as db:
        try:
            return [one for one in witnesses if not _holds(db, one)]
        except sqlite3.Error as error:
            raise files.explained(error, log) from error


def _is_log(db: sqlite3.Connection) -> bool:
    """Return whether the file has the log's table; it has none when all was in a WAL that is gone or unreadable."""
    return db.execute("SELECT 1 FROM sqlite_master WHERE name = 'events'").fetchone() is not None


def _holds(db: sqlite3.Connection, one: Witness) -> bool:
    row = db.execute("SELECT hash FROM events WHERE position = ?", (one.position,)).fetchone()
    return bool(row == (one.hash,))
