"""An agent job that is talked to: steered while it works, gone on with after its end, cancelled, archived."""

from datetime import UTC, datetime

import pytest

from service.domain.errors import Conflict, Invalid
from service.domain.jobs import decider as jobs
from service.domain.jobs.decider import (
    AddMessage,
    ArchiveJob,
    BranchChanged,
    CancelJob,
    ClosePullRequest,
    CompleteJob,
    FailJob,
    FileChange,
    Finished,
    Handover,
    InterruptJob,
    JobArchived,
    JobCompleted,
    JobFailed,
    JobReopened,
    JobResumed,
    MessageAdded,
    ModelReplied,
    OpenWorkspace,
    PostponeJob,
    PullRequestOpened,
    PullRequestUpdated,
    Queued,
    Rebase,
    RecordChecks,
    RecordCommit,
    RecordFinish,
    RecordModelReply,
    RecordPullRequest,
    RecordPush,
    RecordToolResult,
    RetryJob,
    RoundStarted,
    Running,
    StartJob,
    StepBy,
    ToolReturned,
    UnarchiveJob,
    branch_of,
    decide,
    status_of,
)
from service.domain.jobs.waiting import MAX_QUICK_DEATHS
from service.domain.model import ToolCall, Usage
from tests.domain.test_jobs import NOW, OPEN, REQUEST, START, after

MORE = AddMessage("Mention retries, too", NOW)
CALL = (ToolCall("c1", "write", "{}"),)


def reply(calls=(), seen=0):
    return RecordModelReply("m", "On it.", calls, Usage(10, 5, 0.5), NOW, messages_seen=seen)


WROTE = RecordToolResult("c1", "write", "done", False, NOW, changes=(FileChange("a.md", "new"),))
FINISHED_BY_TOOL = RecordToolResult("c1", "finish", "ok", False, NOW, finished=Handover("Title", "Summary"))
FINISH = RecordFinish("Title", "Summary", NOW)
PASS = RecordChecks((), False, NOW)
COMMIT = RecordCommit("c" * 40, "t" * 40, "a" * 40, "D <d@e>", "docs: x", NOW)
PUSH = RecordPush("docs/fix-1", "c" * 40, NOW)
OPENED = RecordPullRequest(1, "http://x/1", NOW)
DONE = CompleteJob("done", NOW)
WORKED = (REQUEST, START, OPEN, reply(CALL), WROTE, FINISH, PASS)
HANDED_IN = (*WORKED, COMMIT, PUSH, OPENED, DONE)


def types(events):
    return [type(event) for event in events]


def test_a_message_waits_for_the_next_reply_that_has_seen_it():
    job = after(REQUEST, START, OPEN, MORE)
    assert [message.text for message in job.work.waiting] == ["Mention retries, too"]
    blind = after(REQUEST, START, OPEN, MORE, reply())  # it came while this reply was on its way
    assert len(blind.work.waiting) == 1
    seen = after(REQUEST, START, OPEN, MORE, reply(), reply(seen=1))
    assert seen.work.waiting == ()
    assert types(seen.work.transcript) == [ModelReplied, MessageAdded, ModelReplied]


def test_message_between_a_call_and_its_result_follows_both():
    job = after(REQUEST, START, OPEN, reply(CALL), MORE, WROTE, reply(seen=1))
    assert types(job.work.transcript) == [ModelReplied, ToolReturned, MessageAdded, ModelReplied]


def test_only_messages_seen_by_a_reply_precede_it():
    job = after(REQUEST, START, OPEN, MORE, AddMessage("And that", NOW), reply(seen=1))
    assert [message.text for message in job.work.waiting] == ["And that"]
    assert job.work.messages == 2


@pytest.mark.parametrize("step", [FINISH, PASS, COMMIT, DONE])
def test_nothing_ends_while_a_message_waits(step):
    assert decide(step, after(REQUEST, START, OPEN, MORE)) == []


def test_finish_unaware_of_a_message_is_only_a_result():
    job = after(REQUEST, START, OPEN, reply((ToolCall("c1", "finish", "{}"),)), MORE)
    assert types(decide(FINISHED_BY_TOOL, job)) == [ToolReturned]


def test_a_message_sends_work_back_that_has_passed_the_checks():
    job = after(*WORKED, MORE)
    assert (job.work.finish, job.work.remaining_problems) == (None, None)
    assert job.work.changes == {"a.md": "new"}


def test_message_after_the_commit_is_for_a_further_round():
    job = after(*WORKED, COMMIT, MORE, PUSH, OPENED)
    assert types(decide(DONE, job)) == [RoundStarted]
    job = after(*WORKED, COMMIT, MORE, PUSH, OPENED, DONE)
    assert isinstance(job, Running)
    assert (job.work.round, job.work.base_commit, job.work.changes, job.work.commit) == (2, None, {}, None)
    assert job.work.pull_request is not None
    assert len(job.work.waiting) == 1


