"""A reader's thumb for a reply, as part of the thread's record."""

from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from service.domain.errors import Conflict, Invalid, NotFound
from service.domain.model import Usage
from service.domain.search import SearchFilter
from service.domain.threads.feedback import MAX_CHANGES, MAX_COMMENT_CHARACTERS, Feedback, FeedbackGiven, GiveFeedback
from service.domain.threads.recorded_reply import CompleteReply
from service.domain.threads.threads import Absent, PostMessage, StartThread, decide, digest_of, evolve

NOW = datetime(2026, 1, 2, tzinfo=UTC)
POST = PostMessage("m1", "", "How?", (), "", SearchFilter(), 5, 2, "r1", "one", "guide", "ann", NOW)
START = StartThread("org", "project", "guide", "ann", digest_of("key"), POST)
DONE = CompleteReply("r1", "So [1].", (1,), "answered", "m", Usage(), NOW)
UP = GiveFeedback("r1", "guide", "up", "", NOW)
DOWN = GiveFeedback("r1", "guide", "down", "It is wrong.", NOW)


def after(*commands):
    thread = Absent()
    for command in commands:
        for event in decide(command, thread):
            thread = evolve(thread, event)
    return thread


def test_the_last_rating_of_a_reply_counts():
    thread = after(START, DONE, UP, DOWN)
    assert thread.turns[0].reply.feedback == Feedback("down", "It is wrong.", given=2)
    assert thread.turns[0].reply.text == "So [1]."
    assert decide(UP, thread) == [FeedbackGiven("r1", "up", given_at=NOW)]


def test_the_same_feedback_again_is_no_news():
    assert decide(DOWN, after(START, DONE, DOWN)) == []


@pytest.mark.parametrize(
    ("changes", "code"), [({"reply_id": "r2"}, "message_not_found"), ({"domain": "other"}, "thread_not_found")]
)
def test_feedback_is_for_a_reply_of_a_thread_of_that_site(changes, code):
    with pytest.raises(NotFound) as refused:
        decide(replace(UP, **changes), after(START, DONE))
    assert refused.value.code == code


def test_a_thread_that_is_not_there_has_no_feedback():
    with pytest.raises(NotFound) as refused:
        decide(UP, Absent())
    assert refused.value.code == "thread_not_found"


def test_feedback_is_bounded_in_length_and_number():
    decide(replace(UP, comment="x" * MAX_COMMENT_CHARACTERS), after(START))
    with pytest.raises(Invalid):
        decide(replace(UP, comment="x" * (MAX_COMMENT_CHARACTERS + 1)), after(START))
    changed = after(START, DONE, *([UP, DOWN] * (MAX_CHANGES // 2)))
    with pytest.raises(Conflict) as refused:
        decide(UP, changed)
    assert refused.value.code == "feedback_changed_too_often"
    assert decide(DOWN, changed) == []
