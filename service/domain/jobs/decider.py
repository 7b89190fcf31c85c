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
    Handover,
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
    RecordLostReply,
    RecordModelReply,
    RecordPullRequest,
    RecordPush,
    RecordToolResult,
    RemindModel,
    RequestJob,
    ResumeJob,
    RetryJob,
    SetMergeAside,
    StartJob,
    StepBy,
    UnarchiveJob,
)
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
    JobUnarchived,
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
    ReplyLost,
    RoundStarted,
    Severity,
    Todo,
    TodoStatus,
    ToolReturned,
    WorkFinished,
    WorkRebased,
    WorkspaceOpened,
)
from service.domain.jobs.messages import MAX_MESSAGES, NEEDS_FRESH_START, conversation
from service.domain.jobs.naming import branch_for, title_from
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
from service.domain.jobs.steps import step
from service.domain.jobs.waiting import after_death, postponed, resumed
from service.domain.jobs.work import evolve_work
from service.domain.texts.unicode_forms import require_bounded

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
    "Handover",
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
    "JobUnarchived",
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
    "RecordLostReply",
    "RecordModelReply",
    "RecordPullRequest",
    "RecordPush",
    "RecordToolResult",
    "RemindModel",
    "ReplyLost",
    "RequestJob",
    "ResumeJob",
    "RetryJob",
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
    "UnarchiveJob",
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


def job_not_found() -> NotFound:
    """Return the error for a job that does not exist, or that the caller may not know of."""
    return NotFound("Job not found. List the jobs to see their ids.", code="job_not_found")


def decide(command: JobCommand, job: Job) -> list[JobEvent]:
    """Return the events of a command.

    Raises:
        NotFound: ``job_not_found``.
        Invalid: the messages are missing or blank.
        Conflict: the command does not fit the job's state (``not_held``, ``job_ended``, ``job_not_failed``,
            ``too_many_messages``).
    """
    match command, job:
        case RequestJob(), _:
            return _requested(command, job)
        case _, Absent():
            raise job_not_found()
        case StepBy(), _:
            return decide(command.command, _held(command, job))
        case StartJob(instance=instance, now=now), Queued(attempt=attempt, waiting=None):
            return [JobStarted(attempt + 1, instance, started_at=now)]
        case InterruptJob(), _:
            return _interrupted(command, job)
        case PostponeJob(), Running():
            return [postponed(command, job)]
        case ResumeJob(now=now), _:
            return resumed(job, now)
        case FailJob(code=code, message=message, now=now), Queued() | Running():
            return [JobFailed(code, message, failed_at=now)]
        case CancelJob(now=now), _:
            return _cancelled(job, now)
        case ArchiveJob(now=now), _:
            return [] if job.work.archived_at else [JobArchived(now)]
        case UnarchiveJob(now=now), _:
            return [JobUnarchived(now)] if job.work.archived_at else []
        case ((AddMessage() | ReceiveComment() | RecordAnswer() | RetryJob()), _):
            return conversation(command, job)
        case ClosePullRequest(), _:
            return _pull_request_closed(command, job)
        case _, Running():
            return step(command, job.work)
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


def _requested(new: RequestJob, job: Job) -> list[JobEvent]:
    if not isinstance(job, Absent):
        return []  # the same request sent twice
    if not new.messages:
        raise Invalid("A job needs at least one message.")
    if not any(message.content.strip() for message in new.messages):
        raise Invalid("A job needs an instruction: every message is blank.")
    for message in new.messages:
        require_bounded(message.content, "The instruction")
    return [
        JobRequested(
            new.organization_id, new.project_id, new.repository, new.ref, new.model_alias, new.model, new.messages,
            new.title, new.branch, new.branch_named, new.as_draft, new.api_version, requested_at=new.now,
            context=new.context,
        )
    ]  # fmt: skip


def _pull_request_closed(command: ClosePullRequest, job: Queued | Running | Finished) -> list[JobEvent]:
    recorded = job.work.pull_request_outcome
    if job.work.pull_request is not None and recorded is None:
        return [PullRequestClosed(command.outcome, closed_at=command.now, merge_commit=command.merge_commit)]
    if command.outcome == recorded:
        return []
    raise _does_not_fit(command, job)


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
        case JobArchived() | JobUnarchived() | PullRequestClosed() | ReplyLost(), _:  # no step of the work
            return replace(job, work=evolve_work(job.work, event))
        case _:
            work = job.work
            if work.deaths or work.setback is not None:
                work = replace(work, deaths=0, setback=None)
            return replace(job, work=evolve_work(work, event))


def status_of(job: Job) -> JobStatus:
    match job:
        case Finished(outcome=JobCompleted()):
            return "completed"
        case Finished():
            return "failed"
        case _:
            return "active"
