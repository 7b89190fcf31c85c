"""``docsmith backup FOLDER --follow``: a folder that is a copy of the data folder, never much older than it.

    FOLDER/events.db, checkpoints.jsonl, checkpoint.pub, hosted/    as in the data folder
    FOLDER/follow.lock                                              held by the process that writes the copy

The log, in files or in PostgreSQL, only grows, so following it is reading on from where the copy ends. Before a page is
kept, its chain is checked, and that the copy's last event is the log's own at the same position: a log that was
restored from something older, or rewritten, is never mixed with the copy of another. No lock is held on the log
meanwhile: neither appending nor emptying a WAL (which erasing needs) ever waits for a copy. While PostgreSQL is away
the copy waits for it.

Order: checkpoints before the log, repositories after it, the vault last of all. So each checkpoint is of an event that
is in the copy, what the copied log says was pushed is there, and so are the keys of all that it says.

Litestream was tried first (0.5.17, beside kill -9 of the service), and cannot be used. It keeps a read lock, so the
vault's WAL cannot be emptied and no erasure ever ends. It keeps older versions of the vault, in which the keys of what
was erased still are. And it takes every whole transaction in the WAL file for committed: of a writer that was killed
between writing one and telling so in the index of the WAL, it copies an event that never was in the log; the next
writer puts another in its place, and from there on the copy is not of this log, fails SQLite's check of its indexes, or
does not grow any more ("read database page 233: EOF"), until Litestream is started again.
"""

import asyncio
import fcntl
import filecmp
import os
import shutil
import signal
import time
from collections.abc import Hashable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path

from eventstore import FilePlace, LogPlace, StoreLost, StoreUnavailable, Witness
from eventstore import verify as verify_chain
from eventstore.log.whole import End, VaultRows, copy_log
from eventstore.sqlite.whole_files import FileLogRows
from service.cli.audit.reading import reading
from service.cli.operate.archives import VAULT_FORMAT, Manifest, NotSound
from service.cli.operate.copying import Repositories, files_in, unsound_refused, write_vault
from service.cli.output import DONE, VERIFICATION_FAILED, Output, warning
from service.cli.parsing import Options
from service.domain.errors import Conflict, Invalid
from service.integrity.checkpoints import CHECKPOINTS, PUBLIC_KEY
from service.runtime.hosted_place import HOSTED
from service.runtime.system import now

LOCK = "follow.lock"
SECONDS = 0.5
"""Between two looks at the data folder."""
REPOSITORY_SECONDS = 60.0
"""Between two looks at the repositories while the log does not grow."""
PACE, REST_SECONDS = 2, 30.0
"""The pause after each look is at least ``PACE`` times as long as the look, and at most ``REST_SECONDS``: the vault is
copied whole whenever it changed.
"""
_Signature = tuple[int, int, int]
"""A file's inode, size and time of change: another one when it is written, or put in place of an older one."""


async def follow(place: LogPlace, options: Options, output: Output, repositories: Repositories) -> int:
    """Until SIGTERM or SIGINT.

    Raises Invalid, Conflict, OSError, StoreUnavailable and its kinds: not while a log that is elsewhere is away.
    """
    async with reading(options.data, "backup", {"follow": str(options.file)}):
        pass  # for the record
    stopped = asyncio.Event()
    for which in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(which, stopped.set)
    folder: Path = options.file
    _look_at_places(place, options.data, folder, options.vault)
    os.umask(0o077)
    source = options.data if place.is_local else place.name
    with _Copy(place, options.data, folder, options.vault, repositories.folder) as copy:
        output.line(f"{folder}: a copy of {source}, from position {copy.end.position} on")
        if repositories.note:
            output.line(repositories.note)
        is_away = False
        while True:
            began, is_last = time.monotonic(), stopped.is_set()
            try:
                await asyncio.to_thread(copy.go_on)
                is_away = False
            except NotSound as error:
                output.result({"file": str(folder), "position": copy.end.position, "problem": str(error)}, str(error))
                return VERIFICATION_FAILED
            except StoreUnavailable as error:
                if not place.is_away(error):
                    raise
                if not is_away:
                    warning(f"{str(error).rstrip('.')}; the copy waits, and goes on by itself.")
                is_away = True
            if is_last:
                break
            rest = min(PACE * (time.monotonic() - began), REST_SECONDS)
            with suppress(TimeoutError):
                async with asyncio.timeout(max(SECONDS, rest)):
                    await stopped.wait()
        value = {
            "file": str(folder), "position": copy.end.position, "head": copy.end.hash.hex(),
            "repositoriesElsewhere": repositories.elsewhere,
        }  # fmt: skip
    output.result(value, f"{folder}: events up to position {value['position']}")
    return DONE


