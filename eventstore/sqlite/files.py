"""SQLite files: how this package opens them, brings them up to date and explains their errors."""

import os
import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from importlib import resources
from pathlib import Path

from eventstore.errors import (
    EventStoreError,
    StoreBusy,
    StoreCorrupt,
    StoreDiskFailed,
    StoreForeign,
    StoreFull,
    StoreNewer,
    StoreReadOnly,
    StoreUnavailable,
)

BUSY_TIMEOUT_SECONDS = 10.0
"""How long to wait for another process's write lock."""

LOG_ID = 0x45764C67
"""'EvLg': marks a log among SQLite files."""
LOG_MIGRATIONS = "eventstore.sqlite.migrations"

READ_CACHE = "PRAGMA cache_size = -512"
"""For connections that only read, in KiB: SQLite's own limit is 2 MB, which each connection fills with time and never
gives back; the pages are in the system's cache besides.
"""

_SPARE_BYTES = 1 << 20
"""With less room than this an unexplained write error is taken for a full disk."""


_CANNOT_MAKE_FILES = {
    sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY,
}  # fmt: skip


def uri(path: Path, *, read_only: bool = False) -> str:
    return f"{path.absolute().as_uri()}?mode={'ro' if read_only else 'rwc'}"


def connect(
    path: Path, *, read_only: bool = False, busy_timeout_seconds: float = BUSY_TIMEOUT_SECONDS
) -> sqlite3.Connection:
    """Return a connection without implicit transactions, free to move between threads (one at a time)."""
    return sqlite3.connect(
        uri(path, read_only=read_only),
        uri=True,
        timeout=busy_timeout_seconds,
        isolation_level=None,
        check_same_thread=False,
    )


def connect_offline(path: Path) -> sqlite3.Connection:
    """Return a connection that only reads, and needs no right to write the file's folder, as WAL otherwise does.

    Raises:
        StoreUnavailable: the file does not exist, or cannot be read.
        StoreCorrupt: it is not a SQLite file.
    """
    db = _opened_offline(path)[0]
    db.execute(READ_CACHE)
    return db


def offline_uri(path: Path) -> str:
    """Return the address by which ``connect_offline`` opens a file. Raise StoreUnavailable or StoreCorrupt."""
    db, address = _opened_offline(path)
    db.close()
    return address


def _opened_offline(path: Path) -> tuple[sqlite3.Connection, str]:
    if not path.exists():
        raise StoreUnavailable(f"{path.name} does not exist")
    address = uri(path, read_only=True)
    try:
        db = connect(path, read_only=True)
    except sqlite3.Error as error:  # there are too many open files, say
        raise explained(error, path) from error
    try:
        db.execute("SELECT 1 FROM sqlite_master").fetchone()
    except UnicodeDecodeError as error:  # of the message, which quotes the schema that is damaged
        db.close()
        raise StoreCorrupt(f"{path.name}: its schema is damaged", file=path.name) from error
    except sqlite3.DatabaseError as error:
        db.close()
        # Without a WAL no process is writing: the file alone is everything (https://sqlite.org/wal.html#read_only_databases).
        # The shared memory beside it can be made neither on a disk that is read-only nor on one that is full.
        if primary_code(error) not in _CANNOT_MAKE_FILES or _has_wal(path):
            raise explained(error, path) from error
        address = f"{path.absolute().as_uri()}?immutable=1"
        db = sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False)
    return db, address


def use_wal(db: sqlite3.Connection, path: Path) -> None:
    """Switch to WAL, which does not wait for a lock by itself: two processes may be creating the same file.

    Only with EXTRA is the folder flushed after the journal of that switch is deleted. If a power cut brought it back,
    SQLite would roll back to the empty file that it was made from, and everything in the WAL would be lost. Raise
    StoreUnavailable where the file system cannot share memory.
    """
    db.execute("PRAGMA synchronous = EXTRA")
    deadline = time.monotonic() + BUSY_TIMEOUT_SECONDS
    while True:
        try:
            (mode,) = db.execute("PRAGMA journal_mode = WAL").fetchone()
            break
        except sqlite3.OperationalError as error:
            if primary_code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.005)
    if mode != "wal":
        raise StoreUnavailable(f"{path.name} is on a file system that cannot share memory")


def migrate(db: sqlite3.Connection, package: str, application_id: int, path: Path, *, keep: bool = False) -> None:
    """Apply the package's numbered scripts that the file has not seen, in one transaction.

    With ``keep`` the file as it was stays beside it, as ``NAME.version-N``, for the program that wrote it.

    Raises:
        StoreForeign, StoreCorrupt: a file of some other program.
        StoreUnavailable: the file cannot be written.
        StoreNewer: a file of a newer version of this one.
    """
    known = scripts(package)
    if _version(db, application_id, len(known), path) == len(known):
        return
    with transaction(db):
        done = _version(db, application_id, len(known), path)  # again: another process may have been faster
        if keep and 0 < done < len(known):
            _keep(path, done)
        for script in known[done:]:
            execute_script(db, script)
        db.execute(f"PRAGMA application_id = {application_id}")
        db.execute(f"PRAGMA user_version = {len(known)}")


