"""A log and its vault in PostgreSQL as a place."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Self, cast

from msgspec import Struct

from eventstore.core import CoreEventStore
from eventstore.errors import StoreBusy, StoreForeign, StoreUnavailable
from eventstore.log import missing_keys
from eventstore.log.chain import GENESIS, Checkpoint, Verified, log_id_in
from eventstore.log.missing_keys import PAGE, SealedRow
from eventstore.log.stored import COLUMNS, StoredEvent
from eventstore.log.whole import LogRows, Progress, VaultRows
from eventstore.log.witnesses import Loss, Witness, loss_of
from eventstore.place import Concern
from eventstore.postgres.connections import Address, Connections, is_away
from eventstore.postgres.log_reader import TableReader
from eventstore.postgres.log_writer import HOLD, RELEASE
from eventstore.postgres.postgres_store import PostgresEventStore
from eventstore.postgres.rights import concerns_of_archives, concerns_of_log, is_wrapped, share_cluster
from eventstore.postgres.schema import prepare
from eventstore.postgres.use import Use
from eventstore.postgres.vault_tables import VaultTables
from eventstore.postgres.verification import verify_tables
from eventstore.postgres.whole_tables import TableLogRows, TableVaultRows
from eventstore.postgres.wrapping.rotation import Rotation
from eventstore.postgres.wrapping.wrapping_keys import WrappingKeys


class TablePlace(Struct, frozen=True):
    """See LogPlace. The addresses are as ``Address`` takes them."""

    log: str
    vault: str
    wrapping: Path | None = None
    """The folder with the wrapping keys of a wrapped vault."""

    def __repr__(self) -> str:
        """Leave the addresses out: a traceback or a log may show this."""
        return f"TablePlace({self.name})"

    @property
    def name(self) -> str:
        return Address(self.log).name

    @property
    def vault_name(self) -> str:
        return Address(self.vault).name

    def checked(self) -> Self:
        """Raise ValueError where an address is none."""
        Address(self.log), Address(self.vault)
        return self

    @property
    def is_local(self) -> bool:
        return False

    @contextmanager
    def served(self) -> Iterator[Callable[[], str | None]]:
        with closing(Use.take(Address(self.log), is_shared=True)) as use:
            yield lambda: use.lost

    @contextmanager
    def served_alone(self) -> Iterator[Callable[[], str | None]]:
        with closing(Use.take(Address(self.log), is_shared=False)) as use:
            yield lambda: use.lost

    def exists(self) -> bool:
        try:
            with self._reading():
                return True
        except StoreForeign:
            return False

    def is_standby(self) -> bool:
        return any(_is_standby(Address(one)) for one in (self.log, self.vault))

    def hold(self, reason: str) -> None:
        self._change(HOLD, reason)

    def release(self, reason: str | None = None) -> None:
        self._change(RELEASE, reason)

    def held(self) -> str | None:
        with self._reading() as connections:
            ((held,),) = connections.fetch("SELECT to_jsonb(head) ->> 'held' FROM head")  # older tables lack the column
        return None if held is None else str(held)

    def _change(self, sql: str, *values: object) -> None:
        with closing(Connections.open(Address(self.log))) as connections:
            connections.change(sql, *values)

    async def open(self, *, read_only: bool = False, local_copy: Path | None = None) -> CoreEventStore:
        return await PostgresEventStore.open(
            Address(self.log),
            vault=Address(self.vault),
            wrapping=self._keys(),
            read_only=read_only,
            local_copy=local_copy,
        )

    def verify(
        self,
        *,
        from_position: int = 1,
        checkpoints: Sequence[Checkpoint] = (),
        progress: Progress | None = None,
    ) -> Verified:
        return verify_tables(Address(self.log), from_position=from_position, checkpoints=checkpoints, progress=progress)

    def log_id(self) -> str:
        with self._reading() as connections:
            return log_id_in(TableReader(connections.fetch).first_metadata())

    def stored_events(self, positions: Sequence[int]) -> Iterator[StoredEvent]:
        with self._reading() as connections:
            rows = connections.fetch(
                f"SELECT {COLUMNS}, coalesce((SELECT hash FROM events AS before WHERE before.position ="  # noqa: S608
                " events.position - 1), $2) FROM events WHERE position = ANY($1) ORDER BY position",
                list(positions),
                GENESIS,
            )
        return (StoredEvent(*row) for row in rows)

    def find_loss(self, witnesses: Sequence[Witness]) -> Loss | None:
        with self._reading() as connections:
            ((position, hash_, is_standby),) = connections.fetch("SELECT position, hash, pg_is_in_recovery() FROM head")
            differ = _differing(connections, witnesses)
        if is_standby:  # what it lacks it may get yet; another event in the same place it keeps
            differ = [one for one in differ if one.position <= position]
        return loss_of(position, bytes(hash_), witnesses, differ) if differ else None

    def not_held(self, witnesses: Sequence[Witness]) -> list[Witness]:
        with self._reading() as connections:
            return _differing(connections, witnesses)

    def subjects_without_keys(self, *, after: int = 0) -> list[str]:
        with self._reading() as log, closing(Connections.open(Address(self.vault), read_only=True)) as vault:

            def key_ids(subjects: Collection[str]) -> Mapping[str, bytes | None]:
                sql = "SELECT subject, key_id FROM keys WHERE subject = ANY($1)"
                return dict(vault.fetch(sql, sorted(subjects)))

            return missing_keys.subjects_without_keys(_sealed(log, after), key_ids)

    def damaged_texts(self, *, after: int = 0) -> list[int]:
        with self._reading() as log, closing(self._opened_vault()) as vault:
            return missing_keys.damaged_texts(_sealed(log, after), vault)

    def concerns(self) -> Sequence[Concern]:
        with self._reading() as log, closing(Connections.open(Address(self.vault), read_only=True)) as vault:
            found = concerns_of_log(log)
            if is_wrapped(vault):
                return found
            shared = share_cluster(log, vault)
            if shared:
                says = "The vault is in the log's own PostgreSQL cluster, whose archives keep erased keys."
                return [*found, Concern("cluster", says)]
            if shared is None:
                says = "Whether the vault is in the log's own PostgreSQL cluster is not known: the servers do not say."
                found.append(Concern("cluster_unknown", says))
            return [*found, *concerns_of_archives(vault)]

    def log_rows(self, *, read_only: bool) -> LogRows:
        return TableLogRows.open(Address(self.log), read_only=read_only)

    def vault_rows(self, *, read_only: bool) -> VaultRows:
        return TableVaultRows.open(Address(self.vault), wrapping=self._keys(), read_only=read_only)

    def is_away(self, error: StoreUnavailable) -> bool:
        return is_away(error) or isinstance(error, StoreBusy)

    def rotation(self, *, read_only: bool = False) -> Rotation:
        """Open the wrapping keys of the vault."""
        if self.wrapping is None:
            raise ValueError("there is no folder for wrapping keys")
        return Rotation.open(Address(self.vault), WrappingKeys(self.wrapping), read_only=read_only)

    def _keys(self) -> WrappingKeys | None:
        return None if self.wrapping is None else WrappingKeys(self.wrapping)

    def _opened_vault(self) -> VaultTables:
        return VaultTables.open(Address(self.vault), wrapping=self._keys(), read_only=True)

    @contextmanager
    def _reading(self) -> Iterator[Connections]:
        with closing(Connections.open(Address(self.log), read_only=True)) as connections:
            prepare(connections, "log", read_only=True)
            yield connections


def _is_standby(address: Address) -> bool:
    with closing(Connections.open(address, read_only=True)) as connections:
        ((is_standby,),) = connections.fetch("SELECT pg_is_in_recovery()")
    return bool(is_standby)


def _differing(connections: Connections, witnesses: Sequence[Witness]) -> list[Witness]:
    rows = connections.fetch(
        "SELECT position, hash FROM events WHERE position = ANY($1)", [one.position for one in witnesses]
    )
    hashes = {position: bytes(hash_) for position, hash_ in rows}
    return [one for one in witnesses if hashes.get(one.position) != one.hash]


def _sealed(connections: Connections, after: int) -> Iterator[Sequence[SealedRow]]:
    while rows := connections.fetch(
        "SELECT position, stream, stream_version, id, sealed FROM events"
        " WHERE position > $1 AND sealed IS NOT NULL ORDER BY position LIMIT $2",
        after,
        PAGE,
    ):
        yield cast("Sequence[SealedRow]", rows)
        after = rows[-1][0]
