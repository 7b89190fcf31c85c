"""Folders for unfinished work, which do not outlive their process for long.

Each is locked while its owner lives. The kernel releases a lock when its process dies, however it dies, so a folder
that can be locked has no owner, whatever its age. Process ids would not do, since they are used again. A folder that
was made just now and is not locked yet may be mistaken for a leftover: its maker then finds it gone, and makes another.
"""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

BACKUP, RESTORE, VAULT = ".docsmith-backup-", ".docsmith-restore-", ".docsmith-vault-"
"""How the names begin of what backups and restores keep, beside where it will be, until it is whole."""


@contextmanager
def scratch_folder(parent: Path, prefix: str) -> Iterator[Path]:
    """A folder of a new name that only its owner can read; leftovers with the same prefix are removed before."""
    remove_leftovers(parent.glob(f"{prefix}*"))
    lock: int | None = None
    while lock is None:
        folder = Path(tempfile.mkdtemp(dir=parent, prefix=prefix))
        lock = hold(folder)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def hold(folder: Path) -> int | None:
    """Lock a folder until the descriptor that this returns is closed; None: it is another process's, or gone."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(descriptor), folder.lstat()):
            return descriptor
    except OSError:
        pass
    os.close(descriptor)
    return None


def remove_leftovers(folders: Iterable[Path]) -> None:
    """Remove those of the folders whose owners are dead."""
    for folder in list(folders):
        if (lock := hold(folder)) is not None:
            shutil.rmtree(folder, ignore_errors=True)
            os.close(lock)


def leftovers_beside(data: Path) -> list[Path]:
    """Return what killed backups and restores have left beside a data folder: vaults may be in it."""
    found = []
    for prefix in (BACKUP, RESTORE, VAULT):
        with suppress(OSError):
            for folder in sorted(data.absolute().parent.glob(f"{prefix}*")):
                if (lock := hold(folder)) is not None:
                    os.close(lock)
                    found.append(folder)
    return found
