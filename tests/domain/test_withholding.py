"""Lines of contexts that are not public are left out of what others read of a job's requests."""

from datetime import UTC, datetime

import msgspec
import pytest

from service.domain.jobs.events import ContextsOpened, ModelReplied, OpenedContext, ToolReturned
from service.domain.jobs.requests import RequestMessage
from service.domain.jobs.withholding import Withholding
from service.domain.model import ToolCall, Usage

AT = datetime(2026, 11, 29, tzinfo=UTC)
OPENED = ContextsOpened(
    (OpenedContext("inner", "/srv/inner", "main"), OpenedContext("code", "c", "main", public=True)), AT
)
TEXT = "@inner/a.py, lines 1 to 3 of 3:\n<data 0a1b2c3d>\n1\tkey = wind * 42\n2\t}\n3\treturn key + 7\n</data 0a1b2c3d>"
NOTE = "[3 lines of @inner left out: it is not public]"


def call(name="read", call_id="c1", **arguments):
    return ToolCall(call_id, name, msgspec.json.encode(arguments).decode())


def withholding(*calls, text=TEXT):
    replied = ModelReplied("m", "", calls, Usage(), AT)
    return Withholding([OPENED, replied, *(ToolReturned(one.id, one.name, text, False, AT) for one in calls)])


@pytest.mark.parametrize(
    "arguments",
    [{"path": "@inner/a.py"}, {"folder": "@inner"}, {"paths": ["index.md", "@inner/x"]}, {"path": " @inner/a.py"}],
)
def test_data_of_a_result_is_left_out(arguments):
    message, count = withholding(call(**arguments)).without(RequestMessage("tool", TEXT, call_id="c1", name="read"))
    first, opened, note, closed = message.text.split("\n")
    assert (first, note, count) == ("@inner/a.py, lines 1 to 3 of 3:", NOTE, 3)
    assert (opened, closed) == ("<data 0a1b2c3d>", "</data 0a1b2c3d>")


@pytest.mark.parametrize("arguments", [{"path": "@code/a.py"}, {"path": "inner/a.py"}, {"path": "@innermost/a.py"}])
def test_other_results_stay_whole(arguments):
    shown = RequestMessage("tool", TEXT, call_id="c1", name="read")
    assert withholding(call(**arguments)).without(shown) == (shown, 0)


@pytest.mark.parametrize(
    "line",
    ["{}", "    {}  ", "+{}", "- {}", "> {}", "7\t{}", "  12: {}"],
)
def test_a_line_is_left_out_wherever_it_comes_again(line):
    text = f"It says\n{line.format('key = wind * 42')}\nand }}\nreturn key + 7"
    message, count = withholding(call(path="@inner/a.py")).without(RequestMessage("user", text))
    one = "[1 line of @inner left out: it is not public]"
    assert (message.text, count) == (f"It says\n{one}\nand }}\n{one}", 2)


def test_lines_are_left_out_of_the_arguments_of_calls():
    held = withholding(call(path="@inner/a.py"))
    edits = [{"path": "a.md", "old": "", "new": "# New\nkey = wind * 42\n"}]
    message, count = held.without(
        RequestMessage("assistant", "", (call("edit", "c2", edits=edits), call("check", "c3")))
    )
    assert count == 1
    assert "wind" not in message.calls[0].arguments
    assert msgspec.json.decode(message.calls[0].arguments)["edits"][0]["path"] == "a.md"
    assert message.calls[1] == call("check", "c3")
    odd = ToolCall("c4", "write", '{"text": \nkey = wind * 42\n')
    message, count = held.without(RequestMessage("assistant", "", (odd,)))
    assert (count, "wind" in message.calls[0].arguments) == (1, False)


def test_the_list_of_files_of_a_context_is_left_out():
    facts = (
        "- @code/ is at commit 1 of main. At its top:\n<data 1>\nkite.py\n</data 1>\n"
        "- @inner/ is at commit 2 of main. At its top:\n<data 2>\nplan.md\n</data 2>\nThe task below"
    )
    message, count = withholding().without(RequestMessage("user", facts))
    assert count == 1
    assert "kite.py" in message.text
    assert "plan.md" not in message.text
    assert message.text.endswith("</data 2>\nThe task below")


def test_data_that_is_cut_before_its_end_is_left_out():
    cut = TEXT.rpartition("\n")[0]
    message, count = withholding(call(path="@inner/a.py")).without(RequestMessage("tool", cut, call_id="c1"))
    assert (count, message.text.endswith(NOTE)) == (3, True)


def test_a_job_without_such_contexts_has_all_lines():
    shown = RequestMessage("tool", TEXT, call_id="c1")
    assert Withholding([]).without(shown) == (shown, 0)
