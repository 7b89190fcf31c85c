"""A search for one row of a table, one option or one definition shows it alone; the section stays whole for others."""

import pytest

from service.ports.search_index import MaterialRequest
from service.retrieval.readers.entries import entries_of
from tests.retrieval.sites import DOMAIN

ROWS = "".join(f"| `flag_{word}` | {number} | Sets the {word}. |\n" for number, word in enumerate(
    ["amber", "birch", "cedar", "dune", "ember", "fjord", "grove", "harbour", "islet", "juniper"]
))  # fmt: skip
SITE = {
    "docs/settings.md": f"# Settings\n\nAll of them.\n\n## Flags\n\nSet them early.\n\n| Name | Value | Text |\n"
    f"|---|---|---|\n{ROWS}\n## After\n\nThe end.\n",
    "docs/words.md": "# Words\n\n- Quiescence\n  - : No one writes.\n- Backlog\n  - : What waits,\n    in its order.\n",
    "docs/run.rst": "Running\n=======\n\n* ``--dry-run``: nothing is written.\n* ``--verbose``: more is shown.\n",
    "docs/guide.md": "# Guide\n\nHow to run with flags, words and settings.\n",
}


@pytest.fixture
async def site(indexed):
    await indexed.fill(SITE)
    return indexed.index


async def test_row_is_found_with_its_header_and_lines(site):
    first = (await site.search(DOMAIN, "flag_cedar")).sections[0]
    assert first.text == "| Name | Value | Text |\n|---|---|---|\n| `flag_cedar` | 2 | Sets the cedar. |"
    assert (first.heading_path, first.url) == (("Flags", "flag_cedar"), "/settings#flags")
    assert SITE["docs/settings.md"].split("\n")[first.start_line - 1].startswith("| `flag_cedar`")
    assert first.end_line == first.start_line


async def test_definition_is_found_with_all_its_lines(site):
    first = (await site.search(DOMAIN, "what is the backlog")).sections[0]
    assert (first.heading, first.start_line, first.end_line) == ("Backlog", 5, 7)
    assert first.text == "- Backlog\n  - : What waits,\n    in its order."


async def test_option_of_restructured_text_is_found(site):
    first = (await site.search(DOMAIN, "--dry-run")).sections[0]
    assert (first.heading, first.start_line) == ("--dry-run", 4)


async def test_question_about_the_table_shows_it_whole(site):
    first = (await site.search(DOMAIN, "all flags of the settings")).sections[0]
    assert "flag_juniper" not in first.heading
    found = (await site.search(DOMAIN, "set flags early")).sections[0]
    assert found.text.count("| `flag_") == 10


async def test_material_has_the_table_whole(site):
    material = await site.find_material(DOMAIN, MaterialRequest(queries=("flag_cedar",), budget_tokens=2_000))
    assert any(section.text.count("| `flag_") == 10 for section in material.sections)


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("- `port`: where it listens\n- `host` (string) who may ask", ["port", "host"]),
        ("**How do I fly?**\n\nSo.\n\n**And land?**\n\nSlowly.", ["How do I fly?", "And land?"]),
        ("Kite\n: It flies.\n\nLine\n: It holds.", ["Kite", "Line"]),
        ("- **Only one:** is no list", []),
        ("```\n| a | b |\n|---|---|\n| c | d |\n| e | f |\n```", []),
        ("- See the page.\n- And that one.", []),
    ],
)
def test_entries_are_what_is_explained_one_by_one(text, terms):
    assert [entry.term for entry in entries_of(text)] == terms
