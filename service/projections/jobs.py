"""Agent jobs, as rows."""

import sqlite3
from collections.abc import Sequence
from datetime import datetime
from typing import assert_never

import msgspec
from msgspec import Struct

from eventstore import RecordedEvent, Views
from service.domain.events import ERASED
from service.domain.jobs.decider import (
    BranchChanged,
    BranchPushed,
    ChecksReported,
    Committed,
    FileChanged,
    JobArchived,
    JobCompleted,
    JobEvent,
    JobFailed,
    JobInterrupted,
    JobReopened,
    JobRequested,
    JobStarted,
    JobStatus,
    MessageAdded,
    ModelReplied,
    PlanChanged,
    PullRequestClosed,
    PullRequestOpened,
    PullRequestUpdated,
    RoundStarted,
    Todo,
    ToolReturned,
    WorkFinished,
    WorkRebased,
    WorkspaceOpened,
)
from service.domain.model import Usage
from service.streams import ERASURES, JOBS, decoded


class JobRow(Struct, frozen=True):
    id: str
    organization_id: str
    project_id: str
    repository: str
    ref: str
    model: str
    status: JobStatus
    title: str
    branch: str
    pull_request_url: str | None
    failure_code: str | None
    failure_message: str | None
    usage: Usage
    created_at: datetime
    archived_at: datetime | None
    last_word: str | None
    """What the agent said at the end of its last round."""
    todos: tuple[Todo, ...]
    created_by: str
    """The actor that asked for it: a key's id, or ``cli:<user>``."""
    waiting_since: int | None
    """While it waits to be taken up: the position in the log at which that began."""


class JobRoom(Struct, frozen=True):
    """How many jobs are worked on at a time."""

    in_all: int
    per_project: int
    per_organization: int | None = None


COLUMNS = (
    "id, organization_id, project_id, repository, ref, model, status, title, branch, pull_request_url, failure_code,"
    " failure_message, input_tokens, output_tokens, cost_usd, created_at, archived_at, last_word, todos, created_by,"
    " waiting_since"
)


class JobsView:
    name = "jobs-2"
    tables = """
        CREATE TABLE jobs (
            id TEXT PRIMARY KEY,
            organization_id TEXT NOT NULL,
            project_id TEXT NOT NULL,
            repository TEXT NOT NULL,
            ref TEXT NOT NULL,
            model TEXT NOT NULL,
            status TEXT NOT NULL,
            title TEXT NOT NULL,
            branch TEXT NOT NULL,
            pull_request_number INTEGER,
            pull_request_url TEXT,
            failure_code TEXT,
            failure_message TEXT,
            input_tokens INTEGER NOT NULL DEFAULT 0,
            output_tokens INTEGER NOT NULL DEFAULT 0,
            cost_usd REAL,
            created_at TEXT NOT NULL,
            archived_at TEXT,
            last_word TEXT,
            todos TEXT NOT NULL DEFAULT '[]',
            created_by TEXT NOT NULL,
            waiting_since INTEGER
        ) STRICT;
        CREATE INDEX jobs_by_project ON jobs (project_id, id);
        CREATE INDEX jobs_in_sight ON jobs (project_id, status, id) WHERE archived_at IS NULL;
        CREATE INDEX jobs_active ON jobs (status) WHERE status = 'active';
        CREATE INDEX jobs_waiting ON jobs (waiting_since) WHERE waiting_since IS NOT NULL;
        CREATE INDEX jobs_by_pull_request ON jobs (project_id, pull_request_number);
    """

    def apply(self, db: sqlite3.Connection, events: Sequence[RecordedEvent]) -> None:
        for recorded in events:
            for job_id, event in decoded(JOBS, [recorded]):
                if isinstance(event, JobRequested):
                    self._insert(db, job_id, event, recorded)
                elif changed := _changed(event, recorded.position):
                    columns = ", ".join(f"{name} = ?" for name in changed)
                    db.execute(
                        f"UPDATE jobs SET {columns} WHERE id = ?",  # noqa: S608  (our own names)
                        (*changed.values(), job_id),
                    )
                elif isinstance(event, ModelReplied):
                    usage = event.usage
                    db.execute(
                        "UPDATE jobs SET model = ?, input_tokens = input_tokens + ?, output_tokens = output_tokens + ?,"
                        " cost_usd = CASE WHEN ? IS NULL THEN cost_usd ELSE coalesce(cost_usd, 0) + ? END WHERE id = ?",
                        (event.model, usage.input_tokens, usage.output_tokens, usage.cost_usd, usage.cost_usd, job_id),
                    )
        # What is decoded after an erasure has nothing to hide; this is for the rows that were made before it.
        for subject, _ in decoded(ERASURES, events):
            if JOBS.owns(subject):
                db.execute(
                    "UPDATE jobs SET title = ?, branch = ?, todos = '[]',"
                    " last_word = CASE WHEN last_word IS NULL THEN NULL ELSE ? END WHERE id = ?",
                    (ERASED, ERASED, ERASED, JOBS.entity_id(subject)),
                )

    def _insert(self, db: sqlite3.Connection, job_id: str, new: JobRequested, recorded: RecordedEvent) -> None:
        db.execute(
            "INSERT INTO jobs (id, organization_id, project_id, repository, ref, model, status, title, branch,"
            " created_at, created_by, waiting_since) VALUES (?, ?, ?, ?, ?, ?, 'active', ?, ?, ?, ?, ?)",
            (
                job_id, new.organization_id, new.project_id, new.repository, new.ref, new.model, new.title,
                new.branch, new.requested_at.isoformat(), recorded.metadata.actor, recorded.position,
            ),
        )  # fmt: skip


