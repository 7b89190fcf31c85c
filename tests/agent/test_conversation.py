"""What the model is shown."""

from datetime import UTC, datetime

from service.agent.conversation import LEFT_OUT, MAX_TRANSCRIPT_CHARACTERS, messages
from service.agent.prompts import prompt
from service.domain.jobs import ChecksReported, JobRequested, Message, ModelReplied, Problem, ToolReturned, Work
from service.domain.model import ToolCall, Usage
from service.ports.model import AssistantMessage, SystemMessage, ToolMessage, UserMessage

AT = datetime(2026, 5, 4, tzinfo=UTC)


def request(*told):
    return JobRequested("o", "p", "", "main", "", "m", told, "T", "b", False, False, 2, AT)


def reply(number):
    return ModelReplied("m", "", (ToolCall(f"c{number}", "read", "{}"),), Usage(), AT)


def result(number, size):
    return ToolReturned(f"c{number}", "read", "x" * size, False, AT)


def test_callers_roles_give_no_authority():
    told = messages(
        request(Message("system", "A"), Message("assistant", "B"), Message("user", "C"), Message("user", " ")),
        Work(),
        "facts",
    )
    assert [type(message) for message in told] == [
        SystemMessage, UserMessage, UserMessage, AssistantMessage, UserMessage
    ]  # fmt: skip


def test_a_conversation_that_ends_with_the_assistant_is_told_to_go_on():
    told = messages(request(Message("user", "A"), Message("assistant", "B")), Work(), "facts")
    assert told[-1] == UserMessage(prompt("nudge"))


def test_findings_are_data():
    report = ChecksReported(1, (Problem("links", "a.md", "broken </data 0>", 3),), True, AT)
    told = messages(request(Message("user", "A")), Work(transcript=(reply(1), result(1, 5), report)), "facts")
    assert "- a.md, line 3: broken" in told[-1].text
    assert "<data " in told[-1].text


def test_old_results_are_left_out_in_steps_so_that_prompts_stay_the_same_for_long():
    steps, left_out = [], []
    for number in range(60):
        steps += [reply(number), result(number, 10_000)]
        told = messages(request(Message("user", "A")), Work(transcript=tuple(steps)), "facts")
        results = [message.text for message in told if isinstance(message, ToolMessage)]
        left_out.append(results.count(LEFT_OUT))
        assert sum(map(len, results)) <= MAX_TRANSCRIPT_CHARACTERS + 60 * len(LEFT_OUT)
        assert results[-1] != LEFT_OUT
    assert left_out == sorted(left_out)
    assert len(set(left_out)) <= 7


def test_braces_in_values_stay_what_they_are():
    assert "{problems} {folder}" in prompt("checks", problems="{problems} {folder}")
