"""Pull requests of the embedded code host: merge or close that of a job, and record it."""

from datetime import datetime
from typing import Literal

from eventstore import EventStore, Metadata, Views
from service.commands.jobs.jobs import close_pull_request
from service.commands.sites import request_index
from service.domain.errors import Conflict
from service.domain.jobs.decider import ClosePullRequest, PullRequestOutcome
from service.ports.code_host import PullRequestPage
from service.queries.projects import get_project
from service.views.projects import ProjectView

Verb = Literal["merge", "close"]


def require_hosted(project: ProjectView, number: int | None) -> int:
    """Return the number of a job's pull request. Raise Conflict ``no_pull_request``, ``another_code_host``."""
    if number is None:
        raise Conflict("The job has no pull request. Look at its outcome.", code="no_pull_request")
    if project.code_host != "local":
        raise Conflict("The pull request is on another code host. Merge or close it there.", code="another_code_host")
    return number


def require_still(changing: str | None) -> None:
    """Raise Conflict ``pull_request_changing`` for the id of a job that changes the pull request."""
    if changing is not None:
        raise Conflict(
            f"Job {changing} is changing this pull request. Merge it once the job has ended, or cancel the job first.",
            code="pull_request_changing",
        )


async def record_closed(
    store: EventStore, views: Views, project_id: str, page: PullRequestPage, at: datetime, metadata: Metadata
) -> None:
    """Record that a person merged or closed a pull request, and have what was merged indexed."""
    pull_request = page.pull_request
    outcome: PullRequestOutcome = "merged" if pull_request.state == "merged" else "closed"
    close = ClosePullRequest(outcome, at, page.merge_commit)
    await close_pull_request(store, views, project_id, pull_request.number, close, metadata)
    project = await get_project(views, project_id) if outcome == "merged" else None
    if project is not None:
        await request_index(store, project.domain, f"pull request {pull_request.number} was merged", metadata)
