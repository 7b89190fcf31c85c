"""Which processes are alive: each holds a lock on a file of its own under ``instances/`` in the data folder.

The kernel releases a lock when its process dies, however it dies, so a name whose file can be locked has no owner, and
its unfinished work can be taken over. Process ids would not do: they are used again.
"""

import fcntl
import os
import secrets
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self


class Instance:
    """This process, by a name that no other had before."""

    def __init__(self, data: Path) -> None:
        self._folder = data / "instances"
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.crashed: set[str] = set()
        """Names of processes that had ended without closing their instance when this one began."""
        self._sweep()
        self._lock: int | None = None
        while self._lock is None:
            self.name = f"{os.getpid()}-{secrets.token_hex(8)}"
            self._lock = _locked(self._folder / self.name, os.O_CREAT | os.O_EXCL)
            if self._lock is not None and os.fstat(self._lock).st_nlink == 0:  # swept before it was locked
                os.close(self._lock)
                self._lock = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        if self._lock is not None:
            (self._folder / self.name).unlink(missing_ok=True)
            os.close(self._lock)
            self._lock = None

    def is_alive(self, name: str) -> bool:
        if name == self.name:
            return self._lock is not None
        return not _is_free(self._folder / Path(name).name)

    def _sweep(self) -> None:
        """Remove the files that dead processes left; each while it is locked, for it may be one that was made just now:
        a process that is about to lock it then finds it taken, or gone.
        """
        for file in self._folder.iterdir():
            with suppress(FileNotFoundError):
                lock = _locked(file, 0)
                if lock is not None:
                    file.unlink(missing_ok=True)
                    os.close(lock)
                    self.crashed.add(file.name)


class NoInstance:
    """A process that takes over no work, and so needs no name."""

    name = ""
    crashed = frozenset[str]()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def is_alive(self, _name: str) -> bool:
        """Nothing that another process had under way is taken over."""
        return True


def _is_free(file: Path) -> bool:
    """Return whether no process holds the file, or it does not exist."""
    try:
        lock = _locked(file, 0)
    except FileNotFoundError:
        return True
    if lock is None:
        return False
    os.close(lock)
    return True


def _locked(file: Path, flags: int) -> int | None:
    descriptor = os.open(file, os.O_RDWR | os.O_CLOEXEC | flags, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor
