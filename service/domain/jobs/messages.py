"""Messages to a job, through the API or in comments on its pull request: which are accepted, and whether the job then
goes on from its files or begins without them.
"""

from datetime import datetime

from service.domain.errors import Conflict, Invalid
from service.domain.jobs.commands import AddMessage, ReceiveComment, RecordAnswer, RetryJob
from service.domain.jobs.comments import MAX_IGNORED, IgnoringReason
from service.domain.jobs.events import (
    CommentAnswered,
    CommentIgnored,
    JobCompleted,
    JobEvent,
    JobFailed,
    JobReopened,
    JobResumed,
    MessageAdded,
    ToolReturned,
)
from service.domain.jobs.states import Finished, Queued, Running, Work
from service.domain.texts.unicode_forms import require_bounded

MAX_MESSAGES = 500
"""Follow-ups of one job."""

NEEDS_FRESH_START = frozenset({"branch_moved", "commit_differs", "commit_not_found"})
"""Failures after which the changes cannot be handed in as they are: a further round begins without them."""


def conversation(
    command: AddMessage | ReceiveComment | RecordAnswer | RetryJob, job: Queued | Running | Finished
) -> list[JobEvent]:
    """Return the events of a message, a comment, its answer or a retry. Raise Invalid or Conflict, see ``decide``."""
    match command:
        case AddMessage():
            return _message_added(command, job)
        case ReceiveComment():
            return _comment_received(command, job)
        case RetryJob(now=now):
            return _retried(job, now)
        case RecordAnswer(answer_ids=answer_ids, now=now, url=url, failure=failure):
            waiting = {one.answer_id for one in job.work.review.unanswered}
            return [CommentAnswered(answer_ids, now, url, failure)] if waiting & set(answer_ids) else []


def _message_added(message: AddMessage, job: Queued | Running | Finished) -> list[JobEvent]:
    if not message.text.strip():
        raise Invalid("The message is blank.")
    require_bounded(message.text, "The message")
    work, now = job.work, message.now
    if work.messages >= MAX_MESSAGES:
        raise _too_many()
    added = MessageAdded(message.text, added_at=now, comment=message.comment, answer_id=message.answer_id)
    if isinstance(job, Queued) and job.waiting is not None:
        return [added, JobResumed(now)]
    if not isinstance(job, Finished):
        return [added]
    match job.outcome:
        case JobFailed(code=code):
            may_keep = code not in NEEDS_FRESH_START
        case JobCompleted(outcome=outcome):
            may_keep = outcome == "needs_input"
    without_merge = bool(work.unmerged) and (work.finish is None or work.finish.ending == "done")
    keeps = may_keep and work.pushed is None and bool(work.changes) and not without_merge
    return [*_not_run(work, now), JobReopened(work.round + 1, keeps, reopened_at=now), added]


def _not_run(work: Work, now: datetime) -> list[JobEvent]:
    """Return results for the calls that the job's end left without one: models want one for each."""
    return [
        ToolReturned(call.id, call.name, "Not run: the job had ended.", is_error=True, returned_at=now)
        for call in work.unanswered_calls()
    ]


def _retried(job: Queued | Running | Finished, now: datetime) -> list[JobEvent]:
    """Return a round with the instructions of the one that failed; those that no reply has seen still wait."""
    if isinstance(job, Queued) and job.waiting is not None:
        return [JobResumed(now)]
    if not isinstance(job, Finished):
        return []
    if not isinstance(job.outcome, JobFailed):
        raise Conflict("The job has not failed. Send it a message to have it go on.", code="job_not_failed")
    work = job.work
    said = [step.text for step in work.round_steps() if isinstance(step, MessageAdded)]
    if work.round == 1:
        asked = [message.content for message in job.request.messages if message.role == "user"]
        said = (asked or [message.content for message in job.request.messages]) + said
    texts = [text for text in said if text.strip()]
    if work.messages + len(texts) > MAX_MESSAGES:
        raise _too_many()
    again = [MessageAdded(text, added_at=now) for text in texts]
    return [*_not_run(work, now), JobReopened(work.round + 1, keeps_changes=False, reopened_at=now), *again]


def _too_many() -> Conflict:
    return Conflict(f"A job has at most {MAX_MESSAGES} messages. Create a new job.", code="too_many_messages")


def _comment_received(received: ReceiveComment, job: Queued | Running | Finished) -> list[JobEvent]:
    comment, now, review = received.comment, received.now, job.work.review
    if comment.id in review.seen:
        return []
    until = None
    if not received.may_write:
        if review.ignored >= MAX_IGNORED:
            return []
        return [CommentIgnored("no_write_access", now, comment)]
    if job.work.messages >= MAX_MESSAGES:
        reason: IgnoringReason = "too_many_messages"
    elif (until := review.full_until(now, received.per_hour)) is not None:
        reason = "too_many_comments"
    else:
        return _message_added(AddMessage(received.text, now, comment, received.answer_id), job)
    answer_id = received.answer_id if review.may_warn(comment.author, now) else ""
    return [CommentIgnored(reason, now, comment, answer_id, until)]
