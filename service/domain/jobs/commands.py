"""The commands of an agent job. ``decider.py`` decides what each leads to."""

from datetime import datetime
from typing import Literal

from msgspec import Struct

from service.domain.errors import Dependency
from service.domain.jobs.comments import CommentSource
from service.domain.jobs.events import (
    FileChange,
    MergeConflict,
    Message,
    OpenedContext,
    Problem,
    PullRequestOutcome,
    ReminderReason,
    Todo,
    WorkEnding,
)
from service.domain.jobs.requests import SentRequest
from service.domain.model import ReplyMemory, ToolCall, Usage
from service.domain.tool_values import ToolValue


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
    context: str = ""


class StartJob(Struct, frozen=True):
    """Also the claim: one writer wins."""

    instance: str
    now: datetime


class MergedBase(Struct, frozen=True):
    """A merge of the documentation's branch into the job's, as far as it goes."""

    commit: str
    """The commit of the documentation's branch."""
    base: str
    """The commit that both branches come from."""
    changes: tuple[FileChange, ...] = ()
    """The pull request's changes over the documentation's newest commit."""
    conflicts: tuple[MergeConflict, ...] = ()
    problems: tuple[Problem, ...] = ()
    """Reasons for which it cannot be merged; empty when it can."""


class OpenWorkspace(Struct, frozen=True):
    base_commit: str
    now: datetime
    branch: str = ""
    """Another than before, since the pull request of the one before is not open any more."""
    docs_commit: str = ""
    """The newest commit of the documentation's branch that is part of the base commit; empty: unknown."""
    merge: MergedBase | None = None


class OpenContexts(Struct, frozen=True):
    contexts: tuple[OpenedContext, ...]
    now: datetime


class RecordModelReply(Struct, frozen=True):
    model: str
    text: str
    tool_calls: tuple[ToolCall, ...]
    usage: Usage
    now: datetime
    cut_off: bool = False
    shrink_level: int = 0
    messages_seen: int = 0
    """How many of the follow-up messages were in its prompt."""
    memory: ReplyMemory | None = None
    prompts: str = ""
    sent: SentRequest | None = None


class RecordLostReply(Struct, frozen=True):
    """A reply that had to be paid cannot be used."""

    code: str
    reason: str
    usage: Usage
    now: datetime
    prompts: str = ""
    sent: SentRequest | None = None


class Handover(Struct, frozen=True):
    """The words with which a model hands its work in."""

    title: str
    summary: str
    """Both of the round's own change, and of the whole pull request where it is the first round."""
    whole_title: str = ""
    whole_summary: str = ""


class RecordToolResult(Struct, frozen=True):
    """The outcome of a tool call: its file changes, plan and result are recorded together or not at all."""

    call_id: str
    name: str
    result: str
    is_error: bool
    now: datetime
    changes: tuple[FileChange, ...] = ()
    todos: tuple[Todo, ...] | None = None
    finished: Handover | None = None
    """The words, when the tool was ``finish``."""
    asked: str | None = None
    """The question to the caller, when the tool was ``ask``: the job ends and waits for a message."""
    value: ToolValue | None = None


class RemindModel(Struct, frozen=True):
    """The model made no progress: its next prompt ends with what is expected of it."""

    reason: ReminderReason
    now: datetime


class RecordFinish(Struct, frozen=True):
    """The model's work ends without a call of ``finish`` or ``ask``."""

    title: str
    summary: str
    now: datetime
    ending: WorkEnding = "done"


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
    merged: str = ""
    """The second parent of a merge."""
    merge_base: str = ""


class Rebase(Struct, frozen=True):
    """Let the changes stand on another commit; what was committed and is not pushed is committed again."""

    onto: str
    now: datetime
    changes: tuple[FileChange, ...] = ()
    """Files that both sides changed, merged by lines."""
    conflicts: tuple[MergeConflict, ...] = ()


class SetMergeAside(Struct, frozen=True):
    """Go on without the merge that the round began with, since conflicts remain."""

    problems: tuple[Problem, ...]
    changes: tuple[FileChange, ...]
    """The round's changes over the job's own branch."""
    now: datetime


class RecordPush(Struct, frozen=True):
    branch: str
    commit: str
    now: datetime


class RecordPullRequest(Struct, frozen=True):
    """It was opened, or what was there already has this round's work and words."""

    number: int
    url: str
    now: datetime
    title: str = ""


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


class PostponeJob(Struct, frozen=True):
    """Something that the job depends on is away, which may pass: it is tried again later."""

    dependency: Dependency
    code: str
    reason: str
    retry_hours: float
    """Hours from the first wait without a new step after which the job fails."""
    now: datetime
    asked_seconds: float | None = None
    """The least time to stay away, as the other side asks."""
    jitter: float = 0.5
    """A random number from 0 to 1."""


class ResumeJob(Struct, frozen=True):
    """The pause is over. One that ends later than ``now`` is left alone: it began since."""

    now: datetime


class ClosePullRequest(Struct, frozen=True):
    outcome: PullRequestOutcome
    now: datetime
    merge_commit: str | None = None


class AddMessage(Struct, frozen=True):
    text: str
    now: datetime
    comment: CommentSource | None = None
    answer_id: str = ""


class ReceiveComment(Struct, frozen=True):
    """A comment on the pull request addresses the agent."""

    comment: CommentSource
    text: str
    may_write: bool
    """The code host says that its author may write to the repository."""
    per_hour: int
    """The most that are accepted in an hour."""
    answer_id: str
    now: datetime


class RecordAnswer(Struct, frozen=True):
    """Comments were answered on the code host, or the answer was given up."""

    answer_ids: tuple[str, ...]
    now: datetime
    url: str = ""
    failure: str = ""


class RetryJob(Struct, frozen=True):
    """Begin the failed round of a job again, without its changes; end the pause of one that waits."""

    now: datetime


class CancelJob(Struct, frozen=True):
    now: datetime


class ArchiveJob(Struct, frozen=True):
    now: datetime


class UnarchiveJob(Struct, frozen=True):
    now: datetime


class StepBy(Struct, frozen=True):
    """A step by the instance that runs the job: refused once the job has ended or another run of it has begun."""

    instance: str
    run: int
    """Which taking up it was: the job's ``work.runs`` after it."""
    command: "JobCommand"


JobCommand = (
    RequestJob
    | StartJob
    | OpenWorkspace
    | OpenContexts
    | RecordModelReply
    | RecordLostReply
    | RecordToolResult
    | RemindModel
    | RecordFinish
    | RecordChecks
    | RecordCommit
    | RecordPush
    | RecordPullRequest
    | CompleteJob
    | FailJob
    | InterruptJob
    | PostponeJob
    | ResumeJob
    | ClosePullRequest
    | Rebase
    | SetMergeAside
    | AddMessage
    | ReceiveComment
    | RecordAnswer
    | RetryJob
    | CancelJob
    | ArchiveJob
    | UnarchiveJob
    | StepBy
)
