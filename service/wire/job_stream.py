"""A job's events to what its readers get. No I/O.

Two forms of the same events:

- ``JobStreamEncoder``: AI SDK 4 data lines, the body of the v1 agent endpoint (facts in ``data_stream.py``). Its
  documented client is the chat hook of ``ai@^4.1.15``. The agent's words and its tool calls go into steps of their
  own, and the closing text is the last step, so that ``maxSteps > 1`` does not ask again.
- ``live_event``: one server-sent event of the v2 job event stream: ``id`` is the event's position in the store, so
  ``Last-Event-ID`` resumes from there; ``event`` is its tag; ``data`` is ``public(event)``. Between them, without an
  id, ``queue_event``: the place in the queue of a job that waits.

What stays inside: which instance worked, whose organization it is, the full contents of files (the pull request has
them). Tool results are cut to ``MAX_RESULT_CHARACTERS``: a client wants to see what the agent does, not each file it
reads.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import datetime

import msgspec

from service.domain.jobs.comments import CommentSource
from service.domain.jobs.decider import (
    BaseMerged,
    BaseNotMerged,
    BranchChanged,
    BranchPushed,
    ChecksReported,
    CommentAnswered,
    CommentIgnored,
    Committed,
    ContextsOpened,
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
    MergeConflict,
    MessageAdded,
    ModelReminded,
    ModelReplied,
    OpenedContext,
    PlanChanged,
    Problem,
    PullRequestClosed,
    PullRequestOpened,
    PullRequestUpdated,
    ReplyLost,
    RoundStarted,
    Todo,
    ToolReturned,
    WorkFinished,
    WorkRebased,
    WorkspaceOpened,
)
from service.domain.model import ToolCall, Usage, decoded_arguments, is_builtin
from service.domain.projects.values import public_repository
from service.domain.texts.times import timestamp
from service.wire.data_stream import NO_USAGE, line, step_end, step_start, usage_of
from service.wire.jsontext import json_line

LIVE_EVENTS: Mapping[str, tuple[str, str]] = {
    "job-requested": ("The job was asked for.", "title, source, branch, model, asDraft, requestedAt"),
    "job-started": ("Work on it begins, or begins again.", "attempt, startedAt"),
    "workspace-opened": ("The repository is at hand.", "baseCommit, openedAt"),
    "contexts-opened": (
        "The context repositories that it reads, each at its commit; or the `problem` that keeps it from that.",
        "contexts, openedAt",
    ),
    "model-replied": ("The model's text, and the tools that it calls.", "model, text, toolCalls, usage, repliedAt"),
    "reply-lost": ("A reply that was paid and cannot be used.", "code, reason, usage, lostAt"),
    "tool-returned": ("The result of a tool.", "callId, name, result, isError, returnedAt"),
    "file-changed": ("A file was written, or deleted.", "path, deleted"),
    "plan-changed": ("The agent's plan.", "todos"),
    "model-reminded": (
        "The model made no progress, and is reminded to call a tool (`words`) or another one (`failures`).",
        "reason, remindedAt",
    ),
    "work-finished": (
        "The agent's work ends: `done`, `asked` (a question to the caller), or `stuck`.",
        "title, summary, finishedAt, ending",
    ),
    "checks-reported": (
        "Problems that the checks before a pull request found; `returned`: to the agent.",
        "round, problems, returned, reportedAt",
    ),
    "committed": ("The commit was made.", "commit, message, committedAt"),
    "branch-pushed": ("The branch is on the code host.", "branch, commit, pushedAt"),
    "branch-changed": ("The work is on another branch from now on.", "branch, changedAt"),
    "work-rebased": ("The work is based on another commit.", "onto, insteadOf, rebasedAt, conflicts"),
    "base-merged": (
        "The documentation's branch was merged into the job's; `conflicts` are left to resolve.",
        "head, commit, mergeBase, mergedAt, conflicts",
    ),
    "base-not-merged": (
        "The documentation's branch is not merged, for the reasons in `problems`.",
        "problems, recordedAt",
    ),
    "pull-request-opened": ("The pull request is open.", "number, url, openedAt"),
    "pull-request-updated": ("It has another commit.", "number, url, updatedAt"),
    "pull-request-closed": ("It was merged, or closed.", "outcome, closedAt, mergeCommit"),
    "job-completed": ("The job is done.", "message, completedAt, outcome"),
    "job-failed": ("The job has failed.", "code, message, failedAt"),
    "job-interrupted": ("The process that worked on it ended; it goes on.", "attempt, interruptedAt"),
    "job-waiting": (
        "Something is away: it is tried again. `tries` counts from `since` on.",
        "for, reason, since, nextTryAt, tries",
    ),
    "job-resumed": ("The pause is over; it queues for its turn.", "resumedAt"),
    "message-added": (
        "The job got a message; `comment`: by one on its pull request, with author, url, path, firstLine and lastLine.",
        "text, addedAt, comment",
    ),
    "comment-ignored": (
        "A comment on its pull request led to no message: `no_write_access`, `too_many_comments`, `too_many_messages`.",
        "reason, ignoredAt, until, comment",
    ),
    "comment-answered": ("Comments were answered on the code host, or could not be.", "url, failure, answeredAt"),
    "job-reopened": ("It goes on after its end.", "round, keepsChanges, reopenedAt"),
    "round-started": ("The work on the message begins.", "round, startedAt"),
    "job-archived": ("It was archived.", "archivedAt"),
    "job-unarchived": ("It is listed again.", "unarchivedAt"),
    "queue-position": ("Its place in the queue, from 1.", "position"),
}
"""Type to meaning and fields: for the API's description, as ``LIVE_EXAMPLE``. A test compares what is written."""
LIVE_EXAMPLE = """\
id: 41
event: job-requested
data: {"type":"job-requested","title":"Fix broken links","branch":"docs/fix-broken-links-1d8f3a52"}

id: 63
event: pull-request-opened
data: {"type":"pull-request-opened","number":1,"url":"https://git.example.com/acme/guide/pulls/1"}

"""

