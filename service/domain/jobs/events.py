"""The events of an agent job, as the log keeps them. ``decider.py`` decides which may follow which."""

from datetime import datetime
from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from service.domain.errors import Dependency
from service.domain.events import Event, PersonalText
from service.domain.jobs.comments import CommentSource, IgnoringReason
from service.domain.jobs.requests import SentRequest
from service.domain.model import ReplyMemory, ToolCall, Usage
from service.domain.tool_values import ToolValue

JobStatus = Literal["active", "completed", "failed"]
TodoStatus = Literal["pending", "in_progress", "completed", "cancelled"]
PullRequestOutcome = Literal["merged", "closed"]
JobOutcome = Literal["pull_request", "nothing_changed", "needs_input"]
"""How a completed round ended. A failed one has a failure instead."""
WorkEnding = Literal["done", "asked", "stuck"]
"""Why the model's work ended: it called it done, it asked the caller, or it made no progress after a reminder."""
ReminderReason = Literal["words", "failures", "repeats"]
"""A reply in words without a tool call; equal calls of a tool that failed one after another; replies that repeat."""
Severity = Literal["error", "warning"]


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


class Problem(Struct, frozen=True, omit_defaults=True):
    """A problem that a gate found in the changes."""

    gate: str
    """The group of rules, such as ``links`` or ``markup``."""
    path: str
    message: str
    line: int | None = None
    severity: Severity = "error"
    """An error makes the pull request a draft."""
    code: str = ""
    """The rule's stable name in snake_case; empty from before there were any."""

    @property
    def rule(self) -> str:
        """The rule's name, for a problem without one that of its gate."""
        return self.code or self.gate.replace("-", "_")

    @property
    def is_error(self) -> bool:
        return self.severity == "error"


class MergeConflict(Struct, frozen=True):
    """A place that two sides changed, each in its own way."""

    path: str
    kind: Literal["changed", "added", "deleted"]
    """Both changed the same lines, both added the file, or one deleted it and the other changed it."""
    line: int
    """The line of its first marker in the file."""
    text: str
    """The lines of both sides and of their common base between markers, or the beginning of them."""


class OpenedContext(Struct, frozen=True, omit_defaults=True):
    """A context repository as a round of a job reads it."""

    name: str
    repository: str
    ref: str
    commit: str = ""
    """Empty when it could not be fetched."""
    public: bool = False
    """Its text may be quoted in the pull request."""
    problem: str = ""
    """Why it could not be fetched."""


class JobRequested(Event, frozen=True, tag="job-requested"):
    organization_id: str
    project_id: str
    repository: str
    ref: str
    model_alias: str
    model: str
    """The model behind the alias at that time, such as ``anthropic/claude-sonnet-4-5`` or ``builtin/editor``."""
    messages: Annotated[tuple[Message, ...], Meta(extra={"personal": []})]
    title: PersonalText
    branch: PersonalText
    """The branch to work on, made legal; made from the job's title and id when the caller named none."""
    branch_named: bool
    """The caller named it: an existing branch is then worked on."""
    as_draft: bool
    api_version: Literal[1, 2]
    requested_at: datetime
    context: PersonalText = ""
    """Text that the caller gave the agent to read beside the instruction."""


class JobStarted(Event, frozen=True, tag="job-started"):
    """An instance took the job up; ``attempt`` counts from 1."""

    attempt: int
    instance: str
    started_at: datetime


class WorkspaceOpened(Event, frozen=True, tag="workspace-opened"):
    """The state of the repository that all of the job's changes stand on."""

    base_commit: str
    opened_at: datetime
    docs_commit: str = ""
    """The newest commit of the documentation's branch that is known to be part of the base commit; empty: unknown."""


class ContextsOpened(Event, frozen=True, tag="contexts-opened"):
    """The commits of the context repositories that the round reads."""

    contexts: tuple[OpenedContext, ...]
    opened_at: datetime


