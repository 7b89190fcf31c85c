"""An agent job: what may follow what."""

from datetime import UTC, datetime, timedelta

import pytest

from service.domain.errors import Conflict, Invalid, NotFound
from service.domain.jobs import decider as jobs
from service.domain.jobs.decider import (
    Absent,
    BranchPushed,
    ClosePullRequest,
    CompleteJob,
    FailJob,
    FileChange,
    FileChanged,
    Finished,
    InterruptJob,
    JobFailed,
    JobInterrupted,
    JobRequested,
    JobStarted,
    Message,
    ModelReplied,
    OpenWorkspace,
    Queued,
    RecordChecks,
    RecordCommit,
    RecordFinish,
    RecordModelReply,
    RecordPullRequest,
    RecordPush,
    RecordToolResult,
    RequestJob,
    Running,
    StartJob,
    ToolReturned,
    branch_for,
    decide,
    evolve,
    status_of,
    title_from,
)
from service.domain.jobs.waiting import MAX_DEATHS
from service.domain.model import ToolCall, Usage

NOW = datetime(2026, 1, 2, tzinfo=UTC)
REQUEST = RequestJob(
    "org", "project", "repo", "main", "", "builtin/editor", (Message("user", "Fix it"),), "Fix it", "docs/fix-1",
    branch_named=False, as_draft=False, api_version=2, now=NOW,
)  # fmt: skip
CALLS = (ToolCall("c1", "write", "{}"), ToolCall("c2", "read", "{}"))


def after(*commands):
    job = Absent()
    for command in commands:
        for event in decide(command, job):
            job = evolve(job, event)
    return job


START = StartJob("one", NOW)
OPEN = OpenWorkspace("a" * 40, NOW)
ASK = RecordModelReply("builtin/editor", "On it.", CALLS, Usage(10, 5, 0.0), NOW)
WROTE = RecordToolResult("c1", "write", "done", False, NOW, changes=(FileChange("a.md", "new"),))
READ = RecordToolResult("c2", "read", "text", False, NOW)


def test_the_same_request_twice_is_one_job():
    assert decide(REQUEST, after(REQUEST)) == []


@pytest.mark.parametrize("messages", [(), (Message("user", " \n"),)])
def test_a_job_without_an_instruction_is_refused(messages):
    with pytest.raises(Invalid):
        decide(jobs.replace(REQUEST, messages=messages), Absent())


def test_a_running_job_cannot_be_started_again():
    with pytest.raises(Conflict):
        decide(StartJob("two", NOW), after(REQUEST, START))


def test_nothing_happens_to_a_job_that_is_not_there():
    with pytest.raises(NotFound):
        decide(START, Absent())


def test_tool_result_is_recorded_once_with_its_changes():
    job = after(REQUEST, START, OPEN, ASK)
    assert [call.id for call in job.work.unanswered_calls()] == ["c1", "c2"]
    events = decide(WROTE, job)
    assert [type(event) for event in events] == [FileChanged, ToolReturned]
    job = after(REQUEST, START, OPEN, ASK, WROTE)
    assert job.work.changes == {"a.md": "new"}
    assert [call.id for call in job.work.unanswered_calls()] == ["c2"]
    with pytest.raises(Conflict):
        decide(WROTE, job)


def test_model_is_not_asked_again_before_all_calls_have_results():
    with pytest.raises(Conflict):
        decide(ASK, after(REQUEST, START, OPEN, ASK, WROTE))


def test_work_of_a_job_survives_an_interruption():
    job = after(REQUEST, START, OPEN, ASK, WROTE, InterruptJob("one", NOW), StartJob("two", NOW))
    assert isinstance(job, Running)
    assert (job.attempt, job.instance) == (2, "two")
    assert job.work.changes == {"a.md": "new"}
    assert job.work.base_commit == "a" * 40
    assert job.work.usage == Usage(10, 5, 0.0)
    assert [type(step) for step in job.work.transcript] == [ModelReplied, ToolReturned]


def test_an_interruption_of_another_instance_changes_nothing():
    assert decide(InterruptJob("gone", NOW), after(REQUEST, START)) == []


def test_a_job_whose_process_dies_again_and_again_fails():
    commands, later = [REQUEST], NOW + timedelta(days=1)
    for _ in range(MAX_DEATHS - 1):
        commands += [START, InterruptJob("one", NOW), jobs.ResumeJob(later)]
    (event,) = decide(InterruptJob("one", NOW), after(*commands, START))
    assert isinstance(event, JobFailed)
    assert event.code == "interrupted"


def test_parking_does_not_count_as_an_attempt():
    commands = [REQUEST]
    for _ in range(20):
        commands += [START, InterruptJob("one", NOW, parked=True)]
    job = after(*commands, START)
    assert isinstance(job, Running)
    assert job.attempt == 1


def test_gates_send_work_back_and_let_it_pass():
    done = RecordFinish("Title", "Summary", NOW)
    problem = jobs.Problem("links", "a.md", "broken")
    sent_back = after(REQUEST, START, OPEN, done, RecordChecks((problem,), True, NOW))
    assert sent_back.work.finish is None
    assert sent_back.work.remaining_problems is None
    passed = after(REQUEST, START, OPEN, done, RecordChecks((problem,), False, NOW))
    assert passed.work.finish is not None
    assert passed.work.remaining_problems == (problem,)


def test_a_repeated_push_or_pull_request_is_recorded_once():
    commit = RecordCommit("c" * 40, "t" * 40, "a" * 40, "D <d@e>", "docs: x", NOW)
    push = RecordPush("docs/fix-1", "c" * 40, NOW)
    opened = RecordPullRequest(1, "http://x/1", NOW)
    job = after(REQUEST, START, OPEN, commit, push, opened)
    assert isinstance(job.work.pushed, BranchPushed)
    assert decide(push, job) == []
    assert decide(opened, job) == []
    with pytest.raises(Conflict):
        decide(commit, job)


def test_finished_job_refuses_further_steps():
    job = after(REQUEST, START, CompleteJob("done", NOW))
    assert isinstance(job, Finished)
    for command in (START, OPEN, ASK, CompleteJob("x", NOW), FailJob("x", "y", NOW)):
        with pytest.raises(Conflict):
            decide(command, job)
    assert decide(InterruptJob("one", NOW), job) == []


def test_a_merge_is_recorded_once():
    job = after(REQUEST, START, RecordPullRequest(1, "http://x/1", NOW), CompleteJob("done", NOW))
    merged = ClosePullRequest("merged", NOW, "m" * 40)
    assert len(decide(merged, job)) == 1
    job = evolve(job, decide(merged, job)[0])
    assert decide(merged, job) == []
    with pytest.raises(Conflict):
        decide(ClosePullRequest("closed", NOW), job)


def test_status_is_one_of_three():
    assert status_of(after(REQUEST)) == "active"
    assert status_of(after(REQUEST, START)) == "active"
    assert status_of(after(REQUEST, START, InterruptJob("one", NOW))) == "active"
    assert isinstance(after(REQUEST, START, InterruptJob("one", NOW)), Queued)
    assert status_of(after(REQUEST, START, CompleteJob("x", NOW))) == "completed"
    assert status_of(after(REQUEST, FailJob("x", "y", NOW))) == "failed"


def test_a_title_is_the_first_words_of_the_last_user_message():
    assert title_from((Message("system", "Be kind"), Message("user", "\n  Fix links \nplease"))) == "Fix links"
    assert title_from((Message("system", "Be kind"),)) == "Be kind"
    assert title_from((Message("user", "\0\nTell \x1b[31mall\u202e"),)) == "Tell  [31mall"
    assert len(title_from((Message("user", "word " * 100),))) <= 80


def test_a_branch_names_its_job():
    branch = branch_for("0198c0de-0000-7000-8000-00000000beef", "Fix the *broken* links: all of them, everywhere, now")
    assert branch == "docs/fix-the-broken-links-all-of-them-0000beef"
    assert branch_for("0198c0de-0000-7000-8000-00000000beef", "修正") == "docs/0000beef"


def test_events_have_the_tags_that_logs_hold():
    tags = {event.__struct_config__.tag for event in jobs.JobEvent.__args__}
    assert tags >= {JobRequested.__struct_config__.tag, JobStarted.__struct_config__.tag}
    assert JobInterrupted.__struct_config__.tag == "job-interrupted"
    assert len(tags) == len(jobs.JobEvent.__args__)
