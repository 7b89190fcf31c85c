"""Forms of a query: phrases, words that are still being typed, and where the words that were found stand."""

import pytest

PAGES = {
    "docs/guide/deploy.md": "# Deploying\n\nA rolling update replaces one instance after the other.\n",
    "docs/guide/roll.md": "# Update\n\nUpdate the roll of rolling papers. An update is an update.\n",
    "docs/guide/install.md": "# Installation\n\nInstall the package on your computer.\n\n## Verify\n\nRun it once.\n",
    "docs/guide/instances.md": "# Instances\n\nEach instance has a name. To rename it, stop the instance.\n",
    "docs/guide/options.md": "# Options\n\n`server.port` is the port. The port of a server is open.\n",
    "docs/guide/ships.md": "# Ships\n\nThe server of a port, a port for a server, every server of ports.\n",
    "docs/guide/errors.md": "# Errors\n\n## EADDRINUSE\n\nThe message `listen EADDRINUSE: address already in use` "
    "means that another process has the port.\n",
    "docs/guide/emoji.md": "# Smile 😀 installed\n\nFaces 😀 😀 are installed with [an install](https://install.example/install).\n",
    "docs/ja/keys.md": "# 鍵の作成\n\nここで鍵を作成します。\n",
}


@pytest.fixture
async def site(indexed):
    await indexed.fill(PAGES)
    return indexed


@pytest.mark.parametrize("marks", ['"{}"', "“{}”", "«{}»", "`{}`"])
async def test_a_phrase_in_quotation_marks_goes_first(site, marks):
    assert (await site.paths("rolling update"))[0] == "docs/guide/roll.md"
    found = await site.paths(f"papers update {marks.format('rolling update')}")
    assert found[0] == "docs/guide/deploy.md"
    assert "docs/guide/roll.md" in found


async def test_code_between_backticks_is_one_name(site):
    assert (await site.paths("every `server.port` of ports"))[0] == "docs/guide/options.md"


async def test_a_phrase_that_no_page_has_changes_nothing(site):
    assert await site.paths('update "papers of update"') == await site.paths("update papers of update")


@pytest.mark.parametrize("query", ["ins", "insta", "installa", "installat", "installatio", "how to insta"])
async def test_the_last_word_may_be_a_beginning(site, query):
    assert "docs/guide/install.md" in (await site.paths(query, prefix=True))[:3]


async def test_a_space_ends_the_last_word(site):
    assert await site.paths("insta ", prefix=True) == await site.paths("insta ")


async def test_words_before_the_beginning_count(site):
    assert (await site.paths("rename inst", prefix=True))[0] == "docs/guide/instances.md"
    assert (await site.paths("package inst", prefix=True))[0] == "docs/guide/install.md"


async def test_a_beginning_in_an_unspaced_script_is_found(site):
    assert (await site.paths("鍵", prefix=True))[0] == "docs/ja/keys.md"


async def test_an_error_with_numbers_and_paths_finds_its_page(site):
    query = "Error: listen EADDRINUSE: address already in use :::3000 at Server.setup (/home/me/app/x.js:1463:16)"
    assert (await site.paths(query))[0] == "docs/guide/errors.md"


async def test_a_question_of_sixty_words_finds_its_page(site):
    filler = (
        "and then we thought about what else we could possibly do in this rather long and winding story of ours " * 3
    )
    assert (await site.paths(f"We read it all, {filler} but another process has the port"))[0] == "docs/guide/errors.md"


def marked(text, ranges):
    units = text.encode("utf-16-le")
    return [units[2 * start : 2 * end].decode("utf-16-le") for start, end in ranges]


async def test_highlights_are_ranges_as_browsers_count(site):
    result = await site.index.search("docs.example.com", "faces installed", highlight=True)
    best = result.sections[0]
    assert marked(best.title, best.highlights.title) == ["installed"]
    assert marked(best.text, best.highlights.text) == ["Faces", "installed", "install"]


async def test_highlights_mark_what_a_beginning_became(site):
    best = (await site.index.search("docs.example.com", "insta", prefix=True, highlight=True)).sections[0]
    assert marked(best.title, best.highlights.title) in (["Installation"], ["Instances"])


async def test_highlights_of_an_unspaced_script_mark_its_pairs(site):
    best = (await site.index.search("docs.example.com", "鍵の作成", highlight=True)).sections[0]
    assert marked(best.title, best.highlights.title) == ["鍵の作成"]


async def test_without_asking_there_are_no_highlights(site):
    assert (await site.index.search("docs.example.com", "install")).sections[0].highlights is None
