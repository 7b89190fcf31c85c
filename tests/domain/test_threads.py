"""A chat thread: who may post, and how a reply ends."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from service.domain.errors import Conflict, Invalid, NotFound
from service.domain.model import Usage
from service.domain.threads import (
    Absent,
    CompleteReply,
    ContextItem,
    FailReply,
    PostMessage,
    RecordSources,
    RecordText,
    SearchFilter,
    Source,
    StartThread,
    StopReply,
    Turn,
    Turns,
    decide,
    digest_of,
    evolve,
)

NOW = datetime(2026, 1, 2, tzinfo=UTC)
POST = PostMessage("m1", "", "How?", (), "", SearchFilter(), 5, 2, "r1", "one", "guide", "ann", NOW)
START = StartThread("org", "project", "guide", "ann", digest_of("key"), POST)
AGAIN = replace(POST, message_id="m2", reply_id="r2", text="And then?")


def after(*commands):
    thread = Absent()
    for command in commands:
        for event in decide(command, thread):
            thread = evolve(thread, event)
    return thread


def test_a_thread_begins_with_its_first_message():
    thread = after(START)
    assert thread.turns[0].message.text == "How?"
    assert thread.turns[0].reply.state == "active"


@pytest.mark.parametrize(
    "changes",
    [{"domain": "other"}, {"fp": "bob"}, {"thread_key": "wrong"}, {"key_required": True}],
)
def test_a_thread_of_somebody_else_is_as_if_it_were_not_there(changes):
    with pytest.raises(NotFound) as foreign:
        decide(replace(AGAIN, **changes), after(START))
    with pytest.raises(NotFound) as absent:
        decide(AGAIN, Absent())
    assert (foreign.value.code, str(foreign.value)) == (absent.value.code, str(absent.value))
    assert foreign.value.code == "thread_not_found"


def test_its_owner_may_go_on_with_or_without_the_key():
    for changes in ({}, {"thread_key": "key"}, {"thread_key": "key", "key_required": True}):
        assert len(decide(replace(AGAIN, **changes), after(START))) == 2


def test_an_anonymous_thread_belongs_to_whoever_has_its_id():
    thread = after(replace(START, fp="anonymous"))
    assert len(decide(replace(AGAIN, fp="anybody"), thread)) == 2


@pytest.mark.parametrize(
    "changes",
    [
        {"text": " \n"},
        {"text": "x" * 32_769},
        {"context": (ContextItem("code", "x" * 50_001),)},
        {"current_path": "/" * 201},
        {"page_size": 0},
        {"page_size": 51},
    ],
)
def test_what_does_not_fit_is_refused(changes):
    with pytest.raises(Invalid):
        decide(replace(AGAIN, **changes), after(START))


def test_segments_add_up_and_the_whole_text_rules():
    source = Source(1, "a.md", "/a", "A", "", 1, 9, "c" * 40)
    thread = after(START, RecordSources("r1", "how", (source,)), RecordText("r1", "To "), RecordText("r1", "deploy"))
    assert thread.turns[0].reply.text == "To deploy"
    assert thread.turns[0].reply.sources == (source,)
    whole = CompleteReply("r1", "To deploy.", (1,), "answered", "m", Usage(), NOW)
    assert after(START, RecordText("r1", "To "), whole).turns[0].reply.text == "To deploy."


@pytest.mark.parametrize("end", [StopReply("r1", "interrupted", NOW), FailReply("r1", "internal", "x", NOW)])
def test_what_was_written_stays_when_a_reply_ends_early(end):
    thread = after(START, RecordText("r1", "To "), end)
    assert thread.turns[0].reply.text == "To "
    assert thread.turns[0].reply.state in ("interrupted", "failed")
    assert decide(StopReply("r1", "stopped", NOW), thread) == []
    with pytest.raises(Conflict):
        decide(RecordText("r1", "more"), thread)


def test_a_reply_that_is_not_there_cannot_be_written():
    with pytest.raises(NotFound):
        decide(RecordText("r9", "x"), after(START))


def test_two_turns_have_their_own_replies():
    thread = after(START, AGAIN, RecordText("r1", "one"), RecordText("r2", "two"))
    assert [turn.reply.text for turn in thread.turns] == ["one", "two"]


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 200)), max_size=300))
def test_turns_are_what_a_tuple_would_be(changes):
    turns, expected = Turns(), ()
    message = after(START).turns[0].message
    for number, (adds, at) in enumerate(changes):
        turn = Turn(replace(message, message_id=str(number)))
        if adds or not expected:
            turns, expected = turns.with_next(turn), (*expected, turn)
        else:
            index = at % len(expected)
            turns, expected = turns.with_changed(index, turn), (*expected[:index], turn, *expected[index + 1 :])
    assert (len(turns), tuple(turns), tuple(reversed(turns))) == (len(expected), expected, expected[::-1])
    assert turns[3:9] == expected[3:9]
    assert [turns[index] for index in range(-len(expected), len(expected))] == [*expected, *expected]
    with pytest.raises(IndexError):
        turns[len(expected)]


def test_a_late_event_of_an_earlier_reply_goes_to_that_reply():
    questions = [replace(POST, message_id=f"m{number}", reply_id=f"r{number}") for number in range(2, 150)]
    thread = after(START, *questions, RecordText("r7", "late"))
    assert [turn.reply.reply_id for turn in thread.turns if turn.reply.text] == ["r7"]
    assert thread.turn_of("r7").message.message_id == "m7"
