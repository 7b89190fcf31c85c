"""Jobs: as their readers see them, by id or in lists, and for the work on them."""

import asyncio
import sqlite3
from collections import OrderedDict
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from hashlib import sha256

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, replace

from eventstore import EventStore, RecordedEvent, Views
from service.domain.events import ERASED
from service.domain.jobs.decider import (
    JobCompleted,
    JobEvent,
    JobFailed,
    JobReopened,
    JobStatus,
    Problem,
    job_not_found,
)
from service.domain.projects.values import public_repository
from service.domain.texts.times import timestamp_from
from service.projections.jobs import JobsView
from service.queries.read_models import wait_for_head
from service.runtime.settings.settings import AgentSection
from service.streams import ERASURES, JOBS, decoded
from service.views.jobs.jobs import (
    FoundByChecks,
    JobFailure,
    JobList,
    JobSource,
    JobUsage,
    JobView,
    JobWaitView,
    Outcome,
    ProblemView,
)
from service.views.webhooks import ToldJob

MAX_IN_MEMORY = 2_000
"""Ended jobs that are kept: the ones that are read again and again, and hardly ever change."""

MAX_MESSAGE_CHARACTERS = 2_000
"""Limit for a job's closing words in its view."""


class JobSlots(Struct, frozen=True):
    """How many jobs are worked on at a time."""

    in_all: int
    per_project: int
    per_organization: int | None = None


def slots_of(agent: AgentSection) -> JobSlots:
    return JobSlots(agent.concurrent_jobs, agent.concurrent_jobs_per_project, agent.concurrent_jobs_per_organization)


async def find_job(views: Views, job_id: str, slots: JobSlots) -> JobView | None:
    """Return a job by its id alone: for the operator's command line."""
    row = await views.query_one("SELECT * FROM jobs WHERE id = ?", (job_id,))
    return await _view(views, row, slots) if row else None


async def jobs_with_id_part(views: Views, organization_id: str | None, part: str, *, limit: int) -> list[str]:
    """Return the ids of jobs with these characters anywhere in their id, the newest first; without an organization
    those of all.
    """
    rows = await views.query(
        "SELECT id FROM jobs WHERE organization_id = coalesce(?, organization_id) AND instr(id, ?) > 0"
        " ORDER BY id DESC LIMIT ?",
        (organization_id, part, limit),
    )
    return [row[0] for row in rows]


async def list_jobs(
    views: Views,
    project_id: str,
    slots: JobSlots,
    *,
    limit: int,
    before: str | None = None,
    status: JobStatus | None = None,
    archived: bool = False,
) -> JobList:
    """Return a project's jobs, the newest first, those before the id of another; archived ones only on request."""
    rows = await job_rows(views, project_id, limit=limit + 1, before=before, status=status, archived=archived)
    shown = [await _view(views, row, slots) for row in rows[:limit]]
    return JobList(shown, shown[-1].id if len(rows) > limit else None)


async def job_rows(
    views: Views,
    project_id: str | None,
    *,
    limit: int,
    before: str | None = None,
    skip: int = 0,
    status: JobStatus | None = None,
    archived: bool = False,
) -> list[sqlite3.Row]:
    """Return rows for the lists of this package; without a project those of all."""
    where, values = ["true"], []
    if project_id is not None:
        where.append("project_id = ?")
        values.append(project_id)
    if before is not None:
        where.append("id < ?")
        values.append(before)
    if status is not None:
        where.append("status = ?")
        values.append(status)
    if not archived:
        where.append("archived_at IS NULL")
    return await views.query(
        f"SELECT * FROM jobs WHERE {' AND '.join(where)}"  # noqa: S608  (no input)
        " ORDER BY id DESC LIMIT ? OFFSET ?",
        (*values, limit, skip),
    )


