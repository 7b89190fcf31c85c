import asyncio
import json
import shutil

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from service.domain.errors import Invalid, NotFound
from service.domain.search import SearchFilter
from service.ports.search_index import MaterialRequest
from service.retrieval.search.query import IndexBroken, SiteIndexes
from tests.retrieval.sites import COMMIT, DOMAIN, Indexed, build

SITE = {
    "docs/index.md": "# Welcome\n\nStart with the [command line](cli.md) or the [dashboard](dashboard.md).\n",
    "docs/cli.md": (
        "# The program\n\nRun `tool serve` in a terminal.\n\n## Flags\n\n`--port` picks the port it listens on.\n\n"
        "## Environment variables\n\n`TOOL_PORT` does the same. Set `api_key_file` to the file with the key.\n"
    ),
    "docs/dashboard.md": "# Dashboard\n\nOpen it in a browser.\n\n## Sharing\n\nInvite people by mail.\n",
    "docs/limits.md": (
        "---\ntitle: Rate limits\ndescription: How many requests are allowed.\n---\n\nThe port is not limited.\n\n"
        "## Per key\n\nEach key has a hundred requests an hour.\n\n## Per address\n\nEach address has a thousand.\n"
    ),
    "docs/deploy/docker.md": "# Deploying with Docker\n\nBuild the image, then run the container.\n",
    "docs/deploy/kubernetes.md": "# Deploying to Kubernetes\n\nApply the manifest, then watch the pods.\n",
    "docs/ja/setup.md": "# セットアップ\n\nインストール方法を説明します。認証キーを作成してください。\n",
}


@pytest.fixture
async def site(indexed: Indexed) -> Indexed:
    await indexed.fill(SITE)
    return indexed


@pytest.mark.parametrize(
    ("question", "path"),
    [
        ("How do I change the port that it is listening on?", "docs/cli.md"),
        ("rate limiting", "docs/limits.md"),
        ("How many requests can I make?", "docs/limits.md"),
        ("deploy kubernetes", "docs/deploy/kubernetes.md"),
        ("containers", "docs/deploy/docker.md"),
        ("sharing with other people", "docs/dashboard.md"),
        ("TOOL_PORT", "docs/cli.md"),
        ("api_key_file", "docs/cli.md"),
        ("api key file", "docs/cli.md"),
        ("認証キー", "docs/ja/setup.md"),
        ("インストール", "docs/ja/setup.md"),
    ],
)
async def test_a_question_finds_the_right_page(site, question, path):
    assert (await site.paths(question))[0] == path


async def test_material_reports_how_each_word_was_read(site):
    request = MaterialRequest(("How is the Contaner of a zebra run?",), budget_tokens=500)
    words = {word.typed: word for word in (await site.index.find_material(DOMAIN, request)).words}
    assert list(words) == ["contaner", "zebra", "run"]
    assert (words["contaner"].corrected, words["contaner"].share) == ("contain", 0.0)
    assert (words["zebra"].corrected, words["zebra"].share) == ("", 0.0)
    assert 0 < words["run"].share < 1


async def test_a_page_is_found_by_what_others_call_it(site):
    assert "docs/cli.md" in await site.paths("command line")
    assert "command" not in await site.text("docs/cli.md")


async def test_result_shows_where_it_is(site):
    best = (await site.index.search(DOMAIN, "requests per key")).sections[0]
    assert (best.path, best.url, best.title) == ("docs/limits.md", "/limits#per-key", "Rate limits")
    assert (best.heading, best.heading_path) == ("Per key", ("Per key",))
    assert best.text == "Each key has a hundred requests an hour."
    assert (best.start_line, best.end_line) == (8, 11)


async def test_the_best_pages_come_before_more_of_the_same(indexed):
    files = {f"{n}.md": f"# Page {n}\n\n" + "".join(f"## Part {m}\n\nzebra\n\n" for m in range(9)) for n in range(4)}
    await indexed.fill(files)
    sections = (await indexed.index.search(DOMAIN, "zebra", limit=12)).sections
    assert len({section.path for section in sections[:4]}) == 4
    assert max(sum(section.path == path for section in sections) for path in files) <= 3


