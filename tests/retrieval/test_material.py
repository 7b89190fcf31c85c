"""Sections for a prompt: how a budget of tokens is filled, and what is left out."""

import pytest

from service.domain.texts.tokens import tokens_in
from service.ports.search_index import MaterialRequest, Section
from service.retrieval.material.boilerplate import asks_for_history, traits_of
from service.retrieval.material.cutting import beginning
from service.retrieval.material.filling import FRAME_TOKENS, Piece, fill
from service.retrieval.material.sides import sides_of
from tests.retrieval.sites import DOMAIN

FILLER = "This sentence is about nothing in particular. " * 8


def piece(page, at, page_score, own, text=None, known=False):
    text = f"Text of {page}/{at}. {FILLER}" if text is None else text
    section = Section(f"p{page}.md", f"/p{page}#s{at}", f"P{page}", f"S{at}", (f"S{at}",), text, at + 1, at + 1)
    own_scores = own if isinstance(own, tuple) else (own,)
    return Piece(page << 16 | at, page, section, page_score, own_scores, known)


def filled(pieces, budget, **more):
    return [one.url for one in fill(pieces, budget, **({"most": 60} | more))]


async def found(indexed, files, *queries, budget=12_000, **more):
    await indexed.fill(files)
    material = await indexed.index.find_material(DOMAIN, MaterialRequest(queries, budget, **more))
    return list(material.sections)


def test_neighbours_of_the_best_section_go_before_strangers():
    pieces = [piece(1, 0, 1.0, 0.0), piece(1, 1, 1.0, 1.0), piece(1, 2, 1.0, 0.0), piece(2, 0, 0.4, 0.3)]
    assert filled(pieces, 400) == ["/p1#s0", "/p1#s1", "/p1#s2"]


def test_further_section_of_the_best_page_goes_before_a_weak_page():
    pieces = [piece(1, 0, 1.0, 1.0), piece(1, 9, 1.0, 0.8), piece(2, 0, 0.5, 0.2)]
    assert filled(pieces, 280) == ["/p1#s0", "/p1#s9"]


def test_no_page_has_the_whole_budget_while_others_are_as_good():
    pieces = [piece(page, at, 1.0, 1.0) for page in (1, 2, 3) for at in range(20)]
    urls = filled(pieces, 1_500)
    assert {url.partition("#")[0] for url in urls} >= {"/p1", "/p2"}


@pytest.mark.parametrize(("budget", "part"), [(1_500, 0.6), (3_000, 0.6), (6_000, 0.4), (12_000, 0.4)])
def test_one_page_has_a_part_of_the_budget_while_others_wait(budget, part):
    long = [piece(1, at, 1.0, 1.0, f"Text {at}. {FILLER * 2}") for at in range(60)]
    others = [piece(page, at, 0.9, 0.9, f"Of {page}/{at}. {FILLER * 2}") for page in range(2, 9) for at in range(9)]
    cost = long[0].tokens + FRAME_TOKENS
    taken = sum(url.startswith("/p1#") for url in filled([*long, *others], budget))
    assert part * budget - cost <= taken * cost <= part * budget


def test_same_text_is_given_once():
    pieces = [piece(1, 0, 1.0, 1.0, FILLER), piece(2, 0, 0.5, 1.0, f"  {FILLER.upper()}\n"), piece(2, 1, 0.5, 0.5)]
    assert filled(pieces, 5_000) == ["/p1#s0", "/p2#s1"]


def test_each_query_has_its_part():
    one = [piece(1, at, 1.0, (1.0, 1.0, 0.0)) for at in range(40)]
    other = [piece(2, at, 0.3, (0.1, 0.0, 1.0)) for at in range(3)]
    assert "/p2#s0" in filled([*one, *other], 1_000)


def test_weak_pages_do_not_fill_up_the_budget():
    pieces = [piece(1, 0, 1.0, 1.0), *(piece(page, 0, 0.2, 0.3) for page in range(2, 9))]
    assert filled(pieces, 12_000) == ["/p1#s0"]


def test_small_site_keeps_its_weak_pages():
    pieces = [piece(1, 0, 1.0, 1.0), piece(2, 0, 0.4, 0.0, "Short.")]
    assert filled(pieces, 12_000, few=5) == ["/p1#s0", "/p2#s0"]


def test_short_section_without_a_word_asked_comes_with_its_neighbour():
    pieces = [piece(1, 0, 1.0, 1.0), piece(1, 1, 1.0, 0.0, "Beside."), piece(1, 9, 1.0, 0.0, "Alone.")]
    assert filled(pieces, 12_000) == ["/p1#s0", "/p1#s1"]


