"""``docsmith backup`` and ``docsmith restore``: what cannot be derived, in one file; the vault in another.

A backup is a tar file:

    checkpoints.jsonl, checkpoint.pub    what was signed, and the key to check it
    events.db                            the log up to some position
    hosted/                              the repositories and pull requests of the embedded code host
    manifest.json                        the last one: SHA-256 of each, the log's position and head

Read models and indexes are derived, and made again. The log is copied row by row, a page at a time: it only grows, so
everything up to a position is a consistent copy whatever is appended meanwhile. SQLite's online backup would begin
again with every commit of the running service (https://sqlite.org/backup.html), or, in one step, keep a snapshot open
for as long as it takes.

The vault is not in it. Whoever has an old copy of the vault can read what was erased since, so there should be one
copy, the newest: ``--vault FILE`` writes it (and the key that signs checkpoints) to a file of its own, in place of the
last one. Keep that apart from the backups. What the log says was erased is erased again from a vault that is restored.
"""

import argparse
import asyncio
import hashlib
import io
import os
import shutil
import sqlite3
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import IO, Any

import msgspec
from msgspec import Struct

from eventstore import SQLiteEventStore, StoreCorrupt
from eventstore import verify as verify_chain
from eventstore.files import connect_offline
from service.cli.audit_reading import log_of, reading
from service.cli.output import DONE, FAILED, VERIFICATION_FAILED, Output, failure
from service.cli.parsing import add_command
from service.domain.errors import Invalid
from service.system import now
from service.workers.checkpoints import CHECKPOINTS, KEY, PUBLIC_KEY, parse_checkpoints
from service.workers.erasures import repeat_erasures

FORMAT, VAULT_FORMAT = "docsmith-backup-1", "docsmith-vault-1"
MANIFEST = "manifest.json"
PAGE = 2000
CHUNK = 1 << 20
UNFINISHED = ("tmp_*", "*.lock", "lock", ".*.tmp")
"""What somebody is writing just now, by its name."""

Progress = Callable[[str, int, int], None]


class NotSound(Invalid):
    """A backup that is not what was written."""


class Member(Struct, frozen=True):
    name: str
    bytes: int
    sha256: str


class Manifest(Struct, frozen=True, rename="camel"):
    format: str
    made_at: datetime
    position: int
    """Of the last event."""
    hash: str
    """Of that event, in hex."""
    files: tuple[Member, ...]


def add_commands(commands: Any, common: argparse.ArgumentParser) -> None:
    one = commands.add_parser(
        "backup", parents=[common], help="copy everything into one file, beside a running service"
    )
    one.add_argument("file", type=Path, metavar="FILE", help="a tar file; it must not be there yet")
    one.add_argument(
        "--vault", type=Path, metavar="FILE",
        help="also copy the keys of what is encrypted, into a file of its own, in place of the last one",
    )  # fmt: skip
    one.set_defaults(command=backup, works_alone=True)
    one = add_command(
        commands,
        "restore",
        "make a data folder from a backup, after a check",
        examples=["restore /backups/2026-01-31.tar --vault /elsewhere/vault.tar --data data --dry-run"],
        parents=[common],
    )
    one.add_argument("file", type=Path, metavar="FILE")
    one.add_argument("--vault", type=Path, metavar="FILE", help="without it nobody can read what people had typed")
    one.add_argument("--dry-run", action="store_true", help="check the backup and say what would be done")
    one.set_defaults(command=restore, works_alone=True)


# Writing


async def backup(options: argparse.Namespace, output: Output) -> int:
    log_of(options.data)
    if options.file.exists():
        failure(f"{options.file} is there already.", next_step="Name a new file.")
        return FAILED
    async with reading(options.data, "backup", {}) as (_, through):
        manifest = await asyncio.to_thread(_write, options.data, options.file, through, output.progress)
        if options.vault is not None:  # later than the log: a key is older than the events that need it
            await asyncio.to_thread(_write_vault, options.data, options.vault, manifest)
    size = options.file.stat().st_size
    lines = [f"{options.file}: events up to position {manifest.position}, {len(manifest.files)} files, {size} bytes"]
    if options.vault is None:
        lines.append("the vault (keys.db) is not in it: keep one copy of it elsewhere, the newest, with --vault FILE")
    else:
        lines.append(f"{options.vault}: the vault; keep it apart, and no older one")
    value = {
        "file": str(options.file), "bytes": size, "position": manifest.position, "head": manifest.hash,
        "files": len(manifest.files), "vault": None if options.vault is None else str(options.vault),
    }  # fmt: skip
    output.result(value, "\n".join(lines))
    return DONE


