"""Whatever is asked of a job, in whatever order: what its log may hold, and what the model is told."""

from datetime import UTC, datetime

from hypothesis import example, given, settings
from hypothesis import strategies as st

from service.domain.errors import ServiceError
from service.domain.jobs.decider import (
    Absent,
    AddMessage,
    ArchiveJob,
    BranchPushed,
    CancelJob,
    ClosePullRequest,
    Committed,
    CompleteJob,
    FailJob,
    FileChange,
    Finished,
    Handover,
    InterruptJob,
    JobCompleted,
    JobFailed,
    JobReopened,
    MergeConflict,
    MergedBase,
    MessageAdded,
    ModelReplied,
    OpenWorkspace,
    Problem,
    Queued,
    Rebase,
    RecordChecks,
    RecordCommit,
    RecordFinish,
    RecordModelReply,
    RecordPullRequest,
    RecordPush,
    RecordToolResult,
    RemindModel,
    RoundStarted,
    Running,
    SetMergeAside,
    StartJob,
    ToolReturned,
    UnarchiveJob,
    WorkRebased,
    decide,
    evolve,
)
from service.domain.model import ToolCall, Usage
from tests.domain.test_jobs import REQUEST

NOW = datetime(2026, 1, 2, tzinfo=UTC)
MERGE = MergedBase(
    "m" * 40, "b" * 40, (FileChange("x.md", "<<<<<<<"),), (MergeConflict("x.md", "changed", 1, "<<<<<<<"),)
)
WISHES = (
    "start", "open", "reply", "reply", "reply", "last reply", "result", "result", "result", "finish by tool", "finish",
    "ask", "remind", "pass", "send back", "commit", "push", "pull request", "complete", "complete", "fail",
    "interrupt", "park",
    "message", "message", "message", "cancel", "archive", "unarchive", "merge", "rebase",
    "open merged", "set aside", "rebase with conflicts",
)  # fmt: skip


def command(wish, number, job):
    """What whoever does it would ask for, in the state that they saw last."""
    work = None if isinstance(job, Absent) else job.work
    waiting = work.unanswered_calls() if work else ()
    call = waiting[0].id if waiting else "none"
    calls = tuple(ToolCall(f"c{number}-{k}", "write", "{}") for k in range(2))
    seen = work.messages if work else 0
    return {
        "start": StartJob("one", NOW),
        "open": OpenWorkspace("a" * 40, NOW, branch="docs/other" if number % 7 == 0 else ""),
        "reply": RecordModelReply("m", "…", calls, Usage(1, 1), NOW, messages_seen=max(0, seen - number % 2)),
        "last reply": RecordModelReply("m", "Done.", (), Usage(1, 1), NOW, messages_seen=seen),
        "result": RecordToolResult(call, "write", "ok", False, NOW, changes=(FileChange(f"{number % 3}.md", "x"),)),
        "finish by tool": RecordToolResult(call, "finish", "ok", False, NOW, finished=Handover("T", "S")),
        "ask": RecordToolResult(call, "ask", "ok", False, NOW, asked="Q"),
        "remind": RemindModel("words", NOW),
        "finish": RecordFinish("T", "S", NOW),
        "pass": RecordChecks((), False, NOW),
        "send back": RecordChecks((), True, NOW),
        "commit": RecordCommit(f"{number:040}", "t" * 40, "a" * 40, "D <d@e>", "docs: x", NOW),
        "push": RecordPush("docs/x", "c" * 40, NOW),
        "pull request": RecordPullRequest(number % 2, "http://x", NOW),
        "complete": CompleteJob("done", NOW),
        "fail": FailJob("branch_moved" if number % 2 else "unavailable", "x", NOW),
        "interrupt": InterruptJob("one", NOW),
        "park": InterruptJob("one", NOW, parked=True),
        "message": AddMessage(f"message {number}", NOW),
        "cancel": CancelJob(NOW),
        "archive": ArchiveJob(NOW),
        "unarchive": UnarchiveJob(NOW),
        "merge": ClosePullRequest("merged", NOW),
        "open merged": OpenWorkspace("a" * 40, NOW, docs_commit="d" * 40, merge=MERGE),
        "set aside": SetMergeAside((Problem("conflicts", "x.md", "…"),), (FileChange("x.md", "ours"),), NOW),
        "rebase with conflicts": Rebase(f"{number:040}", NOW, (FileChange("x.md", "<<<"),), MERGE.conflicts),
        "rebase": Rebase("b" * 40 if number % 2 else "c" * 40, NOW),
    }[wish]


def is_in_order(transcript):
    """Providers refuse a prompt in which a call is not followed by its result."""
    open_calls = set()
    for step in transcript:
        if isinstance(step, ToolReturned):
            assert step.call_id in open_calls
            open_calls.remove(step.call_id)
        else:
            assert not open_calls, "something stands between a call and its result"
            if isinstance(step, ModelReplied):
                open_calls = {call.id for call in step.tool_calls}


@settings(max_examples=300, deadline=None)
@example(["start", "open", "reply", "send back"])
@example(["start", "reply", "open merged"])
@example(["start", "open", "reply", "commit", "message", "complete"])
@example(["start", "open", "commit", "reply", "message", "complete"])
@given(st.lists(st.sampled_from(WISHES), max_size=80))
def test_any_history_is_a_sound_one(wishes):
    job, log = Absent(), []
    for event in decide(REQUEST, job):
        log.append(event)
        job = evolve(job, event)
    for number, wish in enumerate(wishes):
        try:
            events = decide(command(wish, number, job), job)
        except ServiceError:
            continue  # refused, and nothing recorded
        for event in events:
            log.append(event)
            job = evolve(job, event)
        is_in_order(job.work.transcript)
        assert not (job.work.waiting and job.work.finish and not job.work.commit), "done without having heeded it"
    replayed = Absent()
    for event in log:
        replayed = evolve(replayed, event)
    assert replayed == job
    said = [event for event in log if isinstance(event, MessageAdded)]
    told = [step for step in job.work.transcript if isinstance(step, MessageAdded)]
    assert [*told, *job.work.waiting] == said  # each once, in order
    ended = committed = pushed = False
    for event in log:
        if isinstance(event, JobCompleted | JobFailed):
            assert not ended
            ended = True
        elif isinstance(event, JobReopened | RoundStarted):
            assert ended or isinstance(event, RoundStarted)
            ended = committed = pushed = False
        elif isinstance(event, WorkRebased):
            assert not pushed
            committed = False
        elif isinstance(event, Committed):
            assert not committed
            assert not ended
            committed = True
        elif isinstance(event, BranchPushed):
            assert not pushed
            pushed = True
    assert isinstance(job, Finished if ended else Queued | Running)
