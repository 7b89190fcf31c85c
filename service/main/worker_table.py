"""The workers of the service: which there are, and in which order they stop."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum

import structlog

from eventstore import StoreUnavailable
from service.ports.shared.instances import Instances

log = structlog.get_logger()

SHUTDOWN_SECONDS = 5.0
"""For streams to end properly; after that they are cut. With what follows, the whole stop stays under 10 seconds."""


class Stop(IntEnum):
    """When a worker stops: the lower number first, those of one number together."""

    LEADING = 1
    """Workers that only one instance runs: another goes on with their work, so they stop when a drain begins."""
    ASKING = 2
    """Workers that ask for more work, or only look after something."""
    REPLIES = 3
    JOBS = 4
    """After replies, which end for readers who wait, jobs are parked; in a drain before, for other instances."""
    INDEXING = 5
    WATCHING = 6
    VIEWS = 7
    """They follow what the others record while they stop."""
    REQUESTS = 8
    """Workers that requests need to their end; they stop once there are no more requests."""


@dataclass(frozen=True)
class Worker:
    name: str
    run: Callable[[], Coroutine[None, None, None]]
    stop: Stop
    reads: bool = False
    """It also works where the data folder cannot be written."""


async def while_leading(
    instances: Instances, run: Callable[[], Coroutine[None, None, None]], *, retry_seconds: float = 1.0
) -> None:
    """Run a worker for as long as this instance leads, and from its beginning when it leads again, until cancelled.

    It also begins again after the store was away, as it may be when this instance begins to lead.
    """
    while True:
        await instances.until_leading()
        work, lost = asyncio.create_task(run()), asyncio.create_task(instances.until_not_leading())
        try:
            await asyncio.wait([work, lost], return_when=asyncio.FIRST_COMPLETED)
        finally:
            has_ended = work.done()
            for task in (work, lost):
                task.cancel()
            await asyncio.wait([work, lost])
        if work.cancelled():
            continue
        is_away = False
        try:
            work.result()
        except* StoreUnavailable as errors:  # of a group of tasks, perhaps
            is_away = True
            log.warning("a worker of the leader begins again", exc_info=errors)
        if is_away:
            await asyncio.sleep(retry_seconds)
        elif has_ended:
            return


def _log_end(task: asyncio.Task[None]) -> None:
    """Log a worker that ended without being stopped; until a restart ``/readyz`` names it."""
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("a worker has ended", worker=task.get_name(), exc_info=error)


class Workers:
    """The tasks of a table of workers."""

    def __init__(self) -> None:
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._stops: Mapping[str, Stop] = {}
        self._stopped: set[Stop] = set()

    def begin(self, table: Iterable[Worker]) -> None:
        """Start each worker, in the order of the table."""
        workers = list(table)
        self._stops = {worker.name: worker.stop for worker in workers}
        for worker in workers:
            self._tasks[worker.name] = asyncio.create_task(worker.run(), name=worker.name)
            self._tasks[worker.name].add_done_callback(_log_end)

    def ended(self) -> list[str]:
        """Return the names of those that have ended without being stopped, which none should."""
        return [name for name, task in self._tasks.items() if task.done() and self._stops[name] not in self._stopped]

    async def until(self, event: asyncio.Event, name: str) -> None:
        """Wait for what a worker sets once it is ready. Raise RuntimeError where it ends before."""
        waiting, worker = asyncio.create_task(event.wait()), self._tasks[name]
        try:
            await asyncio.wait([waiting, worker], return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
        if not event.is_set():
            raise RuntimeError(f"the worker {name} has ended") from (None if worker.cancelled() else worker.exception())

    async def stop(self, number: Stop) -> None:
        """Cancel the workers of this number, and wait at most ``SHUTDOWN_SECONDS`` for them; again does no harm."""
        self._stopped.add(number)
        tasks = [task for name, task in self._tasks.items() if self._stops[name] is number]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=SHUTDOWN_SECONDS)
