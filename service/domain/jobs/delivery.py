"""The steps after the model's own work: the commit, its branch, the pull request, and the end of the round."""

from service.domain.errors import Conflict
from service.domain.jobs.commands import CompleteJob, Rebase, RecordCommit, RecordPullRequest, RecordPush
from service.domain.jobs.events import (
    BranchPushed,
    Committed,
    JobCompleted,
    JobEvent,
    JobOutcome,
    PullRequestOpened,
    PullRequestUpdated,
    RoundStarted,
)
from service.domain.jobs.merging import rebased
from service.domain.jobs.states import Work


def delivery_step(
    command: Rebase | RecordCommit | RecordPush | RecordPullRequest | CompleteJob, work: Work
) -> list[JobEvent]:
    """Return what a step after the model's own work records: the commit, its branch and the pull request."""
    match command:
        case Rebase():
            return rebased(command, work)
        case RecordCommit() as made:
            if work.commit is not None:
                raise Conflict("The work is committed already.")
            if work.waiting:
                return []
            return [
                Committed(
                    made.commit, made.tree, made.parent, made.author, made.message, committed_at=made.now,
                    merged=made.merged, merge_base=made.merge_base,
                )
            ]  # fmt: skip
        case RecordPush(branch=branch, commit=commit, now=now):
            return [] if work.pushed else [BranchPushed(branch, commit, pushed_at=now)]
        case RecordPullRequest():
            return [] if work.presented else [_presented(command, work)]
        case CompleteJob(message=message, now=now):
            if not work.waiting:
                return [JobCompleted(message, completed_at=now, outcome=_outcome(work))]
            return [RoundStarted(work.round + 1, started_at=now)] if work.commit else []


def _outcome(work: Work) -> JobOutcome:
    if work.unmerged and work.commit is None:
        return "needs_input"
    if work.presented:
        return "pull_request"
    return "needs_input" if work.finish is not None and work.finish.ending != "done" else "nothing_changed"


def _presented(shown: RecordPullRequest, work: Work) -> PullRequestOpened | PullRequestUpdated:
    if work.pull_request is not None and work.pull_request.number == shown.number:
        return PullRequestUpdated(shown.number, shown.url, updated_at=shown.now, title=shown.title)
    return PullRequestOpened(shown.number, shown.url, opened_at=shown.now, title=shown.title)
