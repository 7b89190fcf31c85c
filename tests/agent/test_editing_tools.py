"""Several edits in one call, a way back, and errors that name what is right."""

import pytest

from service.ports.docs_source import NewCommit
from tests.agent.test_tools import FILES, SOURCE, Links, Toolbox, Workspace, changed_workspace, run
from tests.contracts.docs_source import AT
from tests.fakes.docs_source import FakeDocsSource
from tests.fakes.model import call


async def test_edits_of_several_files_are_one_call():
    edits = [
        {"path": "index.md", "old": "# Home", "new": "# Start"},
        {"path": "guides/a.md", "old": "retry", "new": "again", "all": True},
        {"path": "index.md", "old": "# Start\n\nUse", "new": "# Start here\n\nTake"},
    ]
    done = await run("edit", edits=edits)
    assert {change.path: change.content for change in done.changes} == {
        "index.md": "# Start here\n\nTake `retry` or Retry.\n",
        "guides/a.md": "again\n" * 12,
    }
    assert done.result == "Replaced 2 times in index.md.\nReplaced 12 times in guides/a.md."


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"path": "index.md", "old": "nowhere", "new": "x"}, "index.md does not have this text"),
        ({"path": "gone.md", "old": "a", "new": "x"}, "File not found: gone.md"),
        ({"path": "guides/a.md", "old": "retry", "new": "x"}, "12 times, on lines 1, 2, 3"),
    ],
)
async def test_no_edit_is_made_when_one_cannot_be(wrong, says):
    box = await changed_workspace()
    done = await box.run(call("edit", edits=[{"path": "index.md", "old": "# Home", "new": "# Start"}, wrong]))
    assert done.is_error
    assert done.changes == ()
    assert "Nothing was changed, because of edit 2 of 2: " in done.result
    assert says in done.result
    assert "# Home" in (await box.run(call("read", path="index.md"))).result


async def test_changes_of_a_file_or_folder_are_undone():
    box = await changed_workspace(
        call("write", path="index.md", text="# Other\n"),
        call("delete", path="guides/a.md"),
        call("write", path="guides/new.md", text="# New\n"),
    )
    (change,) = (await box.run(call("revert", path="index.md"))).changes
    assert change.content == FILES["index.md"]
    done = await box.run(call("revert", path="guides"))
    assert {each.path: each.content for each in done.changes} == {
        "guides/a.md": FILES["guides/a.md"],
        "guides/new.md": None,
    }
    assert len((await box.run(call("revert", path="."))).changes) == 3
    box._workspace.apply((await box.run(call("revert", path="."))).changes)
    assert (await box.run(call("diff"))).result == "You have changed nothing."
    assert (await box.run(call("revert", path="index.md"))).is_error


async def test_undoing_what_was_not_changed_names_what_was():
    box = await changed_workspace(call("write", path="index.md", text="# Other\n"))
    refused = await box.run(call("revert", path="guides/a.md"))
    assert refused.is_error
    assert refused.result == "You have not changed guides/a.md. You have changed: index.md."


async def with_history():
    docs = FakeDocsSource({"a.md": "One\n", "b/c.md": "c\n", "b/d.md": "d\n"})
    docs.branches["v1.0"] = first = docs.branches["main"]
    second = await docs.write_commit(
        SOURCE, NewCommit(first, {"a.md": "Two\n", "b/c.md": "cc\n"}, "Ada <a@example.com>", "docs: two", AT)
    )
    third = await docs.write_commit(
        SOURCE, NewCommit(second.commit, {"b/d.md": "dd\n"}, "Ada <a@example.com>", "docs: three", AT)
    )
    workspace = await Workspace.open(docs, SOURCE, third.commit, {})
    return Toolbox(workspace, Links(workspace), None, "docs"), first, second.commit


async def test_a_file_gets_the_text_of_an_earlier_commit():
    box, _, _ = await with_history()
    (change,) = (await box.run(call("revert", path="a.md", commit="v1.0"))).changes
    assert change.content == "One\n"
    assert (await box.run(call("revert", path="a.md", commit="v7"))).is_error
    assert (await box.run(call("revert", path="nowhere.md", commit="v1.0"))).is_error


async def test_diff_between_two_commits_and_tags():
    box, first, second = await with_history()
    whole = (await box.run(call("diff", **{"from": "v1.0"}))).result
    assert "3 files changed" in whole
    assert "-One\n+Two\n" in whole
    assert "+dd\n" in whole
    middle = (await box.run(call("diff", **{"from": first[:10], "to": second[:10]}))).result
    assert "2 files changed" in middle
    assert "dd" not in middle
    some = (await box.run(call("diff", **{"from": "v1.0", "paths": ["a.md", "b/d.md"]}))).result
    assert "2 files changed" in some
    assert "cc" not in some


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"from": "v9"}, "nor a tag or a branch: v9"),
        ({"to": "v1.0"}, "Give from, too."),
        ({"from": "v1.0", "commit": "abcdef"}, "Give commit, or from and to."),
    ],
)
async def test_a_diff_that_is_not_clear_is_refused(arguments, says):
    box, _, _ = await with_history()
    refused = await box.run(call("diff", **arguments))
    assert refused.is_error
    assert says in refused.result


async def test_diff_of_several_own_files():
    box = await changed_workspace(*(call("write", path=f"{name}.md", text="x\n") for name in "abc"))
    shown = (await box.run(call("diff", paths=["a.md", "c.md"]))).result
    assert "2 files changed" in shown
    assert "b.md" not in shown


@pytest.mark.parametrize(
    ("tool", "arguments", "says"),
    [
        ("read", {"file": "a.md"}, "Its fields are: path (required), start_line, end_line."),
        ("replace", {"path": "a.md", "find": "x", "new": "y"}, "path (required), old (required), new (required), all"),
        ("edit", {"edits": [{"path": "a.md", "find": "x"}]}, "edits (required; each with path (required), old (req"),
        ("plan", {"todos": [{"content": "x", "status": "done"}]}, "status (cancelled or completed or in_progress or"),
        ("check", {"changed": True}, "Its fields are: none."),
        ("diff", {"since": "v1"}, "from, to"),
    ],
)  # fmt: skip
async def test_wrong_fields_are_answered_with_the_right_ones(tool, arguments, says):
    refused = await run(tool, **arguments)
    assert refused.is_error
    assert says in refused.result
