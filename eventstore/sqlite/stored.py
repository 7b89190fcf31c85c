"""Events as a SQLite log stores them."""

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

from eventstore.log.chain import log_id_in
from eventstore.log.stored import COLUMNS, StoredEvent
from eventstore.sqlite import files


def log_id_of(log: Path) -> str:
    """Return the id that the first event gives a log; empty when it gives none, or there is none.

    Raises:
        StoreUnavailable and its kinds, StoreCorrupt.
    """
    return next((log_id_in(first.metadata.encode()) for first in stored_events(log, [1])), "")


def stored_events(log: Path, positions: Sequence[int]) -> Iterator[StoredEvent]:
    """Yield the events at these positions, in the order of the log.

    Raises:
        StoreUnavailable and its kinds, StoreCorrupt.
    """
    with closing(files.connect_offline(log)) as db:
        try:
            rows = db.execute(
                f"SELECT {COLUMNS}, coalesce((SELECT hash FROM events AS before WHERE before.position ="  # noqa: S608
                " events.position - 1), zeroblob(32)) FROM events WHERE position IN (SELECT value FROM json_each(?))"
                " ORDER BY position",
                (json.dumps(list(positions)),),
            )
            for row in rows:
                yield StoredEvent(*row)
        except sqlite3.Error as error:
            raise files.explained(error, log) from error
