"""Let jobs wait for what is away. ``domain.jobs.waiting`` decides the length of each pause.

A wait is an event, not a sleeping attempt: it holds no slot, outlives the process, and ends at the recorded time, with
a message, or when the job is cancelled.
"""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime

from eventstore import lacks_memory
from service.domain.errors import OUT_OF_DESCRIPTORS, Dependency, DiskFull, QuotaUsedUp, ServiceError, Unavailable
from service.domain.jobs.waiting import LONGEST_WAIT
from service.domain.texts.times import has_come
from service.ports.clock import Clock

LONGEST_SLEEP_SECONDS = 60.0
"""After which the clock is looked at again: it may have been set, or the machine have slept."""
TRIES_WITHOUT_MEMORY = 5
"""After which a job that runs out of memory each time fails: it may be what takes it."""

_NEVER_PASSES = frozenset({"model_reply_too_long", "project_unknown"})
"""Codes of failures that another try only repeats, or pays for again."""


def dependency_of(error: Exception, *, tries: int) -> Dependency | None:
    """Return what a job waits for after this error; None: it fails. ``tries``: its waits for the disk in a row."""
    if isinstance(error, MemoryError):
        return "disk" if tries < TRIES_WITHOUT_MEMORY - 1 else None
    if isinstance(error, DiskFull) or _lacks_descriptors(error) or lacks_memory(error):
        return "disk"
    if isinstance(error, Unavailable) and not isinstance(error, QuotaUsedUp) and error.code not in _NEVER_PASSES:
        return error.dependency or "git"
    return None


def reason_of(error: Exception) -> str:
    """Return the reason of a wait as a sentence for people."""
    if isinstance(error, ServiceError):
        return str(error)
    return "Too many files are open." if _lacks_descriptors(error) else "The service is short of memory or threads."


def _lacks_descriptors(error: Exception) -> bool:
    return isinstance(error, OSError) and error.errno in OUT_OF_DESCRIPTORS


class Pauses:
    """The sleeping tasks of jobs that wait, one for each job."""

    def __init__(self, clock: Clock, resume: Callable[[str, datetime], Awaitable[None]]) -> None:
        self._clock, self._resume = clock, resume
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def begin(self, job_id: str, until: datetime, running: asyncio.TaskGroup) -> None:
        """Resume the job at that time."""
        self.end(job_id)
        task = running.create_task(self._sleep(job_id, until), name=f"pause of job {job_id}")
        self._tasks[job_id] = task
        task.add_done_callback(lambda _: self._tasks.get(job_id) is task and self._tasks.pop(job_id))

    def end(self, job_id: str) -> None:
        """Forget the job's pause: it has ended, or the job has."""
        if (task := self._tasks.pop(job_id, None)) is not None:
            task.cancel()

    async def _sleep(self, job_id: str, until: datetime) -> None:
        while not has_come(until, now := self._clock.now(), LONGEST_WAIT):
            await self._clock.sleep(min((until - now).total_seconds(), LONGEST_SLEEP_SECONDS))
        await self._resume(job_id, now)
