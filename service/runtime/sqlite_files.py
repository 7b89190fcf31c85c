"""SQLite files that several connections may create at the same moment."""

import sqlite3
import time
from pathlib import Path

WAIT_SECONDS = 5.0
"""As long as SQLite waits for any other lock by default."""


def open_write_ahead(path: Path) -> sqlite3.Connection:
    """Open a file with a write-ahead log, for any thread, without transactions of the driver's.

    SQLite's own wait does not reach the switch to the write-ahead log: of two connections that switch a new file, one
    is refused at once. So this waits. Raise sqlite3.Error.
    """
    db = sqlite3.connect(path, timeout=WAIT_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        deadline = time.monotonic() + WAIT_SECONDS
        while True:
            try:
                db.execute("PRAGMA journal_mode = WAL")
                return db
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise
                time.sleep(0.005)
    except BaseException:
        db.close()
        raise