MAX_RESULT_CHARACTERS = 2_000

PublicJson = dict[str, object]

_CONFIGURE = "set model under [agent] in docsmith.toml"
_BUILTIN_RUNS = (
    "The builtin agent ({model}) does this job: it understands a few forms of instructions. To use a language model,"
    f" {_CONFIGURE}."
)


class JobStreamEncoder:
    """Encodes one run of a job, from its request (or a follow-up) to its end. Feed it the events in order, each once.

    ``is_done`` after the last line: the response ends there. ``is_waiting`` while the job waits for what is away.
    """

    def __init__(self, job_id: str) -> None:
        self._job_id = job_id
        self._calls: list[str] = []
        self._usage = NO_USAGE
        self._call_usage = NO_USAGE
        self._pull_request = ""
        self._has_text = False
        self.is_done = self.is_waiting = False

    def encode(self, event: JobEvent) -> list[bytes]:
        if self.is_done or self._goes_on_waiting(event):
            return []
        match event:
            case JobRequested(model=model) if is_builtin(model):
                return [self._text(_BUILTIN_RUNS.format(model=model))]
            case ModelReplied():
                return self._model_replied(event)
            case ToolReturned():
                return self._tool_returned(event)
            case ReplyLost(usage=usage):
                self._usage += usage
                return [self._data(event)]
            case PullRequestOpened(url=url) | PullRequestUpdated(url=url):
                self._pull_request = url
                return [self._data(event)]
            case JobCompleted():
                return self._completed(event)
            case JobFailed(message=message):
                self.is_done = True
                return [line("3", message or "The job failed.")]
            case (
                JobStarted() | FileChanged() | PlanChanged() | WorkFinished() | ChecksReported() | BranchPushed()
                | JobInterrupted() | MessageAdded() | RoundStarted() | BranchChanged() | WorkRebased()
                | JobWaiting() | ModelReminded() | BaseMerged() | BaseNotMerged()
            ):  # fmt: skip
                return [self._data(event)]
            case _:
                return []

    def _goes_on_waiting(self, event: JobEvent) -> bool:
        """Return whether the event belongs to a wait that the stream has reported: each try is the same wait."""
        if self.is_waiting and isinstance(event, JobWaiting | JobResumed | JobStarted | JobArchived | JobUnarchived):
            return True
        self.is_waiting = isinstance(event, JobWaiting)
        return False

    def _model_replied(self, reply: ModelReplied) -> list[bytes]:
        self._usage += reply.usage
        lines: list[bytes] = []
        if reply.text.strip():
            usage = NO_USAGE if reply.tool_calls else reply.usage
            lines += [step_start(self._job_id), self._text(reply.text), step_end("stop", usage)]
        if reply.tool_calls:
            self._calls = [call.id for call in reply.tool_calls]
            self._call_usage = reply.usage
            lines.append(step_start(self._job_id))
            lines += [
                line("9", {"toolCallId": call.id, "toolName": call.name, "args": _arguments(call)})
                for call in reply.tool_calls
            ]
        return lines

    def _tool_returned(self, returned: ToolReturned) -> list[bytes]:
        if returned.call_id not in self._calls:
            return []  # its call was before this reader's first event: the client would fail on a result alone
        self._calls.remove(returned.call_id)
        result = {"text": _cut(returned.result), "isError": returned.is_error}
        lines = [line("a", {"toolCallId": returned.call_id, "result": result})]
        return lines if self._calls else [*lines, step_end("tool-calls", self._call_usage)]

    def _completed(self, completed: JobCompleted) -> list[bytes]:
        self.is_done = True
        lines = [step_end("tool-calls", self._call_usage)] if self._calls else []
        words = completed.message.strip() or "Done."
        if not self._pull_request or self._pull_request in words:
            closing = words
        else:
            closing = f"{words}\n\nPull request: {self._pull_request}"
        finish: PublicJson = {"type": "finish", "sessionId": self._job_id}
        if self._pull_request:
            finish["pullRequestLink"] = self._pull_request
        if completed.outcome is not None:
            finish["outcome"] = completed.outcome
        return [
            *lines,
            step_start(self._job_id),
            self._text(closing),
            line("2", [finish]),
            step_end("stop"),
            line("d", {**finish, "finishReason": "stop", "usage": usage_of(self._usage)}),
        ]

    def _text(self, text: str) -> bytes:
        """The client joins the texts of all steps to one: later ones begin a new paragraph."""
        before = "\n\n" if self._has_text else ""
        self._has_text = True
        return line("0", before + text)

    def _data(self, event: JobEvent) -> bytes:
        return line("2", [public(event)])


