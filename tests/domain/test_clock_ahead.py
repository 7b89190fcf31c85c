"""What was recorded while the clock was ahead neither lasts as long as that, nor waits for it."""

from datetime import UTC, datetime, timedelta

import pytest

from service.domain.access.people import (
    INVITATION_LIFETIME,
    MakeSignInLink,
    Person,
    SignIn,
    decide,
    evolve,
)
from service.domain.access.reader_tokens import LIFETIME, Reader, is_reader_token_valid, make_reader_token
from service.domain.errors import Unauthorized
from service.domain.hooks import deliveries
from service.domain.jobs.decider import JobResumed, PostponeJob, ResumeJob
from service.domain.jobs.decider import decide as decide_job
from tests.domain.test_jobs import NOW as JOB_NOW
from tests.domain.test_jobs import OPEN, REQUEST, START, after
from tests.domain.test_people import ADDED

NOW = datetime(2026, 1, 2, tzinfo=UTC)
AHEAD = NOW + timedelta(days=30)


def test_reader_token_does_not_last_longer():
    reader = Reader("key", "network")
    for made, is_valid in ((NOW, True), (AHEAD, False)):
        token = make_reader_token(b"secret", reader, "https://docs.example", made + LIFETIME)
        assert is_reader_token_valid(b"secret", token, reader, None, NOW) is is_valid


@pytest.mark.parametrize("made", [NOW, AHEAD])
def test_sign_in_link_does_not_last_longer(made):
    person = evolve(Person(), ADDED)
    for event in decide(MakeSignInLink("digest", made, INVITATION_LIFETIME), person):
        person = evolve(person, event)
    sign_in = SignIn("session", "link", NOW, "digest")
    if made == NOW:
        assert decide(sign_in, person)
    else:
        with pytest.raises(Unauthorized):
            decide(sign_in, person)


def test_delivery_does_not_wait_for_it():
    tried = deliveries.RecordAttempt("w", "j", "job.completed", 500, "", 0.1, 86_400.0, 1.0, AHEAD)
    state = deliveries.Waiting()
    for event in deliveries.decide(tried, state):
        state = deliveries.evolve(state, event)
    assert state.is_due(NOW)
    assert not state.is_due(AHEAD)


def test_job_does_not_wait_for_it():
    ahead = JOB_NOW + timedelta(days=30)
    waiting = after(REQUEST, START, OPEN, PostponeJob("model", "unavailable", "It is down.", 24.0, ahead, jitter=1.0))
    assert decide_job(ResumeJob(JOB_NOW), waiting) == [JobResumed(JOB_NOW)]
    assert decide_job(ResumeJob(ahead), waiting) == []