class _Copy:
    """The folder, while this process alone writes it. Its methods block, and are called from one thread at a time."""

    def __init__(
        self, place: LogPlace, data: Path, folder: Path, vault: Path | None, repositories: Path | None
    ) -> None:
        self._place, self._data, self._folder, self._vault = place, data, folder, vault
        self._close = ExitStack()
        self._inode = self._inode_now()
        self._vault_seen: Hashable = None
        self._mirror = None if repositories is None else _Mirror(repositories, folder / HOSTED)
        self._repositories_due = 0.0

    def __enter__(self) -> "_Copy":
        with ExitStack() as undo:
            undo.enter_context(_held(self._folder))
            self._source = undo.enter_context(closing(self._place.log_rows(read_only=True)))
            log = self._folder / "events.db"
            self._target = undo.enter_context(closing(FileLogRows.open(log, read_only=False)))
            self._keys: VaultRows | None = None
            if self._vault is not None:
                self._keys = undo.enter_context(closing(self._place.vault_rows(read_only=True)))
            found = verify_chain(log)
            if not found.is_sound:
                raise Invalid(f"{self._folder}: its log is not sound: {found.problem}; name a new folder.")
            self.end = End(found.position, found.hash)
            self._close = undo.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._close.close()

    def go_on(self) -> None:
        """Copy what is new.

        Raises:
            NotSound: the log is not sound, or not the one that was copied so far.
            Invalid: the data folder was replaced by another one; start again. OSError, StoreUnavailable and its kinds:
            one of the folders, or the database, cannot be read or written.
        """
        if self._inode_now() != self._inode:
            raise Invalid(f"{self._data} was put in place of another one; start again.")
        if self._source.end() != self.end:
            self._repositories_due = 0.0
            for name in (CHECKPOINTS, PUBLIC_KEY):
                _copy_if_other(self._data / name, self._folder / name)
            self._copy_events()
        if self._mirror is not None and time.monotonic() >= self._repositories_due:
            self._mirror.go_on()
            self._repositories_due = time.monotonic() + REPOSITORY_SECONDS
        if self._vault is not None and self._keys is not None:
            self._copy_vault(self._vault, self._keys)

    def _inode_now(self) -> int | None:
        return self._place.log.stat().st_ino if isinstance(self._place, FilePlace) else None

    def _copy_events(self) -> None:
        through = self._source.end().position
        if through < self.end.position and self._place.find_loss([Witness("the copy", *self.end)]) is None:
            raise StoreUnavailable(f"{self._source.name} is a standby that is behind the copy")
        try:
            with unsound_refused():
                copy_log(self._source, self._target, through, lambda *_: None)
        except StoreLost as error:
            raise NotSound(
                f"position {self.end.position} of {self._folder} is of another log; name a new folder."
            ) from error
        finally:
            self.end = self._target.end()

    def _copy_vault(self, file: Path, keys: VaultRows) -> None:
        """Copy the vault after the log: a key is older than the events that need it."""
        seen = keys.version()
        if seen != self._vault_seen or not file.exists():
            of = Manifest(VAULT_FORMAT, now(), self.end.position, self.end.hash.hex(), ())
            write_vault(keys, self._data, file, of)
            self._vault_seen = seen


