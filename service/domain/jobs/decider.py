"""An agent job: requested, worked on in steps, ended by a pull request, by nothing to change, or by a failure; and
active again, for a further round, when its caller says more.

Every step is an event, so a job whose process died goes on from its last step: ``evolve`` rebuilds the conversation
with the model, the files as the job has changed them, and what was already committed, pushed and opened.

Other layers import from here what they need of the events, commands and states, too.
"""

from datetime import datetime

from msgspec.structs import replace

from service.domain.errors import Conflict, Invalid, NotFound
from service.domain.jobs.commands import (
    AddMessage,
    ArchiveJob,
    CancelJob,
    ClosePullRequest,
    CompleteJob,
    FailJob,
    InterruptJob,
    JobCommand,
    MergedBase,
    OpenContexts,
    OpenWorkspace,
    PostponeJob,
    Rebase,
    ReceiveComment,
    RecordAnswer,
    RecordChecks,
    RecordCommit,
    RecordFinish,
    RecordModelReply,
    RecordPullRequest,
    RecordPush,
    RecordToolResult,
    RemindModel,
    RequestJob,
    ResumeJob,
    SetMergeAside,
    StartJob,
    StepBy,
)
from service.domain.jobs.comments import MAX_IGNORED, IgnoringReason
from service.domain.jobs.events import (
    BaseMerged,
    BaseNotMerged,
    BranchChanged,
    BranchPushed,
    ChecksReported,
    CommentAnswered,
    CommentIgnored,
    Committed,
    ContextsOpened,
    FileChange,
    FileChanged,
    JobArchived,
    JobCompleted,
    JobEvent,
    JobFailed,
    JobInterrupted,
    JobOutcome,
    JobReopened,
    JobRequested,
    JobResumed,
    JobStarted,
    JobStatus,
    JobWaiting,
    MergeConflict,
    Message,
    MessageAdded,
    ModelReminded,
    ModelReplied,
    OpenedContext,
    PlanChanged,
    Problem,
    PullRequestClosed,
    PullRequestOpened,
    PullRequestOutcome,
    PullRequestUpdated,
    RoundStarted,
    Severity,
    Todo,
    TodoStatus,
    ToolReturned,
    WorkFinished,
    WorkRebased,
    WorkspaceOpened,
)
from service.domain.jobs.merging import changed, merge_set_aside, rebased, workspace_opened
from service.domain.jobs.states import (
    Absent,
    Finished,
    Job,
    Queued,
    Round,
    Running,
    TranscriptStep,
    Work,
    branch_of,
    is_unfinished,
)
from service.domain.jobs.waiting import after_death, postponed
from service.domain.jobs.work import evolve_work

__all__ = [
    "MAX_MESSAGES",
    "MAX_PROMPT_CHARACTERS",
    "NEEDS_FRESH_START",
    "Absent",
    "AddMessage",
    "ArchiveJob",
    "BaseMerged",
    "BaseNotMerged",
    "BranchChanged",
    "BranchPushed",
    "CancelJob",
    "ChecksReported",
    "ClosePullRequest",
    "CommentAnswered",
    "CommentIgnored",
    "Committed",
    "CompleteJob",
    "ContextsOpened",
    "FailJob",
    "FileChange",
    "FileChanged",
    "Finished",
    "InterruptJob",
    "Job",
    "JobArchived",
    "JobCommand",
    "JobCompleted",
    "JobEvent",
    "JobFailed",
    "JobInterrupted",
    "JobOutcome",
    "JobReopened",
    "JobRequested",
    "JobResumed",
    "JobStarted",
    "JobStatus",
    "JobWaiting",
    "MergeConflict",
    "MergedBase",
    "Message",
    "MessageAdded",
    "ModelReminded",
    "ModelReplied",
    "OpenContexts",
    "OpenWorkspace",
    "OpenedContext",
    "PlanChanged",
    "PostponeJob",
    "Problem",
    "PullRequestClosed",
    "PullRequestOpened",
    "PullRequestOutcome",
    "PullRequestUpdated",
    "Queued",
    "Rebase",
    "ReceiveComment",
    "RecordAnswer",
    "RecordChecks",
    "RecordCommit",
    "RecordFinish",
    "RecordModelReply",
    "RecordPullRequest",
    "RecordPush",
    "RecordToolResult",
    "RemindModel",
    "RequestJob",
    "ResumeJob",
    "Round",
    "RoundStarted",
    "Running",
    "SetMergeAside",
    "Severity",
    "StartJob",
    "StepBy",
    "Todo",
    "TodoStatus",
    "ToolReturned",
    "TranscriptStep",
    "Work",
    "WorkFinished",
    "WorkRebased",
    "WorkspaceOpened",
    "branch_for",
    "branch_of",
    "decide",
    "evolve",
    "is_unfinished",
    "status_of",
    "title_from",
]

MAX_PROMPT_CHARACTERS = 32_768
MAX_MESSAGES = 500
"""Follow-ups of one job."""

