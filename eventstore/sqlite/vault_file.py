"""The vault in a SQLite file (vault.py says what a vault is).

- It is a file of its own; never restore an old one over it.
- ``secure_delete`` overwrites the deleted key with zeros (https://sqlite.org/pragma.html#pragma_secure_delete), and
  the WAL, which has older pages, is emptied before ``erase`` returns. A file system that keeps old blocks is beyond us.
"""

import os
import sqlite3
import threading
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from eventstore.errors import EventStoreError, StoreClosed, StoreReadOnly, StoreUnavailable, SubjectErased
from eventstore.sqlite import files
from eventstore.vault import KEPT, Key, new_key, stamp

APPLICATION_ID = 0x45764B79
"""'EvKy'."""
VAULT_MIGRATIONS = "eventstore.sqlite.migrations.vault"

_KNOWN_KEYS = 4_096
_CACHED_KIB = 512
"""Memory for the file's pages. Keys in use are known; the others come in no order, and the system has their pages."""


class VaultFile:
    """See Vault. In a vault that is only read, and has no file, every subject is erased."""

    def __init__(
        self, path: Path, db: sqlite3.Connection | None, clock: Callable[[], datetime], read_only: bool
    ) -> None:
        self._path, self._db, self._clock, self._read_only = path, db, clock, read_only
        self._lock = threading.RLock()
        self._keys: dict[str, Key | None] = {}
        self._concealed: set[str] = set()
        """Subjects that are to be erased, but that the file cannot be relieved of."""
        self._seen_version = -1
        self._generation = 0
        self._is_closed = False

    @classmethod
    def open(
        cls, path: Path, *, read_only: bool = False, clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> Self:
        """Open the vault; create it unless it is only read. Raise StoreUnavailable or StoreCorrupt."""
        if read_only and not path.exists():
            return cls(path, None, clock, read_only)
        try:
            if not read_only:
                _make_private(path)
            db = files.connect_offline(path) if read_only else files.connect(path)
            try:
                if not read_only:
                    files.use_wal(db, path)
                    db.execute("PRAGMA synchronous = FULL")
                    db.execute("PRAGMA secure_delete = ON")
                    db.execute(f"PRAGMA cache_size = -{_CACHED_KIB}")
                    # No older file is kept of it: that would have the keys of what is erased later.
                    files.migrate(db, VAULT_MIGRATIONS, APPLICATION_ID, path)
                    # What a killed process had deleted may still be in the WAL. When another one is at work here,
                    # the WAL is its to empty.
                    db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            except BaseException:
                db.close()
                raise
        except sqlite3.Error as error:
            raise files.explained(error, path) from error
        except OSError as error:
            raise StoreUnavailable(f"{path.name}: {error.strerror}", file=path.name) from error
        return cls(path, db, clock, read_only)

    def refresh(self) -> int:
        with self._lock:
            if self._db is None:
                return self._generation
            try:
                (version,) = self._db.execute("PRAGMA data_version").fetchone()
            except sqlite3.Error as error:
                raise self._explained(error) from error
            if version != self._seen_version:
                self._seen_version = version
                self._generation += 1
                self._keys.clear()
            return self._generation

    def find(self, subject: str) -> Key | None:
        try:
            return self._keys[subject]
        except KeyError:
            pass
        with self._lock:
            row = None
            if self._db is not None and subject not in self._concealed:
                try:
                    row = self._db.execute(
                        "SELECT key_id, key FROM keys WHERE subject = ? AND key IS NOT NULL", (subject,)
                    ).fetchone()
                except sqlite3.Error as error:
                    raise self._explained(error) from error
            if len(self._keys) >= _KNOWN_KEYS:
                self._keys.clear()
            key = self._keys[subject] = None if row is None else Key(*row)
            return key

    def obtain(self, subjects: Iterable[str]) -> dict[str, Key | EventStoreError]:
        found: dict[str, Key | EventStoreError] = {}
        with self._lock:
            self.refresh()
            for subject in subjects:
                if subject in self._concealed:
                    found[subject] = SubjectErased(subject)
                elif (key := self.find(subject)) is not None:
                    found[subject] = key
            if missing := [subject for subject in subjects if subject not in found]:
                found |= self._make(missing)
        return found

    def _make(self, subjects: list[str]) -> dict[str, Key | EventStoreError]:
        db = self._writable()
        found: dict[str, Key | EventStoreError] = {}
        try:
            with files.transaction(db):
                now = self._now()
                for subject in subjects:
                    db.execute(
                        "INSERT INTO keys (subject, key_id, key, created_at) VALUES (?, ?, ?, ?)"
                        " ON CONFLICT DO NOTHING",
                        (subject, *new_key(), now),
                    )
                    key_id, key = db.execute("SELECT key_id, key FROM keys WHERE subject = ?", (subject,)).fetchone()
                    found[subject] = SubjectErased(subject) if key is None else Key(key_id, key)
        except sqlite3.Error as error:
            raise self._explained(error) from error
        self._keys |= {subject: key if isinstance(key, Key) else None for subject, key in found.items()}
        return found

    def erase(self, subject: str) -> None:
        with self._lock:
            self._erase([subject])

    def erase_all(self, subjects: Collection[str]) -> int:
        with self._lock:
            self._concealed.update(subjects)
            for subject in subjects:
                self._keys.pop(subject, None)
            if todo := [subject for subject in subjects if not self._is_erased(subject)]:
                self._erase(todo)
            self._concealed.difference_update(subjects)
            return len(todo)

    def _is_erased(self, subject: str) -> bool:
        if self._db is None:
            return True  # so is every subject of a vault without a file
        sql = "SELECT erased_at IS NOT NULL FROM keys WHERE subject = ?"
        try:
            return bool(self._db.execute(sql, (subject,)).fetchone() == (1,))
        except sqlite3.Error as error:
            raise self._explained(error) from error

    def _erase(self, subjects: Sequence[str]) -> None:
        db = self._writable()
        try:
            with files.transaction(db):
                now = self._now()
                db.executemany(
                    "INSERT INTO keys (subject, created_at, erased_at) VALUES (?, ?, ?)"
                    " ON CONFLICT DO UPDATE SET key = NULL, key_id = NULL, erased_at = excluded.erased_at"
                    " WHERE erased_at IS NULL",
                    [(subject, now, now) for subject in subjects],
                )
            self._keys |= dict.fromkeys(subjects)
            files.empty_wal(db, self._path)
        except sqlite3.Error as error:
            raise self._explained(error) from error

    def keep_secret(self, name: str, text: str) -> None:
        subject = KEPT + name
        with self._lock:
            key = self.obtain([subject])[subject]
            if not isinstance(key, Key):
                raise key
            sealed = key.seal(text.encode(), subject.encode(), 1, b"")
            try:
                self._writable().execute("INSERT INTO secrets VALUES (?, ?, ?)", (name, sealed, self._now()))
            except sqlite3.Error as error:
                raise self._explained(error) from error

    def find_secret(self, name: str) -> str | None:
        subject = KEPT + name
        with self._lock:
            self.refresh()
            key, rows = self.find(subject), self._secrets("sealed", "WHERE name = ?", name)
        if key is None or not rows:
            return None
        text = key.open(rows[0], subject.encode(), 1, b"")
        return None if text is None else text.decode()

    def forget_secret(self, name: str) -> None:
        with self._lock:
            try:
                self._writable().execute("DELETE FROM secrets WHERE name = ?", (name,))
            except sqlite3.Error as error:
                raise self._explained(error) from error
            self._erase([KEPT + name])

    def secret_names(self, *, before: datetime | None = None) -> Collection[str]:
        with self._lock:
            if before is None:
                return self._secrets("name", "ORDER BY name")
            return self._secrets("name", "WHERE created_at < ? ORDER BY name", stamp(before))

    def _secrets(self, column: str, clause: str, *values: str) -> list[Any]:
        if self._db is None:
            return []
        try:
            return [value for (value,) in self._db.execute(f"SELECT {column} FROM secrets {clause}", values)]  # noqa: S608  (ours)
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode == sqlite3.SQLITE_ERROR:  # a vault of before, without the table, to be read only
                return []
            raise self._explained(error) from error
        except sqlite3.Error as error:
            raise self._explained(error) from error

    def check_writable(self) -> None:
        """Commit a change that changes nothing, where there is a file. Raises StoreUnavailable and its kinds."""
        with self._lock:
            if self._db is not None and not self._read_only:
                files.write_nothing(self._path)

    def close(self) -> None:
        with self._lock:
            if self._db is not None:
                self._db.close()
            self._db, self._is_closed = None, True
            self._keys.clear()

    def _writable(self) -> sqlite3.Connection:
        if self._is_closed:
            raise StoreClosed("the vault is closed")
        if self._read_only or self._db is None:
            raise StoreReadOnly(f"{self._path.name} was opened for reading")
        return self._db

    def _explained(self, error: sqlite3.Error) -> Exception:
        return StoreClosed("the vault is closed") if self._is_closed else files.explained(error, self._path)

    def _now(self) -> str:
        return stamp(self._clock())


def _make_private(path: Path) -> None:
    """Make the file readable for its owner only; SQLite gives its WAL the same mode."""
    os.close(os.open(path, os.O_CREAT | os.O_RDONLY | os.O_CLOEXEC, 0o600))
    if path.stat().st_mode & 0o077:
        path.chmod(0o600)