def _changed(event: JobEvent, position: int) -> dict[str, str | int | None]:
    """The columns that an event sets."""
    match event:
        case JobStarted():
            return {"waiting_since": None}
        case JobInterrupted():
            return {"waiting_since": position}
        case JobReopened():
            return {
                "status": "active", "waiting_since": position, "failure_code": None, "failure_message": None,
                "archived_at": None,
            }  # fmt: skip
        case PlanChanged(todos=todos):
            return {"todos": msgspec.json.encode(todos).decode()}
        case BranchChanged(branch=branch):
            return {"branch": branch}
        case PullRequestOpened(number=number, url=url) | PullRequestUpdated(number=number, url=url):
            return {"pull_request_number": number, "pull_request_url": url}
        case JobCompleted(message=message):
            return {"status": "completed", "waiting_since": None, "last_word": message}
        case JobFailed(code=code, message=message):
            return {"status": "failed", "waiting_since": None, "failure_code": code, "failure_message": message}
        case JobArchived(archived_at=archived_at):
            return {"archived_at": archived_at.isoformat()}
        case (
            JobRequested() | WorkspaceOpened() | ModelReplied() | FileChanged() | ToolReturned() | WorkFinished()
            | ChecksReported() | Committed() | BranchPushed() | PullRequestClosed() | MessageAdded() | RoundStarted()
            | WorkRebased()
        ):  # fmt: skip
            return {}
        case unknown:
            assert_never(unknown)


def job_row(row: sqlite3.Row) -> JobRow:
    values = tuple(row)
    plain = dict(zip(JobRow.__struct_fields__, values[:12], strict=False))
    archived_at, last_word, todos, created_by, waiting_since = values[16:]
    return JobRow(
        **plain,
        usage=Usage(*values[12:15]),
        created_at=datetime.fromisoformat(values[15]),
        archived_at=datetime.fromisoformat(archived_at) if archived_at else None,
        last_word=last_word,
        todos=msgspec.json.decode(todos, type=tuple[Todo, ...]),
        created_by=created_by,
        waiting_since=waiting_since,
    )


async def get_job(views: Views, project_id: str, job_id: str) -> JobRow | None:
    """A job of a project: a job of another is None, as one that does not exist."""
    row = await views.query_one(
        f"SELECT {COLUMNS} FROM jobs WHERE id = ? AND project_id = ?",  # noqa: S608  (no input)
        (job_id, project_id),
    )
    return job_row(row) if row else None


async def find_job(views: Views, job_id: str) -> JobRow | None:
    """A job by its id alone: for the operator's command line."""
    row = await views.query_one(f"SELECT {COLUMNS} FROM jobs WHERE id = ?", (job_id,))  # noqa: S608  (no input)
    return job_row(row) if row else None


async def jobs_with_id_part(views: Views, organization_id: str, part: str, *, limit: int) -> list[JobRow]:
    """Return jobs of an organization with these characters anywhere in their id, the newest first."""
    rows = await views.query(
        f"SELECT {COLUMNS} FROM jobs WHERE organization_id = ? AND instr(id, ?) > 0"  # noqa: S608  (no input)
        " ORDER BY id DESC LIMIT ?",
        (organization_id, part, limit),
    )
    return [job_row(row) for row in rows]


async def list_jobs(
    views: Views,
    project_id: str,
    *,
    limit: int,
    before: str | None = None,
    skip: int = 0,
    status: JobStatus | None = None,
    archived: bool = False,
) -> list[JobRow]:
    """A project's jobs, the newest first; ``before`` the id of another, when given; with the archived ones or not."""
    where, values = ["project_id = ?"], [project_id]
    if before is not None:
        where.append("id < ?")
        values.append(before)
    if status is not None:
        where.append("status = ?")
        values.append(status)
    if not archived:
        where.append("archived_at IS NULL")
    rows = await views.query(
        f"SELECT {COLUMNS} FROM jobs WHERE {' AND '.join(where)}"  # noqa: S608  (no input)
        " ORDER BY id DESC LIMIT ? OFFSET ?",
        (*values, limit, skip),
    )
    return [job_row(row) for row in rows]


async def queue_position(views: Views, row: JobRow, room: JobRoom) -> int | None:
    """Its place among all jobs that wait, from 1; None when it does not wait, or only to be taken up at once."""
    if row.waiting_since is None:
        return None
    found = await views.query_one(
        "SELECT total(waiting_since <= :since), total(ahead), total(ahead AND organization_id = :organization),"
        " total(ahead AND project_id = :project), total(ahead AND project_id = :project AND branch = :branch)"
        " FROM (SELECT waiting_since, organization_id, project_id, branch,"
        " id <> :id AND coalesce(waiting_since < :since, 1) AS ahead"
        " FROM jobs WHERE status = 'active')",
        {
            "since": row.waiting_since,
            "id": row.id,
            "organization": row.organization_id,
            "project": row.project_id,
            "branch": row.branch,
        },
    )
    assert found is not None
    place, in_all, in_organization, in_project, on_branch = map(int, found)
    may_begin = in_organization < (room.per_organization or room.in_all) and in_project < room.per_project
    if in_all < room.in_all and may_begin and not on_branch:
        return None
    return max(1, place)


async def active_jobs(views: Views) -> list[tuple[str, str]]:
    """Return the ids of all jobs that have not ended, and of their organizations: first those that were taken up, then
    the others as they wait.
    """
    rows = await views.query(
        "SELECT id, organization_id FROM jobs WHERE status = 'active' ORDER BY waiting_since, id", ()
    )
    return [(row[0], row[1]) for row in rows]


async def jobs_of_pull_request(views: Views, project_id: str, number: int) -> list[str]:
    rows = await views.query(
        "SELECT id FROM jobs WHERE project_id = ? AND pull_request_number = ? ORDER BY id", (project_id, number)
    )
    return [row[0] for row in rows]
