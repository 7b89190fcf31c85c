"""A job's steps for those who may read its pull request: what was done when, without a word of prompts or files."""

from collections import Counter
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

import msgspec
from msgspec import Struct

from service.domain.jobs.decider import (
    BaseMerged,
    BaseNotMerged,
    BranchPushed,
    ChecksReported,
    Committed,
    JobCompleted,
    JobEvent,
    JobFailed,
    JobInterrupted,
    JobReopened,
    JobRequested,
    JobStarted,
    MessageAdded,
    ModelReplied,
    PullRequestClosed,
    PullRequestOpened,
    PullRequestUpdated,
    ReplyLost,
    RoundStarted,
    ToolReturned,
    WorkRebased,
    WorkspaceOpened,
)
from service.domain.jobs.events import (
    BranchChanged,
    CommentAnswered,
    CommentIgnored,
    ContextsOpened,
    JobResumed,
    JobWaiting,
    ModelReminded,
    ReminderReason,
)
from service.domain.model import ToolCall

MAX_PATH = 300


class JobStep(Struct, frozen=True):
    at: datetime
    name: str
    detail: str = ""
    is_error: bool = False
    is_tool: bool = False
    """The name is that of a tool."""
    is_end: bool = False
    """The job has ended with it."""


class JobSteps(Struct, frozen=True):
    """The steps of the job behind a pull request, the oldest first."""

    job_id: str
    model: str
    steps: tuple[JobStep, ...]
    is_cut: bool
    """The steps are the newest of more."""


class StepReader:
    """Turns a job's events into steps. The paths of a tool's call are remembered until its result."""

    def __init__(self) -> None:
        self.model = ""
        self._paths: dict[str, str] = {}

    def step(self, event: JobEvent) -> JobStep | None:
        """Return the step that an event is; None for one that is part of another, or is not shown."""
        if isinstance(event, ModelReplied):
            return self._replied(event)
        if isinstance(event, ToolReturned):
            path = self._paths.pop(event.call_id, "")
            return JobStep(event.returned_at, event.name, path, is_error=event.is_error, is_tool=True)
        known = _STEPS.get(type(event))
        return None if known is None else known(event)

    def _replied(self, reply: ModelReplied) -> JobStep:
        self.model = reply.model
        self._paths = {call.id: _path(call) for call in reply.tool_calls}
        tokens = reply.usage.input_tokens + reply.usage.output_tokens
        counts = Counter(call.name for call in reply.tool_calls)
        called = ", ".join(name if times == 1 else f"{name} ({times} times)" for name, times in [*counts.items()][:20])
        detail = "; ".join(filter(None, [f"calls {called}" if called else "", f"{tokens:,} tokens" if tokens else ""]))
        return JobStep(reply.replied_at, "Model replied", detail)


def _path(call: ToolCall) -> str:
    """Return the paths in a call's arguments, and nothing else of them."""
    try:
        arguments = msgspec.json.decode(call.arguments)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return ""
    found = [arguments.get(name) for name in ("path", "to", "folder")] if isinstance(arguments, dict) else []
    return " → ".join(path[:MAX_PATH] for path in found if isinstance(path, str) and path)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _checks(event: ChecksReported) -> JobStep:
    found = _count(len(event.problems), "problem") if event.problems else "nothing found"
    back = ", returned to the model" if event.returned else ""
    return JobStep(event.reported_at, "Checks", f"{found}{back}", is_error=any(one.is_error for one in event.problems))


def _contexts(event: ContextsOpened) -> JobStep:
    """Return the step without the names of the repositories, which may be private."""
    unread = sum(1 for one in event.contexts if one.problem)
    detail = f"{len(event.contexts) - unread} read" + (f", {unread} not available" if unread else "")
    return JobStep(event.opened_at, "Context repositories", detail, is_error=unread > 0)


def _merged(event: BaseMerged) -> JobStep:
    left = _count(len(event.conflicts), "conflict") if event.conflicts else "no conflicts"
    return JobStep(event.merged_at, "Documentation's branch merged", f"{event.commit[:10]}, {left}")


_REMINDED: Mapping[ReminderReason, str] = {
    "words": "to call a tool",
    "failures": "not to repeat a failing call",
    "repeats": "not to repeat itself",
}
_STEPS: Mapping[type, Callable[[Any], JobStep]] = {
    JobRequested: lambda e: JobStep(e.requested_at, "Job requested"),
    JobStarted: lambda e: JobStep(e.started_at, "Work started", f"attempt {e.attempt}"),
    WorkspaceOpened: lambda e: JobStep(e.opened_at, "Repository opened", f"commit {e.base_commit[:10]}"),
    ContextsOpened: _contexts,
    ReplyLost: lambda e: JobStep(e.lost_at, "Reply lost", e.reason[:200], is_error=True),
    ModelReminded: lambda e: JobStep(e.reminded_at, "Model reminded", _REMINDED[e.reason]),
    ChecksReported: _checks,
    BaseMerged: _merged,
    BaseNotMerged: lambda e: JobStep(e.recorded_at, "Documentation's branch not merged", is_error=True),
    WorkRebased: lambda e: JobStep(e.rebased_at, "Moved to another commit", f"commit {e.onto[:10]}"),
    Committed: lambda e: JobStep(e.committed_at, "Committed", f"commit {e.commit[:10]}"),
    BranchPushed: lambda e: JobStep(e.pushed_at, "Branch pushed", e.branch),
    PullRequestOpened: lambda e: JobStep(e.opened_at, "Pull request opened", f"number {e.number}"),
    PullRequestUpdated: lambda e: JobStep(e.updated_at, "Pull request updated", f"number {e.number}"),
    PullRequestClosed: lambda e: JobStep(e.closed_at, f"Pull request {e.outcome}"),
    BranchChanged: lambda e: JobStep(e.changed_at, "Branch changed", e.branch),
    MessageAdded: lambda e: JobStep(e.added_at, "Comment received" if e.comment else "Message received"),
    CommentIgnored: lambda e: JobStep(e.ignored_at, "Comment ignored", e.reason.replace("_", " ")),
    CommentAnswered: lambda e: JobStep(e.answered_at, "Comment answered", e.failure, is_error=bool(e.failure)),
    JobReopened: lambda e: JobStep(e.reopened_at, "Job continued", f"round {e.round}"),
    RoundStarted: lambda e: JobStep(e.started_at, "Job continued", f"round {e.round}"),
    JobWaiting: lambda e: JobStep(e.next_try_at, "Next try", f"waiting for the {str(e.dependency).replace('_', ' ')}"),
    JobResumed: lambda e: JobStep(e.resumed_at, "Resumed"),
    JobInterrupted: lambda e: JobStep(e.interrupted_at, "Interrupted"),
    JobCompleted: lambda e: JobStep(
        e.completed_at, "Asked a question" if e.outcome == "needs_input" else "Completed", is_end=True
    ),
    JobFailed: lambda e: JobStep(e.failed_at, "Failed", e.code, is_error=True, is_end=True),
}