async def test_the_page_in_view_and_its_neighbours_are_preferred(indexed):
    text = "# Logging\n\nWrite logs to a file.\n"
    await indexed.fill(
        {"a/logging.md": text, "b/logging.md": text, "b/other.md": "# Other\n\nText.\n", "c/logging.md": text}
    )
    assert (await indexed.paths("logging", current_path="/c/logging"))[0] == "c/logging.md"
    assert (await indexed.paths("logging", current_path="b/other.md"))[0] == "b/logging.md"
    assert (await indexed.paths("logging", current_path="/nowhere"))[0] == "a/logging.md"


NAVIGATION = {
    "navigation": {
        "tabs": [
            {
                "tab": "Guides",
                "groups": [
                    {"group": "Start", "pages": ["one/start", {"group": "Deep", "tag": "BETA", "pages": ["two/a"]}]},
                    {"group": "Staff", "groups": ["staff", "admins"], "pages": ["three/b", "three/own"]},
                ],
            },
            {"tab": "Reference", "groups": [{"group": "All", "pages": ["four/c", "five/d"]}]},
        ]
    }
}


@pytest.fixture
async def navigated(indexed: Indexed) -> Indexed:
    text = "# Logging\n\nWrite logs to a file.\n"
    files = {f"{name}.mdx": text for name in ("one/start", "two/a", "three/b", "four/c", "five/d")}
    own = f"---\ngroups: [owners]\ntag: stable\n---\n{text}"
    await indexed.fill({**files, "three/own.mdx": own, "docs.json": json.dumps(NAVIGATION)})
    return indexed


async def test_neighbours_are_those_of_the_navigation_file(navigated):
    """Whatever folders they lie in."""
    everyone = SearchFilter(groups=("staff", "owners"))
    found = await navigated.paths("logging", current_path="/five/d", filter=everyone)
    assert found[0] == "five/d.mdx"
    assert set(found[1:3]) == {"three/own.mdx", "four/c.mdx"}
    assert set(found[3:]) == {"one/start.mdx", "two/a.mdx", "three/b.mdx"}


async def test_tags_and_readers_of_a_navigation_group_hold_for_pages(navigated):
    assert await navigated.paths("logging", filter=SearchFilter(tag="beta")) == ["two/a.mdx"]
    open_to_all = {"one/start.mdx", "two/a.mdx", "four/c.mdx", "five/d.mdx"}
    assert set(await navigated.paths("logging")) == open_to_all
    assert set(await navigated.paths("logging", filter=SearchFilter(groups=("staff",)))) == {
        *open_to_all,
        "three/b.mdx",
    }
    assert await navigated.index.read_page(DOMAIN, "/three/b", readers=("owners",)) is None


async def test_front_matter_of_a_page_overrides_its_navigation_group(navigated):
    owners = SearchFilter(groups=("owners",))
    assert "three/own.mdx" in await navigated.paths("logging", filter=owners)
    assert "three/own.mdx" not in await navigated.paths("logging", filter=SearchFilter(groups=("staff",)))
    assert await navigated.paths("logging", filter=SearchFilter(tag="stable", groups=("owners",))) == ["three/own.mdx"]


async def test_an_older_version_comes_after_the_newest(indexed):
    config = {"docusaurus.config.js": "module.exports = {}", "versions.json": '["1.0", "2.0"]'}
    text = "# Install\n\nRun the installer.\n"
    await indexed.fill({**config, "versioned_docs/version-1.0/a.md": text, "versioned_docs/version-2.0/a.md": text})
    assert await indexed.paths("installer") == ["versioned_docs/version-1.0/a.md", "versioned_docs/version-2.0/a.md"]
    only = SearchFilter(version="2.0")
    assert await indexed.paths("installer", filter=only) == ["versioned_docs/version-2.0/a.md"]


async def test_a_language_holds_for_its_regions(indexed):
    await indexed.fill(
        {
            "a.md": "---\nlanguage: pt-BR\n---\nzebra",
            "b.md": "---\nlang: pt\n---\nzebra",
            "c.md": "---\nlang: en\n---\nzebra",
        }
    )
    assert set(await indexed.paths("zebra", filter=SearchFilter(language="pt"))) == {"a.md", "b.md"}
    assert set(await indexed.paths("zebra", filter=SearchFilter(language="PT-br"))) == {"a.md", "b.md"}
    assert set(await indexed.paths("zebra", filter=SearchFilter(language="p%"))) == set()


