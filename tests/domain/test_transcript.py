"""A reply from several sources: readers get each part of it once, or notice that the sources differ."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.model import Usage
from service.domain.threads.checks import ReplyChecks
from service.domain.threads.live_lines import SILENCE, LineReader, encoded_line
from service.domain.threads.replies import (
    ReplyBroken,
    ReplyDone,
    ReplyOpened,
    ReplyWaiting,
    SearchFinished,
    SearchStarted,
    SentencesChecked,
    TextDelta,
)
from service.domain.threads.transcript import Diverged, Transcript

OPENED = ReplyOpened("t", "r")
STARTED, FINISHED = SearchStarted("r-1", "how"), SearchFinished("r-1", "how", (), ())
TEXT = "Run the größte installer\u2028 \U0001f600 [1](/install), and wait."
DONE = ReplyDone(TEXT, (), "answered", "m", Usage())


def cut(text, places):
    """The text in parts, which end at these places."""
    ends = [*sorted(place % (len(text) + 1) for place in places), len(text)]
    return [TextDelta(text[start:end]) for start, end in zip([0, *ends], ends, strict=False)]


@given(
    st.lists(st.lists(st.integers(0, 200), max_size=8), min_size=1, max_size=4),
    st.lists(st.integers(0, 3), max_size=80),
)
def test_each_part_comes_once_from_any_number_of_sources(cuts, turns):
    transcript = Transcript()
    sources = [(transcript.source(), [OPENED, STARTED, FINISHED, *cut(TEXT, places), DONE]) for places in cuts]
    sent = []
    for turn in [*turns, *(number for number in range(len(sources)) for _ in range(30))]:
        source, left = sources[turn % len(sources)]
        if left:
            sent.append(source.take(left.pop(0)))
    sent = [event for event in sent if event is not None]
    assert sent[:3] == [OPENED, STARTED, FINISHED]
    assert sent[-1] == DONE
    assert "".join(event.text for event in sent[3:-1]) == TEXT == transcript.text


@given(st.text("ab", min_size=1), st.text("ab"))
def test_another_text_is_noticed_before_its_end(sent, other):
    transcript = Transcript([OPENED, TextDelta(sent)])
    source, given_text = transcript.source(), ""
    try:
        for event in (TextDelta(other[:2]), TextDelta(other[2:]), ReplyDone(other, (), "answered", "m", Usage())):
            if (new := source.take(event)) is not None and isinstance(new, TextDelta):
                given_text += new.text
    except Diverged:
        assert not other.startswith(sent)
    else:
        assert sent + given_text == other


def test_a_search_within_text_that_readers_have_is_noticed():
    source = Transcript([OPENED, TextDelta("Run ")]).source()
    source.take(TextDelta("Ru"))
    with pytest.raises(Diverged):
        source.take(STARTED)


def test_verdicts_and_waits_come_from_a_source_that_is_level():
    transcript = Transcript([TextDelta("Run ")])
    checked, waits = SentencesChecked(ReplyChecks()), ReplyWaiting(2.0)
    behind = transcript.source()
    behind.take(TextDelta("Ru"))
    assert [behind.take(event) for event in (checked, waits)] == [None, None]
    behind.take(TextDelta("n "))
    assert [behind.take(event) for event in (checked, waits)] == [checked, waits]


def test_nothing_comes_after_the_end():
    transcript = Transcript([TextDelta("Run "), ReplyBroken("stopped", "It was stopped.")])
    assert transcript.source().take(DONE) is None


def test_lines_are_read_however_they_arrive():
    events = [OPENED, STARTED, FINISHED, TextDelta(TEXT), DONE]
    sent = b"".join([encoded_line(3, events[:3]), SILENCE, encoded_line(5, events[3:])])
    for size in (1, 7, len(sent)):
        reader = LineReader()
        lines = [line for at in range(0, len(sent), size) for line in reader.read(sent[at : at + size])]
        assert [line.published for line in lines] == [3, 5]
        assert [event for line in lines for event in line.events] == events
    with pytest.raises(ValueError, match="Invalid value"):
        list(LineReader().read(b'[1,[{"type":"of-a-later-version"}]]\n'))