class ModelReplied(Event, frozen=True, tag="model-replied"):
    model: str
    text: PersonalText
    tool_calls: Annotated[tuple[ToolCall, ...], Meta(extra={"personal": []})]
    usage: Usage
    replied_at: datetime
    cut_off: bool = False
    """It reached the limit of its length, so that its end is not the end of the work."""
    shrink_level: int = field(default=0, name="squeezed")
    """How many times over its prompt was shortened more than usual: the provider had found a longer one too long."""
    messages_seen: int = 0
    """How many of the follow-up messages its prompt had: one that came while it was on its way is for the next."""
    memory: Annotated[ReplyMemory | None, Meta(extra={"personal": None})] = None
    """Parts of the reply that go back to the model that wrote it, and to no one else."""
    prompts: str = ""
    """The hash of the prompts and tools of its request; empty from before it was recorded."""
    sent: Annotated[SentRequest | None, Meta(extra={"personal": None})] = None
    """Its request, as the difference to the one before."""


class ReplyLost(Event, frozen=True, tag="reply-lost"):
    """A reply that had to be paid, and that cannot be used: it broke off, or cannot be read."""

    code: str
    reason: str
    usage: Usage
    lost_at: datetime
    prompts: str = ""
    """As ``ModelReplied`` has it."""
    sent: Annotated[SentRequest | None, Meta(extra={"personal": None})] = None
    """Its request, as the difference to the last one that had a reply."""


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
    value: Annotated[ToolValue | None, Meta(extra={"personal": None})] = None
    """The same as ``result`` for a model that works on values; None from before there were any."""


class ModelReminded(Event, frozen=True, tag="model-reminded"):
    """The model made no progress, and reads once what is expected of it. If it goes on so, its work ends."""

    reason: ReminderReason
    reminded_at: datetime


class WorkFinished(Event, frozen=True, tag="work-finished"):
    """The model's work ends: it is done, or needs an answer from the caller."""

    title: PersonalText
    summary: PersonalText
    """The words to the caller: what was done, or the question."""
    finished_at: datetime
    ending: WorkEnding = "done"
    whole_title: PersonalText = ""
    """A title for the whole pull request, from a further round."""
    whole_summary: PersonalText = ""
    """A summary of the whole pull request, from a further round."""


class ChecksReported(Event, frozen=True, tag="checks-reported"):
    """The problems that the gates found; with ``returned`` they went back to the model, else into the pull request."""

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
    merged: str = ""
    """The second parent of a merge."""
    merge_base: str = ""
    """The commit that both parents of a merge come from."""


class BranchPushed(Event, frozen=True, tag="branch-pushed"):
    branch: str
    commit: str
    pushed_at: datetime


class PullRequestOpened(Event, frozen=True, tag="pull-request-opened"):
    number: int
    url: str
    opened_at: datetime
    title: PersonalText = ""
    """Empty from before it was recorded."""


class JobCompleted(Event, frozen=True, tag="job-completed"):
    message: PersonalText
    """The agent's last word: a summary, why nothing was changed, or a question."""
    completed_at: datetime
    outcome: JobOutcome | None = None
    """None from before it was recorded: the round's pull request says it then."""


class JobFailed(Event, frozen=True, tag="job-failed"):
    code: str
    message: str
    failed_at: datetime


class JobInterrupted(Event, frozen=True, tag="job-interrupted"):
    """The process that worked on it is gone; the job waits to be taken up again."""

    attempt: int
    """How many attempts count so far."""
    interrupted_at: datetime


class JobWaiting(Event, frozen=True, tag="job-waiting"):
    """Something that it depends on is away: the job is tried again later, and holds no slot until then."""

    dependency: Dependency
    reason: str
    since: datetime
    """When the first of these waits began between which the job recorded no new step."""
    next_try_at: datetime
    tries: int
    """How many of them there were, this one included."""
    attempt: int
    """How many attempts count so far."""
    deaths: int = 0
    """How often in a row its process had died without a new step, where that is why it waits."""


class JobResumed(Event, frozen=True, tag="job-resumed"):
    """The pause is over: the job queues for its turn."""

    resumed_at: datetime


class PullRequestClosed(Event, frozen=True, tag="pull-request-closed"):
    """A person merged or closed it."""

    outcome: PullRequestOutcome
    closed_at: datetime
    merge_commit: str | None = None


class MessageAdded(Event, frozen=True, tag="message-added"):
    """The caller said more: for the next call of the model, or for a further round of a job that had ended."""

    text: PersonalText
    added_at: datetime
    comment: Annotated[CommentSource | None, Meta(extra={"personal": None})] = None
    """The comment on the pull request that said it; None for what came through the API."""
    answer_id: str = ""
    """Names the answer to the comment; empty without one."""


