"""Comments on a job's pull request: which become messages, which are answered, and which count once."""

from datetime import timedelta

from msgspec.structs import replace

from service.domain.jobs.comments import MAX_IGNORED, CommentSource, without_address
from service.domain.jobs.decider import (
    CommentAnswered,
    CommentIgnored,
    JobReopened,
    MessageAdded,
    ReceiveComment,
    RecordAnswer,
    decide,
)
from tests.domain.test_job_rounds import HANDED_IN, PASS, WORKED, after, types
from tests.domain.test_jobs import NOW

COMMENT = CommentSource("c1", "v1", "ada", "t1", "https://x/1", "guide/a.md", 3, 5, "+new", 7)


def received(number=1, *, at=NOW, author="ada", may_write=True, version="v1"):
    comment = replace(COMMENT, id=f"c{number}", author=author, version=version)
    return ReceiveComment(comment, "@docsmith shorten it", may_write, 10, f"answer{number}", at)


def test_words_of_a_comment_are_without_the_address():
    assert without_address("@docsmith: replace a\n@docsmith with b") == "replace a\nwith b"


def test_comment_steers_a_job_at_work():
    job = after(*WORKED)
    (added,) = decide(received(), job)
    assert added == MessageAdded("@docsmith shorten it", NOW, COMMENT, "answer1")
    assert after(*WORKED, received()).work.finish is None


def test_comment_makes_a_finished_job_active():
    assert types(decide(received(), after(*HANDED_IN))) == [JobReopened, MessageAdded]


def test_comment_counts_once_whatever_its_version():
    job = after(*HANDED_IN, received())
    assert decide(received(), job) == []
    assert decide(received(version="v2"), job) == []


def test_comment_of_a_stranger_is_ignored_once():
    (ignored,) = decide(received(may_write=False), after(*HANDED_IN))
    assert isinstance(ignored, CommentIgnored)
    assert (ignored.reason, ignored.answer_id) == ("no_write_access", "")
    job = after(*HANDED_IN, received(may_write=False))
    assert decide(received(), job) == []
    assert job.work.review.unanswered == ()


def test_ignored_comments_are_recorded_up_to_a_number():
    flood = [received(number, may_write=False) for number in range(MAX_IGNORED)]
    assert decide(received(MAX_IGNORED, may_write=False), after(*HANDED_IN, *flood)) == []


def test_eleventh_comment_in_an_hour_is_answered_with_when():
    ten = [received(number, at=NOW + timedelta(minutes=number)) for number in range(10)]
    job = after(*HANDED_IN, *ten)
    (ignored,) = decide(received(10, at=NOW + timedelta(minutes=20)), job)
    assert (ignored.reason, ignored.answer_id) == ("too_many_comments", "answer10")
    assert ignored.until == NOW + timedelta(hours=1)
    assert types(decide(received(11, at=NOW + timedelta(minutes=61)), job)) == [MessageAdded]


def test_only_one_answer_an_hour_says_there_were_too_many():
    job = after(*HANDED_IN, *(received(number) for number in range(11)))
    (again,) = decide(received(12), job)
    (other,) = decide(received(13, author="grace"), job)
    assert (again.answer_id, other.answer_id) == ("", "answer13")


def test_answered_comments_wait_no_more():
    job = after(*HANDED_IN, received(1), received(2))
    assert [one.answer_id for one in job.work.review.unanswered] == ["answer1", "answer2"]
    answer = RecordAnswer(("answer1",), NOW, "https://x/2")
    assert types(decide(answer, job)) == [CommentAnswered]
    answered = after(*HANDED_IN, received(1), received(2), answer)
    assert [one.answer_id for one in answered.work.review.unanswered] == ["answer2"]
    assert decide(answer, answered) == []


def test_comment_sends_work_back_that_had_passed():
    assert after(*WORKED, PASS, received()).work.remaining_problems is None
