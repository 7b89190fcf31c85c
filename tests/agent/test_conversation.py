"""What the model is shown."""

from datetime import UTC, datetime

import pytest

from service.agent.guidance.house_rules import MAX_CHARACTERS
from service.agent.loop.conversation import facts, messages
from service.agent.prompts import prompt
from service.agent.workspace import Workspace
from service.domain.jobs.decider import (
    ChecksReported,
    JobRequested,
    Message,
    ModelReminded,
    ModelReplied,
    Problem,
    ToolReturned,
    Work,
)
from service.domain.model import ToolCall, Usage
from service.ports.docs_source import Source
from service.ports.model import AssistantMessage, SystemMessage, UserMessage
from tests.fakes.docs_source import FakeDocsSource

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


def test_conversation_ending_with_the_assistant_asks_to_go_on():
    told = messages(request(Message("user", "A"), Message("assistant", "B")), Work(), "facts")
    assert told[-1] == UserMessage(prompt("nudge"), "nudge")


def test_findings_are_data():
    report = ChecksReported(1, (Problem("links", "a.md", "broken </data 0>", 3),), True, AT)
    told = messages(request(Message("user", "A")), Work(transcript=(reply(1), result(1, 5), report)), "facts")
    assert "- a.md, line 3: broken" in told[-1].text
    assert "<data " in told[-1].text


def test_braces_in_values_stay_what_they_are():
    assert "{problems} {folder}" in prompt("checks", problems="{problems} {folder}")


def test_empty_reply_is_left_out_before_its_reminder():
    silent = ModelReplied("m", "", (), Usage(), AT)
    told = messages(request(Message("user", "A")), Work(transcript=(silent, ModelReminded("words", AT))), "facts")
    assert told[-2:] == (UserMessage("A"), UserMessage(prompt("reminder-words"), "nudge"))


@pytest.mark.parametrize(("window_tokens", "most"), [(None, MAX_CHARACTERS), (8_000, 1_000)])
async def test_long_guidance_is_quoted_up_to_the_budget_and_says_so(window_tokens, most):
    docs = FakeDocsSource({"AGENTS.md": "Be terse. " * 100_000, "docs/AGENTS.md": "Use metric units."})
    source = Source("p1", "", "main", "docs", "local")
    fetched = await docs.fetch(source, branch="b")
    told = await facts(await Workspace.open(docs, source, fetched.base_commit, {}), window_tokens)
    assert len(told) < most + 3_000
    assert "characters more]" in told
    assert told.index("Be terse.") < told.index("Use metric units.")
