"""The work of a job, as its events change it."""

from typing import assert_never

from msgspec.structs import replace

from service.domain.jobs.comments import Review, Unanswered
from service.domain.jobs.events import (
    BaseMerged,
    BaseNotMerged,
    BranchChanged,
    BranchPushed,
    ChecksReported,
    CommentAnswered,
    CommentEvent,
    CommentIgnored,
    Committed,
    ContextsOpened,
    ConversationEvent,
    DeliveryEvent,
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
    MergeEvent,
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
from service.domain.jobs.states import Round, Work
from service.domain.model import Usage


def evolve_work(work: Work, event: JobEvent) -> Work:
    """Return the work after an event that is neither the job's beginning nor its end."""
    match event:
        case WorkspaceOpened(base_commit=base_commit, docs_commit=docs_commit):
            return replace(work, base_commit=base_commit, docs_commit=docs_commit or work.docs_commit)
        case ContextsOpened(contexts=contexts):
            return replace(work, contexts=contexts)
        case ModelReplied() | ReplyLost() | MessageAdded() | ChecksReported() | ToolReturned() | ModelReminded():
            return _talked(work, event)
        case FileChanged(path=path, content=content):
            return replace(work, changes={**work.changes, path: content})
        case PlanChanged(todos=todos):
            return replace(work, todos=todos)
        case WorkFinished():
            return replace(work, finish=event)
        case BaseMerged() | BaseNotMerged() | WorkRebased():
            return _on_other_commits(work, event)
        case (
            Committed() | BranchPushed() | BranchChanged()
            | PullRequestOpened() | PullRequestUpdated() | PullRequestClosed()
        ):  # fmt: skip
            return _delivered(work, event)
        case JobReopened(keeps_changes=keeps_changes):
            return replace(_next_round(work, event, keeps_changes=keeps_changes), archived_at=None)
        case RoundStarted():
            return _next_round(work, event, keeps_changes=False)
        case CommentIgnored() | CommentAnswered():
            return replace(work, review=_reviewed(work.review, event))
        case JobArchived(archived_at=archived_at):
            return replace(work, archived_at=archived_at)
        case JobUnarchived():
            return replace(work, archived_at=None)
        case (
            JobRequested() | JobStarted() | JobInterrupted() | JobWaiting() | JobResumed()
            | JobCompleted() | JobFailed()
        ):  # fmt: skip
            raise AssertionError(event)
        case _:
            assert_never(event)


def _talked(work: Work, event: ConversationEvent) -> Work:
    """Return the work after an event of the conversation with the model."""
    match event:
        case ModelReplied():
            return _replied(work, event)
        case ReplyLost(usage=usage):
            return replace(
                work, lost=(*work.lost, event), usage=work.usage + usage, round_usage=work.round_usage + usage
            )
        case ToolReturned() | ModelReminded():
            return replace(work, transcript=(*work.transcript, event))
        case ChecksReported(returned=True, round=number):
            return replace(work, transcript=(*work.transcript, event), finish=None, check_rounds=number)
        case ChecksReported(problems=problems, round=number):
            return replace(work, check_rounds=number, remaining_problems=problems)
        case MessageAdded():
            work = replace(work, waiting=(*work.waiting, event), messages=work.messages + 1)
            if event.comment is not None:
                asked = Unanswered(event.answer_id, event.comment, event.added_at, round=work.round)
                work = replace(work, review=work.review.accepted(asked))
            return work if work.commit else _sent_back(work)
        case _:
            assert_never(event)


def _reviewed(review: Review, event: CommentEvent) -> Review:
    """Return the comments after an event about one that led to no message, or about an answer."""
    match event:
        case CommentIgnored(comment=comment, answer_id=answer_id):
            if comment is None:  # erased
                return review
            entry = Unanswered(answer_id, comment, event.ignored_at, event.reason, event.until)
            return review.turned_down(comment.id, entry if answer_id else None)
        case CommentAnswered(answer_ids=answer_ids):
            return review.answered(answer_ids)
        case _:
            assert_never(event)


def _on_other_commits(work: Work, event: MergeEvent) -> Work:
    """Return the work after an event that puts its changes on other commits, where they are to be checked again."""
    work = replace(work, remaining_problems=None)
    match event:
        case BaseMerged():
            return replace(work, merge=event, transcript=(*work.transcript, event))
        case BaseNotMerged(problems=problems):
            return replace(work, merge=None, unmerged=problems, transcript=(*work.transcript, event))
        case WorkRebased(onto=onto, conflicts=conflicts):
            work = replace(work, base_commit=onto, commit=None, rebases=work.rebases + 1)
            if conflicts:
                work = replace(work, transcript=(*work.transcript, event))
            return _sent_back(work) if work.waiting or conflicts else work
        case _:
            assert_never(event)


def _delivered(work: Work, event: DeliveryEvent) -> Work:
    """Return the work after an event of its commit, its branch or its pull request."""
    match event:
        case Committed():
            return replace(work, commit=event, remaining_problems=work.remaining_problems or ())
        case BranchPushed():
            return replace(work, pushed=event, docs_commit=work.merge.commit if work.merge else work.docs_commit)
        case BranchChanged(branch=branch):
            return replace(work, branch=branch, pull_request=None, pull_request_outcome=None, rounds=(), docs_commit="")
        case PullRequestOpened():
            return replace(work, pull_request=event, pull_request_outcome=None, presented=True)
        case PullRequestUpdated():
            return replace(work, presented=True)
        case PullRequestClosed(outcome=outcome):
            return replace(work, pull_request_outcome=outcome)
        case _:
            assert_never(event)


def _replied(work: Work, reply: ModelReplied) -> Work:
    """The messages that the reply has seen stand before it, the others go on waiting."""
    seen = len(work.waiting) - max(0, work.messages - reply.messages_seen)
    return replace(
        work,
        transcript=(*work.transcript, *work.waiting[:seen], reply),
        waiting=work.waiting[seen:],
        lost=(),
        usage=work.usage + reply.usage,
        round_usage=work.round_usage + reply.usage,
    )


def _sent_back(work: Work) -> Work:
    return replace(work, finish=None, remaining_problems=None)


def _next_round(work: Work, event: JobReopened | RoundStarted, *, keeps_changes: bool) -> Work:
    rounds = work.rounds
    if work.finish is not None and work.commit is not None and work.pushed is not None:
        rounds = (*rounds, Round(work.finish, work.changes, work.commit, work.remaining_problems or ()))
    return replace(
        work,
        base_commit=work.base_commit if keeps_changes else None,
        merge=work.merge if keeps_changes else None,
        unmerged=work.unmerged if keeps_changes else (),
        was_unmerged=bool(work.unmerged) or (work.was_unmerged and not work.presented),
        contexts=None,
        changes=work.changes if keeps_changes else {},
        transcript=(*work.transcript, event),
        round_start=len(work.transcript),
        finish=None,
        check_rounds=0,
        remaining_problems=None,
        rebases=0,
        commit=None,
        pushed=None,
        presented=False,
        round=event.round,
        round_usage=Usage(),
        lost=(),
        rounds=rounds,
    )