async def test_a_filter_finds_a_rare_page_among_many(indexed):
    files = {f"{n}.md": f"# Zebra {n}\n\nzebra zebra zebra" for n in range(1200)}
    await indexed.fill({**files, "x.md": "---\ntags: [rare]\n---\n" + "word " * 300 + "zebra"})
    assert await indexed.paths("zebra", filter=SearchFilter(tag="Rare")) == ["x.md"]


INJECTIONS = [
    *('"', "'", '" OR "1"="1', 'NEAR("port" "key")', "port AND NOT key", "title: port", "{title body}: port", "port*"),
    *("^port", "port + key", "port -key", "(port", "port)", "\x00port", "port\x00", "'; DROP TABLE pages; --"),
    *("bodies MATCH 'port'", "col:port OR", '"port', 'port"', "\ud800", "%00", "?1", "{0}", "{only}", "\\", "🦓"),
    *("a\u0301", "ﬁle", "\u0130"),
]


@pytest.mark.parametrize("query", INJECTIONS)
async def test_a_query_is_data(site, query):
    await site.index.search(DOMAIN, query)
    assert (await site.paths("rate limits"))[0] == "docs/limits.md"


async def test_operators_are_words(site):
    assert (
        await site.paths("port") == await site.paths("port*") == await site.paths('"port"') == await site.paths("(port")
    )


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(query=st.text(max_size=60), current=st.text(max_size=20))
def test_no_query_raises(prepared, query, current):
    prepared.ask(query, current)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    class Prepared:
        def __init__(self) -> None:
            self.runner = asyncio.Runner()
            self.index = SiteIndexes(tmp_path_factory.mktemp("index"))
            build(SITE, self.index.path_of(DOMAIN, "a"))
            self.runner.run(self.index.use(DOMAIN, "a"))

        def ask(self, query: str, current: str) -> None:
            wanted = SearchFilter(language=query[:3] or None, tag=current or None, groups=(query,))
            self.runner.run(self.index.search(DOMAIN, query, current_path=current))
            self.runner.run(self.index.search(DOMAIN, query, filter=wanted))
            self.runner.run(self.index.read_page(DOMAIN, query))

    made = Prepared()
    yield made
    made.runner.run(made.index.close())
    made.runner.close()


async def test_a_very_long_query_is_answered(site):
    noise = " ".join(f"word{n}" for n in range(4000))
    assert (await site.paths(f"rate limits {noise}"[:32_000]))[0] == "docs/limits.md"
    assert (await site.paths(f"{noise[:30_000]} rate limits"))[0] == "docs/limits.md"
    await site.index.search(DOMAIN, "a" * 32_000)


async def test_only_question_words_are_still_words(site):
    await site.fill({"a.md": "What is it and how do you do it?", "b.md": "Zebra."})
    assert await site.paths("how do you do") == ["a.md"]


@pytest.mark.parametrize("limit", [0, -1, 1, 5, 50, 1000])
async def test_a_limit_holds(site, limit):
    assert len((await site.index.search(DOMAIN, "port key deploy", limit=limit)).sections) <= max(limit, 0)


# Pages


@pytest.mark.parametrize("path", ["docs/deploy/docker.md", "docs/deploy/docker", "/deploy/docker", "deploy/docker/",
                                  "/Deploy/Docker#x", "/deploy/docker?y"])  # fmt: skip
async def test_a_page_is_read_by_any_of_its_names(site, path):
    page = await site.index.read_page(DOMAIN, path)
    assert page is not None
    assert (page.path, page.url, page.title) == ("docs/deploy/docker.md", "/deploy/docker", "Deploying with Docker")
    assert page.content == "Build the image, then run the container."


# Files


