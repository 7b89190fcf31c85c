"""The steps of a running job: its workspace, what the model says and does, the checks. See delivery.py for the rest."""

from service.domain.errors import Conflict
from service.domain.jobs.commands import (
    CompleteJob,
    JobCommand,
    OpenContexts,
    OpenWorkspace,
    Rebase,
    RecordChecks,
    RecordCommit,
    RecordFinish,
    RecordLostReply,
    RecordModelReply,
    RecordPullRequest,
    RecordPush,
    RecordToolResult,
    RemindModel,
    SetMergeAside,
)
from service.domain.jobs.delivery import delivery_step
from service.domain.jobs.events import (
    ChecksReported,
    ContextsOpened,
    JobEvent,
    ModelReminded,
    ModelReplied,
    PlanChanged,
    ReplyLost,
    ToolReturned,
    WorkFinished,
)
from service.domain.jobs.merging import changed, merge_set_aside, workspace_opened
from service.domain.jobs.states import Work


def step(command: JobCommand, work: Work) -> list[JobEvent]:
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
        case RecordModelReply() if work.base_commit is None:
            raise Conflict("The job's workspace is not open yet.")
        case RemindModel() | RecordFinish() | RecordChecks() if work.waiting:
            return []
        case RecordModelReply() as reply:
            return [
                ModelReplied(
                    reply.model, reply.text, reply.tool_calls, reply.usage, replied_at=reply.now, cut_off=reply.cut_off,
                    shrink_level=reply.shrink_level, messages_seen=reply.messages_seen, memory=reply.memory,
                    prompts=reply.prompts, sent=reply.sent,
                )
            ]  # fmt: skip
        case RecordLostReply() as lost:
            return [ReplyLost(lost.code, lost.reason, lost.usage, lost.now, lost.prompts, lost.sent)]
        case RecordToolResult():
            return _tool_returned(command, work)
        case RemindModel(reason=reason, now=now):
            return [ModelReminded(reason, reminded_at=now)]
        case RecordFinish(title=title, summary=summary, now=now, ending=ending):
            return [WorkFinished(title, summary, finished_at=now, ending=ending)]
        case RecordChecks() as checks:
            return [ChecksReported(work.check_rounds + 1, checks.problems, checks.returned, reported_at=checks.now)]
        case SetMergeAside():
            return merge_set_aside(command, work)
        case Rebase() | RecordCommit() | RecordPush() | RecordPullRequest() | CompleteJob():
            return delivery_step(command, work)
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
        said = done.finished
        events.append(
            WorkFinished(
                said.title, said.summary, finished_at=done.now, whole_title=said.whole_title,
                whole_summary=said.whole_summary,
            )
        )  # fmt: skip
    elif done.asked is not None:
        events.append(WorkFinished("", done.asked, finished_at=done.now, ending="asked"))
    return events