def test_number_of_sections_is_bounded():
    assert len(filled([piece(1, at, 1.0, 1.0, f"Word {at}") for at in range(90)], 50_000, most=60)) == 60


def test_only_section_that_is_too_long_is_cut():
    [section] = fill([piece(1, 0, 1.0, 1.0, f"{FILLER}\n\n" * 40)], 600, most=9)
    assert section.text.endswith("\n…")
    assert 300 < tokens_in(section.text) <= 600


@pytest.mark.parametrize(
    ("text", "budget", "expected"),
    [
        ("One.\n\nTwo.", 100, "One.\n\nTwo."),
        ("One.\n\n```sh\n" + "run\n" * 400 + "```\n\nTwo.", 60, "One.\n\n…"),
        ("```sh\n" + "run\n" * 400 + "```", 60, "…"),
    ],
)
def test_text_is_cut_between_blocks_and_code_never(text, budget, expected):
    assert beginning(text, budget) == expected


@pytest.mark.parametrize(
    ("text", "last"),
    [("- item\n  more\n" * 60, "  more"), ("| a | b |\n|---|---|\n" + "| c | d |\n" * 200, "| c | d |")],
)
def test_long_list_and_table_are_cut_between_items_and_rows(text, last):
    cut = beginning(text, 60)
    assert cut.endswith(f"\n{last}\n…")
    assert 40 < tokens_in(cut) <= 60


def section(heading, text, path="guide.md", title="Guide"):
    return Section(path, "/guide", title, heading, (heading,), text, 1, 2)


LINKS = "- [One](/one)\n- [Two](/two)\n- [Three and more](/three)\n- [Four](/four)"


def says_little(section, question):
    return traits_of(section).say_little(question.casefold(), of_history=asks_for_history(question))


@pytest.mark.parametrize(
    ("heading", "text"),
    [
        ("See also", LINKS),
        ("What's next", "Read the [tutorial](/tutorial)."),
        ("What you'll learn", "- How to deploy\n- How to roll back"),
        ("Pages", LINKS),
        ("Changelog", "- Fixed a fault."),
        ("v1.4.2 (2024-03-01)", "- Fixed a fault."),
        ("Kite Cloud Changelog", "- Fixed a fault."),
        ("Kite Cloud v1.1.29 (June 9, 2021)", "- Fixed a fault."),
        ("Privacy", "We use cookies. Accept all of them, or set your preferences."),
        ("Related topics", ""),
    ],
)
def test_section_that_says_little_is_recognized(heading, text):
    assert says_little(section(heading, text), "How do I deploy?")


def test_file_of_changes_is_recognized_by_its_name():
    assert says_little(section("Bug fixes", "- Mended.", "docs/kite-cloud/cloud-changelog.md"), "How do I deploy?")
    assert not says_little(section("Bug fixes", "- Mended.", "docs/changelogging.md"), "How do I deploy?")


@pytest.mark.parametrize(
    ("heading", "text", "question"),
    [
        ("Default", "30 seconds.", "default timeout"),
        ("Links in pages", f"A link is written so:\n\n```md\n{LINKS}\n```", "How do I write links?"),
        ("See also", "Set it:\n\n    kite set --all", "How do I deploy?"),
        ("References", "- By hand:\n\n  ~~~\n  kite set --all\n  ~~~", "How do I deploy?"),
        ("License", "MIT, see [the text](/license).", "Which license does it have?"),
        ("v1.4.2", "- Removed the flag.", "What changed in 1.4.2?"),
        ("History", "`history.pushState()` adds an entry. " * 12, "add an entry to the session"),
        ("Cookies", "A cookie is set by `set_cookie`. " * 60, "set a cookie"),
    ],
)
def test_section_that_may_answer_is_kept(heading, text, question):
    assert not says_little(section(heading, text), question)


@pytest.mark.parametrize(
    ("question", "sides"),
    [
        ("Deployment vs StatefulSet", ("Deployment", "StatefulSet")),
        ("What is the difference between a Role and a ClusterRole?", ("Role", "ClusterRole")),
        ("compare thunks with sagas", ("thunks", "sagas")),
        ("Should I use st.cache_data or st.cache_resource?", ("st.cache_data", "st.cache_resource")),
        ("Was ist der Unterschied zwischen einem Job und einem CronJob?", ("Job", "CronJob")),
        ("configmap or secret for a password?", ("configmap", "secret for a password")),
        ("How to start or stop it", ()),
        ("How do I deploy to Vercel?", ()),
        ("x vs x", ()),
        ("a vs b " * 100, ()),
    ],
)
def test_sides_of_a_comparison_are_read(question, sides):
    assert sides_of(question) == sides


