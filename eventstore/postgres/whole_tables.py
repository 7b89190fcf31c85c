"""A log and its vault in PostgreSQL, row by row."""

from collections.abc import Sequence
from typing import Self, cast

from eventstore.errors import StoreLost
from eventstore.log.whole import End, KeyRow, SecretRow, StoredRow
from eventstore.postgres.connections import Address, Connections, Rows
from eventstore.postgres.rights import is_wrapped
from eventstore.postgres.schema import prepare
from eventstore.postgres.vault_tables import scrub_tables
from eventstore.postgres.wrapping.opening import Wrapper
from eventstore.postgres.wrapping.wrapping_keys import WrappingKeys

_COLUMNS = (
    "position", "stream", "stream_version", "id", "type", "schema_version", "recorded_at", "metadata", "data",
    "sealed", "hash",
)  # fmt: skip


class _Rows:
    """A database, and the connections to it."""

    def __init__(self, connections: Connections) -> None:
        self.name = connections.address.name
        self._connections = connections

    def close(self) -> None:
        self._connections.close()


class TableLogRows(_Rows):
    """See LogRows."""

    @classmethod
    def open(cls, address: Address, *, read_only: bool) -> Self:
        """Open a log, making its tables if need be; to read only, they must exist.

        Raises:
            StoreUnavailable and its kinds, StoreCorrupt.
        """
        return cls(_opened(address, "log", read_only=read_only))

    def end(self) -> End:
        ((position, hash_),) = self._connections.fetch("SELECT position, hash FROM head")
        return End(position, bytes(hash_))

    def hash_at(self, position: int) -> bytes | None:
        rows = self._connections.fetch("SELECT hash FROM events WHERE position = $1", position)
        return bytes(rows[0][0]) if rows else None

    def rows(self, after: int, limit: int) -> Sequence[StoredRow]:
        return self._connections.fetch(
            f"SELECT {', '.join(_COLUMNS)} FROM events WHERE position > $1 ORDER BY position LIMIT $2",  # noqa: S608 - our own text
            after,
            limit,
        )

    def add(self, rows: Sequence[StoredRow], before: End) -> None:
        async def added() -> None:
            async with self._connections.pooled() as connection, connection.transaction():
                position, hash_ = cast(
                    "Rows", [await connection.fetchrow("SELECT position, hash FROM head FOR UPDATE")]
                )[0]
                if (position, bytes(hash_)) != tuple(before):
                    raise StoreLost(f"{self.name} does not end at position {before.position}: another writes to it")
                await connection.copy_records_to_table("events", records=rows, columns=_COLUMNS)
                last = rows[-1]
                await connection.execute(
                    "UPDATE head SET position = $1, hash = $2, recorded_at = $3", last[0], last[10], last[6]
                )

        self._connections.run(added())


class TableVaultRows(_Rows):
    """See VaultRows. Keys of a wrapped vault are read, and given to it, as they are, unwrapped."""

    def __init__(self, connections: Connections, wrapping: WrappingKeys | None) -> None:
        super().__init__(connections)
        self._wrapper = Wrapper(self.name, wrapping)

    @classmethod
    def open(cls, address: Address, *, wrapping: WrappingKeys | None = None, read_only: bool) -> Self:
        """Open a vault as ``TableLogRows.open`` does a log."""
        return cls(_opened(address, "vault", read_only=read_only), wrapping)

    def version(self) -> tuple[int, ...]:
        """No row of a key is ever deleted, and secrets are only with an erasure."""
        (counts,) = self._connections.fetch(
            "SELECT generation, (SELECT count(*) FROM keys), (SELECT count(*) FROM secrets) FROM erasures"
        )
        return tuple(counts)

    def is_empty(self) -> bool:
        ((is_used,),) = self._connections.fetch("SELECT EXISTS (SELECT FROM keys) OR EXISTS (SELECT FROM secrets)")
        return not is_used and not is_wrapped(self._connections)

    def keys(self, after: str, limit: int) -> Sequence[KeyRow]:
        rows = self._connections.fetch(
            "SELECT subject, key_id, key, created_at, erased_at, to_jsonb(keys) ->> 'wrapped_under' FROM keys"
            " WHERE subject > $1 ORDER BY subject LIMIT $2",  # a vault of a program before has no such column
            after,
            limit,
        )
        return [
            (
                subject,
                key_id,
                None if key is None else self._wrapper.opened(subject, key_id, key, under),
                created,
                erased,
            )
            for subject, key_id, key, created, erased, under in rows
        ]

    def add_keys(self, rows: Sequence[KeyRow]) -> None:
        async def added() -> None:
            async with self._connections.pooled() as connection, connection.transaction():
                under = await connection.fetchval("SELECT id FROM wrapping_keys WHERE state = 'current' FOR SHARE")
                stored = [
                    (subject, key_id, None if key_id is None or key is None else
                     self._wrapper.stored(subject, key_id, key, under), created, erased, None if key is None else under)
                    for subject, key_id, key, created, erased in rows
                ]  # fmt: skip
                await connection.execute(
                    "INSERT INTO keys (subject, key_id, key, created_at, erased_at, wrapped_under) SELECT * FROM"
                    " unnest($1::text[], $2::bytea[], $3::bytea[], $4::text[], $5::text[], $6::text[])"
                    " ON CONFLICT (subject) DO UPDATE SET key = NULL, key_id = NULL, wrapped_under = NULL,"
                    " erased_at = excluded.erased_at WHERE keys.erased_at IS NULL AND excluded.erased_at IS NOT NULL",
                    *zip(*stored, strict=True),
                )
                await connection.execute("UPDATE erasures SET generation = generation + 1")

        self._connections.run(added())

    def secrets(self) -> Sequence[SecretRow]:
        return cast(
            "Sequence[SecretRow]", self._connections.fetch("SELECT name, sealed, created_at FROM secrets ORDER BY name")
        )

    def keep_secrets(self, rows: Sequence[SecretRow]) -> None:
        async def kept() -> None:
            async with self._connections.pooled() as connection, connection.transaction():
                await connection.execute("DELETE FROM secrets")
                await connection.executemany("INSERT INTO secrets (name, sealed, created_at) VALUES ($1, $2, $3)", rows)

        self._connections.run(kept())

    def scrub(self) -> None:
        async def scrubbed() -> None:
            async with self._connections.pooled(begins=False) as connection:
                await scrub_tables(connection)

        self._connections.run(scrubbed())


def _opened(address: Address, kind: str, *, read_only: bool) -> Connections:
    connections = Connections.open(address, read_only=read_only)
    try:
        prepare(connections, kind, read_only=read_only)
    except BaseException:
        connections.close()
        raise
    return connections