def named_model(model: str) -> str:
    """Return the model for a header; for the builtin one also how to configure another."""
    return f"{model} (to use a language model, {_CONFIGURE})" if is_builtin(model) else model


def live_event(position: int, event: JobEvent) -> bytes:
    """One event of the job's event stream, whole."""
    data = public(event)
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (position, str(data["type"]).encode(), json_line(data))


def queue_event(position: int) -> bytes:
    """The place of a job that waits, from 1: of the moment, so it has no id and is not sent again."""
    data = json_line({"type": "queue-position", "position": position})
    return b"event: queue-position\ndata: %s\n\n" % data


def public(event: JobEvent) -> PublicJson:
    """The event as its job's owner may read it; ``type`` is its tag, names in camel case, times as in the API."""
    tag = event.__struct_config__.tag
    return {"type": tag, **_public_fields(event)}


_SHOWN: Mapping[type[JobEvent], tuple[str, ...]] = {
    JobStarted: ("attempt", "started_at"),
    WorkspaceOpened: ("base_commit", "opened_at"),
    ContextsOpened: ("contexts", "opened_at"),
    ModelReplied: ("model", "text", "tool_calls", "usage", "replied_at"),
    PlanChanged: ("todos",),
    ModelReminded: ("reason", "reminded_at"),
    ReplyLost: ("code", "reason", "usage", "lost_at"),
    WorkFinished: ("title", "summary", "finished_at", "ending"),
    ChecksReported: ("round", "problems", "returned", "reported_at"),
    Committed: ("commit", "message", "committed_at"),
    BranchPushed: ("branch", "commit", "pushed_at"),
    PullRequestOpened: ("number", "url", "opened_at"),
    JobFailed: ("code", "message", "failed_at"),
    JobInterrupted: ("attempt", "interrupted_at"),
    PullRequestClosed: ("outcome", "closed_at", "merge_commit"),
    JobResumed: ("resumed_at",),
    JobReopened: ("round", "keeps_changes", "reopened_at"),
    RoundStarted: ("round", "started_at"),
    BranchChanged: ("branch", "changed_at"),
    CommentAnswered: ("url", "failure", "answered_at"),
    WorkRebased: ("onto", "instead_of", "rebased_at", "conflicts"),
    BaseMerged: ("head", "commit", "merge_base", "merged_at", "conflicts"),
    BaseNotMerged: ("problems", "recorded_at"),
    PullRequestUpdated: ("number", "url", "updated_at"),
    JobArchived: ("archived_at",),
    JobUnarchived: ("unarchived_at",),
}
"""Fields of events that are shown as they are; the others are in ``_public_fields``."""


