"""The event store in a PostgreSQL database."""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Self, TypeVar

from eventstore.backend import LogReader
from eventstore.core import CoreEventStore
from eventstore.errors import EventStoreError, StoreLost, StoreUnavailable
from eventstore.postgres.away.away import Away
from eventstore.postgres.away.copier import Copier
from eventstore.postgres.away.local_copy import LocalCopy
from eventstore.postgres.connections import Address, Connections, is_away
from eventstore.postgres.doorbell import Doorbell
from eventstore.postgres.log_reader import TableReader
from eventstore.postgres.log_writer import HOLD, TableWriter
from eventstore.postgres.schema import prepare
from eventstore.postgres.vault_tables import VaultTables
from eventstore.postgres.wrapping.wrapping_keys import WrappingKeys
from eventstore.vault import Vault

T = TypeVar("T")


class PostgresEventStore(CoreEventStore):
    """See EventStore."""

    @classmethod
    async def open(
        cls,
        address: Address,
        *,
        vault: Address,
        wrapping: WrappingKeys | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        read_only: bool = False,
        local_copy: Path | None = None,
    ) -> Self:
        """Open the log and its vault, making their tables if need be; to read only, they must exist. ``wrapping`` are
        the keys that a wrapped vault is wrapped under.

        With ``local_copy``, a file on this machine that no other process uses, reading goes on while the database is
        away: of what the copy has, and of sealed texts whose keys are in memory. To read only, the database may be away
        from the beginning if the copy was whole once.

        Raises:
            StoreUnavailable and its kinds, StoreCorrupt.
        """

        def opened() -> tuple[_Database, int]:
            with contextlib.ExitStack() as undo:
                copy = None if local_copy is None else LocalCopy.open(local_copy)
                if copy is not None:
                    undo.callback(copy.close)
                may_be_away = read_only and copy is not None and copy.is_whole
                away = [] if copy is None else [Away(), Away()]
                keys = VaultTables.open(
                    vault,
                    read_only=read_only,
                    wrapping=wrapping,
                    clock=clock,
                    away=away[1] if away else None,
                    may_be_away=may_be_away,
                )
                undo.callback(keys.close)
                connections = Connections.open(address, read_only=read_only, away=away[0] if away else None)
                undo.callback(connections.close)
                database = _Database(connections, keys, copy, away)
                try:
                    prepare(connections, "log", read_only=read_only)
                except StoreUnavailable as error:
                    if not may_be_away or not is_away(error):
                        raise
                if not read_only:
                    database.writer = TableWriter(connections, keys, clock, copy)
                head = database.read(lambda reader: reader.head())
                undo.pop_all()
                return database, head

        database, head = await asyncio.to_thread(opened)
        store = cls(database, head)
        database.begin(store.hold)
        return store


class _Database:
    """See Backend."""

    def __init__(self, connections: Connections, vault: Vault, copy: LocalCopy | None, away: Sequence[Away]) -> None:
        self.name, self.vault = connections.address.name, vault
        self.writer: TableWriter | None = None
        self._connections, self._copy, self._away = connections, copy, away
        self._copier: Copier | None = None
        self._hold: Callable[[str], None] = lambda _: None

    def begin(self, hold: Callable[[str], None]) -> None:
        """Keep the copy up to date; ``hold`` keeps the store from appending once the log has lost events."""
        self._hold = hold

        def lost(error: StoreLost) -> None:
            hold(str(error))
            with contextlib.suppress(EventStoreError):  # a role that may only read; this instance stops all the same
                self._connections.change(HOLD, str(error))

        if self._copy is not None:
            self._copier = Copier(self._copy, self._connections, lost)

    @property
    def away(self) -> str | None:
        return next((one.why for one in self._away if one.why is not None), None)

    def read(self, work: Callable[[LogReader], T], *, may_be_old: bool = True) -> T:
        try:
            return work(TableReader(self._connections.fetch))
        except StoreUnavailable as error:
            if not may_be_old or self._copy is None or not self._copy.is_whole or not is_away(error):
                raise
            return self._copy.read(work)

    def check_writable(self) -> None:
        self._connections.change("UPDATE head SET position = position")

    def watch(self, known: Callable[[], int]) -> Doorbell:
        return Doorbell(self._connections, refresh=self.vault.refresh, known=known, on_head=self._on_head)

    def _on_head(self, position: int, hash_: bytes, held: str | None) -> None:
        if held is not None:
            self._hold(held)
        if self._copier is not None:
            self._copier.on_head(position, hash_)

    def close(self) -> None:
        if self.writer is None:
            self._connections.close()
        if self._copier is not None:
            self._copier.close()
        if self._copy is not None:
            self._copy.close()
