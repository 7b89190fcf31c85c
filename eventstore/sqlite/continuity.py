"""Whether a log still holds what it held before: its tail may have been cut off, or another one put in its place.

The chain cannot show that: what is left of a shortened log is sound (chain.py). But those that follow a log note how
far they are, with the hash of the event there: each view in the file of the views, each signed checkpoint. And the WAL
may hold transactions that SQLite does not see any more (wal.py). What neither shows is the loss of events that no view
had applied yet: service/manual/log-format.md says how long that is.

Read the witnesses before the log: it grows meanwhile, and must not seem to be behind.
"""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from msgspec import Struct

from eventstore.chain import GENESIS
from eventstore.errors import EventStoreError
from eventstore.sqlite import files
from eventstore.sqlite.wal import has_lost_transactions


class Witness(Struct, frozen=True):
    """The state of the log at a position, as something outside of the log has noted it."""

    name: str
    """As in a sentence: ``the view jobs-1``."""
    position: int
    hash: bytes


class Loss(Struct, frozen=True):
    """A log is not what it was."""

    witness: Witness | None
    """The one that is furthest ahead of those that differ; None when only the WAL shows it."""
    position: int
    """The log's head as it is now; 0 for an empty log."""
    hash: bytes
    lost_from: int
    """The first position whose event may be lost, or another one now."""

    @property
    def is_behind(self) -> bool:
        """The log ends too early; else it holds another event at the position of the witness."""
        return self.witness is None or self.position < self.witness.position


def witnesses_in_views(path: Path) -> list[Witness]:
    """Return how far each view is. A file that is missing or cannot be read has nothing to say: it is rebuilt."""
    try:
        with closing(files.connect_offline(path)) as db:
            rows = db.execute("SELECT name, position, hash FROM checkpoints WHERE hash IS NOT NULL").fetchall()
    except (sqlite3.Error, EventStoreError):
        return []
    return [Witness(f"the view {name}", position, hash_) for name, position, hash_ in rows]


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
    furthest = max(differ, key=lambda one: one.position, default=None)
    agreed = max((one.position for one in witnesses if one not in differ), default=0)
    is_forked = any(one.position <= position for one in differ)
    return Loss(furthest, position, hash_, agreed + 1 if is_forked else position + 1)


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