class CommentIgnored(Event, frozen=True, tag="comment-ignored"):
    """A comment on the pull request addressed the agent, and led to no message."""

    reason: IgnoringReason
    ignored_at: datetime
    comment: Annotated[CommentSource | None, Meta(extra={"personal": None})] = None
    answer_id: str = ""
    """Names the answer that says why; empty when there is none."""
    until: datetime | None = None
    """From then on comments are accepted again."""


class CommentAnswered(Event, frozen=True, tag="comment-answered"):
    """One answer to some comments is on the code host, or was given up."""

    answer_ids: tuple[str, ...]
    """The first one is that of the answer on the code host."""
    answered_at: datetime
    url: str = ""
    failure: str = ""
    """The code of the error for which it was given up."""


class JobReopened(Event, frozen=True, tag="job-reopened"):
    """A job that had ended is active again, and waits to be taken up for a further round."""

    round: int
    keeps_changes: bool
    """Whether changes that were never handed in are still there; else the round begins with no changes."""
    reopened_at: datetime


class RoundStarted(Event, frozen=True, tag="round-started"):
    """A message came too late for the work that was being handed in: the job goes on with a further round."""

    round: int
    started_at: datetime


class BranchChanged(Event, frozen=True, tag="branch-changed"):
    """The earlier pull request is merged or closed: this round is for a new one, on a branch of its own."""

    branch: PersonalText
    changed_at: datetime


class WorkRebased(Event, frozen=True, tag="work-rebased"):
    """Others had moved the branch: the job's changes stand on their commit now. The changes of files that both had
    changed follow, merged by lines.
    """

    onto: str
    instead_of: str
    rebased_at: datetime
    conflicts: Annotated[tuple[MergeConflict, ...], Meta(extra={"personal": []})] = ()


class BaseMerged(Event, frozen=True, tag="base-merged"):
    """The round goes on from a merge of the documentation's branch into the job's. The pull request's changes follow,
    as they are over the documentation's newest commit.
    """

    head: str
    """The commit of the job's branch: the first parent."""
    commit: str
    """The commit of the documentation's branch: the second parent."""
    merge_base: str
    merged_at: datetime
    conflicts: Annotated[tuple[MergeConflict, ...], Meta(extra={"personal": []})] = ()


class BaseNotMerged(Event, frozen=True, tag="base-not-merged"):
    """The documentation's branch cannot be merged, or not all conflicts were resolved: the round goes on without it.
    Changes that were made over the merge follow, as they are over the job's branch.
    """

    problems: tuple[Problem, ...]
    recorded_at: datetime


class PullRequestUpdated(Event, frozen=True, tag="pull-request-updated"):
    """A further round is in the pull request: its commit, and its words."""

    number: int
    url: str
    updated_at: datetime
    title: PersonalText = ""
    """Empty from before it was recorded."""


class JobArchived(Event, frozen=True, tag="job-archived"):
    """Put out of sight; how it ended is not changed."""

    archived_at: datetime


class JobUnarchived(Event, frozen=True, tag="job-unarchived"):
    """Listed again; nothing else is changed."""

    unarchived_at: datetime


ConversationEvent = ModelReplied | ReplyLost | ToolReturned | ChecksReported | MessageAdded | ModelReminded
CommentEvent = CommentIgnored | CommentAnswered
MergeEvent = BaseMerged | BaseNotMerged | WorkRebased
"""Events that put the round's changes on other commits."""
DeliveryEvent = Committed | BranchPushed | BranchChanged | PullRequestOpened | PullRequestUpdated | PullRequestClosed
"""Events of a job's commit, branch and pull request."""
JobEvent = (
    JobRequested | JobStarted | JobInterrupted | JobWaiting | JobResumed | JobCompleted | JobFailed | JobReopened
    | RoundStarted | JobArchived | JobUnarchived | WorkspaceOpened | ContextsOpened | FileChanged | PlanChanged
    | WorkFinished | ConversationEvent | MergeEvent | DeliveryEvent | CommentEvent
)  # fmt: skip
