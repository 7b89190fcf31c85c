"""Jobs, as version 1 of the API shows them."""

import sqlite3

import msgspec

from eventstore import Views
from service.domain.texts.times import timestamp_from
from service.ports import code_host
from service.queries.jobs.jobs import ReadJob, job_rows
from service.views.jobs.jobs_v1 import HaltReason, Session, Sessions, TodoView
from service.views.projects import ProjectView

CODE_HOST_FAILURES = frozenset(
    {
        "forbidden", "not_found", "no_such_branch", "branch_protected", code_host.TOKEN_MISSING,
        code_host.TOKEN_REFUSED, code_host.RIGHTS_MISSING, code_host.NO_SUCH_REPOSITORY, code_host.REPOSITORY_MOVED,
        code_host.REPOSITORY_ARCHIVED, code_host.PULL_REQUEST_REFUSED,
    }
)  # fmt: skip


async def list_sessions(views: Views, project: ProjectView, *, limit: int, skip: int) -> Sessions:
    """Return some of a project's jobs, the newest first."""
    return Sessions([_session(row, project) for row in await job_rows(views, project.id, limit=limit, skip=skip)])


def session_of(job: ReadJob, project: ProjectView) -> Session:
    return _session(job.row, project)


def _session(row: sqlite3.Row, project: ProjectView) -> Session:
    return Session(
        session_id=row["id"],
        subdomain=project.domain,
        branch=row["branch"],
        haulted=row["status"] != "active",
        hault_reason=_reason(row),
        pull_request_link=row["pull_request_url"],
        message_to_user=_last_word(row),
        todos=msgspec.json.decode(row["todos"], type=tuple[TodoView, ...]),
        user_id=row["created_by"],
        title=row["title"],
        created_at=timestamp_from(row["created_at"]),
    )


def _reason(row: sqlite3.Row) -> HaltReason:
    if row["status"] == "active":
        return "processing"
    if row["status"] == "completed":
        return "completed"
    if row["failure_code"] in ("cancelled", "interrupted"):
        return "interrupted"
    return "github_missconfigured" if row["failure_code"] in CODE_HOST_FAILURES else "error"


def _last_word(row: sqlite3.Row) -> str:
    if row["status"] == "active":
        return ""
    return (row["failure_message"] if row["status"] == "failed" else row["last_word"]) or ""