async def test_switching_files_never_fails_a_query(tmp_path):
    index = SiteIndexes(tmp_path)
    for n in range(6):
        build({"a.md": f"# Zebra\n\nStripes of number{n}.\n"}, index.path_of(DOMAIN, f"i{n}"), commit=f"{n}" * 40)
    await index.use(DOMAIN, "i0")
    done = False

    async def ask() -> set[str]:
        seen = set()
        while not done:
            result = await index.search(DOMAIN, "zebra stripes")
            page = await index.read_page(DOMAIN, "a")
            assert page is not None
            assert result.sections[0].text == f"Stripes of number{result.commit[0]}."
            seen.add(result.commit[0])
        return seen

    asking = [asyncio.create_task(ask()) for _ in range(8)]
    for n in range(1, 6):
        await index.use(DOMAIN, f"i{n}")
        assert (await index.search(DOMAIN, "zebra")).commit == f"{n}" * 40
    done = True
    assert all(await asyncio.gather(*asking))  # everyone was answered, whatever file it was from
    assert index.served(DOMAIN) == "i5"
    await index.close()
    assert [folder.name for folder in (tmp_path / DOMAIN).iterdir()] == ["i5"]


async def test_links_are_those_of_the_newest_index(indexed):
    await indexed.fill({"old.md": "# Old\n\nA page.\n"})
    for _ in range(2):
        assert (await indexed.index.links(DOMAIN)).resolve("old") == "/old"
    await indexed.fill({"new.md": "# New\n\nA page.\n"})
    for _ in range(2):
        links = await indexed.index.links(DOMAIN)
        assert (links.resolve("old"), links.resolve("new")) == (None, "/new")
    await indexed.index.forget(DOMAIN)
    with pytest.raises(NotFound):
        await indexed.index.links(DOMAIN)


async def test_list_for_everyone_is_kept_with_its_index(indexed):
    await indexed.fill({"old.md": "# Old\n\nA page.\n", "staff.md": "---\ngroups: [staff]\n---\n\nFor staff.\n"})
    listed = await indexed.index.list_pages(DOMAIN, readers=())
    assert [page.path for page in listed.pages] == ["old.md"]
    assert await indexed.index.list_pages(DOMAIN, readers=()) is listed
    assert len((await indexed.index.list_pages(DOMAIN, readers=("staff",))).pages) == 2
    assert len((await indexed.index.list_pages(DOMAIN)).pages) == 2
    await indexed.fill({"new.md": "# New\n\nA page.\n"})
    assert [page.path for page in (await indexed.index.list_pages(DOMAIN, readers=())).pages] == ["new.md"]
    await indexed.index.forget(DOMAIN)
    with pytest.raises(NotFound):
        await indexed.index.list_pages(DOMAIN, readers=())


async def test_an_index_that_waits_for_its_turn_is_not_removed(indexed):
    await indexed.fill({"a.md": "One."})
    waiting = indexed.index.path_of(DOMAIN, "next")
    build({"a.md": "Two."}, waiting)
    await indexed.index.use(DOMAIN, "index-1")
    assert waiting.exists()


async def test_a_missing_or_broken_file_leaves_the_site_as_it_was(indexed):
    await indexed.fill({"a.md": "Zebra."})
    with pytest.raises(NotFound):
        await indexed.index.use(DOMAIN, "gone")
    broken = indexed.index.path_of(DOMAIN, "broken")
    broken.mkdir()
    (broken / "pages.db").write_bytes(b"not a database, but long enough to look at" * 100)
    with pytest.raises(Invalid):
        await indexed.index.use(DOMAIN, "broken")
    assert await indexed.paths("zebra") == ["a.md"]


UNCHECKED = [("../up", "a"), ("a/b", "a"), ("..", "a"), ("", "a")]
UNCHECKED += [(DOMAIN, file) for file in ("../a", "a/b", "", ".a", "..")]


@pytest.mark.parametrize(("domain", "file"), UNCHECKED)
async def test_no_path_is_made_of_an_unchecked_name(indexed, domain, file):
    with pytest.raises(Invalid):
        await indexed.index.use(domain, file)


async def test_a_forgotten_site_is_not_found(indexed):
    await indexed.fill({"a.md": "Zebra."}, commit=COMMIT)
    await indexed.index.forget(DOMAIN)
    with pytest.raises(NotFound):
        await indexed.paths("zebra")


