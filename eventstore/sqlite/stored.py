"""Events as the log stores them, byte for byte: what a hash covers, for those who export or check it."""

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

from msgspec import Struct

from eventstore.chain import event_hash, log_id_in
from eventstore.sqlite import files

_COLUMNS = "position, stream, stream_version, id, type, schema_version, recorded_at, metadata, data, sealed, hash"


class StoredEvent(Struct, frozen=True):
    """The columns of a row, and the hash of the event before."""

    position: int
    stream: str
    stream_version: int
    id: str
    type: str
    schema_version: int
    recorded_at: str
    metadata: str
    data: str
    sealed: bytes | None
    hash: bytes
    previous_hash: bytes

    def is_sound(self) -> bool:
        """Return whether its hash is that of what is here."""
        found = event_hash(
            self.previous_hash, self.position, self.stream.encode(), self.stream_version, self.id.encode(),
            self.type.encode(), self.schema_version, self.recorded_at.encode(), self.metadata.encode(),
            self.data.encode(), self.sealed,
        )  # fmt: skip
        return found == self.hash


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
                f"SELECT {_COLUMNS}, coalesce((SELECT hash FROM events AS before WHERE before.position ="  # noqa: S608
                " events.position - 1), zeroblob(32)) FROM events WHERE position IN (SELECT value FROM json_each(?))"
                " ORDER BY position",
                (json.dumps(list(positions)),),
            )
            for row in rows:
                yield StoredEvent(*row)
        except sqlite3.Error as error:
            raise files.explained(error, log) from error
