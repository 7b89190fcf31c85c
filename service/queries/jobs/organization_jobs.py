"""The jobs of an organization, for the people who look after them."""

import asyncio
import sqlite3
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import aclosing
from datetime import datetime
from typing import Literal

import msgspec
from msgspec import Struct
from msgspec.structs import asdict

from eventstore import EventStore, RecordedEvent, Views
from service.domain.jobs.decider import JobStatus, job_not_found
from service.domain.texts.times import timestamp
from service.queries.jobs.jobs import JobSlots, job_rows, job_view, queue_position, rows_on_pull_request
from service.queries.read_models import wait_for_head
from service.streams import JOBS
from service.views.jobs.jobs import JobState, JobView, ListedJobView, OrganizationJobList
from service.views.overview import MAX_COUNTED

JobFilter = Literal["active", "review", "needs_input", "failed", "completed", "archived"]

_WHERE: Mapping[JobFilter, str] = {
    "active": "status = 'active'",
    "review": "pull_request_state = 'open' AND status = 'completed'",
    "needs_input": "outcome = 'needs_input' AND status = 'completed'",
    "failed": "status = 'failed'",
    "completed": "status = 'completed'",
}
"""Conditions of jobs that are not archived."""


class ListedJob(Struct, frozen=True):
    """A job of a list."""

    job: JobView
    project_id: str
    state: JobState
    began_at: datetime
    """When its last round began."""
    ended_at: datetime | None
    requested_by: str
    """The actor."""

    @property
    def seconds(self) -> float | None:
        """Return the seconds that its last round took; None while it lasts."""
        return None if self.ended_at is None else (self.ended_at - self.began_at).total_seconds()

    @property
    def view(self) -> ListedJobView:
        return ListedJobView(
            **asdict(self.job),
            project_id=self.project_id,
            state=self.state,
            began_at=timestamp(self.began_at),
            requested_by=self.requested_by,
        )


class ListedJobs(Struct, frozen=True):
    jobs: list[ListedJob]
    next_cursor: str | None

    @property
    def view(self) -> OrganizationJobList:
        return OrganizationJobList(tuple(one.view for one in self.jobs), self.next_cursor)


async def list_organization_jobs(
    views: Views,
    organization_id: str,
    *,
    limit: int,
    before: str | None = None,
    only: JobFilter | None = None,
    project_id: str | None = None,
) -> ListedJobs:
    """Return an organization's jobs, the newest first, those before the id of another; archived ones on request."""
    is_archived = "archived_at IS NOT NULL" if only == "archived" else "archived_at IS NULL"
    where, values = ["organization_id = ?", is_archived], [organization_id]
    if only is not None and only in _WHERE:
        where.append(_WHERE[only])
    for condition, value in (("project_id = ?", project_id), ("id < ?", before)):
        if value is not None:
            where.append(condition)
            values.append(value)
    rows = await views.query(
        f"SELECT * FROM jobs WHERE {' AND '.join(where)} ORDER BY id DESC LIMIT ?",  # noqa: S608  (no input)
        (*values, limit + 1),
    )
    listed = [listed_job(row) for row in rows[:limit]]
    return ListedJobs(listed, listed[-1].job.id if len(rows) > limit else None)


async def list_all_jobs(
    views: Views,
    project_id: str | None,
    slots: JobSlots,
    *,
    limit: int,
    status: JobStatus | None = None,
    archived: bool = False,
) -> ListedJobs:
    """Return the jobs of a project, or of all organizations, the newest first; archived ones too on request."""
    rows = await job_rows(views, project_id, limit=limit + 1, status=status, archived=archived)
    listed = [listed_job(row) for row in rows[:limit]]
    found = ListedJobs(listed, listed[-1].job.id if len(rows) > limit else None)
    return await with_queue_positions(views, found, slots)


async def with_queue_positions(views: Views, listed: ListedJobs, slots: JobSlots) -> ListedJobs:
    """Return the same jobs with the places of those that wait for others to end."""

    async def placed(one: ListedJob) -> ListedJob:
        row = await views.query_one("SELECT * FROM jobs WHERE id = ?", (one.job.id,)) if one.state == "queued" else None
        return listed_job(row, await queue_position(views, row, slots)) if row is not None else one

    return ListedJobs([await placed(one) for one in listed.jobs], listed.next_cursor)