async def test_many_sites_share_few_open_files(tmp_path):
    index = SiteIndexes(tmp_path, max_open=3)
    domains = [f"site-{n}" for n in range(9)]
    for domain in domains:
        build({"a.md": f"# {domain}\n\nZebra."}, index.path_of(domain, "a"))
        await index.use(domain, "a")
    for domain in [*domains, *domains]:
        assert (await index.search(domain, "zebra")).sections[0].title == domain
    assert index.open_files <= 3
    await index.close()
    assert index.open_files == 0


# Names and slips


NAMES = {
    "docs/words.md": "# Waiting\n\nSet the retry delay to a number of seconds.\n",
    "docs/snake.md": "# Options\n\nThe option `retry_delay` is a number.\n",
    "docs/one.md": "# Flags\n\nPass --retrydelay to the program.\n",
    "docs/camel.md": "# Client\n\nThe constructor takes retryDelaySecs.\n",
    "docs/other.md": "# Networks\n\nConnect the pieces of a network; authentication is on by default.\n",
}


@pytest.mark.parametrize("query", ["retryDelaySecs", "retry_delay", "retry delay", "RetryDelay", "retry-delay"])
async def test_a_name_is_found_however_it_is_written(indexed, query):
    await indexed.fill(NAMES)
    found = await indexed.paths(query)
    assert {"docs/words.md", "docs/snake.md", "docs/camel.md", "docs/one.md"} <= set(found)
    assert "docs/other.md" not in found


async def test_words_written_as_one_find_both(indexed):
    await indexed.fill({path: NAMES[path] for path in ("docs/words.md", "docs/snake.md", "docs/other.md")})
    assert set(await indexed.paths("retrydelay")) == {"docs/words.md", "docs/snake.md"}


async def test_the_name_as_it_is_written_comes_first(indexed):
    await indexed.fill(NAMES)
    assert (await indexed.paths("retryDelaySecs"))[0] == "docs/camel.md"


@pytest.mark.parametrize("slip", ["netwrok", "netork", "nettwork", "metwork", "authentcation"])
async def test_a_misspelt_word_finds_the_near_one(indexed, slip):
    await indexed.fill(NAMES)
    assert await indexed.paths(slip) == ["docs/other.md"]


async def test_a_word_that_the_site_has_is_not_taken_for_another(indexed):
    await indexed.fill({"a.md": "# A\n\nA lable of paper.", "b.md": "# B\n\nA label of cloth, a table of wood."})
    assert await indexed.paths("lable") == ["a.md"]
    assert await indexed.paths("cable") == []  # short, and it begins with another letter


async def test_explained_result_shows_what_matched(site):
    result = await site.index.search(DOMAIN, "kubernetes manifset", explain=True)
    best = result.sections[0].explanation
    assert best is not None
    assert best.corrected == {"manifset": "manifest"}
    assert set(best.words) == {"kubernet", "manifset", "manifest"}
    assert best.title > 0
    assert best.body > 0
    assert best.word_rank == 1
    parts = best.title + best.links + best.text + best.heading + best.body + best.further_sections + best.pairs
    assert best.points == pytest.approx(parts * best.place, abs=0.01)
    plain = await site.index.search(DOMAIN, "kubernetes manifset")
    assert all(section.explanation is None for section in plain.sections)
    assert [section.url for section in plain.sections] == [section.url for section in result.sections]


async def test_explanation_has_the_place_and_the_names_others_use(site):
    named = (await site.index.search(DOMAIN, "command line", explain=True)).sections
    assert {section.path: section.explanation.links > 0 for section in named}["docs/cli.md"]
    near = (await site.index.search(DOMAIN, "port", current_path="/cli", explain=True)).sections
    assert {section.path: section.explanation.place for section in near}["docs/cli.md"] > 1


# Damage


