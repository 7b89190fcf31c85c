"""The event store in a SQLite file.

aiosqlite, which the views use for their queries, is not used here: it makes each statement a trip to the thread and
back (18,000 events/s where one trip for a batch gives 51,000), and it hands rows to the event loop, where building
events and decrypting a page of them would delay all others.
"""

import asyncio
import contextlib
import sqlite3
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Self, TypeVar

from eventstore.backend import LogReader
from eventstore.core import CoreEventStore
from eventstore.sqlite import files
from eventstore.sqlite.log_file import FileWriter, Synchronous, open_log
from eventstore.sqlite.log_reader import FileReader
from eventstore.sqlite.vault_file import VaultFile
from eventstore.sqlite.wal_size import LOG_BOUNDS, LogBounds, WalKeeper
from eventstore.sqlite.watch import FileWatch

T = TypeVar("T")


class SQLiteEventStore(CoreEventStore):
    """See EventStore."""

    @classmethod
    async def open(
        cls,
        path: Path,
        *,
        vault_path: Path,
        synchronous: Synchronous = "FULL",
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        read_only: bool = False,
        bounds: LogBounds = LOG_BOUNDS,
    ) -> Self:
        """Open the log and its vault, making them if need be; to read only, the log must exist, the vault need not.

        Raises:
            StoreUnavailable and its kinds, StoreCorrupt.
            ValueError: ``synchronous`` is another word.
        """
        if synchronous not in {"FULL", "NORMAL", "OFF"}:
            raise ValueError(f"synchronous is FULL, NORMAL or OFF, not {synchronous}")

        def opened() -> tuple[_Files, int]:
            with contextlib.ExitStack() as undo:
                vault = VaultFile.open(vault_path, read_only=read_only, clock=clock)
                undo.callback(vault.close)
                db = open_log(
                    path,
                    synchronous=synchronous,
                    read_only=read_only,
                    busy_timeout_seconds=bounds.busy_timeout_seconds,
                )
                undo.callback(db.close)
                watch = files.connect_offline(path)
                undo.callback(watch.close)
                try:
                    head = FileReader(watch).head()
                except sqlite3.Error as error:
                    raise files.explained(error, path) from error
                if read_only:
                    db.close()
                    writer = None
                else:
                    wal = WalKeeper(db, path, synchronous, bounds)
                    writer = FileWriter(db, path, vault, clock, wal)
                undo.pop_all()
                return _Files(path, vault, writer, watch), head

        return cls(*await asyncio.to_thread(opened))


class _Files:
    """See Backend."""

    def __init__(self, path: Path, vault: VaultFile, writer: FileWriter | None, watch: sqlite3.Connection) -> None:
        self.name, self.vault, self.writer = path.name, vault, writer
        self._path, self._watch = path, watch
        self._local = threading.local()
        self._connections: list[sqlite3.Connection] = []

    @property
    def away(self) -> str | None:
        return None

    def read(self, work: Callable[[LogReader], T], *, may_be_old: bool = True) -> T:  # noqa: ARG002 - there is no copy
        try:
            reader: FileReader | None = getattr(self._local, "reader", None)
            if reader is None:
                db = files.connect_offline(self._path)
                self._connections.append(db)
                reader = self._local.reader = FileReader(db)
            return work(reader)
        except sqlite3.Error as error:
            raise files.explained(error, self._path) from error

    def check_writable(self) -> None:
        files.write_nothing(self._path)
        self.vault.check_writable()

    def watch(self, known: Callable[[], int]) -> FileWatch:
        return FileWatch(self._watch, refresh=self.vault.refresh, head=lambda db: FileReader(db).head(), known=known)

    def close(self) -> None:
        for db in self._connections:
            db.close()
