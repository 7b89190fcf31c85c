"""Check again and again that the log still holds what was seen of it: others may change it while the service runs."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import structlog

from eventstore import EventStoreError
from service.integrity.continuity import described, loss_in

SECONDS = 5.0
"""Between two looks."""

log = structlog.get_logger()


class LogWatch:
    """Check again and again while the service runs: others may shorten or replace the log."""

    def __init__(self, data: Path, hold: Callable[[str], None]) -> None:
        self._data, self._hold = data, hold
        self.problem: str | None = None
        """Why nothing is appended."""

    async def run(self) -> None:
        """Run until cancelled. Once the log is not what it was, it stays so: what is in memory is of another one."""
        while self.problem is None:
            await asyncio.sleep(SECONDS)
            try:
                loss = await asyncio.to_thread(loss_in, self._data)
            except EventStoreError as error:
                log.warning("the log cannot be compared with what was seen of it", reason=str(error))
                continue
            if loss is not None:
                self.problem = described(loss, self._data)
                log.error("the log is not what it was", reason=self.problem)
                self._hold(self.problem)
        await asyncio.Event().wait()  # a worker that ends is taken for a broken one
