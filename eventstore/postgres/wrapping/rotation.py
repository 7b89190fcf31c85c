"""Changes the wrapping key of a vault in steps, each of which is durable, repeatable and can be done by any instance.

    next       the key is made, and handed to the instances; nothing is wrapped under it
    current    new keys are wrapped under it, and all living ones are wrapped again, in batches
    replaced   it was current before; some living keys are still wrapped under it
    retired    none is; it is kept for as long as a copy of the database may have to be restored
    destroyed  every instance deletes its file: keys that were erased before it was retired cannot be opened any more

A statement that stores wrapped keys locks the row of the current wrapping key (``opening.LOCKED``). So nothing is
stored under one that was replaced, and none is retired too early.
"""

from collections.abc import Awaitable, Callable, Collection
from datetime import UTC, datetime
from typing import Literal, NamedTuple, TypeVar

from eventstore.errors import StoreForeign
from eventstore.postgres.connections import STATEMENT_SECONDS, Address, Connections, Session, brief
from eventstore.postgres.schema import prepare
from eventstore.postgres.vault_tables import rewrite_statistics, rewrite_tables
from eventstore.postgres.wrapping.opening import Wrapper
from eventstore.postgres.wrapping.wrapping_keys import WrappingKeys
from eventstore.vault import stamp

T = TypeVar("T")

BATCH = 500
"""Keys in one transaction."""
REWRITE_SECONDS = 3600.0
"""Limit for rewriting the table of keys while no one else uses the vault."""
_STEP = 2
"""The step of the schema that programs have to know which work with a wrapped vault."""
State = Literal["next", "current", "replaced", "retired", "destroyed"]


class WrappingKeyRow(NamedTuple):
    """A wrapping key as the vault lists it; times as it stores them."""

    id: str
    state: State
    created_at: str
    retired_at: str | None
    destroyed_at: str | None
    copied_at: str | None
    living: int
    """Keys that are wrapped under it."""
    holders: tuple[str, ...]
    """Instances that had it when they looked last."""


