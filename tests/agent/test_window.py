"""How a long job's prompt is kept within the model's window."""

import json
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from service.agent.loop.conversation import messages
from service.agent.loop.window import FREED, LEFT_OUT, MOST_PROMPT_TOKENS, cut, prompt_bytes, size, told
from service.agent.tools.results import as_data
from service.domain.jobs.decider import ChecksReported, JobRequested, Message, ModelReplied, Problem, ToolReturned, Work
from service.domain.model import ToolCall, Usage
from service.domain.tool_values import Found
from service.ports.context_budget import context_budget
from service.ports.model import AssistantMessage, ToolMessage, UserMessage

AT = datetime(2026, 5, 4, tzinfo=UTC)
REQUEST = JobRequested("o", "p", "", "main", "", "m", (Message("user", "Do it"),), "T", "b", False, False, 2, AT)


def reply(number, tool="read", count=1, **arguments):
    calls = tuple(ToolCall(f"c{number}-{at}", tool, json.dumps(arguments)) for at in range(count))
    return ModelReplied("m", "", calls, Usage(), AT)


def result(number, characters=0, *, at=0, tool="read", text="", is_error=False):
    body = text or f"page{number}.md, lines 1 to 90 of 90:\n" + as_data("x\n" * (characters // 2))
    return ToolReturned(f"c{number}-{at}", tool, body, is_error, AT)


def steps(count, characters):
    return [
        step for number in range(count) for step in (reply(number, path=f"page{number}.md"), result(number, characters))
    ]


def texts(told_messages):
    return [message.text for message in told_messages if isinstance(message, ToolMessage)]


def test_without_a_window_nothing_is_shortened():
    assert not any(LEFT_OUT in text for text in texts(told(steps(300, 10_000), None)))


def test_prompt_stays_within_its_budget_and_mostly_only_grows():
    room, made, changes, before = 100_000, [], 0, []
    for number in range(200):
        made += [reply(number, path=f"page{number}.md"), result(number, 9_000)]
        now = told(made, room)
        assert size(now) <= room
        assert LEFT_OUT not in texts(now)[-1]
        changes += now[: len(before)] != before
        before = now
    assert changes <= 200 * 9_000 / (room * (1 - FREED)) + 1


def test_shortened_result_says_what_it_was_and_how_to_repeat_it():
    now = texts(told(steps(30, 9_000), 100_000))
    assert now[0].startswith("page0.md, lines 1 to 90 of 90:\n[")
    assert LEFT_OUT in now[0]
    found = as_data("two in a.md\n  1: x\none in b/c.md\n" + "  2: y\n" * 400)
    returned = replace(result(0, tool="search", text=f"3 matches:\n{found}"), value=Found(2, ("a.md", "b/c.md")))
    search = [reply(0, "search", query="x"), returned]
    short = texts(told([*search, *steps(30, 9_000)], 100_000))[0]
    assert "3 matches" in short
    assert "a.md, b/c.md" in short


def test_short_results_and_errors_stay_as_they_are():
    small = [reply(0, "replace", path="a.md"), result(0, tool="replace", text="Replaced once in a.md.")]
    wrong = [reply(1), result(1, text="There is no file b.md.", is_error=True)]
    now = told([*small, *wrong, *steps(30, 9_000)], 100_000)
    assert texts(now)[:2] == ["Replaced once in a.md.", "There is no file b.md."]


def test_long_arguments_of_earlier_calls_shrink_and_stay_json():
    wrote = [reply(0, "write", path="a.md", text="z" * 50_000), result(0, text="Wrote a.md.")]
    odd = [ModelReplied("m", "", (ToolCall("c9-0", "write", '{"text": "' + "q" * 9_000),), Usage(), AT), result(9, 10)]
    now = told([*wrote, *odd, *steps(20, 9_000)], 100_000)
    calls = [call for message in now if isinstance(message, AssistantMessage) for call in message.tool_calls]
    assert json.loads(calls[0].arguments)["path"] == "a.md"
    assert "left out" in json.loads(calls[0].arguments)["text"]
    assert json.loads(calls[1].arguments) == {"left_out": "9010 characters"}


def test_many_short_steps_become_a_note_of_the_changed_files():
    made = []
    for number in range(600):
        made += [
            reply(number, "replace", path=f"p{number % 3}.md", text="y" * 300),
            result(number, tool="replace", text="Replaced once."),
        ]
    now = told(made, 60_000)
    assert size(now) <= 61_000
    assert isinstance(now[0], UserMessage)
    assert "p0.md\np1.md\np2.md" in now[0].text
    assert "replace " in now[0].text
    assert isinstance(now[1], AssistantMessage)


def test_too_large_results_of_one_reply_shrink_oldest_first():
    many = [reply(0, count=40), *(result(0, 20_000, at=at) for at in range(40))]
    now = texts(told(many, 100_000))
    assert LEFT_OUT in now[0]
    assert LEFT_OUT not in now[-1]
    assert size(told(many, 100_000)) <= 100_000


def test_single_result_takes_at_most_a_third_and_stays_fenced():
    shown = texts(told([reply(0), result(0, 90_000)], 30_000))[0]
    assert len(shown) < 11_000
    tag = shown.partition("<data ")[2][:8]
    assert f"</data {tag}>\n[" in shown
    assert "ask for less at once" in shown
    assert cut("short", 10) == "short"


def test_handled_findings_are_shown_in_one_line():
    report = ChecksReported(1, tuple(Problem("links", "a.md", "broken " * 50) for _ in range(60)), True, AT)
    now = told([*steps(1, 9_000), report, *steps(20, 9_000)], 60_000)
    assert any("The checks found problems here: 60." in message.text for message in now)


def test_window_keeps_a_margin_and_space_for_the_reply():
    small, large = context_budget(8_000, 16_384), context_budget(1_000_000, 16_384)
    assert small.reply_tokens == 2_000
    assert prompt_bytes(small) / 3 + small.reply_tokens < 8_000
    assert prompt_bytes(large) == MOST_PROMPT_TOKENS * 3
    assert prompt_bytes(large.smaller().smaller()) == prompt_bytes(large) // 4


def test_the_whole_prompt_is_counted_not_only_the_steps():
    work = Work(transcript=tuple(steps(60, 30_000)))
    for window_tokens in (16_000, 32_000, 128_000, 1_000_000):
        limit = prompt_bytes(context_budget(window_tokens, 16_384))
        assert size(messages(REQUEST, work, "facts " * 500, limit)) <= limit


SIZES = st.lists(st.tuples(st.integers(1, 5), st.integers(0, 40_000)), min_size=1, max_size=40)


@given(SIZES, st.integers(8_000, 300_000))
def test_every_result_follows_its_call_whatever_is_shortened(sizes, room):
    made = []
    for number, (count, characters) in enumerate(sizes):
        made += [reply(number, count=count, path="a.md"), *(result(number, characters, at=at) for at in range(count))]
    waiting = []
    for message in told(made, room):
        if isinstance(message, AssistantMessage):
            assert waiting == []
            waiting = [call.id for call in message.tool_calls]
        elif isinstance(message, ToolMessage):
            assert message.call_id == waiting.pop(0)
    assert waiting == []
    assert told(made, room) == told(tuple(made), room)