def _write(data: Path, file: Path, through: int, progress: Progress) -> Manifest:
    with tempfile.TemporaryDirectory(dir=file.absolute().parent, prefix=".docsmith-backup-") as folder:
        work = Path(folder)
        with _Archive(work / "backup.tar") as archive:
            # Older than the log: each checkpoint is of an event that is in it. The repositories are newer: what the log
            # says was pushed is there.
            for name in (CHECKPOINTS, PUBLIC_KEY):
                if (data / name).exists():
                    archive.add(data / name, name)
            head = _copy_log(data / "events.db", work / "events.db", through, progress)
            archive.add(work / "events.db", "events.db")
            for repository in sorted((data / "hosted").glob("*.git")):
                _add_repository(archive, repository, data)
            manifest = archive.finish(FORMAT, through, head)
        _check(work / "backup.tar", FORMAT)
        (work / "backup.tar").rename(file)
    _sync_folder(file.absolute().parent)
    return manifest


def _copy_log(log: Path, copy: Path, through: int, progress: Progress) -> str:
    """The log up to a position, checked; the hash of its last event."""
    with closing(connect_offline(log)) as source, closing(sqlite3.connect(copy, isolation_level=None)) as target:
        target.execute("PRAGMA synchronous = OFF")  # the archive is what is made durable
        target.execute("PRAGMA journal_mode = OFF")
        schema = source.execute("SELECT type, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
        for kind, sql in schema:
            if kind == "table":
                target.execute(sql)
        columns = ", ".join(row[1] for row in source.execute("PRAGMA table_xinfo(events)") if row[6] == 0)
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
    return _verified(copy, through, progress)


def _verified(log: Path, through: int, progress: Progress) -> str:
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


def _add_repository(archive: "_Archive", repository: Path, data: Path) -> None:
    """Its branches first, so that all their objects are there; packed ones last of these: they move from loose ones."""
    objects = repository / "objects"
    others = [file for file in _files(repository) if not file.is_relative_to(objects)]
    for file in sorted(others, key=lambda file: (file.name == "packed-refs", file)):
        archive.add_if_there(file, file.relative_to(data).as_posix())
    done: set[Path] = set()
    while new := [file for file in _files(objects) if file not in done]:  # again: they may be packed meanwhile
        for file in new:
            archive.add_if_there(file, file.relative_to(data).as_posix())
        done.update(new)


def _files(folder: Path) -> Iterator[Path]:
    for file in sorted(folder.rglob("*")):
        if file.is_file() and not file.is_symlink() and not any(file.match(pattern) for pattern in UNFINISHED):
            yield file


def _write_vault(data: Path, file: Path, of: Manifest) -> None:
    with tempfile.TemporaryDirectory(dir=file.absolute().parent, prefix=".docsmith-vault-") as folder:
        work = Path(folder)
        with _Archive(work / "vault.tar") as archive:
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
        _check(work / "vault.tar", VAULT_FORMAT)
        (work / "vault.tar").replace(file)
    _sync_folder(file.absolute().parent)


class _Archive:
    """A tar file as it is being written, and what is in it."""

    def __init__(self, file: Path) -> None:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        self._file = os.fdopen(descriptor, "wb")
        self._tar = tarfile.open(fileobj=self._file, mode="w", format=tarfile.PAX_FORMAT)  # noqa: SIM115 - see __exit__
        self._members: list[Member] = []

    def __enter__(self) -> "_Archive":
        return self

    def __exit__(self, *_: object) -> None:
        self._tar.close()
        self._file.close()

    def add(self, path: Path, name: str) -> None:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            hashed = _Hashed(file, status.st_size)
            info = tarfile.TarInfo(name)
            info.size, info.mode, info.mtime = status.st_size, status.st_mode & 0o700, status.st_mtime
            self._tar.addfile(info, hashed)  # a shorter file is an OSError
            self._members.append(Member(name, status.st_size, hashed.sha256.hexdigest()))

    def add_if_there(self, path: Path, name: str) -> None:
        with suppress(FileNotFoundError):  # a branch that was deleted, an object that was packed
            self.add(path, name)

    def finish(self, kind: str, position: int, head: str) -> Manifest:
        manifest = Manifest(kind, now(), position, head, tuple(self._members))
        text = msgspec.json.encode(manifest)
        info = tarfile.TarInfo(MANIFEST)
        info.size, info.mode = len(text), 0o600
        self._tar.addfile(info, io.BytesIO(text))
        self._tar.close()
        self._file.flush()
        os.fsync(self._file.fileno())
        return manifest


class _Hashed(io.RawIOBase):
    """What is read through it, up to a length."""

    def __init__(self, file: IO[bytes], length: int) -> None:
        self._file, self._left, self.sha256 = file, length, hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        read = self._file.read(self._left if size < 0 else min(size, self._left))
        self._left -= len(read)
        self.sha256.update(read)
        return read


# Reading


def _check(file: Path, kind: str, into: Path | None = None) -> Manifest:
    """Compare an archive with its manifest, unpacking it on the way if asked to.

    Raises NotSound.
    """
    found: list[Member] = []
    manifest: Manifest | None = None
    try:
        with tarfile.open(file, mode="r:") as archive:
            for info in archive:
                content = archive.extractfile(info)
                if content is None or manifest is not None or not _is_ours(info.name, kind):
                    raise NotSound(f"{file}: {info.name!r} has no place in it.")
                if info.name == MANIFEST:
                    manifest = msgspec.json.decode(content.read(), type=Manifest)
                    continue
                with _target(into, info) as target:
                    found.append(_copied(content, target, info.name))
    except (tarfile.TarError, msgspec.MsgspecError, EOFError) as error:
        raise NotSound(f"{file}: it is not a whole backup: {error}") from error
    if manifest is None:
        raise NotSound(f"{file}: it has no manifest, so it is not a whole backup.")
    if manifest.format != kind:
        raise NotSound(f"{file}: it is a {manifest.format}, not a {kind}.")
    for member, expected in zip(found, manifest.files, strict=False):
        if member != expected:
            raise NotSound(f"{file}: {member.name} is not what was written.")
    if len(found) != len(manifest.files):
        raise NotSound(f"{file}: it has {len(found)} files, and had {len(manifest.files)}.")
    return manifest


def _is_ours(name: str, kind: str) -> bool:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\\" in name or str(path) != name:
        return False
    if kind == VAULT_FORMAT:
        return name in {MANIFEST, "keys.db", KEY}
    return name in {MANIFEST, "events.db", CHECKPOINTS, PUBLIC_KEY} or (
        len(path.parts) > 2 and path.parts[0] == "hosted" and path.parts[1].endswith(".git")
    )


@contextmanager
def _target(into: Path | None, info: tarfile.TarInfo) -> Iterator[IO[bytes]]:
    if into is None:
        with Path(os.devnull).open("wb") as nothing:
            yield nothing
        return
    path = into / info.name
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    mode = 0o700 if info.mode & 0o100 else 0o600
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


def _copied(source: IO[bytes], target: IO[bytes], name: str) -> Member:
    sha256, size = hashlib.sha256(), 0
    while chunk := source.read(CHUNK):
        sha256.update(chunk)
        size += len(chunk)
        target.write(chunk)
    return Member(name, size, sha256.hexdigest())


async def restore(options: argparse.Namespace, output: Output) -> int:
    data: Path = options.data
    if _is_used(data):
        failure(f"{data} is there already, and not empty.", next_step="Name a new folder with --data.")
        return FAILED
    work = _work_folder(data, is_to_stay=not options.dry_run)
    try:
        manifest = await asyncio.to_thread(_unpack, options.file, options.vault, work, output.progress)
        # Without --vault this makes an empty one: whoever restores so has decided, so that the service begins with it.
        async with await SQLiteEventStore.open(work / "events.db", vault_path=work / "keys.db") as store:
            erased = await repeat_erasures(store) if options.vault is not None else 0
        if not options.dry_run:
            await asyncio.to_thread(_put_in_place, work, data)
    except NotSound as error:
        output.result({"restored": False, "sound": False, "problem": str(error)}, f"NOT sound: {error}")
        return VERIFICATION_FAILED
    finally:
        shutil.rmtree(work, ignore_errors=True)
    value = {
        "restored": not options.dry_run, "sound": True, "data": str(data), "position": manifest.position,
        "head": manifest.hash, "files": len(manifest.files), "madeAt": manifest.made_at,
        "vault": options.vault is not None, "erasuresRepeated": erased,
    }  # fmt: skip
    did = "would restore" if options.dry_run else "restored"
    lines = [f"{did} {data}: events up to position {manifest.position}, of {manifest.made_at:%Y-%m-%d %H:%M} UTC"]
    if options.vault is None:
        lines.append("without --vault, nobody can read what people had typed, for good")
    elif erased:
        lines.append(f"what the log says was erased is erased from the vault: {erased}")
    lines.append("read models and search indexes are made again when the service starts")
    output.result(value, "\n".join(lines))
    return DONE


def _is_used(data: Path) -> bool:
    return data.exists() and (not data.is_dir() or any(data.iterdir()))


def _work_folder(data: Path, *, is_to_stay: bool) -> Path:
    """On the file system of the data folder, so that it can be renamed to it."""
    parent = data.absolute().parent
    if is_to_stay:
        parent.mkdir(parents=True, exist_ok=True)
    nearest = next(folder for folder in (parent, *parent.parents) if folder.is_dir())
    return Path(tempfile.mkdtemp(dir=nearest, prefix=".docsmith-restore-"))


def _put_in_place(work: Path, data: Path) -> None:
    for folder in (work, *(one for one in work.rglob("*") if one.is_dir())):
        _sync_folder(folder)
    work.rename(data)  # only in place of an empty folder
    _sync_folder(data.absolute().parent)


def _unpack(file: Path, vault: Path | None, work: Path, progress: Progress) -> Manifest:
    manifest = _check(file, FORMAT, work)
    if not (work / "events.db").exists():
        raise NotSound(f"{file}: there is no log in it.")
    if _verified(work / "events.db", manifest.position, progress) != manifest.hash:
        raise NotSound(f"{file}: its log has another head than the manifest says.")
    if vault is not None:
        _check(vault, VAULT_FORMAT, work)
    return manifest


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
