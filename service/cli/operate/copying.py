"""Copies of a data folder that is in use: its log, row by row; the repositories beside it; its vault.

The log is copied a page at a time: it only grows, so everything up to a position is a consistent copy whatever is
appended meanwhile. SQLite's online backup would begin again with every commit of the running service
(https://sqlite.org/backup.html), or, in one step, keep a snapshot open for as long as it takes.
"""

import fcntl
import os
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from eventstore import StoreCorrupt
from eventstore import verify as verify_chain
from eventstore.sqlite.files import LOG_MIGRATIONS, connect_offline, execute_script, scripts, sync_folder
from service.cli.operate.archives import FORMAT, VAULT_FORMAT, Archive, Manifest, NotSound, check
from service.integrity.checkpoints import CHECKPOINTS, KEY, PUBLIC_KEY, parse_checkpoints
from service.runtime.hosted_place import HOSTED
from service.runtime.scratch import BACKUP, VAULT, scratch_folder

PAGE = 2000
UNFINISHED = re.compile(r"tmp_.*|.*\.lock|lock|\..*\.tmp", re.DOTALL)
"""Names of files that are being written."""

Progress = Callable[[str, int, int], None]


def write(data: Path, hosted: Path, file: Path, through: int, progress: Progress) -> Manifest:
    """Write the log of a data folder up to a position, and what else is to be kept of it, into a new tar file. The
    repositories of the embedded code host are in ``hosted``, which may be elsewhere.

    Raises NotSound: the log is not what it was; then there is no file.
    """
    with scratch_folder(file.absolute().parent, BACKUP) as work:
        with Archive(work / "backup.tar") as archive:
            # Older than the log: each checkpoint is of an event that is in it. The repositories are newer: what the log
            # says was pushed is there.
            for name in (CHECKPOINTS, PUBLIC_KEY):
                if (data / name).exists():
                    archive.add(data / name, name)
            head = copy_log(data / "events.db", work / "events.db", through, progress)
            archive.add(work / "events.db", "events.db")
            for repository in sorted(hosted.glob("*.git")):
                _add_repository(archive, repository)
            manifest = archive.finish(FORMAT, through, head)
        check(work / "backup.tar", FORMAT)
        (work / "backup.tar").rename(file)
    sync_folder(file.absolute().parent)
    return manifest


def copy_log(log: Path, copy: Path, through: int, progress: Progress) -> str:
    """The log up to a position, checked; the hash of its last event.

    The tables and indexes are those that this program makes: what others have put into the log (Litestream does) stays
    behind.
    """
    with closing(connect_offline(log)) as source, closing(sqlite3.connect(copy, isolation_level=None)) as target:
        target.execute("PRAGMA synchronous = OFF")  # the archive is what is made durable
        target.execute("PRAGMA journal_mode = OFF")
        schema = schema_of(source)
        for kind, sql in schema:
            if kind == "table":
                target.execute(sql)
        columns = ", ".join(columns_of(source))
        after = 0
        while after < through:
            rows = source.execute(
                f"SELECT {columns} FROM events WHERE position > ? AND position <= ? ORDER BY position LIMIT {PAGE}",  # noqa: S608
                (after, through),
            ).fetchall()
            if not rows:
                break
            target.execute("BEGIN")
            marks = ", ".join("?" * len(rows[0]))
            target.executemany(f"INSERT INTO events ({columns}) VALUES ({marks})", rows)  # noqa: S608
            target.execute("COMMIT")
            after = rows[-1][0]
            progress("copying", after, through)
        for kind, sql in schema:
            if kind != "table":
                target.execute(sql)
        for pragma in ("application_id", "user_version"):
            target.execute(f"PRAGMA {pragma} = {source.execute(f'PRAGMA {pragma}').fetchone()[0]}")
    return verified(copy, through, progress)


def schema_of(log: sqlite3.Connection) -> list[tuple[str, str]]:
    """The kind and the statement of each table and index of a log of this version, tables first."""
    (version,) = log.execute("PRAGMA user_version").fetchone()
    with closing(sqlite3.connect(":memory:")) as fresh:
        for script in scripts(LOG_MIGRATIONS)[:version]:
            execute_script(fresh, script)
        return fresh.execute(
            "SELECT type, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY type <> 'table', rowid"
        ).fetchall()


def columns_of(log: sqlite3.Connection) -> list[str]:
    """Return the columns of an event that are stored; the others are computed."""
    return [row[1] for row in log.execute("PRAGMA table_xinfo(events)") if row[6] == 0]


def verified(log: Path, through: int, progress: Progress) -> str:
    """The head of a copied log, once its chain and the signed checkpoints beside it have been checked."""
    kept = []
    if (checkpoints := log.with_name(CHECKPOINTS)).exists():
        kept = parse_checkpoints(checkpoints.read_bytes(), CHECKPOINTS)
    for one in kept:
        if not one.is_signed_with(one.own_key()):
            raise NotSound(f"the checkpoint of position {one.position} does not fit its signature.")
    try:
        found = verify_chain(
            log,
            checkpoints=[one.checkpoint() for one in kept],
            progress=lambda done, total: progress("verifying", done, total),
        )
    except StoreCorrupt as error:
        raise NotSound(str(error)) from error
    if not found.is_sound or found.position != through:
        raise NotSound(f"the log is not sound at position {found.bad_position or found.position}: {found.problem}")
    return found.hash.hex()


def _add_repository(archive: Archive, repository: Path) -> None:
    """Its branches first, so that all their objects are there; packed ones last of these: they move from loose ones."""
    objects, root = repository / "objects", repository.parent
    for file in sorted(files_in(repository, but=objects), key=lambda file: (file.name == "packed-refs", file)):
        archive.add_if_there(file, f"{HOSTED}/{file.relative_to(root).as_posix()}")
    done: set[Path] = set()
    while new := [file for file in files_in(objects) if file not in done]:  # again: they may be packed meanwhile
        for file in new:
            archive.add_if_there(file, f"{HOSTED}/{file.relative_to(root).as_posix()}")
        done.update(new)


def files_in(folder: Path, *, but: Path | None = None) -> Iterator[Path]:
    """The finished files of a folder, at any depth, by name; without those of one folder. It need not be there."""
    try:
        with os.scandir(folder) as found:
            entries = sorted(found, key=lambda entry: entry.name)
    except FileNotFoundError:
        return
    for entry in entries:
        path = folder / entry.name
        if entry.is_dir(follow_symlinks=False):
            if path != but:
                yield from files_in(path, but=but)
        elif entry.is_file(follow_symlinks=False) and not UNFINISHED.fullmatch(entry.name):
            yield path


def write_vault(data: Path, file: Path, of: Manifest) -> None:
    """Write the vault, and the key that signs, in place of the file; ``of`` is of the log as it was before."""
    parent = file.absolute().parent
    with _alone_in(parent), scratch_folder(parent, VAULT) as work:
        with Archive(work / "vault.tar") as archive:
            if (data / "keys.db").exists():
                with (
                    closing(connect_offline(data / "keys.db")) as source,
                    closing(sqlite3.connect(work / "keys.db")) as target,
                ):
                    source.backup(target)
                archive.add(work / "keys.db", "keys.db")
            if (data / KEY).exists():
                archive.add(data / KEY, KEY)
            archive.finish(VAULT_FORMAT, of.position, of.hash)
        check(work / "vault.tar", VAULT_FORMAT)
        (work / "vault.tar").replace(file)
        sync_folder(parent)


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Copy the vault to a folder one at a time: else a copy could replace one that was begun later."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with suppress(OSError):  # a file system without such locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
