"""Looks whether the folder that instances share for hosted repositories is one folder, with locks that all of them see.

Writers of a repository take turns by ``flock``. Some network file systems keep such locks on each machine, and then two
instances would write at once. So each instance holds a lock on a file of its own in the folder: another one must find
that file, and must not get its lock.
"""

import asyncio
import fcntl
import os
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from pathlib import Path

import structlog

from service.ports.shared.instances import RENEW_SECONDS, Instances

log = structlog.get_logger()

FOLDER = ".instances"


class HostedFolder:
    """``sleep``: between two looks."""

    def __init__(
        self, root: Path, instances: Instances, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    ) -> None:
        self._folder, self._instances, self._sleep = root / FOLDER, instances, sleep
        self._held = -1
        self.trouble: str | None = None
        """Why this instance should not write there; None while all is well."""

    async def open(self) -> None:
        """Hold the lock of this instance; call it before others may look. Raises OSError."""
        self._held = await asyncio.to_thread(self._hold)

    async def close(self) -> None:
        if self._held >= 0:
            (self._folder / self._instances.name).unlink(missing_ok=True)
            os.close(self._held)
            self._held = -1

    async def run(self) -> None:
        """Look at the others, until cancelled."""
        while True:
            await self.look()
            await self._sleep(RENEW_SECONDS)

    async def look(self) -> None:
        others = {peer.name for peer in self._instances.others() if peer.url}
        try:
            found = await asyncio.to_thread(self._look, others)
        except OSError as error:
            found = f"the folder of the hosted repositories cannot be used: {error.strerror}"
        if found is not None and found != self.trouble:
            log.error("hosted repositories are not shared", reason=found)
        self.trouble = found

    def _hold(self) -> int:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        held = os.open(self._folder / self._instances.name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BaseException:
            os.close(held)
            raise
        return held

    def _look(self, others: Collection[str]) -> str | None:
        files = {file.name for file in self._folder.iterdir()}
        for name in sorted(others):
            if name not in files:
                return f"the instance {name} does not use the same hosted_folder"
            if self._is_free(name):
                return f"the file system of hosted_folder has no locks between machines: that of {name} is not seen"
        for name in files - {*others, self._instances.name}:
            if not self._instances.is_alive(name) and self._is_free(name):
                with suppress(FileNotFoundError):
                    (self._folder / name).unlink()
        return None

    def _is_free(self, name: str) -> bool:
        """Return whether no process holds the file; False for one that is gone."""
        try:
            descriptor = os.open(self._folder / name, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        else:
            return True
        finally:
            os.close(descriptor)
