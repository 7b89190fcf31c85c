"""A chat thread: who may post, and how a reply ends."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from service.domain.errors import Conflict, Invalid, NotFound
from service.domain.model import Usage
from service.domain.search import SearchFilter, Source
from service.domain.threads.recorded_reply import (
    MAX_HANDOVERS,
    CompleteReply,
    FailReply,
    LeaveReply,
    RecordSources,
    RecordText,
    ReplyStarted,
    ReplyStopped,
    ResumeReply,
    ReturnToReply,
    SourcesFound,
    StopReply,
)
from service.domain.threads.replies import ResumeRequest
from service.domain.threads.threads import (
    Absent,
    ContextItem,
    PostMessage,
    RecordEmptySearch,
    StartThread,
    Turn,
    decide,
    digest_of,
    evolve,
)
from service.domain.threads.turns import Turns

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


def test_empty_search_is_complete_and_unanswered():
    thread = after(RecordEmptySearch(START))
    assert (thread.turns[0].message.text, thread.turns[0].reply.state) == ("How?", "completed")
    assert decide(RecordEmptySearch(START), Absent())[-1].resolution == "unanswered"
    with pytest.raises(Conflict):
        decide(RecordEmptySearch(START), thread)


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


def test_owner_may_continue_a_thread_with_or_without_the_key():
    for changes in ({}, {"thread_key": "key"}, {"thread_key": "key", "key_required": True}):
        assert len(decide(replace(AGAIN, **changes), after(START))) == 2


def test_anonymous_thread_belongs_to_the_holder_of_its_id():
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
def test_message_that_does_not_fit_is_refused(changes):
    with pytest.raises(Invalid):
        decide(replace(AGAIN, **changes), after(START))


def test_segments_add_up_and_the_whole_text_replaces_them():
    source = Source(1, "a.md", "/a", "A", "", 1, 9, "c" * 40)
    thread = after(START, RecordSources("r1", "how", (source,)), RecordText("r1", "To "), RecordText("r1", "deploy"))
    assert thread.turns[0].reply.text == "To deploy"
    assert thread.turns[0].reply.sources == (source,)
    whole = CompleteReply("r1", "To deploy.", (1,), "answered", "m", Usage(), NOW)
    completed = after(START, RecordText("r1", "To "), whole).turns[0].reply
    assert (completed.text, completed.cited) == ("To deploy.", (1,))


@pytest.mark.parametrize(
    ("end", "kept"),
    [
        (CompleteReply("r1", "So.", (2,), "answered", "m", Usage(), NOW), [2]),
        (StopReply("r1", "stopped", NOW), []),
        (FailReply("r1", "internal", "x", NOW), []),
    ],
)
def test_ended_reply_keeps_the_sources_that_it_cites(end, kept):
    sources = tuple(Source(number, "a.md", "/a", "A", "", 1, 9, "c" * 40) for number in (1, 2, 3))
    reply = after(START, RecordSources("r1", "how", sources), end).turns[0].reply
    assert [source.number for source in reply.sources] == kept


def test_planned_search_is_recorded_with_its_plan():
    planned = RecordSources("r1", "How do I delete a Secret?", (), "openai/gpt-5.2", ("Managing Secrets",))
    thread = after(START)
    assert decide(planned, thread) == [
        SourcesFound("r1", "How do I delete a Secret?", (), "openai/gpt-5.2", ("Managing Secrets",))
    ]


@pytest.mark.parametrize("end", [StopReply("r1", "interrupted", NOW), FailReply("r1", "internal", "x", NOW)])
def test_written_text_stays_when_a_reply_ends_early(end):
    thread = after(START, RecordText("r1", "To "), end)
    assert thread.turns[0].reply.text == "To "
    assert thread.turns[0].reply.state in ("interrupted", "failed")
    assert decide(StopReply("r1", "stopped", NOW), thread) == []
    with pytest.raises(Conflict):
        decide(RecordText("r1", "more"), thread)


def test_a_reply_that_is_not_there_cannot_be_written():
    with pytest.raises(NotFound):
        decide(RecordText("r9", "x"), after(START))


def test_one_process_takes_a_reply_over_and_no_other():
    taken = after(START, RecordText("r1", "Run"), ResumeReply("r1", "one", "two", NOW))
    reply = taken.turns[0].reply
    assert (reply.state, reply.text, reply.instance, reply.resumes) == ("active", "Run", "two", 1)
    assert reply.is_undelivered
    with pytest.raises(Conflict):
        decide(ResumeReply("r1", "one", "three", NOW), taken)


def test_a_reply_goes_on_twice_and_then_ends():
    thread = after(START, ResumeReply("r1", "one", "two", NOW), ResumeReply("r1", "two", "three", NOW))
    assert decide(ResumeReply("r1", "three", "four", NOW), thread) == [ReplyStopped("r1", "interrupted", NOW)]


def left(count):
    """Leave the reply in good order, and take it over, as often."""
    for number in range(count):
        yield RecordText("r1", "", is_left=True)
        yield ResumeReply("r1", "one" if not number else f"i{number}", f"i{number + 1}", NOW)


def test_a_reply_that_was_left_in_good_order_still_goes_on_after_two_crashes():
    thread = after(START, *left(3), ResumeReply("r1", "i3", "a", NOW), ResumeReply("r1", "a", "b", NOW))
    assert thread.turns[0].reply.state == "active"
    assert decide(ResumeReply("r1", "b", "c", NOW), thread) == [ReplyStopped("r1", "interrupted", NOW)]


def test_a_reply_is_not_left_for_ever():
    thread = after(START, *left(MAX_HANDOVERS), RecordText("r1", "", is_left=True))
    command = ResumeReply("r1", f"i{MAX_HANDOVERS}", "next", NOW)
    assert decide(command, thread) == [ReplyStopped("r1", "interrupted", NOW)]


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
    for count in {0, 1, 63, 64, 65, 128, len(expected) // 2, len(expected), len(expected) + 1}:
        first = turns.first(count)
        assert tuple(first) == expected[:count]
        assert tuple(first.with_next(Turn(message))) == (*expected[:count], Turn(message))


def test_name_is_looked_up_once_for_many_turns():
    asked = []

    def name(turn):
        asked.append(turn)
        return turn.message.message_id

    turns, message = Turns(), after(START).turns[0].message
    for number in range(1000):
        turns = turns.with_next(Turn(replace(message, message_id=str(number % 900))))
    assert [turns.last_index(name, each) for each in ("99", "899", "100", "new")] == [999, 899, 100, None]
    asked.clear()
    assert turns.with_next(Turn(message)).last_index(name, "newer") is None
    assert len(asked) <= 64


def test_a_late_event_of_an_earlier_reply_goes_to_that_reply():
    questions = [replace(POST, message_id=f"m{number}", reply_id=f"r{number}") for number in range(2, 150)]
    thread = after(START, *questions, RecordText("r7", "late"))
    assert [turn.reply.reply_id for turn in thread.turns if turn.reply.text] == ["r7"]
    assert thread.turn_of("r7").message.message_id == "m7"


NAMED = replace(POST, client_message_id="c1", chat_id="chat", asker="ann's browser")
FIRST = replace(START, message=NAMED)
FOLLOW_UP = replace(AGAIN, client_message_id="c2", edits=True)
DONE = CompleteReply("r1", "Like this.", (), "answered", "m", Usage(), NOW)


def texts(thread):
    return [turn.message.text for turn in thread.turns]


def replies(thread):
    return [turn.reply.reply_id for turn in thread.turns]


@pytest.mark.parametrize("progress", [[], [DONE]])
def test_a_message_that_is_sent_again_is_not_asked_twice(progress):
    again = replace(NAMED, message_id="m9", reply_id="r9")
    assert decide(again, after(FIRST, *progress)) == []


@pytest.mark.parametrize("end", [StopReply("r1", "stopped", NOW), FailReply("r1", "unavailable", "Try again.", NOW)])
def test_repeated_message_is_asked_again_without_a_whole_reply(end):
    again = replace(NAMED, message_id="m9", reply_id="r9")
    thread = after(FIRST, end, again)
    assert (texts(thread), replies(thread), thread.turns[0].reply.text) == (["How?"], ["r9"], "")


def test_another_reply_replaces_the_last_and_both_are_recorded():
    again = replace(NAMED, message_id="m9", reply_id="r9", regenerates=True)
    events = decide(again, after(FIRST, DONE))
    assert [(type(event), event.reply_id, event.message_id) for event in events] == [(ReplyStarted, "r9", "m1")]
    thread = after(FIRST, DONE, again)
    assert (texts(thread), replies(thread)) == (["How?"], ["r9"])


def test_another_reply_to_an_earlier_message_replaces_the_rest():
    again = replace(NAMED, reply_id="r9", regenerates=True)
    thread = after(FIRST, DONE, FOLLOW_UP, again)
    assert (texts(thread), replies(thread)) == (["How?"], ["r9"])
    assert [type(event) for event in decide(again, after(FIRST, DONE, FOLLOW_UP))] == [ReplyStopped, ReplyStarted]


def test_client_without_ids_may_ask_for_another_last_reply():
    unnamed = replace(POST, message_id="m9", reply_id="r9")
    thread = after(START, AGAIN, replace(unnamed, text="And then?", regenerates=True))
    assert (texts(thread), replies(thread)) == (["How?", "And then?"], ["r1", "r9"])
    new = after(START, replace(unnamed, text="Something else?", regenerates=True))
    assert texts(new) == ["How?", "Something else?"]


@pytest.mark.parametrize(("listed", "expected"), [(0, ["r1", "r2", "r9"]), (3, ["r1", "r9"]), (5, ["r1", "r2", "r9"])])
def test_same_chat_and_question_ask_for_another_reply(listed, expected):
    again = replace(AGAIN, message_id="m9", reply_id="r9", listed=listed)
    assert replies(after(START, AGAIN, again)) == expected


def test_an_edited_message_replaces_its_turn_and_what_followed():
    edited = replace(NAMED, message_id="m9", reply_id="r9", text="How on Windows?", edits=True)
    events = decide(edited, after(FIRST, DONE, FOLLOW_UP))
    assert [event.__struct_config__.tag for event in events] == ["reply-stopped", "message-posted", "reply-started"]
    assert events[0].reply_id == "r2"
    thread = after(FIRST, DONE, FOLLOW_UP, edited)
    assert (texts(thread), replies(thread)) == (["How on Windows?"], ["r9"])


def test_caller_with_one_id_for_all_messages_edits_nothing():
    thread = after(FIRST, replace(NAMED, message_id="m2", reply_id="r2", text="And then?"))
    assert texts(thread) == ["How?", "And then?"]


def test_only_those_who_may_write_can_ask_again():
    stranger = replace(NAMED, fp="bob", regenerates=True)
    with pytest.raises(NotFound):
        decide(stranger, after(FIRST, DONE))


def test_late_events_of_a_replaced_reply_change_nothing():
    again = replace(NAMED, reply_id="r9", regenerates=True)
    thread = after(FIRST, again)
    for late in (RecordText("r1", "late"), StopReply("r1", "stopped", NOW), LeaveReply("r1", NOW)):
        with pytest.raises(NotFound):
            decide(late, thread)


def test_a_reply_knows_whether_its_reader_has_had_it():
    thread = after(FIRST, LeaveReply("r1", NOW))
    assert thread.turns[0].reply.is_undelivered
    assert decide(LeaveReply("r1", NOW), thread) == []
    back = after(FIRST, LeaveReply("r1", NOW), DONE, ReturnToReply("r1", NOW))
    assert (back.turns[0].reply.is_undelivered, back.turns[0].reply.state) == (False, "completed")
    assert decide(ReturnToReply("r1", NOW), back) == []
    assert after(FIRST, StopReply("r1", "interrupted", NOW)).turns[0].reply.is_undelivered


SELF = ResumeRequest("guide", "ann's browser", NOW)


@pytest.mark.parametrize(
    ("reader", "may"),
    [
        (SELF, True),
        (replace(SELF, fp="ann"), True),
        (replace(SELF, fp="bob"), False),
        (replace(SELF, domain="other"), False),
        (replace(SELF, asker="another browser"), False),
        (replace(SELF, asker=""), False),
        (replace(SELF, asker="another browser", fp="ann"), False),
        (replace(SELF, asker="another browser", thread_key="key"), True),
        (replace(SELF, thread_key="wrong"), False),
        (replace(SELF, key_required=True), False),
        (replace(SELF, key_required=True, thread_key="key"), True),
    ],
)
def test_the_name_of_a_chat_alone_opens_nothing(reader, may):
    thread = after(FIRST)
    assert reader.may_hear(thread, thread.turns[0].reply) == may


def test_reply_of_an_unknown_asker_cannot_be_resumed():
    thread = after(replace(START, message=replace(NAMED, asker="")))
    assert not replace(SELF, asker="").may_hear(thread, thread.turns[0].reply)


@pytest.mark.parametrize(
    ("progress", "waits"),
    [
        ([], True),
        ([LeaveReply("r1", NOW)], True),
        ([DONE], False),
        ([LeaveReply("r1", NOW), DONE], True),
        ([DONE, LeaveReply("r1", NOW)], True),
        ([LeaveReply("r1", NOW), DONE, ReturnToReply("r1", NOW)], False),
        ([StopReply("r1", "stopped", NOW)], False),
        ([StopReply("r1", "interrupted", NOW)], True),
        ([FailReply("r1", "unavailable", "Try again.", NOW)], False),
    ],
)
def test_lost_reply_waits_for_its_reader(progress, waits):
    reply = after(FIRST, *progress).turns[0].reply
    assert SELF.waits_for(reply) == waits
    much_later = replace(SELF, now=NOW + timedelta(minutes=6))
    assert much_later.waits_for(reply) == (reply.state == "active")
