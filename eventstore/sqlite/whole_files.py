"""A log and its vault in SQLite files, row by row."""

import contextlib
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self, TypeVar

from eventstore.errors import StoreLost
from eventstore.log.stored import COLUMNS
from eventstore.log.whole import BEGINNING, End, KeyRow, SecretRow, StoredRow
from eventstore.sqlite import files
from eventstore.sqlite.log_file import open_log
from eventstore.sqlite.vault_file import VaultFile

T = TypeVar("T")


class WholeFiles:
    """See WholeStore."""

    def __init__(self, log: Path, log_db: sqlite3.Connection, vault: Path, vault_db: sqlite3.Connection) -> None:
        self.name = log.name
        self._log, self._log_db, self._vault, self._vault_db = log, log_db, vault, vault_db

    @classmethod
    def open(cls, log: Path, vault: Path, *, read_only: bool) -> Self:
        """Open both, making them if need be; to read only, both must exist. Raise StoreUnavailable or StoreCorrupt."""
        with contextlib.ExitStack() as undo:
            log_db = open_log(log, synchronous="FULL", read_only=read_only, busy_timeout_seconds=5.0)
            undo.callback(log_db.close)
            if not read_only:
                VaultFile.open(vault).close()
            try:
                vault_db = files.connect_offline(vault) if read_only else files.connect(vault)
                undo.callback(vault_db.close)
                if not read_only:
                    vault_db.execute("PRAGMA synchronous = FULL")
                    vault_db.execute("PRAGMA secure_delete = ON")
            except sqlite3.Error as error:
                raise files.explained(error, vault) from error
            undo.pop_all()
            return cls(log, log_db, vault, vault_db)

    def end(self) -> End:
        rows = self._of_log("SELECT position, hash FROM events ORDER BY position DESC LIMIT 1")
        return End(*rows[0]) if rows else BEGINNING

    def hash_at(self, position: int) -> bytes | None:
        rows = self._of_log("SELECT hash FROM events WHERE position = ?", position)
        return rows[0][0] if rows else None

    def rows(self, after: int, limit: int) -> Sequence[StoredRow]:
        return self._of_log(
            f"SELECT {COLUMNS} FROM events WHERE position > ? ORDER BY position LIMIT ?",  # noqa: S608 - our own text
            after,
            limit,
        )

    def add(self, rows: Sequence[StoredRow], before: End) -> None:
        def added(db: sqlite3.Connection) -> None:
            with files.transaction(db):
                last = db.execute("SELECT position, hash FROM events ORDER BY position DESC LIMIT 1").fetchone()
                if (last or tuple(BEGINNING)) != tuple(before):
                    raise StoreLost(f"{self.name} does not end at position {before.position}: another writes to it")
                marks = ", ".join("?" * len(rows[0]))
                db.executemany(f"INSERT INTO events ({COLUMNS}) VALUES ({marks})", rows)  # noqa: S608 - our own text

        self._on(self._log_db, self._log, added)

    def keys(self, after: str, limit: int) -> Sequence[KeyRow]:
        return self._of_vault(
            "SELECT subject, key_id, key, created_at, erased_at FROM keys WHERE subject > ? ORDER BY subject LIMIT ?",
            after,
            limit,
        )

    def add_keys(self, rows: Sequence[KeyRow]) -> None:
        def added(db: sqlite3.Connection) -> None:
            with files.transaction(db):
                db.executemany(
                    "INSERT INTO keys (subject, key_id, key, created_at, erased_at) VALUES (?, ?, ?, ?, ?)"
                    " ON CONFLICT DO UPDATE SET key = NULL, key_id = NULL, erased_at = excluded.erased_at"
                    " WHERE erased_at IS NULL AND excluded.erased_at IS NOT NULL",
                    rows,
                )

        self._on(self._vault_db, self._vault, added)

    def secrets(self) -> Sequence[SecretRow]:
        return self._of_vault("SELECT name, sealed, created_at FROM secrets ORDER BY name")

    def keep_secrets(self, rows: Sequence[SecretRow]) -> None:
        def kept(db: sqlite3.Connection) -> None:
            with files.transaction(db):
                db.execute("DELETE FROM secrets")
                db.executemany("INSERT INTO secrets (name, sealed, created_at) VALUES (?, ?, ?)", rows)

        self._on(self._vault_db, self._vault, kept)

    def scrub(self) -> None:
        self._on(self._vault_db, self._vault, lambda db: files.empty_wal(db, self._vault))

    def close(self) -> None:
        self._log_db.close()
        self._vault_db.close()

    def _of_log(self, sql: str, *values: object) -> Sequence[StoredRow]:
        return self._on(self._log_db, self._log, lambda db: db.execute(sql, values).fetchall())

    def _of_vault(self, sql: str, *values: object) -> Sequence[Any]:
        return self._on(self._vault_db, self._vault, lambda db: db.execute(sql, values).fetchall())

    def _on(self, db: sqlite3.Connection, path: Path, work: Callable[[sqlite3.Connection], T]) -> T:
        try:
            return work(db)
        except sqlite3.Error as error:
            raise files.explained(error, path) from error