class Rotation:
    """The wrapping keys of a vault. Its methods block.

    Any of them raises StoreUnavailable and its kinds, StoreCorrupt, OSError.
    """

    def __init__(self, connections: Connections, keys: WrappingKeys, clock: Callable[[], datetime]) -> None:
        self.keys = keys
        self._connections, self._clock = connections, clock
        self._wrapper = Wrapper(connections.address.name, keys)

    @classmethod
    def open(
        cls,
        address: Address,
        keys: WrappingKeys,
        *,
        read_only: bool = False,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> "Rotation":
        connections = Connections.open(address, read_only=read_only)
        try:
            prepare(connections, "vault", read_only=read_only)
        except BaseException:
            connections.close()
            raise
        return cls(connections, keys, clock)

    def close(self) -> None:
        self._connections.close()

    def rows(self) -> list[WrappingKeyRow]:
        """Return all wrapping keys, the oldest first; none for a vault that is not wrapped."""
        try:
            found = self._connections.fetch(
                "SELECT id, state, created_at, retired_at, destroyed_at, copied_at,"
                " (SELECT count(*) FROM keys WHERE wrapped_under = wrapping_keys.id),"
                " ARRAY(SELECT instance FROM wrapping_key_holders AS held WHERE held.id = wrapping_keys.id ORDER BY 1)"
                " FROM wrapping_keys ORDER BY created_at, id"
            )
        except StoreForeign:  # of a program before this step, and only read here
            return []
        return [WrappingKeyRow(*row)._replace(holders=tuple(row[7])) for row in found]

    def states(self) -> dict[str, State]:
        """Return the states of all wrapping keys by id; empty for a vault that is not wrapped."""
        rows = self._connections.fetch("SELECT id, state FROM wrapping_keys ORDER BY created_at, id")
        return {key_id: state for key_id, state in rows}  # noqa: C416 - rows of asyncpg are no pairs to mypy

    def current_since(self) -> datetime | None:
        """Return when the current wrapping key was made; None for a vault that is not wrapped."""
        rows = self._connections.fetch("SELECT created_at FROM wrapping_keys WHERE state = 'current'")
        return datetime.fromisoformat(rows[0][0]) if rows else None

    def unwrapped(self) -> int:
        """Return the number of living keys that are not wrapped."""
        sql = "SELECT count(*) FROM keys WHERE key IS NOT NULL AND wrapped_under IS NULL"
        return int(self._connections.fetch(sql)[0][0])

    def begin(self) -> str | None:
        """Make a vault a wrapped one: new keys are wrapped from now on. Return the wrapping key's id;
        None if the vault was wrapped already.

        No other program may use the vault meanwhile.
        """
        if self.states():
            return None
        key_id = self.keys.make()

        async def begun(connection: Session) -> None:
            await connection.execute(
                "INSERT INTO wrapping_keys (id, state, created_at) VALUES ($1, 'current', $2)", key_id, self._now()
            )
            await connection.execute("UPDATE vault_schema SET oldest = greatest(oldest, $1)", _STEP)

        self._in_transaction(begun)
        return key_id

    def make_next(self) -> str:
        """Make the next wrapping key, unless there is one; return its id. Nothing is wrapped under it yet."""
        for key_id, state in self.states().items():
            if state == "next":
                return key_id
        key_id = self.keys.make()
        made = self._connections.fetch(
            "INSERT INTO wrapping_keys (id, state, created_at) VALUES ($1, 'next', $2) ON CONFLICT DO NOTHING"
            " RETURNING id",
            key_id,
            self._now(),
        )
        if not made:  # another was faster
            self.keys.destroy(key_id)
            return self.make_next()
        return key_id

    def give_up_next(self, key_id: str) -> None:
        """Forget a next wrapping key that no instance has: nothing is wrapped under it."""
        self._connections.fetch("DELETE FROM wrapping_keys WHERE id = $1 AND state = 'next'", key_id)

    def note_held(self, instance: str) -> None:
        """Note which of the vault's wrapping keys this instance has in its files."""
        held = self.keys.ids()

        async def noted(connection: Session) -> None:
            await connection.execute(
                "DELETE FROM wrapping_key_holders WHERE instance = $1 AND id <> ALL($2)", instance, held
            )
            await connection.execute(
                "INSERT INTO wrapping_key_holders (id, instance) SELECT id, $1 FROM wrapping_keys"
                " WHERE id = ANY($2) AND state <> 'destroyed' ON CONFLICT DO NOTHING",
                instance,
                held,
            )

        self._in_transaction(noted)

    def keep_holders(self, instances: Collection[str]) -> None:
        """Forget the notes of instances that are not among these."""
        self._connections.fetch("DELETE FROM wrapping_key_holders WHERE instance <> ALL($1)", list(instances))

    def holders(self, key_id: str) -> set[str]:
        rows = self._connections.fetch("SELECT instance FROM wrapping_key_holders WHERE id = $1", key_id)
        return {instance for (instance,) in rows}

    def switch(self, key_id: str) -> bool:
        """Let the next wrapping key be the current one; return whether it was the next one."""

        async def switched(connection: Session) -> bool:
            if not await connection.fetchval(
                "SELECT true FROM wrapping_keys WHERE id = $1 AND state = 'next' FOR UPDATE", key_id
            ):
                return False
            await connection.execute(
                "UPDATE wrapping_keys SET state = 'replaced', replaced_at = $1 WHERE state = 'current'", self._now()
            )
            await connection.execute("UPDATE wrapping_keys SET state = 'current' WHERE id = $1", key_id)
            return True

        return self._in_transaction(switched)

    def rewrap(self, after: str = "", *, batch: int = BATCH) -> str | None:
        """Wrap a batch of living keys, which are not wrapped under the current wrapping key yet, under that.

        Return the last subject of the batch, after which the next one begins; None where there was none.
        """
        return self._in_transaction(lambda connection: self._rewrap(connection, after, batch))

    async def _rewrap(self, connection: Session, after: str, batch: int) -> str | None:
        current = await connection.fetchval("SELECT id FROM wrapping_keys WHERE state = 'current' FOR SHARE")
        if current is None:
            return None
        rows = await connection.fetch(
            "SELECT subject, key_id, key, wrapped_under FROM keys WHERE subject > $1 AND key IS NOT NULL"
            " AND wrapped_under IS DISTINCT FROM $2 ORDER BY subject LIMIT $3",
            after,
            current,
            batch,
        )
        if not rows:
            return None
        opened = [(row[0], row[1], self._wrapper.opened(*row), row[3]) for row in rows]
        changed = [
            (subject, id_, self._wrapper.stored(subject, id_, key, current), was) for subject, id_, key, was in opened
        ]
        # One that is erased meanwhile, or that another instance has wrapped, is left as it is.
        await connection.execute(
            "UPDATE keys SET key = made.key, wrapped_under = $5"
            " FROM unnest($1::text[], $2::bytea[], $3::bytea[], $4::text[]) AS made (subject, key_id, key, was)"
            " WHERE keys.subject = made.subject AND keys.key_id = made.key_id"
            " AND keys.wrapped_under IS NOT DISTINCT FROM made.was",
            *(list(column) for column in zip(*changed, strict=True)),
            current,
        )
        return str(rows[-1][0])

    def is_rewritten(self) -> bool:
        """Return whether the table of keys was rewritten since all of them are wrapped. Before that, files of the
        database have keys as they were, and so has each archive that is made of them.
        """
        sql = "SELECT EXISTS (SELECT FROM wrapping_keys WHERE to_jsonb(wrapping_keys) ->> 'rewritten_at' IS NOT NULL)"
        return bool(self._connections.fetch(sql)[0][0])  # a vault that is only read may be older than the column

    def rewrite(self, *, seconds: float = REWRITE_SECONDS) -> bool:
        """Rewrite the table of keys, once all are wrapped: their rows of before stay in its file otherwise. All who
        use the vault wait meanwhile. Return False where it was given up after ``seconds``, with the table as it was.
        """

        async def rewritten() -> bool:
            async with self._connections.pooled(begins=False) as connection:
                try:
                    await rewrite_tables(connection, seconds=seconds)
                except TimeoutError:
                    return False
            return True

        if self.unwrapped() or not self._connections.run(rewritten()):
            return False
        self._connections.change(
            "UPDATE wrapping_keys SET rewritten_at = $1 WHERE state IN ('current', 'replaced')", self._now()
        )
        return True

    def rewrite_statistics(self, *, seconds: float = STATEMENT_SECONDS) -> bool:
        """Rewrite the server's samples of the vault's values, which had keys among them before. Return False where
        this role may not, or it was given up after ``seconds``.
        """

        async def rewritten() -> bool:
            async with self._connections.pooled(begins=False) as connection:
                try:
                    return await rewrite_statistics(connection, seconds=seconds)
                except TimeoutError:
                    return False

        return self._connections.run(rewritten())

    def retire(self) -> list[str]:
        """Retire the wrapping keys that were replaced and have no living key any more; return their ids."""
        rows = self._connections.fetch(
            "UPDATE wrapping_keys SET state = 'retired', retired_at = $1 WHERE state = 'replaced'"
            " AND NOT EXISTS (SELECT FROM keys WHERE wrapped_under = wrapping_keys.id) RETURNING id",
            self._now(),
        )
        return [key_id for (key_id,) in rows]

    def destroy_retired(self, before: datetime) -> list[str]:
        """Mark the wrapping keys as destroyed that were retired before a time; return their ids."""
        rows = self._connections.fetch(
            "UPDATE wrapping_keys SET state = 'destroyed', destroyed_at = $1 WHERE state = 'retired'"
            " AND retired_at < $2 AND NOT EXISTS (SELECT FROM keys WHERE wrapped_under = wrapping_keys.id)"
            " RETURNING id",
            self._now(),
            stamp(before),
        )
        return [key_id for (key_id,) in rows]

    def delete_destroyed(self) -> list[str]:
        """Delete the files of wrapping keys that are destroyed; return their ids."""
        gone = [key_id for key_id, state in self.states().items() if state == "destroyed"]
        return [key_id for key_id in gone if self.keys.destroy(key_id)]

    def note_copied(self) -> None:
        """Note that an operator has copied all wrapping keys that are here."""
        self._connections.fetch(
            "UPDATE wrapping_keys SET copied_at = $1 WHERE id = ANY($2)", self._now(), self.keys.ids()
        )

    def _in_transaction(self, work: Callable[[Session], Awaitable[T]]) -> T:
        async def done() -> T:
            async with self._connections.pooled() as connection, brief(connection):
                return await work(connection)

        return self._connections.run(done())

    def _now(self) -> str:
        return stamp(self._clock())
