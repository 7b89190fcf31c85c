"""The workers of the service: which there are, and in which order they stop."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum

import structlog

log = structlog.get_logger()

SHUTDOWN_SECONDS = 5.0
"""For streams to end properly; after that they are cut. With what follows, the whole stop stays under 10 seconds."""


class Stop(IntEnum):
    """When a worker stops: the lower number first, those of one number together."""

    ASKING = 1
    """Workers that ask for more work, or only look after something."""
    REPLIES = 2
    JOBS = 3
    """After replies, which end for readers who wait, jobs are parked."""
    INDEXING = 4
    WATCHING = 5
    VIEWS = 6
    """They follow what the others record while they stop."""
    REQUESTS = 7
    """Workers that requests need to their end; they stop once there are no more requests."""


@dataclass(frozen=True)
class Worker:
    name: str
    run: Callable[[], Coroutine[None, None, None]]
    stop: Stop
    reads: bool = False
    """It also works where the data folder cannot be written."""


def _log_end(task: asyncio.Task[None]) -> None:
    """Log a worker that ended without being stopped; until a restart ``/readyz`` names it."""
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("a worker has ended", worker=task.get_name(), exc_info=error)


class Workers:
    """The tasks of a table of workers."""

    def __init__(self) -> None:
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._stops: Mapping[str, Stop] = {}

    def begin(self, table: Iterable[Worker]) -> None:
        """Start each worker, in the order of the table."""
        workers = list(table)
        self._stops = {worker.name: worker.stop for worker in workers}
        for worker in workers:
            self._tasks[worker.name] = asyncio.create_task(worker.run(), name=worker.name)
            self._tasks[worker.name].add_done_callback(_log_end)

    def ended(self) -> list[str]:
        """Return the names of those that have ended, which none does before it is stopped."""
        return [name for name, task in self._tasks.items() if task.done()]

    async def stop(self, number: Stop) -> None:
        """Cancel the workers of this number, and wait at most ``SHUTDOWN_SECONDS`` for them."""
        tasks = [task for name, task in self._tasks.items() if self._stops[name] is number]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=SHUTDOWN_SECONDS)