NEEDS_FRESH_START = frozenset({"branch_moved", "commit_differs", "commit_not_found"})
"""Failures after which the changes cannot be handed in as they are: a further round begins without them."""


def decide(command: JobCommand, job: Job) -> list[JobEvent]:
    """Return the events of a command.

    Raises:
        NotFound: ``job_not_found``.
        Invalid: the messages are missing or blank.
        Conflict: the command does not fit the job's state (``not_held``, ``job_ended``, ``too_many_messages``).
    """
    match command, job:
        case RequestJob() as new, Absent():
            return [_requested(new)]
        case RequestJob(), _:
            return []  # the same request sent twice
        case _, Absent():
            raise NotFound("Job not found. List the jobs to see their ids.", code="job_not_found")
        case StepBy(), _:
            return decide(command.command, _held(command, job))
        case StartJob(instance=instance, now=now), Queued(attempt=attempt, waiting=None):
            return [JobStarted(attempt + 1, instance, started_at=now)]
        case InterruptJob(), _:
            return _interrupted(command, job)
        case PostponeJob(), Running():
            return [postponed(command, job)]
        case ResumeJob(now=now), _:
            is_due = isinstance(job, Queued) and job.waiting is not None and job.waiting.next_try_at <= now
            return [JobResumed(now)] if is_due else []
        case FailJob(code=code, message=message, now=now), Queued() | Running():
            return [JobFailed(code, message, failed_at=now)]
        case CancelJob(now=now), _:
            return _cancelled(job, now)
        case ArchiveJob(now=now), _:
            return [] if job.work.archived_at else [JobArchived(now)]
        case AddMessage(), _:
            return _message_added(command, job)
        case ReceiveComment(), _:
            return _comment_received(command, job)
        case RecordAnswer(answer_ids=answer_ids, now=now, url=url, failure=failure), _:
            waiting = {one.answer_id for one in job.work.review.unanswered}
            return [CommentAnswered(answer_ids, now, url, failure)] if waiting & set(answer_ids) else []
        case ClosePullRequest(), _:
            return _pull_request_closed(command, job)
        case _, Running():
            return _step(command, job.work)
        case _:
            raise _does_not_fit(command, job)


def _does_not_fit(command: JobCommand, job: Job) -> Conflict:
    return Conflict(f"{type(command).__name__} does not fit a {type(job).__name__.lower()} job.")


def _held(step: StepBy, job: Job) -> Running:
    if isinstance(job, Running) and (job.instance, job.work.runs) == (step.instance, step.run):
        return job
    raise Conflict("The job has ended, or another process runs it by now.", code="not_held")


def _interrupted(command: InterruptJob, job: Queued | Running | Finished) -> list[JobEvent]:
    if not isinstance(job, Running) or job.instance != command.instance:
        return []
    if command.parked:
        return [JobInterrupted(job.attempt - 1, interrupted_at=command.now)]
    return [after_death(job, command.now)]


def _cancelled(job: Queued | Running | Finished, now: datetime) -> list[JobEvent]:
    if not isinstance(job, Finished):
        return [JobFailed("cancelled", "The job was cancelled.", failed_at=now)]
    if isinstance(job.outcome, JobFailed) and job.outcome.code == "cancelled":
        return []
    raise Conflict("The job has ended already: there is nothing to cancel.", code="job_ended")


def _requested(new: RequestJob) -> JobRequested:
    if not new.messages:
        raise Invalid("A job needs at least one message.")
    if not any(message.content.strip() for message in new.messages):
        raise Invalid("A job needs an instruction: every message is blank.")
    return JobRequested(
        new.organization_id, new.project_id, new.repository, new.ref, new.model_alias, new.model, new.messages,
        new.title, new.branch, new.branch_named, new.as_draft, new.api_version, requested_at=new.now,
    )  # fmt: skip


def _message_added(message: AddMessage, job: Queued | Running | Finished) -> list[JobEvent]:
    if not message.text.strip():
        raise Invalid("The message is blank.")
    work, now = job.work, message.now
    if work.messages >= MAX_MESSAGES:
        raise Conflict(f"A job has at most {MAX_MESSAGES} messages. Create a new job.", code="too_many_messages")
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
    not_run = [
        ToolReturned(call.id, call.name, "Not run: the job had ended.", is_error=True, returned_at=now)
        for call in work.unanswered_calls()
    ]
    return [*not_run, JobReopened(work.round + 1, keeps, reopened_at=now), added]


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


def _pull_request_closed(command: ClosePullRequest, job: Queued | Running | Finished) -> list[JobEvent]:
    recorded = job.work.pull_request_outcome
    if job.work.pull_request is not None and recorded is None:
        return [PullRequestClosed(command.outcome, closed_at=command.now, merge_commit=command.merge_commit)]
    if command.outcome == recorded:
        return []
    raise _does_not_fit(command, job)


