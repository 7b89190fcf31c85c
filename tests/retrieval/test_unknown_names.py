"""Names in a question that no page has are known from words that are only said otherwise."""

import pytest

from service.ports.search_index import MaterialRequest
from tests.retrieval.sites import DOMAIN

PAGE = """\
# Parcels

## Weight

Set `max_weight` or pass `--heavy-load` to a glimmer of the stack: see Stripe, and POST it.
"""


@pytest.mark.parametrize(
    ("question", "unknown"),
    [
        ("What does max_weight do?", ()),
        ("What does --heavy-load do?", ()),
        ("How do I pay with Stripe?", ()),
        ("What does max_height do?", ("max_height",)),
        ("What does `--light-load` do?", ("--light-load",)),
        ("How do I call Parcels.weigh_all()?", ("Parcels.weigh_all",)),
        ("Can I use it with Glimmerstack?", ("Glimmerstack",)),
        ("Who may join the Silver Parcels?", ("Silver Parcels",)),
        ("What does GET /parcels/weight answer?", ()),
        ("What body does POST /v1/convoys take?", ("/v1/convoys",)),
        ("Why is /srv/data empty?", ()),
        ("error dbt4417 when compiling", ("dbt4417",)),
        ("where does the parcels.sticky-ttl annotation go", ("parcels.sticky-ttl",)),
    ],
)
async def test_name_that_no_page_has_is_found_out(indexed, question, unknown):
    await indexed.fill({"parcels.md": PAGE})
    material = await indexed.index.find_material(DOMAIN, MaterialRequest((question,), 2_000))
    assert tuple(word.typed for word in material.words if word.is_name) == unknown


async def test_word_is_not_corrected_into_one_that_only_its_stem_is_near(indexed):
    await indexed.fill(
        {"tides.md": "# Tides\n\nA surge in December. The address is that of the ship, as Shom has it.\n"}
    )
    asked = "swimming, aggressive, remembered; an adress of Decembre"
    material = await indexed.index.find_material(DOMAIN, MaterialRequest((asked,), 2_000))
    corrected = {word.typed: word.corrected for word in material.words if word.corrected}
    assert corrected == {"adress": "address", "decembre": "decemb"}


async def test_word_of_the_page_stands_for_that_of_a_reader(indexed):
    await indexed.fill({"parcels.md": PAGE})
    material = await indexed.index.find_material(DOMAIN, MaterialRequest(("How heavy may a package be?",), 2_000))
    assert {word.typed: word.kindred for word in material.words}["package"] == ("parcel",)


async def test_word_that_a_page_is_called_by_has_no_stand_in(indexed):
    ropes = (
        "# Flags\n\nA flag or a switch is raised on the mast, option by option. A flag is a flag, a switch a switch.\n"
    )
    await indexed.fill({"arguments.md": "# Arguments\n\nAn argument is loud.\n", "flags.md": ropes})
    for query in ("argument", "loud argument"):
        found = (await indexed.index.search(DOMAIN, query)).sections
        assert [section.path for section in found] == ["arguments.md"]


@pytest.mark.parametrize(
    ("question", "path"),
    [
        ("k8s", "kubernetes.md"),
        ("Does it run on k8s?", "kubernetes.md"),
        ("a11y of the deck", "accessibility.md"),
        ("which env variables are there", "environment.md"),
        ("where is the repository of the crew", "repo.md"),
        ("I get a blank page on deck", "empty.md"),
    ],
)
async def test_abbreviation_stands_for_its_words(indexed, question, path):
    pages = {
        "kubernetes.md": "# Clusters\n\nThe crew runs on Kubernetes.\n",
        "accessibility.md": "# Reach\n\nAccessibility for all hands.\n",
        "environment.md": "# Settings\n\nThe environment has them.\n",
        "repo.md": "# Sources\n\nThe crew keeps them in a repo.\n",
        "empty.md": "# Nothing on deck\n\nIf the deck is empty, look below.\n",
    }
    many = {f"more/{at}.md": f"# Log {at}\n\nThe deck of the crew, day {at}.\n" for at in range(40)}
    await indexed.fill(pages | (many if path != "empty.md" else {}))
    assert (await indexed.paths(question))[0] == path


async def test_abbreviation_that_the_site_has_is_itself(indexed):
    await indexed.fill({"env.md": "# Files\n\nAn env file.\n", "environment.md": "# Weather\n\nThe environment.\n"})
    assert await indexed.paths("env") == ["env.md"]