def _public_fields(event: JobEvent) -> PublicJson:
    match event:
        case JobRequested():
            source = {"repository": public_repository(event.repository, event.project_id), "ref": event.ref}
            rest = _fields(event, ("branch", "model", "as_draft", "requested_at"))
            return {"title": event.title, "source": source, **rest}
        case FileChanged():
            return {"path": event.path, "deleted": event.content is None}
        case JobWaiting(dependency=dependency):
            return {"for": dependency, **_fields(event, ("reason", "since", "next_try_at", "tries"))}
        case ToolReturned():
            shown = _fields(event, ("call_id", "name", "result", "is_error", "returned_at"))
            return {**shown, "result": _cut(event.result)}
        case JobCompleted():
            shown = _fields(event, ("message", "completed_at"))
            return shown if event.outcome is None else {**shown, "outcome": event.outcome}
        case MessageAdded(comment=comment):
            return {**_fields(event, ("text", "added_at")), **_comment(comment)}
        case CommentIgnored(comment=comment, until=until):
            shown = _fields(event, ("reason", "ignored_at") if until is None else ("reason", "ignored_at", "until"))
            return {**shown, **_comment(comment)}
        case PullRequestClosed(merge_commit=None | ""):
            return _fields(event, ("outcome", "closed_at"))
        case _:
            return _fields(event, _SHOWN[type(event)])


def _comment(comment: CommentSource | None) -> PublicJson:
    if comment is None:
        return {}
    shown: PublicJson = {"author": comment.author, "url": comment.url}
    if comment.path:
        shown |= {"path": comment.path, "firstLine": comment.first_line, "lastLine": comment.last_line}
    return {"comment": shown}


def _fields(event: JobEvent, names: Iterable[str]) -> PublicJson:
    return {_camel(name): _public_value(getattr(event, name)) for name in names}


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


def _public_value(value: object) -> object:
    match value:
        case datetime():
            return timestamp(value)
        case tuple():
            return [_public_value(each) for each in value]
        case ToolCall():
            return {"id": value.id, "name": value.name, "arguments": _arguments(value)}
        case Usage():
            return _public_usage(value)
        case Todo():
            return {"id": value.id, "content": value.content, "status": value.status, "priority": value.priority}
        case Problem():
            return _problem(value)
        case MergeConflict():
            return {"path": value.path, "kind": value.kind, "line": value.line}
        case OpenedContext(name=name, ref=ref, commit=commit):
            at = {"problem": value.problem} if value.problem else {"ref": ref, "commit": commit}
            return {"name": name, **at}
        case _:
            return value


def _arguments(call: ToolCall) -> dict[str, object]:
    """Return the arguments as an object, which both forms need; other text, or text that nests too deep, stays text."""
    with suppress(msgspec.DecodeError):
        return decoded_arguments(call.arguments, dict[str, object])
    return {"text": call.arguments}


def _cut(text: str) -> str:
    return text if len(text) <= MAX_RESULT_CHARACTERS else text[: MAX_RESULT_CHARACTERS - 1] + "…"


def _problem(problem: Problem) -> PublicJson:
    where: PublicJson = {
        "gate": problem.gate, "path": problem.path, "message": problem.message, "severity": problem.severity,
        "code": problem.rule,
    }  # fmt: skip
    return where | ({"line": problem.line} if problem.line is not None else {})


def _public_usage(usage: Usage) -> PublicJson:
    tokens: PublicJson = {"inputTokens": usage.input_tokens, "outputTokens": usage.output_tokens}
    return tokens | ({"costUsd": usage.cost_usd} if usage.cost_usd is not None else {})