def test_ended_job_with_a_new_message_is_queued_again():
    job = after(*HANDED_IN, MORE)
    assert isinstance(job, Queued)
    assert status_of(job) == "active"
    assert (job.attempt, job.work.round, job.work.changes, job.work.base_commit) == (0, 2, {}, None)
    (earlier,) = job.work.rounds
    assert (earlier.commit.commit, earlier.changes) == ("c" * 40, {"a.md": "new"})
    assert job.work.usage == Usage(10, 5, 0.5)
    assert job.work.round_usage == Usage()


def test_the_second_rounds_pull_request_is_the_first_ones():
    again = (*HANDED_IN, MORE, START, OPEN, reply(CALL, 1), WROTE, FINISH, PASS, COMMIT, PUSH)
    assert types(decide(OPENED, after(*again))) == [PullRequestUpdated]
    assert types(decide(RecordPullRequest(2, "http://x/2", NOW), after(*again))) == [PullRequestOpened]
    assert decide(OPENED, after(*again, OPENED)) == []


@pytest.mark.parametrize(
    ("code", "committed", "kept"),
    [("budget_exhausted", False, True), ("cancelled", True, True), ("branch_moved", True, False)],
)
def test_unpublished_changes_are_kept_where_possible(code, committed, kept):
    steps = (*WORKED, COMMIT) if committed else WORKED
    job = after(*steps, FailJob(code, "x", NOW), MORE)
    assert job.work.commit is None
    assert job.work.changes == ({"a.md": "new"} if kept else {})
    assert job.work.base_commit == ("a" * 40 if kept else None)


ASKED = RecordToolResult("c2", "ask", "Noted.", False, NOW, asked="Which version?")
ASKS = (REQUEST, START, OPEN, reply((*CALL, ToolCall("c2", "ask", "{}"))), WROTE, ASKED, PASS)


def test_job_that_asks_its_caller_needs_input():
    job = after(*ASKS, CompleteJob("Which version?", NOW))
    assert isinstance(job, Finished)
    assert job.outcome == JobCompleted("Which version?", NOW, "needs_input")
    assert (job.work.finish.summary, job.work.finish.ending) == ("Which version?", "asked")


def test_answer_to_a_question_goes_on_with_the_changes():
    job = after(*ASKS, CompleteJob("Which version?", NOW), MORE)
    assert (job.work.changes, job.work.finish, job.work.round) == ({"a.md": "new"}, None, 2)


def test_question_does_not_end_a_job_with_a_new_message():
    job = after(*ASKS[:-2], MORE)
    assert types(decide(ASKED, job)) == [ToolReturned]


@pytest.mark.parametrize(
    ("steps", "outcome"),
    [((*WORKED, PASS), "nothing_changed"), ((*WORKED, PASS, COMMIT, PUSH, OPENED), "pull_request")],
)
def test_completed_job_records_its_outcome(steps, outcome):
    (event,) = decide(CompleteJob("x", NOW), after(*steps))
    assert event.outcome == outcome


def test_unanswered_calls_are_answered_when_a_job_continues():
    job = after(REQUEST, START, OPEN, reply(CALL), FailJob("cancelled", "x", NOW))
    assert types(decide(MORE, job)) == [ToolReturned, JobReopened, MessageAdded]
    assert after(REQUEST, START, OPEN, reply(CALL), CancelJob(NOW), MORE).work.unanswered_calls() == ()


def test_a_new_branch_means_a_new_pull_request():
    job = after(*HANDED_IN, MORE, START, OpenWorkspace("b" * 40, NOW, branch="docs/fix-1-2"))
    assert branch_of(job) == "docs/fix-1-2"
    assert (job.work.pull_request, job.work.rounds) == (None, ())
    assert types(decide(OpenWorkspace("b" * 40, NOW, branch="x"), after(*HANDED_IN, MORE, START))) == [
        BranchChanged,
        jobs.WorkspaceOpened,
    ]


def test_a_merge_is_recorded_whatever_the_job_does_meanwhile():
    merged = ClosePullRequest("merged", NOW)
    for job in (after(*HANDED_IN), after(*HANDED_IN, MORE), after(*HANDED_IN, MORE, START)):
        assert len(decide(merged, job)) == 1
    assert after(*HANDED_IN, MORE, merged).work.pull_request_outcome == "merged"


def test_work_on_a_moved_branch_is_committed_again():
    job = after(*WORKED, COMMIT, Rebase("b" * 40, NOW))
    assert (job.work.base_commit, job.work.commit, job.work.changes) == ("b" * 40, None, {"a.md": "new"})
    assert job.work.finish is not None
    assert after(*WORKED, COMMIT, MORE, Rebase("b" * 40, NOW)).work.finish is None  # there is time to heed it now
    assert decide(Rebase("a" * 40, NOW), after(*WORKED, COMMIT)) == []
    with pytest.raises(Conflict):
        decide(Rebase("b" * 40, NOW), after(*WORKED, COMMIT, PUSH))


