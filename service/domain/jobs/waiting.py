"""Decide how long a job waits for what it depends on, and when it gives up.

What waits and what fails at once is decided where an error is made: ``Unavailable`` may pass, any other error may not.
"""

from datetime import datetime, timedelta
from typing import NamedTuple

from msgspec.structs import replace

from service.domain.errors import Dependency
from service.domain.jobs.commands import PostponeJob
from service.domain.jobs.events import JobEvent, JobFailed, JobInterrupted, JobResumed, JobWaiting
from service.domain.jobs.states import Finished, Queued, Running
from service.domain.texts.times import has_come

MAX_REASON_CHARACTERS = 500
LONGEST_WAIT = timedelta(days=7)
"""A wait that ends later began while the clock was ahead, and is over."""


class Pauses(NamedTuple):
    """Seconds of the first and of the longest pause; each is twice as long as the one before."""

    first: float
    longest: float


REMOTE = Pauses(2.0, 600.0)
"""An outage of a minute costs a job two minutes at most, one of a day some 150 tries."""
DISK = Pauses(0.25, 60.0)
"""Looking at the own disk costs no one else anything."""
DIED = Pauses(5.0, 60.0)
"""Between two tries of which each has ended the process: meanwhile it serves others."""
MAX_QUICK_DEATHS = 4
"""How often in a row a job is taken up again at once after its process died, without a new step between."""
MAX_DEATHS = 20
"""After which it fails, since it may be the job that its process dies of. Finished work is never given up."""


def pause_seconds(pauses: Pauses, tries: int, *, jitter: float, asked_seconds: float | None = None) -> float:
    """Return the seconds of the pause after this number of tries in a row.

    A server's Retry-After is the least (RFC 9110, section 10.2.3). Half of the pause is jitter, so that the jobs that
    an outage has stopped do not all come back in the same second. ``jitter`` is from 0 to 1.
    """
    seconds = min(pauses.longest, pauses.first * 2.0 ** min(tries - 1, 32)) * (1 + jitter) / 2
    return max(seconds, asked_seconds or 0.0)


def postponed(command: PostponeJob, job: Running) -> JobWaiting | JobFailed:
    """Return the wait that begins, or goes on; the failure when the job has been waiting for too long.

    The last try is at the end of that time, however long the pause before it would be.
    """
    before = job.work.setback
    since = before.since if before else command.now
    until = since + timedelta(hours=command.retry_hours)
    if command.now >= until:
        return JobFailed(command.code, _bounded(command.reason), failed_at=command.now)
    tries = before.tries + 1 if before else 1
    pauses = DISK if command.dependency == "disk" else REMOTE
    seconds = pause_seconds(pauses, tries, jitter=command.jitter, asked_seconds=command.asked_seconds)
    left = (until - command.now).total_seconds()
    return _wait(command.dependency, command.reason, tries, since, command.now, min(seconds, left), job)


def after_death(job: Running, now: datetime) -> JobInterrupted | JobWaiting | JobFailed:
    """Return how a job goes on after its process died: at once at first, then after growing pauses."""
    deaths = job.work.deaths + 1
    is_finished = job.work.remaining_problems is not None
    if deaths <= MAX_QUICK_DEATHS:
        return JobInterrupted(job.attempt, interrupted_at=now)
    if deaths >= MAX_DEATHS and not is_finished:
        message = f"The process that worked on this job died {deaths} times in a row without a new step."
        return JobFailed("interrupted", message, failed_at=now)
    before, dependency = job.work.setback, _handed_to(job) if is_finished else "disk"
    reason = f"The process that worked on the job ended {deaths} times in a row."
    seconds = pause_seconds(DIED, deaths - MAX_QUICK_DEATHS, jitter=1.0)
    tries, since = (before.tries + 1, before.since) if before else (1, now)
    return replace(_wait(dependency, reason, tries, since, now, seconds, job), deaths=deaths)


def resumed(job: Queued | Running | Finished, now: datetime) -> list[JobEvent]:
    """Return the end of a wait whose time has come."""
    waiting = job.waiting if isinstance(job, Queued) else None
    is_due = waiting is not None and has_come(waiting.next_try_at, now, LONGEST_WAIT)
    return [JobResumed(now)] if is_due else []


def _handed_to(job: Running) -> Dependency:
    return "code_host" if job.work.pushed else "git"


def _wait(
    dependency: Dependency, reason: str, tries: int, since: datetime, now: datetime, seconds: float, job: Running
) -> JobWaiting:
    next_try_at = now + timedelta(seconds=seconds)
    return JobWaiting(dependency, _bounded(reason), since, next_try_at, tries, attempt=job.attempt - 1)


def _bounded(reason: str) -> str:
    return reason if len(reason) <= MAX_REASON_CHARACTERS else reason[: MAX_REASON_CHARACTERS - 1] + "…"
