"""Agent jobs, as rows."""

import sqlite3
from collections.abc import Mapping, Sequence
from typing import assert_never

import msgspec

from eventstore import RecordedEvent
from service.domain.events import ERASED
from service.domain.jobs.decider import (
    BaseMerged,
    BaseNotMerged,
    BranchChanged,
    BranchPushed,
    ChecksReported,
    CommentAnswered,
    CommentIgnored,
    Committed,
    ContextsOpened,
    FileChanged,
    JobArchived,
    JobCompleted,
    JobEvent,
    JobFailed,
    JobInterrupted,
    JobReopened,
    JobRequested,
    JobResumed,
    JobStarted,
    JobUnarchived,
    JobWaiting,
    MessageAdded,
    ModelReminded,
    ModelReplied,
    PlanChanged,
    PullRequestClosed,
    PullRequestOpened,
    PullRequestUpdated,
    ReplyLost,
    RoundStarted,
    ToolReturned,
    WorkFinished,
    WorkRebased,
    WorkspaceOpened,
)
from service.streams import ERASURES, JOBS, decoded

_UNUSED = JOBS.codec.tags_of(
    WorkspaceOpened, ContextsOpened, FileChanged, ToolReturned, WorkFinished, Committed, BranchPushed,
    MessageAdded, WorkRebased, CommentIgnored, CommentAnswered, ModelReminded, BaseMerged,
    BaseNotMerged,
)  # fmt: skip
"""Most of a job's events and of their bytes: they change no row, and are not decoded."""


