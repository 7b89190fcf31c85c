"""Tools that show a part say how much more there is, and how to get it; and lines are shown as they are."""

import re

import pytest

from service.agent.tools.results import MAX_RESULT_CHARACTERS
from service.ports.docs_source import NewCommit
from tests.agent.test_tools import SOURCE, Links, Toolbox, Workspace, changed_workspace, run, toolbox
from tests.contracts.docs_source import AT
from tests.fakes.docs_source import FakeDocsSource
from tests.fakes.model import call

OPTIONS = "# Options\n\nAll of them.\n\n| Option | Default | Meaning |\n| :-- | --: | --- |\n" + "".join(
    f"| `option_{number}` | {number} | Sets the {'timeout' if number == 47 else 'value'} of part {number}. |\n"
    for number in range(60)
)


@pytest.mark.parametrize("way", [{"exact": True}, {"regex": True}])
async def test_search_in_one_file_shows_every_line(way):
    files = {"a.md": "retry\n" * 12, "b.md": "retry\n"}
    found = (await run("search", files=files, query="retry", folder="a.md", **way)).result
    assert found.startswith("12 matches in 1 file:")
    assert [int(number) for number in re.findall(r"^  (\d+): retry$", found, re.MULTILINE)] == list(range(1, 13))
    assert "more" not in found


@pytest.mark.parametrize("way", [{}, {"exact": True}, {"regex": True}])
async def test_search_says_how_many_lines_of_a_file_it_left_out(way):
    files = {"guides/a.md": "retry retry\n" * 11, "guides/b.md": "retry\n"}
    found = (await run("search", files=files, query="retry", folder="guides", **way)).result
    assert '  … 12 more in this file: search again with folder "guides/a.md"' in found
    assert found.count(" more in this file") == 1


async def test_search_in_a_file_of_many_matches_says_where_to_read_on():
    found = (await run("search", files={"a.md": "retry and more\n" * 4_000}, query="retry", folder="a.md")).result
    assert len(found) < MAX_RESULT_CHARACTERS
    shown = re.findall(r"^  (\d+): retry", found.rpartition("matches")[2], re.MULTILINE)
    assert f"  … {4_000 - len(shown)} more in this file: read it from line {len(shown) + 1}" in found


async def test_search_in_many_files_says_so_for_each():
    files = {f"{number:03}.md": "retry\nretry\n" for number in range(300)}
    found = (await run("search", files=files, query="retry", exact=True)).result
    assert '  … 1 more in this file: search again with folder "000.md"' in found
    assert re.search(r"in 300 files, of which the first \d+ are listed: search in a folder for the others:", found)


async def test_a_section_is_shown_by_its_lines_around_the_match():
    found = (await run("search", files={"options.md": OPTIONS, "b.md": "# B\n"}, query="what sets the timeout")).result
    lines = found.splitlines()
    assert "options.md, lines 1 to 66: Options" in lines
    assert "  1: # Options" in lines
    assert "  54: | `option_47` | 47 | Sets the timeout of part 47. |" in lines
    assert "  …" in lines
    assert ":-- | --:" not in found


async def test_long_lines_are_cut_between_words_and_blanks_before_them_are_kept():
    words = " ".join(f"word{number}" for number in range(400))
    files = {"a.md": f"{words} needle {words}\n", "b.py": "def a():\n    needle()\n"}
    found = (await run("search", files=files, query="needle", exact=True)).result
    (line,) = [line for line in found.splitlines() if line.startswith("  1: ")]
    assert re.fullmatch(r"  1: …(word\d+ )+needle( word\d+)+…", line)
    assert set(re.findall(r"word\d+", line)) <= set(words.split())
    assert "  2:     needle()" in found


async def test_a_line_that_is_too_long_to_read_says_how_to_see_the_rest():
    found = (await run("read", files={"a.md": "word " * 10_000 + "\nnext\n"}, path="a.md")).result
    head = found.splitlines()[0]
    assert re.search(r"it has \d+ characters more, of which search, with a.md as the folder, shows", head)
    assert "go on with start_line 2" in head
    assert found.splitlines()[2].endswith("word")


async def test_a_long_diff_goes_on():
    files = {"a.md": "".join(f"Line {n}\n" for n in range(3_000)), "b.md": "b\n"}
    box = await changed_workspace(
        call("write", path="a.md", text="".join(f"New line {n}\n" for n in range(3_000))),
        call("write", path="b.md", text="c\n"),
        files=files,
    )
    seen, start, parts = "", 1, 0
    while True:
        result = (await box.run(call("diff", start_line=start))).result
        assert len(result) < MAX_RESULT_CHARACTERS
        seen, parts = seen + result, parts + 1
        more = re.search(r"go on with start_line (\d+)", result)
        if more is None:
            break
        assert "[1 more file: b.md]" in result
        start = int(more[1])
    assert parts > 2
    assert all(f"+New line {n}\n" in seen for n in range(3_000))
    assert "+c\n" in seen
    assert (await box.run(call("diff", start_line=99_999))).is_error


async def test_history_goes_on():
    docs = FakeDocsSource({"a.md": "0\n"})
    commit = docs.branches["main"]
    for number in range(1, 8):
        new = NewCommit(commit, {"a.md": f"{number}\n"}, "Ada <ada@example.com>", f"docs: change {number}", AT)
        commit = (await docs.write_commit(SOURCE, new)).commit
    workspace = await Workspace.open(docs, SOURCE, commit, {})
    box = Toolbox(workspace, Links(workspace), None, "docs")
    first = (await box.run(call("history", path="a.md", limit=5))).result
    assert "There may be more: set skip to 5." in first
    rest = (await box.run(call("history", path="a.md", limit=5, skip=5))).result
    assert rest.startswith("3 commits of a.md, after the first 5.")
    assert "change 2" in rest
    assert "change 3" not in rest
    assert "No commit of a.md before these" in (await box.run(call("history", path="a.md", skip=50))).result


async def test_lists_end_with_whole_paths_and_say_what_is_left():
    files = {f"{'folder' * 20}{number:04}/{'page' * 10}.md": "x\n" for number in range(450)}
    result = (await run("list", files=files)).result
    assert len(result) < MAX_RESULT_CHARACTERS + 200
    shown = [line for line in result.splitlines() if line.endswith(".md")]
    assert set(shown) <= set(files)
    assert f"The first {len(shown)} lines are shown: ask for a folder or a name." in result
    folded = (await run("list", files={f"a/b{n}/{m}.md": "x\n" for n in range(40) for m in range(40)})).result
    assert folded.startswith("1600 files. Folders stand for their files: ask for a folder or a name.")


async def test_problems_that_are_not_listed_are_counted():
    box = await toolbox({"a.md": "# A\n"})
    text = "".join(f"[x](gone{number}.md)\n\n" for number in range(90))
    (change,) = (await box.run(call("write", path="a.md", text=text))).changes
    box._workspace.apply([change])
    assert "- and 30 more: correct these, and ask again" in (await box.run(call("check"))).result
