"""A log and its vault in SQLite files, row by row."""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Self, TypeVar

from eventstore.errors import StoreLost, StoreNewer
from eventstore.log.stored import COLUMNS
from eventstore.log.whole import BEGINNING, End, KeyRow, SecretRow, StoredRow
from eventstore.sqlite import files
from eventstore.sqlite.log_file import open_log
from eventstore.sqlite.vault_file import APPLICATION_ID, VAULT_MIGRATIONS, VaultFile

T = TypeVar("T")


class _Rows:
    """A file, and a connection to it whose errors are explained."""

    def __init__(self, path: Path, db: sqlite3.Connection) -> None:
        self.name = path.name
        self._path, self._db = path, db

    def close(self) -> None:
        self._db.close()

    def _read(self, sql: str, *values: object) -> Sequence[Any]:
        return self._run(lambda db: db.execute(sql, values).fetchall())

    def _run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        try:
            return work(self._db)
        except sqlite3.Error as error:
            raise files.explained(error, self._path) from error


class FileLogRows(_Rows):
    """See LogRows."""

    def __init__(self, path: Path, db: sqlite3.Connection) -> None:
        super().__init__(path, db)
        self._version = self._read("PRAGMA user_version")

    @classmethod
    def open(cls, path: Path, *, read_only: bool) -> Self:
        """Open a log, made if need be; to read only, it must exist. Raise StoreUnavailable or StoreCorrupt."""
        return cls(path, open_log(path, synchronous="FULL", read_only=read_only, busy_timeout_seconds=5.0))

    def end(self) -> End:
        if self._read("PRAGMA user_version") != self._version:
            raise StoreNewer(f"{self.name} was updated by a newer program meanwhile", remedy="use that one")
        rows = self._read("SELECT position, hash FROM events ORDER BY position DESC LIMIT 1")
        return End(*rows[0]) if rows else BEGINNING

    def hash_at(self, position: int) -> bytes | None:
        rows = self._read("SELECT hash FROM events WHERE position = ?", position)
        return rows[0][0] if rows else None

    def rows(self, after: int, limit: int) -> Sequence[StoredRow]:
        return self._read(
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

        self._run(added)


class FileVaultRows(_Rows):
    """See VaultRows."""

    @classmethod
    def open(cls, path: Path, *, read_only: bool) -> Self:
        """Open a vault, made if need be; to read only, it must exist. Raise StoreUnavailable or StoreCorrupt."""
        if not read_only:
            VaultFile.open(path).close()
        try:
            db = files.connect_offline(path) if read_only else files.connect(path)
            try:
                if not read_only:
                    db.execute("PRAGMA synchronous = FULL")
                    db.execute("PRAGMA secure_delete = ON")
            except BaseException:
                db.close()
                raise
        except sqlite3.Error as error:
            raise files.explained(error, path) from error
        return cls(path, db)

    def version(self) -> int:
        ((version,),) = self._read("PRAGMA data_version")  # changes once another connection has committed
        return int(version)

    def is_empty(self) -> bool:
        return not self.keys("", 1) and not self.secrets()

    def keys(self, after: str, limit: int) -> Sequence[KeyRow]:
        return self._read(
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

        self._run(added)

    def secrets(self) -> Sequence[SecretRow]:
        return self._read("SELECT name, sealed, created_at FROM secrets ORDER BY name")

    def keep_secrets(self, rows: Sequence[SecretRow]) -> None:
        def kept(db: sqlite3.Connection) -> None:
            with files.transaction(db):
                db.execute("DELETE FROM secrets")
                db.executemany("INSERT INTO secrets (name, sealed, created_at) VALUES (?, ?, ?)", rows)

        self._run(kept)

    def scrub(self) -> None:
        self._run(lambda db: files.empty_wal(db, self._path))


@contextmanager
def new_log(path: Path) -> Iterator[FileLogRows]:
    """Make a log to be filled in the block, which is whole after it: indexes are faster made at the end."""
    with _new(path, files.LOG_MIGRATIONS, files.LOG_ID) as db:
        indexes = db.execute("SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL").fetchall()
        for name, _ in indexes:
            db.execute(f"DROP INDEX {name}")
        yield FileLogRows(path, db)
        for _, sql in indexes:
            db.execute(sql)


@contextmanager
def new_vault(path: Path) -> Iterator[FileVaultRows]:
    """Make a vault to be filled in the block."""
    with _new(path, VAULT_MIGRATIONS, APPLICATION_ID) as db:
        yield FileVaultRows(path, db)


@contextmanager
def _new(path: Path, migrations: str, application_id: int) -> Iterator[sqlite3.Connection]:
    """Make one file, without a WAL beside it; what is made of it, or the caller, makes it durable."""
    try:
        with closing(sqlite3.connect(path, isolation_level=None)) as db:
            db.execute("PRAGMA synchronous = OFF")
            db.execute("PRAGMA journal_mode = OFF")
            files.migrate(db, migrations, application_id, path)
            yield db
    except sqlite3.Error as error:
        raise files.explained(error, path) from error