@pytest.mark.parametrize("steps", [(REQUEST,), (REQUEST, START), (REQUEST, START, InterruptJob("one", NOW))])
def test_an_active_job_can_be_cancelled_and_again(steps):
    (event,) = decide(CancelJob(NOW), after(*steps))
    assert isinstance(event, JobFailed)
    assert event.code == "cancelled"
    assert decide(CancelJob(NOW), after(*steps, CancelJob(NOW))) == []


def test_a_job_that_has_ended_cannot_be_cancelled():
    with pytest.raises(Conflict) as refused:
        decide(CancelJob(NOW), after(*HANDED_IN))
    assert refused.value.code == "job_ended"


RETRY = RetryJob(NOW)


def test_retry_begins_the_failed_round_without_its_changes():
    job = after(*WORKED[:-2], FailJob("model_failed", "x", NOW))
    assert job.work.changes
    assert types(decide(RETRY, job)) == [JobReopened, MessageAdded]
    again = after(*WORKED[:-2], FailJob("model_failed", "x", NOW), RETRY)
    assert (again.work.changes, again.work.round) == ({}, 2)
    assert [message.text for message in again.work.waiting] == [REQUEST.messages[0].content]


def test_retry_repeats_all_instructions_of_the_round_alone():
    failed = (reply(calls=(), seen=1), FailJob("model_failed", "x", NOW))
    job = after(*HANDED_IN, MORE, START, OPEN, *failed, RETRY)
    assert [message.text for message in job.work.waiting] == ["Mention retries, too"]
    twice = after(*HANDED_IN, MORE, START, OPEN, *failed, RETRY, START, OPEN, FailJob("model_failed", "x", NOW), RETRY)
    assert [message.text for message in twice.work.waiting] == ["Mention retries, too"]


def test_retry_ends_a_pause_and_leaves_running_jobs_alone():
    wait = PostponeJob("model", "timeout", "It is away.", 24, NOW)
    assert types(decide(RETRY, after(REQUEST, START, wait))) == [JobResumed]
    assert decide(RETRY, after(REQUEST)) == decide(RETRY, after(REQUEST, START)) == []


def test_only_a_failed_job_can_be_retried():
    with pytest.raises(Conflict) as refused:
        decide(RETRY, after(*HANDED_IN))
    assert refused.value.code == "job_not_failed"


def test_archiving_changes_nothing_else_and_going_on_undoes_it():
    for steps in ((REQUEST,), (REQUEST, START), HANDED_IN):
        before, job = after(*steps), after(*steps, ArchiveJob(NOW))
        assert job.work.archived_at == NOW
        assert (type(job), status_of(job)) == (type(before), status_of(before))
        assert decide(ArchiveJob(datetime(2027, 1, 1, tzinfo=UTC)), job) == []
        assert after(*steps, ArchiveJob(NOW), UnarchiveJob(NOW)) == before
        assert decide(UnarchiveJob(NOW), before) == []
    assert types(decide(ArchiveJob(NOW), after(*HANDED_IN))) == [JobArchived]
    assert after(*HANDED_IN, ArchiveJob(NOW), MORE).work.archived_at is None


def test_only_the_claimer_of_a_job_takes_its_steps():
    job = after(REQUEST, START)
    assert len(decide(StepBy("one", 1, OPEN), job)) == 1
    again = after(REQUEST, START, CancelJob(NOW), MORE, START)  # the same instance, for the second time
    for command, state in (
        (StepBy("two", 1, OPEN), job),
        (StepBy("one", 1, OPEN), again),
        (StepBy("one", 1, FailJob("x", "late", NOW)), again),
        (StepBy("one", 1, OPEN), after(REQUEST, START, CancelJob(NOW))),
    ):
        with pytest.raises(Conflict) as refused:
            decide(command, state)
        assert refused.value.code == "not_held"


def test_a_blank_message_is_refused_and_so_is_one_too_many():
    with pytest.raises(Invalid):
        decide(AddMessage(" \n", NOW), after(REQUEST))
    job = after(REQUEST, *[MORE] * jobs.MAX_MESSAGES)
    with pytest.raises(Conflict) as refused:
        decide(MORE, job)
    assert refused.value.code == "too_many_messages"


def test_a_round_may_be_interrupted_as_often_as_the_first():
    job = after(*HANDED_IN, MORE)
    for _ in range(MAX_QUICK_DEATHS):
        for command in (START, InterruptJob("one", NOW)):
            for event in decide(command, job):
                job = jobs.evolve(job, event)
    assert isinstance(job, Queued)
    assert not isinstance(job, Finished)


def test_budgets_are_of_the_round():
    job = after(*HANDED_IN, MORE, StartJob("one", NOW), OPEN, reply(seen=1))
    assert job.work.round_usage == Usage(10, 5, 0.5)
    assert job.work.usage == Usage(20, 10, 1.0)
    assert sum(isinstance(step, ModelReplied) for step in job.work.round_steps()) == 1
