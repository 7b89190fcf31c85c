"""Sessions in ``sessions.db``, a SQLite file of the data folder that only the service opens.

It is neither derived nor backed up: without it people sign in again. A damaged one is begun again.
"""

import asyncio
import os
import sqlite3
import threading
from collections.abc import Callable, Iterable
from datetime import datetime
from pathlib import Path
from typing import TypeVar

import structlog

from service.domain.errors import Unavailable
from service.ports.shared.sessions import StoredSession
from service.runtime.sqlite_files import open_write_ahead

log = structlog.get_logger()

T = TypeVar("T")

_TABLE = """
    CREATE TABLE IF NOT EXISTS sessions (
        id TEXT PRIMARY KEY,
        digest TEXT NOT NULL,
        person_id TEXT NOT NULL,
        method TEXT NOT NULL,
        browser TEXT NOT NULL,
        address TEXT NOT NULL,
        began_at TEXT NOT NULL,
        used_at TEXT NOT NULL
    ) STRICT, WITHOUT ROWID
"""
_COLUMNS = "id, digest, person_id, method, browser, address, began_at, used_at"


class SqliteSessions:
    """See SessionTable. The file is opened by the first call, on a thread."""

    is_shared = False

    def __init__(self, path: Path) -> None:
        self._path = path
        self._db: sqlite3.Connection | None = None
        self._lock = threading.Lock()

    async def load(self) -> list[StoredSession]:
        try:
            return await self._run(_read)
        except Unavailable as error:
            log.warning("no session is known: people sign in again", reason=str(error))
            return []

    async def add(self, session: StoredSession) -> None:
        row = (
            session.id, session.digest, session.person_id, session.method, session.browser, session.address,
            session.began_at.isoformat(), session.used_at.isoformat(),
        )  # fmt: skip
        await self._run(lambda db: _write(db, [("INSERT INTO sessions VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)]))

    async def find(self, digest: str) -> StoredSession | None:
        found = await self._run(lambda db: _read(db, "WHERE digest = ?", digest))
        return found[0] if found else None

    async def of_person(self, person_id: str) -> list[StoredSession]:
        return await self._run(lambda db: _read(db, "WHERE person_id = ?", person_id))

    async def update(self, used: Iterable[StoredSession], removed: Iterable[StoredSession]) -> None:
        later = "UPDATE sessions SET used_at = max(used_at, ?) WHERE id = ?"
        changes = [(later, (one.used_at.isoformat(), one.id)) for one in used]
        gone = "DELETE FROM sessions WHERE used_at <= ? AND id = ?"
        changes += [(gone, (one.used_at.isoformat(), one.id)) for one in removed]
        if changes:
            await self._run(lambda db: _write(db, changes))

    async def close(self) -> None:
        def close() -> None:
            with self._lock:
                if self._db is not None:
                    self._db.close()
                self._db = None

        await asyncio.to_thread(close)

    async def _run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        def locked() -> T:
            with self._lock:
                if self._db is None:
                    self._db = self._open()
                return work(self._db)

        try:
            return await asyncio.to_thread(locked)
        except (sqlite3.Error, OSError) as error:
            raise Unavailable(f"Sessions cannot be kept just now ({self._path.name}: {error}). Try again.") from error

    def _open(self) -> sqlite3.Connection:
        try:
            return _opened(self._path)
        except sqlite3.DatabaseError as error:
            if error.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
                raise
            log.warning("sessions begin again: their file was damaged", file=self._path.name, reason=str(error))
            for name in (self._path.name, f"{self._path.name}-wal", f"{self._path.name}-shm"):
                self._path.with_name(name).unlink(missing_ok=True)
            return _opened(self._path)


def _opened(path: Path) -> sqlite3.Connection:
    os.close(os.open(path, os.O_CREAT | os.O_RDONLY | os.O_CLOEXEC, 0o600))
    db = open_write_ahead(path)
    try:
        db.execute("PRAGMA synchronous = FULL")
        db.execute("PRAGMA secure_delete = ON")  # rows say where people were
        db.execute(_TABLE)
        db.execute(f"SELECT {_COLUMNS} FROM sessions").fetchall()  # noqa: S608  (ours; damage shows now)
    except BaseException:
        db.close()
        raise
    return db


def _read(db: sqlite3.Connection, where: str = "", *values: str) -> list[StoredSession]:
    rows = db.execute(f"SELECT {_COLUMNS} FROM sessions {where}", values).fetchall()  # noqa: S608  (ours)
    return [
        StoredSession(digest, one, person_id, method, browser, address, *map(datetime.fromisoformat, times))
        for one, digest, person_id, method, browser, address, *times in rows
    ]


def _write(db: sqlite3.Connection, changes: Iterable[tuple[str, tuple[str, ...]]]) -> None:
    db.execute("BEGIN IMMEDIATE")
    try:
        for sql, values in changes:
            db.execute(sql, values)
        db.execute("COMMIT")
    finally:
        if db.in_transaction:
            db.execute("ROLLBACK")