async def active_jobs(views: Views) -> list[tuple[str, str]]:
    """Return the ids of all jobs that have not ended, and of their organizations: first those that were taken up, then
    the others as they wait.
    """
    rows = await views.query(
        "SELECT id, organization_id FROM jobs WHERE status = 'active' ORDER BY waiting_since, id", ()
    )
    return [(row[0], row[1]) for row in rows]


async def pull_request_of_job(views: Views, job_id: str) -> tuple[str, int | None]:
    """Return the project of a job, and the number of its pull request, if it has one. Raise NotFound."""
    row = await views.query_one("SELECT project_id, pull_request_number FROM jobs WHERE id = ?", (job_id,))
    if row is None:
        raise job_not_found()
    return row["project_id"], row["pull_request_number"]


async def jobs_of_pull_request(views: Views, project_id: str, number: int) -> list[str]:
    rows = await views.query(
        "SELECT id FROM jobs WHERE project_id = ? AND pull_request_number = ? ORDER BY id", (project_id, number)
    )
    return [row[0] for row in rows]


async def rows_on_pull_request(views: Views, project_id: str, number: int) -> Sequence[sqlite3.Row]:
    """Return what a page of a pull request shows of the jobs that work on it, or on its branch; the newest first."""
    return await views.query(
        "SELECT id, status, ended_at, pull_request_state, began_at, problems, last_word FROM jobs WHERE project_id = ?"
        " AND (pull_request_number = ? OR branch IN (SELECT branch FROM jobs WHERE project_id = ?"
        " AND pull_request_number = ? AND branch != ?)) ORDER BY id DESC",
        (project_id, number, project_id, number, ERASED),
    )


async def job_changing_pull_request(views: Views, project_id: str, number: int) -> str | None:
    """Return the id of a job that is under way on a pull request, or on its branch; the newest of several."""
    rows = await rows_on_pull_request(views, project_id, number)
    return next((str(row["id"]) for row in rows if row["status"] == "active"), None)


async def found_in_pull_request(views: Views, project_id: str, number: int) -> FoundByChecks:
    """Return what the checks see in a pull request, as the newest job that works on it reports it."""
    row = await views.query_one(
        "SELECT problems FROM jobs WHERE project_id = ? AND pull_request_number = ? ORDER BY id DESC LIMIT 1",
        (project_id, number),
    )
    problems = problems_of(row) if row else []
    return FoundByChecks(
        errors=sum(problem.severity == "error" for problem in problems),
        unsourced=sum(problem.code == "unsourced" for problem in problems),
    )


def job_after(events: Sequence[RecordedEvent]) -> ToldJob:
    """Return a job as it was after the first events of its stream; for a thread, since these may be large."""
    db = sqlite3.connect(":memory:")
    try:
        db.row_factory = sqlite3.Row
        table = JobsView()
        db.executescript(table.tables)
        table.apply(db, events)
        row = db.execute("SELECT * FROM jobs").fetchone()
    finally:
        db.close()
    return ToldJob(**asdict(job_view(row)), project_id=row["project_id"])


def events_of(store: EventStore, job: JobView, after: int) -> AsyncGenerator[tuple[int, JobEvent], None]:
    """Return the job's events after a position, each with its own: up to its end, for which this waits if need be."""
    return (live_events if job.status == "active" else past_events)(store, job.id, after)


async def live_events(store: EventStore, job_id: str, after: int) -> AsyncGenerator[tuple[int, JobEvent], None]:
    """Yield the job's events after a position, past then live, up to its end; not the end of a round that others
    follow.
    """
    stream = JOBS.stream(job_id)
    async with aclosing(store.subscribe(after=after, stream=stream)) as subscription:
        async for recorded in subscription:
            for _, event in decoded(JOBS, [recorded]):
                yield recorded.position, event
                if isinstance(event, JobCompleted | JobFailed):
                    next_ones = await store.read_stream(stream, after_version=recorded.stream_version, limit=100)
                    if not any(isinstance(one, JobReopened) for _, one in decoded(JOBS, next_ones)):
                        return


