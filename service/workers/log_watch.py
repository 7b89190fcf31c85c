"""Check again and again that the log still holds what was seen of it, and that this one may use it: what is beyond this
machine may change while the service runs, and somebody may remove or replace the files of this one.
"""

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import structlog

from eventstore import EventStoreError
from service.integrity.continuity import described, loss_in
from service.integrity.log_place import log_place
from service.runtime.data_folder import LOG

SECONDS = 5.0
"""Between two looks at the log."""
LOOKS = 10
"""Questions whether this one may use the log, before each look at it."""
_REMEDY = "run docsmith doctor there, and start this one again once that is settled"
_REMOVED = (
    "{} was removed or replaced while the service runs, so what is written would be gone at the next start: nothing is"
    " written. Stop the service, put back the file or restore a backup (docsmith restore BACKUP --vault VAULT --data"
    " {}-2), and start it again. On Linux, what it has until it stops is in /proc/{}/fd"
)
_LOST = "it is behind what was seen of it, or another one; docsmith doctor says what to do"

log = structlog.get_logger()


class LogWatch:
    """Check again and again while the service runs: others may shorten or replace the log, or write to it."""

    def __init__(self, data: Path, hold: Callable[[str], None], held: Callable[[], str | None] = lambda: None) -> None:
        self._data, self._hold, self._held = data, hold, held
        self._files: dict[Path, tuple[int, int]] = {}
        """The files of a log on this machine, with device and inode as they were opened."""
        self.in_other_use: Callable[[], str | None] = lambda: None
        """Returns why this one may not use the log any more; None while it may."""
        self.problem: str | None = None
        """Why nothing is appended."""
        self.not_ready: str | None = None
        """The same in short."""

    def note_files(self) -> None:
        """Note which files were opened: call it as soon as the log and the vault are open."""
        if log_place(self._data).is_local:
            names = [f"{name}{suffix}" for name in (LOG, "keys.db") for suffix in ("", "-wal")]
            self._files = {path: one for name in names if (one := _identity(path := self._data / name)) is not None}

    async def run(self) -> None:
        """Run until cancelled. Once the log is not what it was, it stays so: what is in memory is of another one."""
        looks = LOOKS
        while self.problem is None:
            await asyncio.sleep(SECONDS / LOOKS)
            looks -= 1
            if (file := next((path for path, one in self._files.items() if _identity(path) != one), None)) is not None:
                says = _REMOVED.format(file.name, self._data, os.getpid())
                self._stop(says, f"{file.name} was removed or replaced while the service runs: nothing is written")
            elif (why := self.in_other_use()) is not None:
                self._stop(f"{why}: nothing is appended here; start this instance again once it may be used", why)
            elif (why := self._held()) is not None:
                await self._look()
                if self.problem is None:  # what was seen of it here is there: another instance has seen more
                    self._stop(f"{why}, as another instance found; {_REMEDY}", why)
            elif not looks:
                looks = LOOKS
                await self._look()
        await asyncio.Event().wait()  # a worker that ends is taken for a broken one

    async def _look(self) -> None:
        try:
            loss = await asyncio.to_thread(loss_in, self._data)
        except EventStoreError as error:
            log.warning("the log cannot be compared with what was seen of it", reason=str(error))
            return
        if loss is not None:
            problem = described(loss, self._data)
            self._stop(problem, _LOST)
            with suppress(EventStoreError):  # a role that may only read; this instance stops all the same
                await asyncio.to_thread(log_place(self._data).hold, problem.partition(";")[0])

    def _stop(self, problem: str, not_ready: str) -> None:
        self.problem, self.not_ready = problem, not_ready
        log.error("the log is not what it was", reason=problem)
        self._hold(problem)


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
