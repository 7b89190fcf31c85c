"""What only the single binary needs.

A one-file binary is two processes: a small parent unpacks the program into a temporary folder and starts it from there,
passes signals on, and deletes the folder when the program has ended. If the parent is killed (SIGKILL), neither would
happen: so the program ends with its parent, and each start deletes the folders that nobody uses any more.
"""

import ctypes
import fcntl
import os
import shutil
import signal
import sys
from contextlib import suppress
from pathlib import Path

PR_SET_PDEATHSIG = 1
"""linux/prctl.h"""
IN_USE = "docsmith-in-use"
"""A file in the folder, locked by the program that runs from it; the kernel lets go of the lock when that dies."""

_held: list[int] = []


def prepare() -> None:
    """To be called first of all in a frozen program. Its children, which share its folder and end with it, do not."""
    folder = Path(sys._MEIPASS)  # type: ignore[attr-defined]  # PyInstaller's own name
    _held.append(os.open(folder / IN_USE, os.O_RDWR | os.O_CREAT, 0o600))
    fcntl.flock(_held[-1], fcntl.LOCK_SH | fcntl.LOCK_NB)
    _end_with_parent()
    delete_unused(folder)


def _end_with_parent() -> None:
    parent = os.getppid()
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:  # it died in between
        os.kill(os.getpid(), signal.SIGTERM)


def delete_unused(own: Path) -> None:
    """Delete what killed programs of this user left beside our own folder. Nobody else's, and no link, is touched."""
    for folder in own.parent.glob("_MEI*"):
        if folder == own:
            continue
        with suppress(OSError):
            status = folder.lstat()
            if status.st_uid != os.getuid() or folder.is_symlink() or not (folder / IN_USE).is_file():
                continue
            marker = os.open(folder / IN_USE, os.O_RDWR | os.O_NOFOLLOW)
            try:
                fcntl.flock(marker, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails while anybody runs from there
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(marker)