async def past_events(store: EventStore, job_id: str, after: int) -> AsyncGenerator[tuple[int, JobEvent], None]:
    """Yield the events of a job that has ended: a client that reconnects after its last event gets none."""
    async with aclosing(store.iterate_stream(JOBS.stream(job_id))) as events:
        async for recorded in events:
            if recorded.position > after:
                for _, event in decoded(JOBS, [recorded]):
                    yield recorded.position, event


def job_view(row: sqlite3.Row, queue_position: int | None = None) -> JobView:
    failure = JobFailure(row["failure_code"], row["failure_message"] or "") if row["failure_code"] else None
    return JobView(
        id=row["id"],
        status=row["status"],
        source=JobSource(public_repository(row["repository"], row["project_id"]), row["ref"]),
        model=row["model"],
        pr_link=row["pull_request_url"] if row["status"] != "active" else None,
        created_at=timestamp_from(row["created_at"]),
        archived_at=timestamp_from(row["archived_at"]) if row["archived_at"] else None,
        title=row["title"],
        branch=row["branch"],
        failure=failure,
        usage=JobUsage(row["input_tokens"], row["output_tokens"], row["cost_usd"]),
        outcome=_outcome(row),
        message=_message(row),
        problems=problems_of(row),
        queue_position=queue_position,
        waiting=_waiting(row, queue_position),
        ended_at=timestamp_from(row["ended_at"]) if row["ended_at"] else None,
        pull_request_state=row["pull_request_state"],
    )


def _outcome(row: sqlite3.Row) -> Outcome | None:
    match row["status"]:
        case "active":
            return None
        case "failed":
            return "failed"
        case _:
            outcome: Outcome | None = row["outcome"]
            return outcome or "nothing_changed"  # recorded before jobs had an outcome, and without a pull request


def _message(row: sqlite3.Row) -> str | None:
    if row["status"] == "active":
        return None
    said: str = (row["failure_message"] if row["status"] == "failed" else row["last_word"]) or ""
    return said if len(said) <= MAX_MESSAGE_CHARACTERS else said[: MAX_MESSAGE_CHARACTERS - 1].rstrip() + "…"


def problems_of(row: sqlite3.Row) -> list[ProblemView]:
    """Return the problems that a job's checks found last, errors first."""
    found = msgspec.json.decode(row["problems"], type=tuple[Problem, ...])
    return [
        ProblemView(problem.severity, problem.path or None, problem.line, problem.rule, problem.message)
        for problem in sorted(found, key=lambda problem: not problem.is_error)
    ]


def _waiting(row: sqlite3.Row, queue_position: int | None) -> JobWaitView | None:
    if row["waits_for"]:
        since, next_try_at = timestamp_from(row["waits_since"]), timestamp_from(row["next_try_at"])
        return JobWaitView(row["waits_for"], since, next_try_at, row["wait_reason"])
    if queue_position is None:
        return None
    return JobWaitView("turn", timestamp_from(row["queued_at"]), None, f"It is at place {queue_position} in the queue.")


async def _view(views: Views, row: sqlite3.Row, slots: JobSlots) -> JobView:
    return job_view(row, await queue_position(views, row, slots))


async def queue_position(views: Views, row: sqlite3.Row, slots: JobSlots) -> int | None:
    """Return its place among all jobs that wait, from 1; None when it does not wait, or only to be taken up at once."""
    if row["waiting_since"] is None:
        return None
    found = await views.query_one(
        "SELECT total(waiting_since <= :since), total(ahead), total(ahead AND organization_id = :organization),"
        " total(ahead AND project_id = :project), total(ahead AND project_id = :project AND branch = :branch)"
        " FROM (SELECT waiting_since, organization_id, project_id, branch,"
        " id <> :id AND coalesce(waiting_since < :since, 1) AS ahead"
        " FROM jobs WHERE status = 'active' AND waits_for IS NULL)",
        {
            "since": row["waiting_since"],
            "id": row["id"],
            "organization": row["organization_id"],
            "project": row["project_id"],
            "branch": row["branch"],
        },
    )
    assert found is not None
    place, in_all, in_organization, in_project, on_branch = map(int, found)
    may_begin = in_organization < (slots.per_organization or slots.in_all) and in_project < slots.per_project
    if in_all < slots.in_all and may_begin and not on_branch:
        return None
    return max(1, place)