def _step(command: JobCommand, work: Work) -> list[JobEvent]:
    """Return the events that a running job records next. A step that is recorded already is not recorded twice.

    While a message waits, the model has not finished: an end that it declared before it saw the message does not count,
    and nothing is recorded for it.
    """
    match command:
        case OpenWorkspace():
            return [] if work.base_commit else workspace_opened(command)
        case OpenContexts(contexts=contexts, now=now):
            return [ContextsOpened(contexts, opened_at=now)] if work.contexts is None else []
        case (
            RecordModelReply() | RemindModel() | RecordChecks() | SetMergeAside() | Rebase() | RecordCommit()
            | CompleteJob()
        ) if work.unanswered_calls():  # fmt: skip
            raise Conflict("The calls of the last reply have no results yet.")
        case RecordModelReply() as reply:
            return [
                ModelReplied(
                    reply.model, reply.text, reply.tool_calls, reply.usage, replied_at=reply.now, cut_off=reply.cut_off,
                    shrink_level=reply.shrink_level, messages_seen=reply.messages_seen,
                )
            ]  # fmt: skip
        case RecordToolResult():
            return _tool_returned(command, work)
        case RemindModel(reason=reason, now=now):
            return [] if work.waiting else [ModelReminded(reason, reminded_at=now)]
        case RecordFinish(title=title, summary=summary, now=now, ending=ending):
            return [] if work.waiting else [WorkFinished(title, summary, finished_at=now, ending=ending)]
        case RecordChecks() as checks:
            if work.waiting:
                return []
            return [ChecksReported(work.check_rounds + 1, checks.problems, checks.returned, reported_at=checks.now)]
        case SetMergeAside():
            return merge_set_aside(command, work)
        case Rebase() | RecordCommit() | RecordPush() | RecordPullRequest() | CompleteJob():
            return _delivery_step(command, work)
        case _:
            raise Conflict(f"{type(command).__name__} does not fit a running job.")


def _tool_returned(done: RecordToolResult, work: Work) -> list[JobEvent]:
    if done.call_id not in {call.id for call in work.unanswered_calls()}:
        raise Conflict("No call waits for this result.")
    events = changed(done.changes)
    if done.todos is not None:
        events.append(PlanChanged(done.todos))
    events.append(ToolReturned(done.call_id, done.name, done.result, done.is_error, done.now, done.value))
    if work.waiting:
        return events
    if done.finished is not None:
        events.append(WorkFinished(*done.finished, finished_at=done.now, whole_title=done.whole_title))
    elif done.asked is not None:
        events.append(WorkFinished("", done.asked, finished_at=done.now, ending="asked"))
    return events


def _delivery_step(
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
        return PullRequestUpdated(shown.number, shown.url, updated_at=shown.now)
    return PullRequestOpened(shown.number, shown.url, opened_at=shown.now)


def evolve(job: Job, event: JobEvent) -> Job:
    match event, job:
        case JobRequested(), _:
            return Queued(event)
        case _, Absent():
            raise AssertionError(event)
        case JobStarted(attempt=attempt, instance=instance), _:
            return Running(job.request, replace(job.work, runs=job.work.runs + 1), attempt, instance)
        case JobInterrupted(attempt=attempt), _:
            died = isinstance(job, Running) and attempt >= job.attempt  # one that was parked does not count
            return Queued(job.request, replace(job.work, deaths=job.work.deaths + died), attempt)
        case JobWaiting(attempt=attempt), _:
            work = replace(job.work, setback=event, deaths=event.deaths or job.work.deaths)
            return Queued(job.request, work, attempt, waiting=event)
        case JobResumed(), _:
            return replace(job, waiting=None) if isinstance(job, Queued) else job
        case ((JobCompleted() | JobFailed()), _):
            return Finished(job.request, job.work, event)
        case JobReopened(), _:
            return Queued(job.request, evolve_work(replace(job.work, deaths=0, setback=None), event))
        case JobArchived() | PullRequestClosed(), _:  # done by others, no step of the work
            return replace(job, work=evolve_work(job.work, event))
        case _:
            work = job.work
            if work.deaths or work.setback is not None:
                work = replace(work, deaths=0, setback=None)
            return replace(job, work=evolve_work(work, event))


def title_from(messages: tuple[Message, ...]) -> str:
    """The first line with words of the last user message (else of any), at most 80 characters."""
    texts = [m.content for m in messages if m.role == "user"][::-1] + [m.content for m in messages]
    lines = (
        "".join(c if c.isprintable() else " " for c in line).strip() for text in texts for line in text.splitlines()
    )
    line = next(filter(None, lines), "Update documentation")
    return line if len(line) <= 80 else line[:79].rstrip() + "…"


def branch_for(job_id: str, title: str) -> str:
    """Return ``docs/<words of the title>-<part of the job id>``: the same for the same job, so a repeat finds it."""
    words: list[str] = []
    for word in "".join(c.lower() if c.isascii() and c.isalnum() else " " for c in title).split():
        if sum(map(len, words)) + len(words) + len(word) > 40:
            break
        words.append(word)
    return f"docs/{'-'.join([*words, job_id.replace('-', '')[-8:]])}"


def status_of(job: Job) -> JobStatus:
    match job:
        case Finished(outcome=JobCompleted()):
            return "completed"
        case Finished():
            return "failed"
        case _:
            return "active"
