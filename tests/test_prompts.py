"""Prompts are files with the reason of each rule, and the manual's page shows them as they are.

After a change of a prompt, run

    python -m tests.test_prompts

which writes the page again, below its introduction.
"""

from pathlib import Path

import pytest

from service.agent.prompts import PROMPTS as AGENT
from service.agent.tools.arguments import descriptions
from service.assistant.finding.model_tools import tools
from service.assistant.prompts import PROMPTS as ASSISTANT
from service.ports.model_probe import PROMPTS as PROBE
from service.ports.prompts import Prompts
from service.queries.readers.prompts import PROMPTS as GAPS

PAGE = Path(__file__).parent.parent / "service" / "manual" / "prompts.md"
FOLDERS = {"The agent": AGENT, "The assistant": ASSISTANT, "Gaps": GAPS, "Trying a model": PROBE}
EACH = [(prompts, name) for prompts in FOLDERS.values() for name in prompts.texts]


def page() -> str:
    """The page as it should be."""
    introduction = PAGE.read_text("utf-8").partition("\n## ")[0].rstrip()
    parts = [introduction]
    for title, prompts in FOLDERS.items():
        parts.append(f"## {title}")
        for name in prompts.texts:
            parts.append(f"### `{name}`")
            for rule in prompts.rules(name):
                parts += [f"````text\n{rule.text}\n````"] * bool(rule.text) + [rule.reason] * bool(rule.reason)
    return "\n\n".join(parts) + "\n"


def test_the_manual_shows_all_prompts_as_they_are():
    assert PAGE.read_text("utf-8") == page()


@pytest.mark.parametrize(("prompts", "name"), EACH, ids=[name for _, name in EACH])
def test_rules_have_reasons_that_no_model_is_sent(prompts, name):
    rules = prompts.rules(name)
    assert any(rule.reason for rule in rules)
    for rule in rules:
        assert rule.reason
        assert rule.reason not in prompts.texts[name]
        assert "<!--" not in rule.text
        assert "-->" not in rule.text + rule.reason
    if name in ("system", "answer", "plan"):  # lists of rules: each with a reason of its own
        assert all(rule.text.count("\n- ") + rule.text.startswith("- ") <= 1 for rule in rules)


def test_texts_are_read_without_reasons_and_filled_in_once(tmp_path, monkeypatch):
    folder = tmp_path / "some_prompts"
    (folder / "inner").mkdir(parents=True)
    (folder / "__init__.py").touch()
    written = "Hello {name}, {unknown} {\n<!-- A\n  greeting. -->\n- one\n  <!-- First. -->\n- two\n"
    (folder / "hello.md").write_text(written)
    (folder / "inner" / "more.md").write_text("More.\n")
    monkeypatch.syspath_prepend(tmp_path)
    prompts = Prompts("some_prompts")
    assert prompts.texts == {"hello": "Hello {name}, {unknown} {\n- one\n- two", "inner/more": "More."}
    assert prompts.text("hello", name="{unknown} <!-- x -->") == "Hello {unknown} <!-- x -->, {unknown} {\n- one\n- two"
    assert [rule.reason for rule in prompts.rules("hello")] == ["A greeting.", "First.", ""]
    with pytest.raises(KeyError):
        prompts.text("hello", other="")
    with pytest.raises(KeyError):
        prompts.text("goodbye")


def test_each_tool_is_described_and_no_other():
    assert all(tool.description for tool in (*descriptions(), *tools()))
    agents, assistants = [tool.name for tool in descriptions()], [tool.name for tool in tools()]
    for prompts, names in ((AGENT, agents), (ASSISTANT, [*assistants, "search_plan"])):
        headings = [line.removeprefix("# ") for line in prompts.texts["tools"].split("\n") if line.startswith("# ")]
        assert headings == names


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