async def test_comparison_gets_both_sides(indexed):
    many = "\n\n".join(f"## Kite {n}\n\nKites, kite {n}: {FILLER}" for n in range(30))
    pages = {
        "kites.md": f"# Kites\n\n{many}\n",
        "more.md": f"# Kite kites\n\n{many.replace('Kites,', 'The kites,')}\n",
        "balloons.md": f"# Balloons\n\nA balloon is round. {FILLER}\n",
        **{f"other{n}.md": f"# Other {n}\n\n{FILLER}\n" for n in range(20)},
    }
    paths = {one.path for one in await found(indexed, pages, "kites vs balloons", budget=2_000)}
    assert {"kites.md", "balloons.md"} <= paths


async def test_page_titled_as_a_side_comes_with_its_first_section(indexed):
    pages = {
        "kite.md": f"# Kites\n\nIt flies. {FILLER}\n",
        "reel.md": f"# Reels\n\nIt turns. {FILLER}\n",
        **{f"more{n}.md": f"# Kite and reel {n}\n\nA reel, kite, reel, kite. {FILLER}\n" for n in range(20)},
    }
    sections = await found(indexed, pages, "kite or reel for a beginner", budget=400)
    assert {one.path for one in sections} >= {"kite.md", "reel.md"}


@pytest.mark.parametrize("question", ["What is the difference between == and ===?", "`==` vs `===`"])
async def test_signs_are_looked_up_in_titles(indexed, question):
    pages = {
        "loose.md": f"# Equality (==)\n\nIt converts. {FILLER}\n",
        "strict.md": f"# Strict equality (===)\n\nIt does not. {FILLER}\n",
        "not.md": f"# Inequality (!==)\n\nIt negates. {FILLER}\n",
        "sets.md": f"# Difference of sets\n\nThe difference between two. {FILLER}\n",
    }
    assert {one.path for one in await found(indexed, pages, question)} == {"loose.md", "strict.md"}


async def test_sign_finds_no_page_for_other_readers(indexed):
    pages = {"staff.md": f"---\ngroups: [staff]\n---\n# Strict (===)\n\nSecret. {FILLER}\n", "a.md": "# A\n\nB.\n"}
    assert [one.path for one in await found(indexed, pages, "what does === do?")] == []


async def test_section_that_answers_is_found_on_a_long_page(indexed):
    kinds = ("command", "TCP socket", "HTTP request", "gRPC")
    body = "\n\n".join(f"## Define a {kind} probe\n\nA liveness probe with a {kind}. {FILLER}" for kind in kinds)
    pages = {
        "probes.md": f"# Configure liveness probes\n\nProbes say whether a container lives.\n\n{body}\n",
        **{f"tcp{n}.md": f"# TCP {n}\n\nA check of a liveness TCP port. {FILLER}\n" for n in range(8)},
    }
    sections = await found(indexed, pages, "liveness probe with an HTTP check", budget=700)
    assert "Define a HTTP request probe" in [one.heading for one in sections]


async def test_words_in_a_row_are_found_in_a_long_section(indexed):
    error = "this reel is not available in this edition of Kite"
    pages = {
        "faq.md": f"# Questions\n\n{FILLER * 30}\n\n{error}\n\n{FILLER * 30}\n",
        **{f"reel{n}.md": f"# Reel {n}\n\nKite reels available, edition {n}. {FILLER}\n" for n in range(30)},
    }
    assert (await found(indexed, pages, f"why does it say {error}?"))[0].path == "faq.md"


async def test_expected_pages_are_read_by_title_and_path(indexed):
    pages = {
        "kites.md": f"# Kites\n\nA kite flies. {FILLER}\n",
        "tail.md": f"# Tails of things\n\nMade of paper. {FILLER}\n",
        "line.md": f"# Reels\n\nWound around. {FILLER}\n",
    }
    sections = await found(indexed, pages, "how does a kite fly", pages=("Tails of things", "/line", "Not there"))
    assert {one.path for one in sections} == set(pages)


async def test_coverage_says_how_much_of_a_question_is_there(indexed):
    pages = {"kites.md": f"# Kites\n\nA kite flies. {FILLER}\n", "reels.md": f"# Reels\n\nA reel is wound. {FILLER}\n"}
    await indexed.fill(pages)

    async def coverage(query):
        return (await indexed.index.find_material(DOMAIN, MaterialRequest((query,), 900))).coverage

    assert await coverage("kite flies") == 1.0
    assert await coverage("kite zyzzyva quokka") < 0.5
    assert await coverage("zyzzyva quokka") == 0.0