def _look_at_places(place: LogPlace, data: Path, folder: Path, vault: Path | None) -> None:
    if place.is_local and not os.access(data, os.W_OK):  # such a folder is read as if no one ever changed it
        raise Invalid(f"{data} cannot be written; follow it as the user that the service runs as.")
    if folder.resolve().is_relative_to(data.resolve()):
        raise Invalid(f"{folder} is in the data folder, and would be lost with it.")
    if vault is not None and vault.resolve().is_relative_to(folder.resolve()):
        raise Invalid(f"{vault}: keep the vault apart from {folder}; who finds both can read everything.")


@contextmanager
def _held(folder: Path) -> Iterator[None]:
    """A folder that is empty, or was written here before, for this process alone."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if any(folder.iterdir()) and not (folder / LOCK).exists():
        raise Invalid(f"{folder} is not empty, and no copy that --follow made; name a new folder.")
    with (folder / LOCK).open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Conflict(f"{folder} is being written by another process.") from None
        yield


# Repositories


class _Mirror:
    """A copy of the embedded code host's folder.

    Each repository's branches are read before its objects, and put in place after them: whatever is killed when, a
    branch never names a commit that is not there.
    """

    def __init__(self, source: Path, target: Path) -> None:
        self._source, self._target = source, target
        self._known: dict[str, dict[Path, _Signature | None]] = {}
        """By repository: the files that the copy has, and what those that may change were like."""

    def go_on(self) -> None:
        repositories = {repository.name for repository in self._source.glob("*.git")}
        for name in sorted(repositories):
            source, target = self._source / name, self._target / name
            if name not in self._known:
                self._known[name] = {source / file.relative_to(target): None for file in files_in(target)}
            _mirror_repository(source, target, self._known[name])
        for old in self._target.glob("*.git"):
            if old.name not in repositories:
                shutil.rmtree(old)
                self._known.pop(old.name, None)


def _mirror_repository(source: Path, target: Path, known: dict[Path, _Signature | None]) -> None:
    objects = source / "objects"
    names = sorted(files_in(source, but=objects), key=lambda file: (file.name == "packed-refs", file))
    fresh, changed = dict[Path, _Signature](), list[tuple[Path, Path]]()
    for file in names:
        with suppress(FileNotFoundError):  # a branch that was deleted
            signature, copy = _signature(file), target / file.relative_to(source)
            if known.get(file) != signature:
                if not (copy.exists() and filecmp.cmp(file, copy, shallow=False)):
                    changed.append((_beside(file, copy), copy))
                fresh[file] = signature
    done: set[Path] = set()
    while new := [file for file in files_in(objects) if file not in done]:  # again: they may be packed meanwhile
        for file in new:
            if file not in known:  # an object's name is its content's hash
                with suppress(FileNotFoundError):
                    copy = target / file.relative_to(source)
                    _beside(file, copy).rename(copy)
                    known[file] = None
        done.update(new)
    for made, copy in changed:
        made.replace(copy)
    known |= fresh
    for old in known.keys() - done.union(names):
        (target / old.relative_to(source)).unlink(missing_ok=True)
        del known[old]


def _signature(file: Path) -> _Signature:
    status = file.stat()
    return status.st_ino, status.st_size, status.st_mtime_ns


def _beside(file: Path, copy: Path) -> Path:
    """A durable copy under another name, which files in the making have. Raises FileNotFoundError: the file is gone."""
    made = copy.with_name(f".{copy.name}.tmp")
    with file.open("rb") as content:
        copy.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with made.open("wb") as out:
            shutil.copyfileobj(content, out)
            out.flush()
            os.fsync(out.fileno())
    return made


def _copy_if_other(file: Path, copy: Path) -> None:
    if file.exists() and not (copy.exists() and filecmp.cmp(file, copy, shallow=False)):
        _beside(file, copy).replace(copy)
