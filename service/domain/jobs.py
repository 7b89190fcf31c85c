"""An agent job: requested, worked on in steps, ended by a pull request, by nothing to change, or by a failure.

Every step is an event, so a job whose process died goes on from its last step: ``evolve`` rebuilds the conversation
with the model, the files as the job has changed them, and what was already committed, pushed and opened.
"""

from datetime import datetime
from typing import Annotated, Literal, assert_never

from msgspec import Meta, Struct
from msgspec.structs import replace

from service.domain.errors import Conflict, Invalid, NotFound
from service.domain.events import Event, PersonalText
from service.domain.model import ToolCall, Usage

MAX_PROMPT_CHARACTERS = 32_768
MAX_ATTEMPTS = 5
"""How often a job is taken up again after its process died, the first time included."""

JobStatus = Literal["active", "completed", "failed"]
TodoStatus = Literal["pending", "in_progress", "completed", "cancelled"]
PullRequestOutcome = Literal["merged", "closed"]


class Message(Struct, frozen=True):
    """One message that the caller gave to the agent."""

    role: Literal["system", "user", "assistant"]
    content: str


class Todo(Struct, frozen=True):
    """A step of the agent's plan."""

    id: str
    content: str
    status: TodoStatus
    priority: Literal["high", "medium", "low"] = "medium"


class FileChange(Struct, frozen=True):
    """A file as a job leaves it; ``content`` None means deleted."""

    path: str
    content: str | None


class Problem(Struct, frozen=True):
    """What a gate found in the changes."""

    gate: str
    """``links``, ``front-matter``, ``markup``, ``navigation``, ``secrets``, ``size``."""
    path: str
    message: str
    line: int | None = None


class JobRequested(Event, frozen=True, tag="job-requested"):
    organization_id: str
    project_id: str
    repository: str
    ref: str
    model_alias: str
    model: str
    """What the alias meant then, such as ``anthropic/claude-sonnet-4-5`` or ``builtin/editor``."""
    messages: Annotated[tuple[Message, ...], Meta(extra={"personal": []})]
    title: PersonalText
    branch: PersonalText
    """The branch to work on, made legal; made from the job's title and id when the caller named none."""
    branch_named: bool
    """The caller named it: an existing branch is then worked on."""
    as_draft: bool
    api_version: Literal[1, 2]
    requested_at: datetime


class JobStarted(Event, frozen=True, tag="job-started"):
    """An instance took the job up; ``attempt`` counts from 1."""

    attempt: int
    instance: str
    started_at: datetime


class WorkspaceOpened(Event, frozen=True, tag="workspace-opened"):
    """The state of the repository that all of the job's changes stand on."""

    base_commit: str
    opened_at: datetime


class ModelReplied(Event, frozen=True, tag="model-replied"):
    model: str
    text: PersonalText
    tool_calls: Annotated[tuple[ToolCall, ...], Meta(extra={"personal": []})]
    usage: Usage
    replied_at: datetime
    cut_off: bool = False
    """It reached the limit of its length, so that its end is not the end of the work."""
    squeezed: int = 0
    """How many times over its prompt was shortened more than usual: the provider had found a longer one too long."""


class FileChanged(Event, frozen=True, tag="file-changed"):
    """Not personal: it is what the pull request publishes, and what the commit is reproduced from."""

    path: str
    content: str | None


class PlanChanged(Event, frozen=True, tag="plan-changed"):
    todos: Annotated[tuple[Todo, ...], Meta(extra={"personal": []})]


class ToolReturned(Event, frozen=True, tag="tool-returned"):
    call_id: str
    name: str
    result: PersonalText
    is_error: bool
    returned_at: datetime


class WorkFinished(Event, frozen=True, tag="work-finished"):
    """The model says that it is done."""

    title: PersonalText
    summary: PersonalText
    finished_at: datetime


class ChecksReported(Event, frozen=True, tag="checks-reported"):
    """What the gates found; with ``returned`` they went back to the model, else they go into the pull request."""

    round: int
    problems: tuple[Problem, ...]
    returned: bool
    reported_at: datetime


class Committed(Event, frozen=True, tag="committed"):
    """All that a commit's id depends on, besides the base commit and the files' contents."""

    commit: str
    tree: str
    parent: str
    author: str
    """``Name <mail>``, also the committer."""
    message: str
    committed_at: datetime
    """To the second, in UTC."""


