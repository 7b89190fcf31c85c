"""Agent jobs, as rows."""

import sqlite3
from collections.abc import Sequence
from datetime import datetime
from typing import assert_never

from msgspec import Struct

from eventstore import RecordedEvent, Views
from service.domain.events import ERASED
from service.domain.jobs import (
    BranchPushed,
    ChecksReported,
    Committed,
    FileChanged,
    JobCompleted,
    JobFailed,
    JobInterrupted,
    JobRequested,
    JobStarted,
    JobStatus,
    ModelReplied,
    PlanChanged,
    PullRequestClosed,
    PullRequestOpened,
    ToolReturned,
    WorkFinished,
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


COLUMNS = (
    "id, organization_id, project_id, repository, ref, model, status, title, branch, pull_request_url, failure_code,"
    " failure_message, input_tokens, output_tokens, cost_usd, created_at"
)


class JobsView:
    name = "jobs-1"
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
            created_at TEXT NOT NULL
        ) STRICT;
        CREATE INDEX jobs_by_project ON jobs (project_id, id);
        CREATE INDEX jobs_active ON jobs (status) WHERE status = 'active';
        CREATE INDEX jobs_by_pull_request ON jobs (project_id, pull_request_number);
    """

    def apply(self, db: sqlite3.Connection, events: Sequence[RecordedEvent]) -> None:
        for job_id, event in decoded(JOBS, events):
            match event:
                case JobRequested() as new:
                    db.execute(
                        "INSERT INTO jobs (id, organization_id, project_id, repository, ref, model, status, title,"
                        " branch, created_at) VALUES (?, ?, ?, ?, ?, ?, 'active', ?, ?, ?)",
                        (
                            job_id, new.organization_id, new.project_id, new.repository, new.ref, new.model, new.title,
                            new.branch, new.requested_at.isoformat(),
                        ),
                    )  # fmt: skip
                case ModelReplied(model=model, usage=usage):
                    db.execute(
                        "UPDATE jobs SET model = ?, input_tokens = input_tokens + ?, output_tokens = output_tokens + ?,"
                        " cost_usd = CASE WHEN ? IS NULL THEN cost_usd ELSE coalesce(cost_usd, 0) + ? END WHERE id = ?",
                        (model, usage.input_tokens, usage.output_tokens, usage.cost_usd, usage.cost_usd, job_id),
                    )
                case PullRequestOpened(number=number, url=url):
                    db.execute(
                        "UPDATE jobs SET pull_request_number = ?, pull_request_url = ? WHERE id = ?",
                        (number, url, job_id),
                    )
                case JobCompleted():
                    db.execute("UPDATE jobs SET status = 'completed' WHERE id = ?", (job_id,))
                case JobFailed(code=code, message=message):
                    db.execute(
                        "UPDATE jobs SET status = 'failed', failure_code = ?, failure_message = ? WHERE id = ?",
                        (code, message, job_id),
                    )
                case (
                    JobStarted() | WorkspaceOpened() | FileChanged() | PlanChanged() | ToolReturned() | WorkFinished()
                    | ChecksReported() | Committed() | BranchPushed() | JobInterrupted() | PullRequestClosed()
                ):  # fmt: skip
                    pass
                case unknown:
                    assert_never(unknown)
        # What is decoded after an erasure has nothing to hide; this is for the rows that were made before it.
        for subject, _ in decoded(ERASURES, events):
            if JOBS.owns(subject):
                db.execute(
                    "UPDATE jobs SET title = ?, branch = ? WHERE id = ?", (ERASED, ERASED, JOBS.entity_id(subject))
                )


def _row(row: sqlite3.Row) -> JobRow:
    values = tuple(row)
    plain = dict(zip(JobRow.__struct_fields__, values[:12], strict=False))
    return JobRow(**plain, usage=Usage(*values[12:15]), created_at=datetime.fromisoformat(values[15]))


async def get_job(views: Views, project_id: str, job_id: str) -> JobRow | None:
    """A job of a project: a job of another is None, as one that does not exist."""
    row = await views.query_one(
        f"SELECT {COLUMNS} FROM jobs WHERE id = ? AND project_id = ?",  # noqa: S608  (no input)
        (job_id, project_id),
    )
    return _row(row) if row else None


async def find_job(views: Views, job_id: str) -> JobRow | None:
    """A job by its id alone: for the operator's command line."""
    row = await views.query_one(f"SELECT {COLUMNS} FROM jobs WHERE id = ?", (job_id,))  # noqa: S608  (no input)
    return _row(row) if row else None


async def active_jobs(views: Views) -> list[str]:
    """The ids of all jobs that have not ended, oldest first."""
    return [row[0] for row in await views.query("SELECT id FROM jobs WHERE status = 'active' ORDER BY id", ())]


async def jobs_of_pull_request(views: Views, project_id: str, number: int) -> list[str]:
    rows = await views.query(
        "SELECT id FROM jobs WHERE project_id = ? AND pull_request_number = ? ORDER BY id", (project_id, number)
    )
    return [row[0] for row in rows]