async def test_an_index_with_any_byte_changed_is_not_used(indexed, tmp_path):
    await indexed.fill(SITE)
    whole = indexed.index.path_of(DOMAIN, "index-1")
    for number, file in enumerate(
        sorted(each for each in whole.rglob("*") if each.is_file() and each.suffix != ".lock")
    ):
        damaged = indexed.index.path_of(DOMAIN, f"damaged-{number}")
        shutil.copytree(whole, damaged)
        part = damaged / file.relative_to(whole)
        content = bytearray(part.read_bytes())
        content[len(content) // 2] ^= 0x10
        part.write_bytes(content)
        with pytest.raises(Invalid) as told:
            await indexed.index.use(DOMAIN, damaged.name)
        assert told.value.code == "index_broken"
        part.unlink()
        with pytest.raises(Invalid):
            await indexed.index.use(DOMAIN, damaged.name)
    assert indexed.index.broken() == {}  # the whole one answers on
    assert await indexed.paths("rate limits")


async def test_query_that_meets_damage_reports_it_and_its_domain(indexed):
    await indexed.fill(SITE)
    told: list[str] = []
    indexed.index.on_broken = told.append
    with (indexed.index.path_of(DOMAIN, "index-1") / "pages.db").open("r+b") as file:
        for at in range(4096, file.seek(0, 2), 512):
            file.seek(at)
            file.write(b"\xde\xad" * 32)
    for _ in range(2):
        with pytest.raises(IndexBroken):
            await indexed.paths("rate limits")
    assert told == [DOMAIN, DOMAIN]
    assert list(indexed.index.broken()) == [DOMAIN]
    assert indexed.index.served(DOMAIN) is None
    await indexed.fill(SITE)
    assert indexed.index.broken() == {}
    assert await indexed.paths("rate limits")


async def test_a_query_waits_for_an_index_that_opens_late(site, tmp_path):
    listening, later = asyncio.Event(), SiteIndexes(tmp_path / "index")
    try:
        later.use_after(listening, DOMAIN, str(site.index.served(DOMAIN)))
        asked = asyncio.create_task(later.search(DOMAIN, "kubernetes"))
        material = asyncio.create_task(later.find_material(DOMAIN, MaterialRequest(("kubernetes",), budget_tokens=500)))
        await asyncio.wait([asked, material], timeout=0)
        assert not asked.done()
        assert not material.done()
        listening.set()
        assert (await asked).sections[0].path == "docs/deploy/kubernetes.md"
        assert (await material).sections[0].path == "docs/deploy/kubernetes.md"
        assert not later.opening()
    finally:
        await later.close()


async def test_an_index_that_opens_late_may_be_gone(indexed):
    listening = asyncio.Event()
    indexed.index.use_after(listening, DOMAIN, "none")
    listening.set()
    with pytest.raises(NotFound, match="not been indexed"):
        await indexed.index.search(DOMAIN, "kubernetes")


async def test_indexes_close_before_one_opens_late(indexed):
    indexed.index.use_after(asyncio.Event(), DOMAIN, "none")
    (opening,) = indexed.index.opening()
    await indexed.index.close()
    assert opening.cancelled()


POSTS = {
    "blog/announcing-kite-4.md": (
        "# Kite 4.0 is out\n\n## Slow wind gauge\n\nThe wind gauge is slow: it reads each sensor.\n"
    ),
    "guide/gauge.md": (
        "# Sensors\n\n## Wind gauge\n\n"
        "The wind gauge is slow while each of the sensors is read. Set `lazy` to read one of them.\n"
    ),
    "guide/other.md": "# Kites\n\nKites fly.\n",
}


@pytest.mark.parametrize(
    ("question", "path"),
    [
        ("Why is the wind gauge slow?", "guide/gauge.md"),
        ("How do I mend a slow wind gauge?", "guide/gauge.md"),
        ("Why was the wind gauge slow in the 4.0 release?", "blog/announcing-kite-4.md"),
        ("February 16, 2021: slow wind gauge", "blog/announcing-kite-4.md"),
    ],
)
async def test_a_post_about_a_release_stands_behind_a_guide_unless_it_is_asked_for(indexed, question, path):
    await indexed.fill(POSTS)
    assert (await indexed.paths(question))[0] == path


async def test_a_title_that_is_a_question_is_found_without_its_mark(indexed):
    await indexed.fill({"a.md": "# Why Kites?\n\nThey fly.\n", "b.md": "# Kites\n\nWhy kites? Why kites.\n"})
    assert (await indexed.paths("why kites"))[0] == "a.md"