class BranchPushed(Event, frozen=True, tag="branch-pushed"):
    branch: str
    commit: str
    pushed_at: datetime


class PullRequestOpened(Event, frozen=True, tag="pull-request-opened"):
    number: int
    url: str
    opened_at: datetime


class JobCompleted(Event, frozen=True, tag="job-completed"):
    message: PersonalText
    """The agent's last word: a summary, or why nothing was changed."""
    completed_at: datetime


class JobFailed(Event, frozen=True, tag="job-failed"):
    code: str
    message: str
    failed_at: datetime


class JobInterrupted(Event, frozen=True, tag="job-interrupted"):
    """The process that worked on it is gone; the job waits to be taken up again."""

    attempt: int
    """How many attempts count so far."""
    interrupted_at: datetime


class PullRequestClosed(Event, frozen=True, tag="pull-request-closed"):
    """Somebody merged or closed it on the embedded code host."""

    outcome: PullRequestOutcome
    closed_at: datetime
    merge_commit: str | None = None


JobEvent = (
    JobRequested
    | JobStarted
    | WorkspaceOpened
    | ModelReplied
    | FileChanged
    | PlanChanged
    | ToolReturned
    | WorkFinished
    | ChecksReported
    | Committed
    | BranchPushed
    | PullRequestOpened
    | JobCompleted
    | JobFailed
    | JobInterrupted
    | PullRequestClosed
)


class RequestJob(Struct, frozen=True):
    organization_id: str
    project_id: str
    repository: str
    ref: str
    model_alias: str
    model: str
    messages: tuple[Message, ...]
    title: str
    branch: str
    branch_named: bool
    as_draft: bool
    api_version: Literal[1, 2]
    now: datetime


class StartJob(Struct, frozen=True):
    """Also the claim: one writer wins."""

    instance: str
    now: datetime


class OpenWorkspace(Struct, frozen=True):
    base_commit: str
    now: datetime


class RecordModelReply(Struct, frozen=True):
    model: str
    text: str
    tool_calls: tuple[ToolCall, ...]
    usage: Usage
    now: datetime
    cut_off: bool = False
    squeezed: int = 0


class RecordToolResult(Struct, frozen=True):
    """What a tool did and said: its file changes, plan and result are recorded together or not at all."""

    call_id: str
    name: str
    result: str
    is_error: bool
    now: datetime
    changes: tuple[FileChange, ...] = ()
    todos: tuple[Todo, ...] | None = None
    finished: tuple[str, str] | None = None
    """Title and summary, when the tool was ``finish``."""


class RecordFinish(Struct, frozen=True):
    """The model ended its turn without calling ``finish``."""

    title: str
    summary: str
    now: datetime


class RecordChecks(Struct, frozen=True):
    problems: tuple[Problem, ...]
    returned: bool
    now: datetime


class RecordCommit(Struct, frozen=True):
    commit: str
    tree: str
    parent: str
    author: str
    message: str
    now: datetime


class RecordPush(Struct, frozen=True):
    branch: str
    commit: str
    now: datetime


class RecordPullRequest(Struct, frozen=True):
    number: int
    url: str
    now: datetime


class CompleteJob(Struct, frozen=True):
    message: str
    now: datetime


class FailJob(Struct, frozen=True):
    code: str
    message: str
    now: datetime


class InterruptJob(Struct, frozen=True):
    """``instance`` is the one that is gone; a job that another has taken up meanwhile is left alone."""

    instance: str
    now: datetime
    parked: bool = False
    """It was stopped on purpose: that does not count as an attempt."""


class ClosePullRequest(Struct, frozen=True):
    outcome: PullRequestOutcome
    now: datetime
    merge_commit: str | None = None


JobCommand = (
    RequestJob
    | StartJob
    | OpenWorkspace
    | RecordModelReply
    | RecordToolResult
    | RecordFinish
    | RecordChecks
    | RecordCommit
    | RecordPush
    | RecordPullRequest
    | CompleteJob
    | FailJob
    | InterruptJob
    | ClosePullRequest
)


class Absent(Struct, frozen=True):
    pass