def sync_folder(folder: Path) -> None:
    """Make durable which files a folder has, and under which names. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _keep(path: Path, version: int) -> None:
    """Copy a file that cannot be written meanwhile: our caller has its write lock."""
    kept = path.with_name(f"{path.name}.version-{version}")
    making = path.with_name(f".{kept.name}.{os.getpid()}")
    for left in path.parent.glob(f".{kept.name}.*"):  # of processes that were killed: no one else can use them now
        left.unlink(missing_ok=True)
    try:
        os.close(os.open(making, os.O_CREAT | os.O_EXCL | os.O_WRONLY, path.stat().st_mode & 0o777))
        with closing(connect(path, read_only=True)) as source, closing(connect(making)) as copy:
            source.backup(copy)
            copy.execute("PRAGMA journal_mode = DELETE")  # one file, to which nothing is appended
        descriptor = os.open(making, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)
        making.replace(kept)
    except OSError as error:
        raise StoreUnavailable(
            f"{kept.name}: {error.strerror}; this copy is made before {path.name} is changed"
        ) from error
    finally:
        making.unlink(missing_ok=True)


def scripts(package: str) -> list[str]:
    """Return the package's numbered scripts, in order."""
    found = sorted(item.name for item in resources.files(package).iterdir() if item.name.endswith(".sql"))
    return [(resources.files(package) / name).read_text("utf-8") for name in found]


def check(db: sqlite3.Connection, package: str, application_id: int, path: Path) -> None:
    """Look at a file that cannot be changed.

    Raises:
        StoreForeign, StoreCorrupt: it is not a file of this kind.
        StoreNewer: a newer version of this program made it.
    """
    if db.execute("PRAGMA application_id").fetchone() != (application_id,):
        raise StoreForeign(f"{path.name} belongs to another program", file=path.name)
    (version,) = db.execute("PRAGMA user_version").fetchone()
    require_known(version, len(scripts(package)), path)


def _version(db: sqlite3.Connection, application_id: int, newest: int, path: Path) -> int:
    is_apart = not db.in_transaction
    if is_apart:
        db.execute("BEGIN")  # all of one moment: another process may be making the file
    try:
        (found,) = db.execute("PRAGMA application_id").fetchone()
        (version,) = db.execute("PRAGMA user_version").fetchone()
        # Litestream, which copies the file, may have put its tables into a new one already.
        (objects,) = db.execute("SELECT count(*) FROM sqlite_master WHERE name NOT GLOB '_litestream_*'").fetchone()
    finally:
        if is_apart and db.in_transaction:
            db.execute("COMMIT")
    if found != application_id and (found or version or objects):
        raise StoreForeign(f"{path.name} belongs to another program", file=path.name)
    require_known(version, newest, path)
    return int(version)


def require_known(version: int, newest: int, path: Path) -> None:
    """Raise StoreNewer for a version of a file that comes after the newest one that this program knows."""
    if version > newest:
        raise StoreNewer(
            f"{path.name} is of version {version}, made by a newer program than this one, which knows versions up to "
            f"{newest}",
            remedy="use the newer one",
            file=path.name,
        )


@contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """Run a write transaction: committed at the end, rolled back on any error."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:  # SQLite has already rolled back after some errors
            db.execute("ROLLBACK")
        raise


def execute_script(db: sqlite3.Connection, script: str) -> None:
    """Run a script inside the transaction that is open; ``executescript`` would first commit it."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            db.execute(statement)
            statement = ""
    if statement.strip():
        db.execute(statement)


def write_nothing(path: Path, *, busy_timeout_seconds: float = 1.0) -> None:
    """Commit a change that changes nothing, to learn whether a file can be written.

    Raises:
        StoreUnavailable and its kinds, StoreCorrupt.
    """
    try:
        with closing(connect(path, busy_timeout_seconds=busy_timeout_seconds)) as db, transaction(db):
            (version,) = db.execute("PRAGMA user_version").fetchone()
            db.execute(f"PRAGMA user_version = {version}")
    except sqlite3.Error as error:
        raise explained(error, path) from error


def empty_wal(db: sqlite3.Connection, path: Path) -> None:
    """Move the WAL into the file and cut it to nothing: older versions of pages are in it.

    Raises:
        StoreBusy: readers kept it from happening for too long.
    """
    deadline = time.monotonic() + BUSY_TIMEOUT_SECONDS
    while db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
        if time.monotonic() > deadline:
            raise StoreBusy(f"{path.name}: readers keep the write-ahead log from being emptied")
        time.sleep(0.005)


def explained(error: sqlite3.Error, path: Path) -> EventStoreError:
    """Return our error for SQLite's (https://sqlite.org/rescode.html)."""
    return _kind_of(error, path)(f"{path.name}: {error}", file=path.name)


def _kind_of(error: sqlite3.Error, path: Path) -> type[EventStoreError]:
    match primary_code(error):
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED | sqlite3.SQLITE_PROTOCOL:
            return StoreBusy
        case sqlite3.SQLITE_FULL:
            return StoreFull
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM:
            return StoreReadOnly
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            return StoreCorrupt
        case sqlite3.SQLITE_IOERR | sqlite3.SQLITE_CANTOPEN if _is_full(path):
            return StoreFull
        case sqlite3.SQLITE_IOERR:
            return StoreDiskFailed
        case _:
            return StoreUnavailable


def primary_code(error: sqlite3.Error) -> int:
    """SQLite's code, without its details; 0 when the module itself raised the error."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def _is_full(path: Path) -> bool:
    try:
        return shutil.disk_usage(path.parent).free < _SPARE_BYTES
    except OSError:  # the disk has failed, or is not there any more
        return False


def _has_wal(path: Path) -> bool:
    wal = path.with_name(path.name + "-wal")
    return wal.exists() and wal.stat().st_size > 0
