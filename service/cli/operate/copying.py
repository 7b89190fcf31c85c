"""Copies of a log that is in use, row by row; of its vault; and of what is beside it in a data folder.

The log is copied a page at a time: it only grows, so everything up to a position is a consistent copy whatever is
appended meanwhile. SQLite's online backup would begin again with every commit of the running service
(https://sqlite.org/backup.html), or, in one step, keep a snapshot open for as long as it takes.
"""

import fcntl
import os
import re
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from eventstore import LogPlace, StoreCorrupt
from eventstore import verify as verify_chain
from eventstore.log.whole import FIND_DAMAGE, VaultRows, copy_vault
from eventstore.log.whole import copy_log as copy_rows
from eventstore.sqlite.files import sync_folder
from eventstore.sqlite.whole_files import new_log, new_vault
from service.cli.operate.archives import FORMAT, VAULT_FORMAT, Archive, Manifest, NotSound, check
from service.integrity.checkpoints import CHECKPOINTS, KEY, PUBLIC_KEY, checkpoints_through, parse_checkpoints
from service.runtime.hosted_place import HOSTED
from service.runtime.scratch import BACKUP, VAULT, scratch_folder

UNFINISHED = re.compile(r"tmp_.*|.*\.lock|lock|\..*\.tmp", re.DOTALL)
"""Names of files that are being written."""

Progress = Callable[[str, int, int], None]


class Repositories(NamedTuple):
    """The repositories of the embedded code host, for a copy."""

    folder: Path | None
    """The folder that has them or, before there is the first one, may have them later."""
    elsewhere: str | None
    """Where they are, if they are not in that folder."""

    @property
    def note(self) -> str:
        """A sentence about them; empty when they are in the copy."""
        if self.elsewhere is None:
            return ""
        return (
            "repositories of the embedded code host, if there are any, are not in it: they are in"
            f" {self.elsewhere}; copy that folder there"
        )


def write(
    place: LogPlace, data: Path, repositories: Path | None, file: Path, through: int, progress: Progress
) -> Manifest:
    """Write a log up to a position, and what else is to be kept of its data folder, into a new tar file.

    Raises NotSound: the log is not what it was; then there is no file. StoreUnavailable and its kinds.
    """
    with scratch_folder(file.absolute().parent, BACKUP) as work:
        with Archive(work / "backup.tar") as archive:
            # Each checkpoint is of an event in it. The repositories are newer: what it says was pushed is there.
            for signed in copy_checkpoints(data, work, through):
                archive.add(signed, signed.name)
            head = copy_log(place, work / "events.db", through, progress)
            archive.add(work / "events.db", "events.db")
            for repository in sorted(repositories.glob("*.git")) if repositories is not None else ():
                _add_repository(archive, repository)
            manifest = archive.finish(FORMAT, through, head)
        check(work / "backup.tar", FORMAT)
        (work / "backup.tar").rename(file)
    sync_folder(file.absolute().parent)
    return manifest


def copy_checkpoints(folder: Path, into: Path, through: int) -> list[Path]:
    """Copy what was signed of a log up to a position, and the key to check it; the copies that were made.

    Another process may sign a later event at any moment.
    """
    made = []
    for name in (CHECKPOINTS, PUBLIC_KEY):
        if (folder / name).exists():
            content = (folder / name).read_bytes()
            made.append(into / name)
            made[-1].write_bytes(checkpoints_through(content, through) if name == CHECKPOINTS else content)
    return made


def copy_log(place: LogPlace, copy: Path, through: int, progress: Progress) -> str:
    """The log up to a position in a new file, checked; the hash of its last event. Raises NotSound.

    The tables and indexes are those that this program makes: what others have put into the log (Litestream does) stays
    behind.
    """
    with closing(place.log_rows(read_only=True)) as source, new_log(copy) as target, unsound_refused():
        copy_rows(source, target, through, lambda done, total: progress("copying", done, total))
    return verified(copy, through, progress)


@contextmanager
def unsound_refused() -> Iterator[None]:
    """Raise NotSound for StoreCorrupt."""
    try:
        yield
    except StoreCorrupt as error:
        raise NotSound(f"{error}." if error.remedy else f"{error}; {FIND_DAMAGE}.") from error


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


def write_vault(vault: VaultRows, data: Path, file: Path, of: Manifest) -> None:
    """Write the vault, and the key that signs, in place of the file; ``of`` is of the log as it was before.

    A wrapped vault is opened: there are no wrapping keys where it may be restored.
    """
    parent = file.absolute().parent
    with _alone_in(parent), scratch_folder(parent, VAULT) as work:
        with Archive(work / "vault.tar") as archive:
            with new_vault(work / "keys.db") as copy:
                copy_vault(vault, copy)
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