class Work(Struct, frozen=True):
    """What a job has done so far."""

    base_commit: str | None = None
    transcript: tuple[ModelReplied | ToolReturned | ChecksReported, ...] = ()
    """In order, after the request's own messages; of checks only those that went back to the model."""
    changes: dict[str, str | None] = {}
    """Path to content, None when deleted; never changed in place."""
    todos: tuple[Todo, ...] = ()
    finish: WorkFinished | None = None
    """Unset again when gates send the work back."""
    check_rounds: int = 0
    remaining_problems: tuple[Problem, ...] | None = None
    """Set once the gates have let the work pass, with what remains."""
    commit: Committed | None = None
    pushed: BranchPushed | None = None
    pull_request: PullRequestOpened | None = None
    usage: Usage = Usage()

    def unanswered_calls(self) -> tuple[ToolCall, ...]:
        """Calls of the last reply that have no result yet, in order."""
        answered: set[str] = set()
        for step in reversed(self.transcript):
            if isinstance(step, ToolReturned):
                answered.add(step.call_id)
            elif isinstance(step, ModelReplied):
                return tuple(call for call in step.tool_calls if call.id not in answered)
        return ()


class Queued(Struct, frozen=True):
    """Waits to be taken up, for the first time or again (``attempt`` counts what was tried)."""

    request: JobRequested
    work: Work = Work()
    attempt: int = 0


class Running(Struct, frozen=True):
    request: JobRequested
    work: Work
    attempt: int
    instance: str


class Finished(Struct, frozen=True):
    request: JobRequested
    work: Work
    outcome: JobCompleted | JobFailed
    pull_request_outcome: PullRequestOutcome | None = None


Job = Absent | Queued | Running | Finished


def decide(command: JobCommand, job: Job) -> list[JobEvent]:
    match command, job:
        case RequestJob() as new, Absent():
            return [_requested(new)]
        case RequestJob(), _:
            return []  # the same request sent twice
        case _, Absent():
            raise NotFound("There is no such job.")
        case StartJob(instance=instance, now=now), Queued(attempt=attempt):
            return [JobStarted(attempt + 1, instance, started_at=now)]
        case InterruptJob(instance=instance, now=now), Running() if job.instance == instance:
            if command.parked:
                return [JobInterrupted(job.attempt - 1, interrupted_at=now)]
            if job.attempt < MAX_ATTEMPTS:
                return [JobInterrupted(job.attempt, interrupted_at=now)]
            message = f"The process that worked on this job died {MAX_ATTEMPTS} times."
            return [JobFailed("interrupted", message, failed_at=now)]
        case InterruptJob(), _:
            return []
        case FailJob(code=code, message=message, now=now), Queued() | Running():
            return [JobFailed(code, message, failed_at=now)]
        case ClosePullRequest() as closed, Finished(pull_request_outcome=None) if job.work.pull_request:
            return [PullRequestClosed(closed.outcome, closed_at=closed.now, merge_commit=closed.merge_commit)]
        case ClosePullRequest(outcome=outcome), Finished(pull_request_outcome=before) if outcome == before:
            return []
        case _, Running():
            return _step(command, job.work)
        case _:
            raise Conflict(f"{type(command).__name__} does not fit a {type(job).__name__.lower()} job.")


def _requested(new: RequestJob) -> JobRequested:
    if not new.messages:
        raise Invalid("A job takes at least one message.")
    if not any(message.content.strip() for message in new.messages):
        raise Invalid("A job needs an instruction: every message is blank.")
    return JobRequested(
        new.organization_id, new.project_id, new.repository, new.ref, new.model_alias, new.model, new.messages,
        new.title, new.branch, new.branch_named, new.as_draft, new.api_version, requested_at=new.now,
    )  # fmt: skip