async def count_organization_jobs(views: Views, organization_id: str) -> dict[JobFilter, int]:
    """Return how many jobs each filter leaves, up to ``MAX_COUNTED``."""
    return {
        only: await _count(views, organization_id, condition)
        for only, condition in _WHERE.items()
        if only != "completed"
    }


async def _count(views: Views, organization_id: str, condition: str) -> int:
    where = f"organization_id = ? AND archived_at IS NULL AND {condition}"
    row = await views.query_one(
        f"SELECT count(*) FROM (SELECT 1 FROM jobs WHERE {where} LIMIT ?)",  # noqa: S608  (no input)
        (organization_id, MAX_COUNTED),
    )
    return int(row[0]) if row else 0


async def project_of_job(views: Views, organization_id: str, job_id: str) -> str:
    """Return the project of an organization's job. Raise NotFound, also for another organization's."""
    row = await views.query_one(
        "SELECT project_id FROM jobs WHERE id = ? AND organization_id = ?", (job_id, organization_id)
    )
    if row is None:
        raise job_not_found()
    return str(row[0])


async def follow_organization_jobs(
    store: EventStore, views: Views, organization_id: str, *, after: int, pause_seconds: float
) -> AsyncGenerator[int, None]:
    """Yield a position in the log whenever jobs of the organization have changed, and reads show it.

    ``pause_seconds``: the least time between two looks at what is new, which is also what the jobs of others cost.
    """
    async with aclosing(store.follow(after=after, category=JOBS.category)) as batches:
        async for batch in batches:
            await wait_for_head(store, views)
            if await _has_any(views, organization_id, {JOBS.entity_id(event.stream) for event in batch}):
                yield batch[-1].position
            await asyncio.sleep(pause_seconds)


async def follow_pull_request(
    store: EventStore, views: Views, project_id: str, number: int, *, pause_seconds: float
) -> AsyncGenerator[None, None]:
    """Yield at once, and whenever what a page of a pull request shows of its jobs has changed."""
    seen: list[tuple[object, ...]] | None = None
    batch: Sequence[RecordedEvent] = ()
    async with aclosing(store.follow(after=await store.head(), category=JOBS.category)) as batches:
        while True:
            await wait_for_head(store, views)
            # Also what came and ended since the last look: the page may have been read between the two.
            shown = [tuple(row) for row in await rows_on_pull_request(views, project_id, number)]
            ids = {row[0] for row in shown}
            is_told = any(one.type in _TOLD and JOBS.entity_id(one.stream) in ids for one in batch)
            if is_told or shown != seen:
                seen = shown
                yield
            await asyncio.sleep(pause_seconds)
            batch = await anext(batches)


_TOLD = frozenset({"branch-pushed", "comment-answered", "message-added", "pull-request-updated"})
"""Types of events that a pull request's page shows, and a row of a job does not."""


async def _has_any(views: Views, organization_id: str, job_ids: Collection[str]) -> bool:
    row = await views.query_one(
        "SELECT 1 FROM jobs WHERE id IN (SELECT value FROM json_each(?)) AND organization_id = ? LIMIT 1",
        (msgspec.json.encode(list(job_ids)).decode(), organization_id),
    )
    return row is not None


def listed_job(row: sqlite3.Row, place: int | None = None) -> ListedJob:
    """Return a job of a list; ``place``: its position in the queue."""
    view = job_view(row, place)
    ended = datetime.fromisoformat(row["ended_at"]) if row["ended_at"] else None
    state = _state(view, is_queued=row["waiting_since"] is not None)
    return ListedJob(view, row["project_id"], state, datetime.fromisoformat(row["began_at"]), ended, row["created_by"])


def _state(job: JobView, *, is_queued: bool) -> JobState:
    if job.status == "active":
        waits = job.waiting is not None and job.waiting.waits_for != "turn"
        return "waiting" if waits else "queued" if is_queued else "running"
    if job.failure is not None:
        return "cancelled" if job.failure.code == "cancelled" else "failed"
    match job.outcome:
        case "needs_input":
            return "needs_input"
        case "pull_request":
            state = job.pull_request_state
            return "review" if state is None or state == "open" else state
        case _:
            return "nothing_changed"