class JobsView:
    name = "jobs-4"
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
            outcome TEXT,
            problems TEXT NOT NULL DEFAULT '[]',
            todos TEXT NOT NULL DEFAULT '[]',
            created_by TEXT NOT NULL,
            waiting_since INTEGER,
            queued_at TEXT,
            waits_for TEXT,
            waits_since TEXT,
            wait_reason TEXT,
            next_try_at TEXT,
            pull_request_state TEXT,
            began_at TEXT NOT NULL,
            ended_at TEXT
        ) STRICT;
        CREATE INDEX jobs_by_project ON jobs (project_id, id);
        CREATE INDEX jobs_in_sight ON jobs (project_id, status, id) WHERE archived_at IS NULL;
        CREATE INDEX jobs_by_organization ON jobs (organization_id, id);
        CREATE INDEX jobs_by_status ON jobs (organization_id, status, id) WHERE archived_at IS NULL;
        CREATE INDEX jobs_by_outcome ON jobs (organization_id, outcome, id) WHERE archived_at IS NULL;
        CREATE INDEX jobs_to_review ON jobs (organization_id, id)
            WHERE pull_request_state = 'open' AND archived_at IS NULL;
        CREATE INDEX jobs_active ON jobs (status) WHERE status = 'active';
        CREATE INDEX jobs_waiting ON jobs (waiting_since) WHERE waiting_since IS NOT NULL;
        CREATE INDEX jobs_by_pull_request ON jobs (project_id, pull_request_number);
    """

    def apply(self, db: sqlite3.Connection, events: Sequence[RecordedEvent]) -> None:
        for recorded in events:
            if recorded.type in _UNUSED:
                continue
            for job_id, event in decoded(JOBS, [recorded]):
                if isinstance(event, JobRequested):
                    self._insert(db, job_id, event, recorded)
                elif changed := _changed(event, recorded.position):
                    columns = ", ".join(f"{name} = ?" for name in changed)
                    db.execute(
                        f"UPDATE jobs SET {columns} WHERE id = ?",  # noqa: S608  (our own names)
                        (*changed.values(), job_id),
                    )
                elif isinstance(event, ModelReplied | ReplyLost):
                    usage, model = event.usage, event.model if isinstance(event, ModelReplied) else None
                    db.execute(
                        "UPDATE jobs SET model = coalesce(?, model), input_tokens = input_tokens + ?,"
                        " output_tokens = output_tokens + ?,"
                        " cost_usd = CASE WHEN ? IS NULL THEN cost_usd ELSE coalesce(cost_usd, 0) + ? END WHERE id = ?",
                        (model, usage.input_tokens, usage.output_tokens, usage.cost_usd, usage.cost_usd, job_id),
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
            " created_at, created_by, waiting_since, queued_at, began_at)"
            " VALUES (?, ?, ?, ?, ?, ?, 'active', ?, ?, ?, ?, ?, ?, ?)",
            (
                job_id, new.organization_id, new.project_id, new.repository, new.ref, new.model, new.title,
                new.branch, new.requested_at.isoformat(), recorded.metadata.actor, recorded.position,
                new.requested_at.isoformat(), new.requested_at.isoformat(),
            ),
        )  # fmt: skip


_NO_PAUSE: Mapping[str, None] = {"waits_for": None, "waits_since": None, "wait_reason": None, "next_try_at": None}


def _changed(event: JobEvent, position: int) -> dict[str, str | int | None]:
    """Return the columns that an event sets."""
    match event:
        case JobStarted() | JobInterrupted() | JobWaiting() | JobResumed():
            return _place_in_queue(event, position)
        case JobReopened(reopened_at=at):
            return {
                "status": "active", "waiting_since": position, "queued_at": at.isoformat(), "failure_code": None,
                "failure_message": None, "archived_at": None, "outcome": None, "began_at": at.isoformat(),
                "ended_at": None,
            }  # fmt: skip
        case RoundStarted():
            return {"outcome": None}
        case ChecksReported(problems=problems):
            return {"problems": msgspec.json.encode(problems).decode()}
        case PlanChanged(todos=todos):
            return {"todos": msgspec.json.encode(todos).decode()}
        case BranchChanged(branch=branch):
            return {"branch": branch, "problems": "[]"}
        case (
            PullRequestOpened(number=number, url=url, title=title)
            | PullRequestUpdated(number=number, url=url, title=title)
        ):  # fmt: skip
            shown: dict[str, str | int | None] = {
                "pull_request_number": number, "pull_request_url": url, "outcome": "pull_request",
                "pull_request_state": "open",
            }  # fmt: skip
            return {**shown, "title": title} if title else shown
        case PullRequestClosed(outcome=closed):
            return {"pull_request_state": closed}
        case JobCompleted(message=message, outcome=outcome, completed_at=at):
            ended: dict[str, str | int | None] = {
                "status": "completed", "waiting_since": None, "last_word": message, "ended_at": at.isoformat(),
            }  # fmt: skip
            return {**ended, "outcome": outcome} if outcome else ended
        case JobFailed(code=code, message=message, failed_at=at):
            return {
                **_NO_PAUSE,
                "status": "failed",
                "waiting_since": None,
                "failure_code": code,
                "failure_message": message,
                "ended_at": at.isoformat(),
            }
        case JobArchived(archived_at=archived_at):
            return {"archived_at": archived_at.isoformat()}
        case JobUnarchived():
            return {"archived_at": None}
        case (
            JobRequested() | WorkspaceOpened() | ContextsOpened() | ModelReplied() | FileChanged() | ToolReturned()
            | WorkFinished() | ReplyLost()
            | Committed() | BranchPushed() | MessageAdded() | WorkRebased()
            | CommentIgnored() | CommentAnswered() | ModelReminded()
            | BaseMerged() | BaseNotMerged()
        ):  # fmt: skip
            return {}
        case unknown:
            assert_never(unknown)


def _place_in_queue(
    event: JobStarted | JobInterrupted | JobWaiting | JobResumed, position: int
) -> dict[str, str | int | None]:
    """Return the columns that say whether an active job runs, is next in the queue, or pauses before it is."""
    match event:
        case JobStarted():
            return {"waiting_since": None}
        case JobInterrupted(interrupted_at=at):
            return {"waiting_since": position, "queued_at": at.isoformat()}
        case JobWaiting():
            return {
                "waits_for": event.dependency, "waits_since": event.since.isoformat(), "wait_reason": event.reason,
                "next_try_at": event.next_try_at.isoformat(),
            }  # fmt: skip
        case JobResumed(resumed_at=at):
            return {**_NO_PAUSE, "waiting_since": position, "queued_at": at.isoformat()}