def _step(command: JobCommand, work: Work) -> list[JobEvent]:
    """What a running job records next. A step that is there already is not recorded twice."""
    match command:
        case OpenWorkspace(base_commit=base_commit, now=now):
            return [] if work.base_commit else [WorkspaceOpened(base_commit, opened_at=now)]
        case RecordModelReply() as reply:
            if work.unanswered_calls():
                raise Conflict("The calls of the last reply have no results yet.")
            return [
                ModelReplied(
                    reply.model,
                    reply.text,
                    reply.tool_calls,
                    reply.usage,
                    replied_at=reply.now,
                    cut_off=reply.cut_off,
                    squeezed=reply.squeezed,
                )
            ]
        case RecordToolResult() as done:
            if done.call_id not in {call.id for call in work.unanswered_calls()}:
                raise Conflict("No call waits for this result.")
            events: list[JobEvent] = [FileChanged(change.path, change.content) for change in done.changes]
            if done.todos is not None:
                events.append(PlanChanged(done.todos))
            events.append(ToolReturned(done.call_id, done.name, done.result, done.is_error, returned_at=done.now))
            if done.finished is not None:
                events.append(WorkFinished(*done.finished, finished_at=done.now))
            return events
        case RecordFinish(title=title, summary=summary, now=now):
            return [WorkFinished(title, summary, finished_at=now)]
        case RecordChecks() as checks:
            return [ChecksReported(work.check_rounds + 1, checks.problems, checks.returned, reported_at=checks.now)]
        case RecordCommit() as made:
            if work.commit is not None:
                raise Conflict("The work is committed already.")
            return [Committed(made.commit, made.tree, made.parent, made.author, made.message, committed_at=made.now)]
        case RecordPush(branch=branch, commit=commit, now=now):
            return [] if work.pushed else [BranchPushed(branch, commit, pushed_at=now)]
        case RecordPullRequest(number=number, url=url, now=now):
            return [] if work.pull_request else [PullRequestOpened(number, url, opened_at=now)]
        case CompleteJob(message=message, now=now):
            return [JobCompleted(message, completed_at=now)]
        case _:
            raise Conflict(f"{type(command).__name__} does not fit a running job.")


def evolve(job: Job, event: JobEvent) -> Job:
    match event, job:
        case JobRequested(), _:
            return Queued(event)
        case _, Absent():
            raise AssertionError(event)
        case JobStarted(attempt=attempt, instance=instance), _:
            return Running(job.request, job.work, attempt, instance)
        case JobInterrupted(attempt=attempt), _:
            return Queued(job.request, job.work, attempt)
        case ((JobCompleted() | JobFailed()), _):
            return Finished(job.request, job.work, event)
        case PullRequestClosed(outcome=outcome), Finished():
            return Finished(job.request, job.work, job.outcome, outcome)
        case _, Running():
            return Running(job.request, _evolve_work(job.work, event), job.attempt, job.instance)
        case _:
            raise AssertionError(event)


def _evolve_work(work: Work, event: JobEvent) -> Work:
    match event:
        case WorkspaceOpened(base_commit=base_commit):
            return _with(work, base_commit=base_commit)
        case ModelReplied(usage=usage):
            return _with(work, transcript=(*work.transcript, event), usage=work.usage + usage)
        case FileChanged(path=path, content=content):
            return _with(work, changes={**work.changes, path: content})
        case PlanChanged(todos=todos):
            return _with(work, todos=todos)
        case ToolReturned():
            return _with(work, transcript=(*work.transcript, event))
        case WorkFinished():
            return _with(work, finish=event)
        case ChecksReported(problems=problems, returned=returned, round=number):
            if returned:
                return _with(work, transcript=(*work.transcript, event), finish=None, check_rounds=number)
            return _with(work, check_rounds=number, remaining_problems=problems)
        case Committed():
            return _with(work, commit=event)
        case BranchPushed():
            return _with(work, pushed=event)
        case PullRequestOpened():
            return _with(work, pull_request=event)
        case JobRequested() | JobStarted() | JobInterrupted() | JobCompleted() | JobFailed() | PullRequestClosed():
            raise AssertionError(event)
        case _:
            assert_never(event)


def _with(work: Work, **changes: object) -> Work:
    return replace(work, **changes)


def title_from(messages: tuple[Message, ...]) -> str:
    """The first line with words of the last user message (else of any), at most 80 characters."""
    texts = [m.content for m in messages if m.role == "user"][::-1] + [m.content for m in messages]
    line = next((line.strip() for text in texts for line in text.splitlines() if line.strip()), "Update documentation")
    return line if len(line) <= 80 else line[:79].rstrip() + "…"


def branch_for(job_id: str, title: str) -> str:
    """``docs/<words of the title>-<part of the job id>``: found again by whoever knows the job."""
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
