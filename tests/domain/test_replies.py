"""A reply told again from its record, and many deltas as few."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.model import Usage
from service.domain.search import Source
from service.domain.threads.checks import CheckCounts, ReplyChecks, SentenceCheck
from service.domain.threads.recorded_reply import (
    ReaderLeft,
    ReplyCompleted,
    ReplyFailed,
    ReplyStarted,
    ReplyStopped,
    ReplyWritten,
    SourcesFound,
)
from service.domain.threads.replies import (
    FEW_DELTAS,
    ReplyBroken,
    ReplyDone,
    ReplyOpened,
    ReplyReplay,
    SearchFinished,
    SearchStarted,
    SentencesChecked,
    TextDelta,
    merged,
)

NOW = datetime(2026, 1, 2, tzinfo=UTC)
STARTED = ReplyStarted("r1", "m1", "one", NOW)
SOURCE = Source(1, "a.md", "/a", "A", "Part", 1, 9, "c" * 40)


def told(*events):
    replay = ReplyReplay("t1", "r1")
    return [one for event in events for one in replay.apply(event)], replay.is_over


def text_of(events):
    return "".join(event.text for event in events if isinstance(event, TextDelta))


def test_reply_is_published_in_the_order_it_was_given():
    found, over = told(
        ReplyStarted("r0", "m0", "one", NOW), STARTED, SourcesFound("r1", "how", (SOURCE,)), ReplyWritten("r1", "To "),
        ReaderLeft("r1", NOW), ReplyWritten("r0", "of another"), SourcesFound("r1", "more", ()),
        ReplyWritten("r1", "deploy"), ReplyCompleted("r1", "To deploy.", (1,), "answered", "m", Usage(1, 2), NOW),
    )  # fmt: skip
    assert over
    assert [type(event) for event in found] == [
        ReplyOpened, SearchStarted, SearchFinished, TextDelta, SearchStarted, SearchFinished, TextDelta, TextDelta,
        ReplyDone,
    ]  # fmt: skip
    assert found[0] == ReplyOpened("t1", "r1")
    assert (found[1].call_id, found[2].call_id, found[4].call_id) == ("r1-1", "r1-1", "r1-2")
    assert (found[2].sources, found[2].hits[0].url) == ((SOURCE,), "/a")
    assert text_of(found) == found[-1].text == "To deploy."


def test_verdicts_on_record_come_before_the_end():
    checks = ReplyChecks(CheckCounts(2, 0, 1), (SentenceCheck("Wait 9 s.", 0, "unsupported", missing=("9 s",)),))
    done = ReplyCompleted("r1", "Wait 9 s.", (), "answered", "m", Usage(), NOW, checks=checks)
    found, _ = told(STARTED, done)
    assert found[2:] == [SentencesChecked(checks), ReplyDone("Wait 9 s.", (), "answered", "m", Usage(), checks=checks)]
    newer = SentencesChecked(ReplyChecks(CheckCounts(3)))
    assert list(merged([SentencesChecked(checks), TextDelta("a"), newer])) == [TextDelta("a"), newer]


@given(st.lists(st.text(max_size=20), max_size=20), st.integers(0, 20))
def test_every_character_is_published_once(pieces, recorded):
    whole = "".join(pieces)
    segments = [ReplyWritten("r1", piece) for piece in pieces[:recorded]]
    found, _ = told(STARTED, *segments, ReplyCompleted("r1", whole, (), "answered", "m", Usage(), NOW))
    assert text_of(found) == whole


@pytest.mark.parametrize(
    ("end", "code"),
    [
        (ReplyStopped("r1", "interrupted", NOW), "interrupted"),
        (ReplyStopped("r1", "stopped", NOW), "stopped"),
        (ReplyFailed("r1", "unavailable", "The model is unavailable.", NOW), "unavailable"),
    ],
)
def test_reply_without_an_end_is_published_as_far_as_it_goes(end, code):
    found, over = told(STARTED, ReplyWritten("r1", "To "), end, ReplyWritten("r1", "late"))
    assert (text_of(found), over) == ("To ", True)
    assert isinstance(found[-1], ReplyBroken)
    assert found[-1].code == code


@given(st.lists(st.one_of(st.text(max_size=3000).map(TextDelta), st.just(ReplyOpened("t1", "r1"))), max_size=300))
def test_joined_deltas_are_the_same_text_in_the_same_places(events):
    found = list(merged(events))
    assert len(found) <= max(FEW_DELTAS, len(events))
    assert text_of(found) == text_of(events)
    assert [at for at in found if isinstance(at, ReplyOpened)] == [at for at in events if isinstance(at, ReplyOpened)]


def test_few_deltas_are_left_as_they_are():
    few = [TextDelta(str(number)) for number in range(FEW_DELTAS)]
    assert list(merged(few)) == few
    assert len(list(merged([*few, TextDelta("x")]))) == 1
