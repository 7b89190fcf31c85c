"""Parts that only the single binary needs.

Its first part (scripts/launcher.c) has unpacked the program into a folder, which it keeps for later starts where it
can, and has become the program in it. Here the folders that are not needed any more are deleted: our own at the end, if
it is a temporary one, and those of other versions and of programs that were killed.
"""

import atexit
import fcntl
import os
import re
import shutil
import sys
import time
from contextlib import suppress
from pathlib import Path

from service.runtime.system import set_program_file

IN_USE = "docsmith-in-use"
"""A file in the folder, locked by the programs that run from it; the kernel releases the lock when they die."""
UNPACKED = re.compile(r"[0-9a-f]{32}(-.+)?")
TEMPORARY = re.compile(r"docsmith-.{6}")
"""Names of folders that the launcher makes: to be kept, and for one start."""
KEPT_SECONDS = 24 * 60 * 60.0
"""Since its last use. Another version, or one that was put aside, may be wanted again."""
FRESH_SECONDS = 60.0
"""A folder as young as that may belong to a launcher that is about to lock it."""

_held: list[int] = []


def prepare() -> None:
    """Prepare a frozen program; call it first of all, and not in the children that multiprocessing makes."""
    folder = Path(sys.executable).parent
    inherited, is_temporary = os.environ.pop("_DOCSMITH_LOCK", ""), os.environ.pop("_DOCSMITH_TEMPORARY", "") == "1"
    set_program_file(os.environ.pop("_DOCSMITH_PROGRAM", "") or sys.executable)
    with suppress(OSError):  # it was unpacked by hand
        _held.append(os.open(folder / IN_USE, os.O_RDONLY | os.O_CLOEXEC))
        fcntl.flock(_held[-1], fcntl.LOCK_SH | fcntl.LOCK_NB)
    if inherited.isdecimal():
        with suppress(OSError):
            os.close(int(inherited))
    with suppress(OSError):  # it belongs to root
        os.utime(folder / IN_USE)
    if is_temporary:
        atexit.register(_delete_own, folder)
        delete_unused(folder, TEMPORARY, FRESH_SECONDS)
    else:
        delete_unused(folder, UNPACKED, KEPT_SECONDS)


def _delete_own(folder: Path) -> None:
    """Unless others still run from it: those that we started."""
    for held in _held:
        os.close(held)
    _held.clear()
    _delete(folder)


def delete_unused(own: Path, names: re.Pattern[str], after_seconds: float) -> None:
    """Delete the folders of such names beside our own that belong to this user and from which no program runs, nor has
    for ``after_seconds``. No link is followed.
    """
    with suppress(OSError):
        for folder in own.parent.iterdir():
            if folder != own and names.fullmatch(folder.name):
                with suppress(OSError):
                    status, used = folder.lstat(), (folder / IN_USE).lstat()
                    is_old = time.time() - used.st_mtime > after_seconds
                    if is_old and status.st_uid == os.geteuid() and not folder.is_symlink():
                        _delete(folder)


def _delete(folder: Path) -> None:
    with suppress(OSError):
        marker = os.open(folder / IN_USE, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            fcntl.flock(marker, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails while a program runs from there
            for path in folder.iterdir():
                if path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path, ignore_errors=True)
                elif path.name != IN_USE:
                    path.unlink()
            (folder / IN_USE).unlink()  # last: should we be killed meanwhile, the folder is found again
            folder.rmdir()
        finally:
            os.close(marker)
