"""New code in pages: each name, flag, path and number in it has a source, or there is a warning."""

from msgspec.structs import replace

from service.agent.checks import gates
from service.agent.checks.links.links import Links
from service.agent.workspace import Workspace
from service.domain.jobs.decider import ChecksReported, Message
from service.sentences.statements import unsourced_statements
from tests.agent.journal import SOURCE, Journal, run_job
from tests.fakes.docs_source import FakeDocsSource
from tests.fakes.model import FakeModel, call, calls

FILES = {
    "docs/index.md": "# Kites\n\nStart with `kite --height 20`.\n",
    "docs/old.md": "# Old\n\nSet `max_wind` in `conf/kite.toml`.\n",
    "src/kite.py": "def land(softly=True):\n    ...\n",
}
DOCS = replace(SOURCE, docs_folder="docs")
FINISH = call("finish", title="Add a page", summary="Asked for.")


async def warned(text, *texts, asked=()):
    """Line and text of the things that a new page has without a source."""
    docs = FakeDocsSource(FILES)
    workspace = await Workspace.open(docs, DOCS, (await docs.fetch(DOCS)).base_commit, {"docs/new.md": text})
    problems = [
        p for p in await gates.check(workspace, Links(workspace), [*texts, *asked], asked) if p.rule == "unsourced"
    ]
    assert all(problem.severity == "warning" and problem.path == "docs/new.md" for problem in problems)
    return [(problem.line, problem.message.partition(" is in no source")[0]) for problem in problems]


async def test_thing_without_a_source_is_named_with_its_line():
    page = "# New\n\nUse `kite --speed 30` or `max_wind`.\n\n```python\nkite.land_softly(max_wind=20)\n```\n"
    assert await warned(page) == [(3, "--speed"), (3, "30"), (6, "kite.land_softly")]


async def test_what_was_said_or_read_is_a_source():
    page = "# New\n\nUse `kite --speed 30`, then `land(softly=True)`.\n"
    assert await warned(page, "Document --speed, at most 30.", FILES["src/kite.py"]) == []


async def test_plain_prose_and_placeholders_need_no_source():
    assert (
        await warned("# New\n\nSend kites to https://acme.test/x.\n\n```sh\ncurl example.com/x $YOUR_KEY\n```\n") == []
    )


INVENTED = """\
# Kite cloud

Since version 3.2 the kite uploads its flight every 15 seconds to the Skydash dashboard, and keeps 500 flights.

- A flight may have at most 20 MB.
- We guarantee that no flight is lost.
"""


async def test_statements_of_new_prose_need_a_source():
    assert await warned(INVENTED) == [
        (3, "3.2"),
        (3, "15 seconds"),
        (3, "500"),
        (5, "20 MB"),
        (6, "guarantee"),
        (3, "Skydash"),
    ]


async def test_statements_that_were_read_or_asked_for_have_a_source():
    read = "     1\tUPLOAD_EVERY = 15  # seconds\n     2\t# 3.2: uploads a flight to Skydash, keeps 500 flights\n"
    assert [text for _, text in await warned(INVENTED, read)] == ["20 MB", "guarantee"]
    page = "# New\n\nA flight may have at most 20 MB.\n"
    assert await warned(page, asked=["Say that a flight has at most 20 MB"]) == []


async def test_number_of_a_line_that_was_read_is_no_source():
    read = "    14\tdef land():\n    15\t    ...\n"
    assert await warned("# New\n\nA kite lands within 15 minutes.\n", read) == [(3, "15 minutes")]


async def test_value_that_was_read_otherwise_is_marked():
    read = "The kite retries a failed upload 3 times.\n\n" + "Land it.\n\n" * 3 + "A folder has 5 flights.\n"
    assert await warned("# New\n\nThe kite retries a failed upload 3 times.\n", read) == []
    assert await warned("# New\n\nThe kite retries a failed upload 5 times.\n", read) == [(3, "5")]


async def test_sentence_that_was_there_needs_no_source():
    docs = FakeDocsSource({**FILES, "docs/old.md": "# Old\n\nA kite weighs 7 kg.\n"})
    workspace = await Workspace.open(
        docs, DOCS, (await docs.fetch(DOCS)).base_commit, {"docs/old.md": "# Old\n\nA kite weighs 7 kg.\n\nIt flies.\n"}
    )
    assert [p for p in await gates.check(workspace, Links(workspace), []) if p.rule == "unsourced"] == []


async def test_path_of_a_file_is_a_source():
    assert await warned("# New\n\nSee `src/kite.py` and `conf/kite.toml`, not `src/gone.py`.\n") == [(3, "src/gone.py")]


async def test_flag_of_another_name_is_no_source():
    assert await warned("# New\n\nUse `--high`.\n", "Set --high-wind and --height.") == [(3, "--high")]


async def test_large_page_is_checked_up_to_a_limit():
    page = "# New\n\n" + "".join(f"`name_{number}` and `--flag-{number}`.\n" for number in range(20_000))
    assert len(await warned(page)) == 20


async def test_house_rules_are_a_source():
    docs = FakeDocsSource({**FILES, "AGENTS.md": "Mention `--verbose` on each page.\n"})
    write = call("write", path="docs/new.md", text="# New\n\nUse `--verbose`.\n")
    journal = Journal("Add a page")
    await run_job(journal, docs, FakeModel([calls(write, FINISH)]), source=DOCS)
    assert [event.problems for event in journal.events if isinstance(event, ChecksReported)] == [()]


async def test_model_is_given_the_warning_once_and_reading_settles_it():
    journal = Journal(Message("user", "Document landing"))
    write = call("write", path="docs/new.md", text="# Landing\n\nCall `land(softly=True)`.\n")
    model = FakeModel([calls(write, FINISH), calls(call("read", path="src/kite.py"), FINISH)])
    await run_job(journal, FakeDocsSource(FILES), model, source=DOCS)
    reports = [event.problems for event in journal.events if isinstance(event, ChecksReported)]
    assert [[problem.rule for problem in problems] for problems in reports] == [["unsourced"] * 2, []]


def test_a_range_of_numbers_has_the_sources_of_both():
    said = ["It needs 25 MB.", "Merge main"]
    assert unsourced_statements("It needs 21 to 25 MB.\n", "It needs 21 MB.\n", ["It needs 21 MB.\n"], said) == []
    [found] = unsourced_statements("Il faut 3 To.\n", "", ["Il faut 2 To.\n"], [])
    assert found.missing == ("3 To",)


def test_a_command_behind_a_condition_denies_nothing():
    page = "Is a kite up? If not: `kite fly start --line NAME`.\n"
    read = "`kite fly start` does not start a kite that has no line. `kite fly start --line NAME` starts one.\n"
    assert unsourced_statements(page, page.replace("fly", "run"), [read], []) == []


def test_a_range_in_words_has_the_sources_of_one_of_its_numbers():
    sources = ["Retries: five times.\n", "It has three wings.\n"]
    assert unsourced_statements("Retries: three to five times.\n", "Retries: twice.\n", sources, []) == []