class ReadJob:
    """A job as it was read."""

    __slots__ = ("_encoded", "is_waiting", "pull_request_number", "row", "view")

    def __init__(self, row: sqlite3.Row, view: JobView) -> None:
        self.row, self.view = row, view
        self.is_waiting = row["waiting_since"] is not None
        """For the job runner."""
        self.pull_request_number: int | None = row["pull_request_number"]
        self._encoded: tuple[bytes, str] | None = None

    def as_begun(self) -> "ReadJob":
        """Return it as it began, active: a quick one may have ended before its caller has the answer."""
        return ReadJob(
            self.row,
            replace(
                self.view,
                status="active",
                failure=None,
                pr_link=None,
                outcome=None,
                message=None,
                problems=[],
                ended_at=None,
            ),
        )

    def encoded(self) -> tuple[bytes, str]:
        """Return the view as JSON, and the tag of that; made once."""
        if self._encoded is None:
            body = msgspec.json.encode(self.view)
            self._encoded = body, sha256(body).hexdigest()[:32]
        return self._encoded


class JobReader:
    """Reads jobs as of the log's end, and keeps ended ones in memory until the next event of the job.

    ``run`` follows the log: an event of this process is seen at once, one of another within 25 ms or so.
    """

    def __init__(self, store: EventStore, views: Views, slots: JobSlots) -> None:
        self._store, self._views, self.slots = store, views, slots
        self._position = 0
        self._ended: OrderedDict[str, ReadJob] = OrderedDict()
        self._changes = 0
        """Grows with each change of a job; a job that was read before the last one is not kept."""

    async def load(self) -> None:
        self._position = await self._store.head()

    async def run(self) -> None:
        """Follow the log until cancelled."""
        async with asyncio.TaskGroup() as following:
            following.create_task(self._follow_jobs())
            following.create_task(self._follow_erasures())

    async def _follow_jobs(self) -> None:
        async for batch in self._store.follow(after=self._position, category=JOBS.category):
            self._changes += 1
            for event in batch:
                self._ended.pop(JOBS.entity_id(event.stream), None)

    async def _follow_erasures(self) -> None:
        async for _ in self._store.follow(after=self._position, category=ERASURES.category):
            self._changes += 1
            self._ended.clear()

    async def read(self, project_id: str, job_id: str) -> ReadJob:
        """Return a project's job. A job of another project is as one that does not exist. Raises NotFound."""
        kept = self._ended.get(job_id)
        if kept is not None and kept.row["project_id"] == project_id:
            return kept
        changes = self._changes
        await wait_for_head(self._store, self._views)
        row = await self._views.query_one(
            "SELECT * FROM jobs WHERE id = ? AND project_id = ?",
            (job_id, project_id),
        )
        if row is None:
            raise job_not_found()
        job = ReadJob(row, await _view(self._views, row, self.slots))
        if row["status"] != "active" and changes == self._changes:
            self._ended[job_id] = job
            if len(self._ended) > MAX_IN_MEMORY:
                self._ended.popitem(last=False)
        return job

    async def read_changed(self, project_id: str, job_id: str) -> ReadJob:
        """Return a job as ``read`` does, with what the caller has just recorded."""
        self._changes += 1
        self._ended.pop(job_id, None)
        return await self.read(project_id, job_id)

    async def list(
        self, project_id: str, *, limit: int, before: str | None, status: JobStatus | None, archived: bool
    ) -> JobList:
        """Return some of a project's jobs, as ``list_jobs``."""
        return await list_jobs(
            self._views, project_id, self.slots, limit=limit, before=before, status=status, archived=archived
        )
