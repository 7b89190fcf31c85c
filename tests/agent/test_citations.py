"""What a pull request cites: the lines that were read in which its new names, flags, paths and numbers stand."""

import pytest
from msgspec.structs import replace

from service.agent.things import Thing, stands_in, things_of_lines
from tests.agent.journal import SOURCE, Journal, run_job
from tests.fakes.code_host import FakeCodeHost
from tests.fakes.docs_source import FakeDocsSource
from tests.fakes.model import FakeModel, call, calls

CODE = replace(SOURCE, repository="https://github.com/acme/kite.git", ref="", context="code", guarded=True)
KITE = '"""Kites."""\n\nimport math\n\n\ndef fly(height, *, max_wind=5):\n    return height\n\n\ndef land():\n    ...\n'
PAGE = "# Kites\n\nCall `fly(height)`.\n\nKites land.\n"
FINISH = call("finish", title="Document max_wind", summary="It is new.")


async def description(*steps, context=CODE, files=None, source=SOURCE, code="src/kite.py"):
    docs, host = FakeDocsSource(files or {"index.md": PAGE}), FakeCodeHost()
    docs.contexts = {"code": FakeDocsSource({code: KITE})}
    model = FakeModel([*(calls(step) for step in steps), calls(FINISH), calls(FINISH)])
    await run_job(Journal("Update the docs"), docs, model, host=host, contexts=(context,), source=source)
    return host.asked[0].body, docs.contexts["code"].branches["main"]


READ = call("read", path="@code/src/kite.py")
EDIT = call("replace", path="index.md", old="`fly(height)`", new="`fly(height, max_wind=5)`")


async def test_pull_request_cites_what_was_read():
    body, commit = await description(READ, EDIT)
    url = f"https://github.com/acme/kite/blob/{commit}/src/kite.py#L6"
    shown = f"- `src/kite.py`, [line 6]({url}), of <https://github.com/acme/kite.git> at `{commit[:12]}`, for:"
    stated = "  - `index.md`, line 3: `` Call `fly(height, max_wind=5)`. ``"
    assert f"Sources of what is new:\n\n{shown}\n{stated}\n" in body
    assert "def fly" not in body  # it is not public


async def test_public_context_is_quoted():
    body, _ = await description(READ, EDIT, context=replace(CODE, public=True))
    assert "  ```\n  def fly(height, *, max_wind=5):\n  ```\n" in body


async def test_context_on_this_machine_is_cited_by_name():
    body, commit = await description(READ, EDIT, context=replace(CODE, repository="/srv/secret/kite"))
    assert f"- `src/kite.py`, line 6, of `@code` at `{commit[:12]}`, for:\n" in body
    assert "/srv" not in body


async def test_file_outside_of_the_documentation_is_cited():
    files = {"docs/index.md": PAGE, "src/kite.py": KITE}
    edit = call("replace", path="docs/index.md", old="`fly(height)`", new="`fly(height, max_wind=5)`")
    source = replace(SOURCE, docs_folder="docs")
    body, _ = await description(call("read", path="src/kite.py"), edit, files=files, source=source)
    assert "- `src/kite.py`, line 6, of this repository at `" in body


async def test_file_name_of_a_context_cannot_mention_people():
    name = "a` @acme b.py"
    body, _ = await description(call("read", path=f"@code/{name}"), EDIT, code=name)
    assert f"- `` {name} ``, [line 6](" in body


@pytest.mark.parametrize(
    "steps", [(EDIT,), (READ, call("replace", path="index.md", old="Kites land", new="They land"))]
)
async def test_nothing_is_cited_without_a_fact_that_was_read(steps):
    body, _ = await description(*steps)
    assert "Sources" not in body


async def test_each_source_names_the_statements_that_it_is_the_source_of():
    more = call("write", path="wind.md", text="# Wind\n\nA kite lands.\n\nThe limit `max_wind` is 5.\n")
    body, _ = await description(READ, EDIT, more)
    said = body.partition("Sources of what is new:")[2]
    assert "  - `wind.md`, line 5: `` The limit `max_wind` is 5. ``\n" in said
    assert "A kite lands" not in said


async def test_changed_number_is_cited_beside_its_name():
    page = PAGE.replace("`fly(height)`", "`fly(height, max_wind=3)`").replace("Kites land", "All 5 kites land")
    edit = call("replace", path="index.md", old="max_wind=3", new="max_wind=5")
    body, _ = await description(READ, edit, files={"index.md": page})
    assert "- `src/kite.py`, [line 6](" in body


def test_things_are_names_flags_paths_and_numbers():
    found = things_of_lines(
        ["Call `fly(height, wind=5)`, or set max_height; see src/kite.py and --dry-run. It is a note: x."]
    )
    assert {thing.text for thing in found} == {"fly", "wind", "5", "max_height", "src/kite.py", "--dry-run"}


@pytest.mark.parametrize(
    ("text", "kind", "stands"),
    [("--retry", "flag", False), ("--retry-after", "flag", True), ("fly", "name", True), ("fl", "name", False)],
)
def test_thing_stands_only_as_a_whole(text, kind, stands):
    assert stands_in(Thing(text, kind), "kite.fly() --retry-after 5") is stands
