"""Which processes of one data folder are alive: each holds a lock on a file of its own in the folder's ``instances/``.

The kernel releases a lock when its process dies, however it dies, so a name whose file can be locked has no owner, and
its unfinished work can be taken over. Process ids would not do: they are used again.
"""

import asyncio
import fcntl
import os
import secrets
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from service.ports.shared.instances import Peer


class _Alone:
    """The only instance of a log that serves it."""

    def others(self) -> Sequence[Peer]:
        return ()

    def find(self, _name: str) -> Peer | None:
        return None

    async def claim_home(self) -> bool:
        return True

    async def step_down(self) -> None:
        """There is no other to lead."""


class Instance(_Alone):
    """See Instances. The others are commands, which serve nothing."""

    def __init__(self, data: Path) -> None:
        self._folder = data / "instances"
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._crashed: set[str] = set()
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

    @property
    def crashed(self) -> Collection[str]:
        return frozenset(self._crashed)

    def is_alive(self, name: str) -> bool:
        if name == self.name:
            return self._lock is not None
        file = self._folder / (Path(name).name or "none")
        try:
            lock = _locked(file, 0)
        except FileNotFoundError:
            return False
        if lock is None:
            return True
        os.close(lock)
        self._crashed.add(file.name)
        return False

    def is_certain(self) -> bool:
        return True

    def leads(self) -> bool:
        return True

    async def until_leading(self) -> None:
        pass

    async def until_not_leading(self) -> None:
        await asyncio.Event().wait()

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
                    self._crashed.add(file.name)


class NoInstance(_Alone):
    """A process that takes over no work, and so needs no name."""

    name = ""
    crashed: Collection[str] = frozenset()

    def is_alive(self, _name: str) -> bool:
        """Nothing that another process had under way is taken over."""
        return True

    def is_certain(self) -> bool:
        return False

    def leads(self) -> bool:
        return False

    async def until_leading(self) -> None:
        await asyncio.Event().wait()

    async def until_not_leading(self) -> None:
        pass


def _locked(file: Path, flags: int) -> int | None:
    descriptor = os.open(file, os.O_RDWR | os.O_CLOEXEC | flags, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor
