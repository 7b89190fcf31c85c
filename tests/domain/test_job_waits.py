"""A job that waits for what is away: how long, and what ends it."""

from datetime import timedelta

import pytest

from service.domain.errors import Conflict
from service.domain.jobs import decider as jobs
from service.domain.jobs.decider import (
    AddMessage,
    CancelJob,
    InterruptJob,
    JobFailed,
    JobInterrupted,
    JobResumed,
    JobWaiting,
    MessageAdded,
    PostponeJob,
    Queued,
    RecordChecks,
    RecordCommit,
    RecordFinish,
    RecordPush,
    ResumeJob,
    StartJob,
    decide,
)
from service.domain.jobs.waiting import MAX_QUICK_DEATHS
from tests.domain.test_jobs import ASK, NOW, OPEN, REQUEST, START, after

PASSED = (RecordFinish("Title", "Summary", NOW), RecordChecks((), False, NOW))
COMMIT = RecordCommit("c" * 40, "t" * 40, "a" * 40, "D <d@e>", "docs: x", NOW)
PUSH = RecordPush("docs/fix-1", "c" * 40, NOW)
AWAY = PostponeJob("model", "unavailable", "the provider is down", 24.0, NOW, jitter=1.0)


def at(command, **later):
    return type(command)(**{**{name: getattr(command, name) for name in command.__struct_fields__},
                            "now": NOW + timedelta(**later)})  # fmt: skip


def series(*waits):
    """A job that is tried again after each of these waits, with no step between."""
    commands = [REQUEST, START, OPEN]
    for wait in waits:
        commands += [wait, ResumeJob(NOW + timedelta(days=9)), START]
    return after(*commands)


def test_pauses_grow_up_to_a_limit():
    seconds = []
    for number in range(12):
        (event,) = decide(AWAY, series(*[AWAY] * number))
        seconds.append((event.next_try_at - NOW).total_seconds())
        assert (event.tries, event.since) == (number + 1, NOW)
    assert seconds == [2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600, 600]


@pytest.mark.parametrize(("asked", "seconds"), [(90.0, 90), (1.0, 2), (1e9, 24 * 3600)])
def test_pause_is_as_long_as_the_other_side_asks(asked, seconds):
    (event,) = decide(PostponeJob("model", "rate_limited", "busy", 24.0, NOW, asked, 1.0), series())
    assert event.next_try_at - NOW == timedelta(seconds=seconds)


def test_wait_of_too_many_hours_fails_the_job_with_its_reason():
    job = series(AWAY, at(AWAY, hours=23, minutes=59))
    (event,) = decide(at(AWAY, hours=23, minutes=59, seconds=57), job)
    assert isinstance(event, JobWaiting)
    assert event.next_try_at == NOW + timedelta(hours=24)  # a last time
    (event,) = decide(at(AWAY, hours=24), job)
    assert isinstance(event, JobFailed)
    assert (event.code, event.message) == ("unavailable", "the provider is down")


def test_job_fails_at_once_where_no_waiting_is_wanted():
    (event,) = decide(PostponeJob("git", "code_host_unavailable", "down", 0.0, NOW), series())
    assert isinstance(event, JobFailed)


def test_step_between_two_waits_begins_a_new_series():
    job = after(REQUEST, START, AWAY, ResumeJob(NOW + timedelta(hours=1)), START, OPEN)
    assert job.work.setback is None
    (event,) = decide(at(AWAY, hours=30), job)
    assert (event.tries, event.since) == (1, NOW + timedelta(hours=30))


def test_job_is_not_taken_up_before_its_pause_ends():
    job = after(REQUEST, START, AWAY)
    assert isinstance(job, Queued)
    with pytest.raises(Conflict):
        decide(START, job)
    assert decide(ResumeJob(NOW + timedelta(seconds=1)), job) == []
    assert [type(event) for event in decide(ResumeJob(NOW + timedelta(seconds=2)), job)] == [JobResumed]
    assert decide(ResumeJob(NOW + timedelta(hours=1)), after(REQUEST)) == []


def test_message_ends_the_pause():
    events = decide(AddMessage("Hurry", NOW), after(REQUEST, START, AWAY))
    assert [type(event) for event in events] == [MessageAdded, JobResumed]
    job = after(REQUEST, START, AWAY, AddMessage("Hurry", NOW), START)
    assert (job.attempt, job.work.setback) == (1, None)


def test_job_that_waits_can_be_cancelled():
    assert isinstance(after(REQUEST, START, AWAY, CancelJob(NOW)).outcome, JobFailed)


def test_deaths_count_only_without_a_new_step():
    job = after(REQUEST, START)
    for _ in range(10):
        for _ in range(MAX_QUICK_DEATHS):
            for command in (InterruptJob("one", NOW), START):
                for event in decide(command, job):
                    job = jobs.evolve(job, event)
        for event in decide(AddMessage("Go on", NOW), job):
            job = jobs.evolve(job, event)
    (event,) = decide(InterruptJob("one", NOW), job)
    assert isinstance(event, JobInterrupted)


@pytest.mark.parametrize(("done", "dependency"), [((), "git"), ((COMMIT,), "git"), ((COMMIT, PUSH), "code_host")])
def test_finished_work_is_handed_in_however_often_its_process_dies(done, dependency):
    job = after(REQUEST, START, OPEN, *PASSED, *done)
    seen = []
    for number in range(100):
        now = NOW + timedelta(days=number)
        for command in (InterruptJob("one", now), ResumeJob(now + timedelta(hours=1)), StartJob("one", now)):
            for event in decide(command, job):
                job = jobs.evolve(job, event)
                seen.append(event)
    assert not any(isinstance(event, JobFailed) for event in seen)
    waits = [event for event in seen if isinstance(event, JobWaiting)]
    assert {event.dependency for event in waits} == {dependency}
    assert len(waits) == 100 - MAX_QUICK_DEATHS


def test_pauses_grow_after_deaths_without_a_step():
    job, seconds = after(REQUEST, START), []
    for _ in range(12):
        for command in (InterruptJob("one", NOW), ResumeJob(NOW + timedelta(hours=1)), StartJob("one", NOW)):
            for event in decide(command, job):
                job = jobs.evolve(job, event)
                if isinstance(event, JobWaiting):
                    seconds.append((event.next_try_at - NOW).total_seconds())
                    assert event.dependency == "disk"
    assert seconds == [5, 10, 20, 40, 60, 60, 60, 60]


def test_wait_keeps_what_the_job_has_done():
    job = after(REQUEST, START, OPEN, ASK)
    waits = after(REQUEST, START, OPEN, ASK, AWAY)
    assert waits.work.transcript == job.work.transcript
    assert waits.work.base_commit == job.work.base_commit
