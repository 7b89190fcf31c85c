"""Checks a log in PostgreSQL: the chain over its rows, and that nothing of its tables lets a row be changed."""

from collections.abc import Callable, Sequence
from typing import Any

from eventstore.log.chain import Checkpoint, Verified
from eventstore.log.verifying import Verification
from eventstore.postgres.connections import Address, Connections, Rows
from eventstore.postgres.schema import prepare

_PAGE = 1_000
"""Rows in one read."""
_COLUMNS = (
    "true, position, convert_to(stream, 'UTF8'), stream_version, convert_to(id, 'UTF8'), convert_to(type, 'UTF8'),"
    " schema_version, convert_to(recorded_at, 'UTF8'), convert_to(metadata, 'UTF8'), convert_to(data, 'UTF8'),"
    " sealed, hash"
)


def verify_tables(
    address: Address,
    *,
    from_position: int = 1,
    checkpoints: Sequence[Checkpoint] = (),
    progress: Callable[[int, int], None] | None = None,
) -> Verified:
    """Check the log from a position on; see ``verify`` for the rest.

    The server's own files are for its own tools to check (``pg_amcheck``).

    Raises:
        StoreUnavailable, StoreCorrupt: the database cannot be read as a log at all.
        StoreNewer: a newer program made it.
    """
    connections = Connections.open(address, read_only=True)
    try:
        prepare(connections, "log", read_only=True)
        source = _TableSource(connections)
        (before,) = source.ends()
        verified = Verification(source, checkpoints, progress).run(from_position)
        if verified.is_sound and verified.position < before[0]:
            return Verified(
                verified.position, verified.hash, verified.position + 1, "the log ends before its head says"
            )
        if verified.is_sound and before[0] and source.hash_at(before[0]) != bytes(before[1]):
            return Verified(verified.position, verified.hash, 0, "the head's hash is not that of the last event")
        if verified.is_sound and (problem := source.problem()):
            return Verified(verified.position, verified.hash, 0, problem)
        return verified
    finally:
        connections.close()


class _TableSource:
    """See LogSource."""

    def __init__(self, connections: Connections) -> None:
        self._fetch = connections.fetch

    def ends(self) -> Rows:
        """Return where the log says that it ends, in one row: the position and the hash."""
        return self._fetch("SELECT position, hash FROM head")

    def problem(self) -> str | None:
        """Return what is wrong with the table's triggers; None when nothing is."""
        rows = self._fetch("SELECT FROM pg_trigger WHERE tgrelid = 'events'::regclass AND tgname = 'events_stay'")
        return None if rows else "the trigger that refuses changes of events is gone"

    def first(self) -> int | None:
        ((first,),) = self._fetch("SELECT min(position) FROM events")
        return None if first is None else int(first)

    def head(self) -> int:
        ((head,),) = self._fetch("SELECT position FROM head")
        return int(head)

    def first_metadata(self) -> bytes:
        rows = self._fetch("SELECT convert_to(metadata, 'UTF8') FROM events WHERE position = 1")
        return bytes(rows[0][0]) if rows else b""

    def hash_at(self, position: int) -> bytes | None:
        rows = self._fetch("SELECT hash FROM events WHERE position = $1", position)
        return bytes(rows[0][0]) if rows else None

    def position_of(self, stream: bytes, version: int) -> int | None:
        rows = self._fetch(
            "SELECT position FROM events WHERE stream = $1 AND stream_version = $2", stream.decode(), version
        )
        return int(rows[0][0]) if rows else None

    def page(self, after: int) -> tuple[list[tuple[Any, ...]], str | None]:
        rows = self._fetch(
            f"SELECT {_COLUMNS} FROM events WHERE position > $1 ORDER BY position LIMIT $2",  # noqa: S608 - our own text
            after,
            _PAGE,
        )
        return [tuple(row) for row in rows], None
