"""Looks whether the folder that instances share for hosted repositories is one folder, with locks that all of them see.

Writers of a repository take turns by ``flock``. Some network file systems keep such locks on each machine, and then two
instances would write at once. So each instance holds a lock on a file of its own in the folder: another one must find
that file, and must not get its lock. Otherwise no repository is used here (``HostedPlace.trouble``).

A killed instance has no lock any more, but a lease for some seconds. So a lock that was seen before may be missing
until that lease must have ended.
"""

import asyncio
import fcntl
import os
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress

import structlog

from service.ports.shared.instances import LEASE_SECONDS, RENEW_SECONDS, Instances
from service.runtime.hosted_place import HostedPlace

log = structlog.get_logger()

FOLDER = ".instances"
LOOKS_OF_LEASE = round(LEASE_SECONDS / RENEW_SECONDS) + 2
"""Looks in a row at an instance that has ended, until it is known that it has: its lease ends, and that is seen."""


class HostedFolder:
    """``sleep``: between two looks."""

    def __init__(
        self, place: HostedPlace, instances: Instances, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    ) -> None:
        self._place, self._folder = place, place.root / FOLDER
        self._instances, self._sleep = instances, sleep
        self._held = -1
        self._seen: set[str] = set()
        """The others whose locks were seen."""
        self._missed: Counter[str] = Counter()
        """For each of these, how often in a row its lock was not seen."""
        self.away: str | None = None
        """Why the folder cannot be used on this machine, which may be well on others; None while it can."""

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
            found, self.away = await asyncio.to_thread(self._look, others), None
        except OSError as error:
            found = self.away = f"the folder of the hosted repositories cannot be used: {error.strerror}"
        if found is not None and found != self._place.trouble:
            log.error("hosted repositories are not shared, and not used", reason=found)
        self._place.trouble = found

    def _hold(self) -> int:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        held = os.open(self._folder / self._instances.name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BaseException:
            os.close(held)
            raise
        return held

    def _look(self, others: set[str]) -> str | None:
        files = {file.name for file in self._folder.iterdir()}
        found = None
        for name in sorted(others):
            if name not in files:
                trouble = f"the instance {name} does not use the same hosted_folder"
            elif self._is_free(name):
                trouble = f"the file system of hosted_folder has no locks between machines: that of {name} is not seen"
            else:
                self._seen.add(name)
                self._missed.pop(name, None)
                continue
            self._missed[name] += 1
            if name not in self._seen or self._missed[name] > LOOKS_OF_LEASE:
                found = found or trouble
        self._seen &= others
        for name in self._missed.keys() - others:
            del self._missed[name]
        for name in files - {*others, self._instances.name}:
            if not self._instances.is_alive(name) and self._is_free(name):
                with suppress(FileNotFoundError):
                    (self._folder / name).unlink()
        return found

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
