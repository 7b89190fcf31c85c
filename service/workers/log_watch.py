"""Check again and again that the log still holds what was seen of it, and that this one may use it: what is beyond this
machine may change while the service runs.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import structlog

from eventstore import EventStoreError
from service.integrity.continuity import described, loss_in
from service.integrity.log_place import log_place

SECONDS = 5.0
"""Between two looks at the log."""
LOOKS = 10
"""Questions whether this one may use the log, before each look at it."""
_REMEDY = "run docsmith doctor there, and start this one again once that is settled"
_LOST = "it is behind what was seen of it, or another one; docsmith doctor says what to do"

log = structlog.get_logger()


class LogWatch:
    """Check again and again while the service runs: others may shorten or replace the log, or write to it."""

    def __init__(self, data: Path, hold: Callable[[str], None], held: Callable[[], str | None] = lambda: None) -> None:
        self._data, self._hold, self._held = data, hold, held
        self.in_other_use: Callable[[], str | None] = lambda: None
        """Returns why this one may not use the log any more; None while it may."""
        self.problem: str | None = None
        """Why nothing is appended."""
        self.not_ready: str | None = None
        """The same in short."""

    async def run(self) -> None:
        """Run until cancelled. Once the log is not what it was, it stays so: what is in memory is of another one."""
        looks = LOOKS
        while self.problem is None:
            await asyncio.sleep(SECONDS / LOOKS)
            looks -= 1
            if (why := self.in_other_use()) is not None:
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
