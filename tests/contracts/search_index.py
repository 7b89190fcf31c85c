"""What every SearchIndex does. A subclass gives the fixture ``index``, which serves ``PAGES`` for ``DOMAIN`` at
``COMMIT``.
"""

import pytest

from service.domain.errors import NotFound
from service.domain.search import SearchFilter, Source
from service.ports.search_index import MaterialRequest, SearchIndex, Section

DOMAIN = "docs.example.com"
COMMIT = "0123456789abcdef0123456789abcdef01234567"
PAGES = {
    "index.md": "# Welcome\n\nStart with the [quickstart](guide/quickstart.md).\n",
    "guide/quickstart.md": (
        "---\ntitle: Quickstart\ntags: [beginner]\n---\n\n"
        "Install the command line tool.\n\n"
        "## Authentication\n\nCreate an access token, then log in.\n\n"
        "```sh\nexample login --token TOKEN\n```\n\n"
        "## Uninstall\n\nRemove the folder.\n"
    ),
    "guide/webhooks.md": "# Webhooks\n\nReceive a signed request when a deployment ends.\n",
    "es/inicio.md": "---\ntitle: Inicio\nlanguage: es\n---\n\nInstale la herramienta webhooks.\n",
    "old/hooks.md": "---\ntitle: Hooks\nversion: v1\n---\n\nDeployment webhooks, as they were.\n",
    "internal/runbook.md": "---\ntitle: Runbook\ngroups: [staff]\n---\n\nRestart the deployment controller.\n",
}


def wanted(*queries: str, budget_tokens: int = 2_000, **other: object) -> MaterialRequest:
    return MaterialRequest(queries, budget_tokens, **other)


def source_of(section: Section, **changes: object) -> Source:
    kept = {"number": 1, "commit": COMMIT} | {
        name: getattr(section, name) for name in ("path", "url", "title", "heading", "start_line", "end_line")
    }
    return Source(**(kept | changes))


class SearchIndexContract:
    @pytest.fixture
    def index(self) -> SearchIndex:
        raise NotImplementedError

    async def test_a_question_finds_the_section_that_answers_it(self, index):
        result = await index.search(DOMAIN, "How do I create an access token?")
        assert result.commit == COMMIT
        best = result.sections[0]
        assert (best.path, best.title, best.heading) == ("guide/quickstart.md", "Quickstart", "Authentication")
        assert best.heading_path == ("Authentication",)
        assert best.url == "/guide/quickstart#authentication"
        assert "example login --token TOKEN" in best.text
        lines = PAGES[best.path].split("\n")[best.start_line - 1 : best.end_line]
        assert lines[0] == "## Authentication"
        assert "example login --token TOKEN" in lines

    async def test_scores_fall_from_one(self, index):
        sections = (await index.search(DOMAIN, "deployment webhooks")).sections
        scores = [section.score for section in sections]
        assert scores[0] == 1
        assert scores == sorted(scores, reverse=True)
        assert all(0 <= score <= 1 for score in scores)

    async def test_no_more_sections_than_asked_for(self, index):
        assert len((await index.search(DOMAIN, "deployment webhooks token", limit=1)).sections) == 1

    async def test_words_that_are_nowhere_find_nothing(self, index):
        assert list((await index.search(DOMAIN, "zyzzyva quokka")).sections) == []

    @pytest.mark.parametrize("query", ["", "   ", "?!", '"', "'; DROP TABLE pages; --"])
    async def test_any_query_is_answered(self, index, query):
        await index.search(DOMAIN, query)

    async def test_a_filter_leaves_pages_out(self, index):
        async def found(**wanted: object) -> set[str]:
            result = await index.search(DOMAIN, "webhooks deployment tool", filter=SearchFilter(**wanted))
            return {section.path for section in result.sections}

        assert "old/hooks.md" in await found()
        assert "old/hooks.md" in await found(version="v1")
        assert "old/hooks.md" not in await found(version="v2")
        assert "es/inicio.md" in await found(language="es")
        assert "es/inicio.md" not in await found(language="en")
        assert await found(tag="beginner") == {"guide/quickstart.md"}

    async def test_a_page_for_a_group_of_readers_is_found_only_by_them(self, index):
        async def found(*groups: str) -> set[str]:
            result = await index.search(DOMAIN, "restart the controller", filter=SearchFilter(groups=groups))
            return {section.path for section in result.sections}

        assert "internal/runbook.md" not in await found()
        assert "internal/runbook.md" not in await found("customers")
        assert "internal/runbook.md" in await found("customers", "staff")

    async def test_material_has_neighbouring_sections_in_order(self, index):
        material = await index.find_material(DOMAIN, wanted("How do I create an access token?"))
        assert material.commit == COMMIT
        of_page = [one for one in material.sections if one.path == "guide/quickstart.md"]
        assert [one.heading for one in of_page][:2] == ["", "Authentication"]
        assert material.sections[0].path == "guide/quickstart.md"
        assert max(material.sections, key=lambda one: one.score).heading == "Authentication"
        assert "example login --token TOKEN" in of_page[1].text

    async def test_material_keeps_within_its_budget(self, index):
        small = await index.find_material(DOMAIN, wanted("create an access token", budget_tokens=60))
        assert [one.heading for one in small.sections] == ["Authentication"]

    async def test_known_sections_cost_nothing(self, index):
        known = frozenset({("guide/quickstart.md", 8)})
        request = wanted("create an access token", budget_tokens=60, known=known)
        found = [one.heading for one in (await index.find_material(DOMAIN, request)).sections]
        assert "Authentication" in found
        assert len(found) > 1

    async def test_material_answers_each_query(self, index):
        material = await index.find_material(DOMAIN, wanted("access token", "signed request deployment"))
        assert {"guide/quickstart.md", "guide/webhooks.md"} <= {one.path for one in material.sections}

    async def test_whole_page_leads_the_material(self, index):
        request = wanted("access token", whole_page="/guide/webhooks")
        material = await index.find_material(DOMAIN, request)
        assert material.sections[0].path == "guide/webhooks.md"
        assert "guide/quickstart.md" in {one.path for one in material.sections}

    async def test_material_keeps_group_pages_from_others(self, index):
        request = wanted("restart the deployment controller", whole_page="internal/runbook", pages=("Runbook",))
        assert "internal/runbook.md" not in {one.path for one in (await index.find_material(DOMAIN, request)).sections}

    @pytest.mark.parametrize("query", ["", "?!", "zyzzyva quokka"])
    async def test_material_is_empty_without_a_match(self, index, query):
        assert list((await index.find_material(DOMAIN, wanted(query))).sections) == []

    async def test_section_is_found_where_it_was_recorded(self, index):
        found = (await index.search(DOMAIN, "create an access token")).sections[0]
        moved = source_of(found, start_line=found.start_line + 7, commit="f" * 40)
        edited = source_of(found, heading="Tokens")
        same, later, gone, missing = await index.sections_at(
            DOMAIN, [source_of(found), moved, edited, source_of(found, path="guide/nowhere.md")]
        )
        assert (same.text, same.url, same.heading_path) == (found.text, found.url, found.heading_path)
        assert later == same
        assert gone is None
        assert missing is None

    async def test_recorded_section_of_a_group_is_for_it_alone(self, index):
        [found] = await index.sections_at(DOMAIN, [Source(1, "internal/runbook.md", "/internal/runbook", "Runbook", "",
                                                          6, 7, "f" * 40)])  # fmt: skip
        assert "Restart" in found.text
        assert await index.sections_at(DOMAIN, [source_of(found)], readers=()) == (None,)
        assert await index.sections_at(DOMAIN, [source_of(found)], readers=("staff",)) != (None,)

    @pytest.mark.parametrize(
        "path", ["guide/quickstart.md", "guide/quickstart", "/guide/quickstart", "/guide/quickstart/"]
    )
    async def test_a_page_is_read_by_path_or_url(self, index, path):
        page = await index.read_page(DOMAIN, path)
        assert page is not None
        assert (page.path, page.url, page.title) == ("guide/quickstart.md", "/guide/quickstart", "Quickstart")
        assert "## Authentication" in page.content
        assert "tags:" not in page.content

    async def test_pages_besides_some_are_counted_and_named(self, index):
        everything = await index.pages_besides(DOMAIN, (), limit=100)
        assert everything.count == len(everything.first) > 1
        first, *others = everything.first
        found = await index.pages_besides(DOMAIN, (first.path, "nowhere.md"), limit=1)
        assert (found.count, list(found.first)) == (len(others), others[:1])

    async def test_pages_for_the_reader_are_listed_and_read_together(self, index):
        assert list(await index.reader_groups(DOMAIN)) == ["staff"]
        listed = await index.list_pages(DOMAIN, readers=())
        assert listed.commit == COMMIT
        assert {page.path for page in listed.pages} == {*PAGES} - {"internal/runbook.md"}
        assert {page.path for page in listed.pages if not page.is_main} >= {"es/inicio.md"}
        paths = [page.path for page in listed.pages]
        pages = await index.read_pages(DOMAIN, [*paths, "internal/runbook.md", "nowhere"], readers=())
        assert [page and (page.path, page.url, page.title) for page in pages] == [
            *((page.path, page.url, page.title) for page in listed.pages), None, None,
        ]  # fmt: skip
        assert {page.path for page in (await index.list_pages(DOMAIN)).pages} == {*PAGES}

    async def test_a_page_for_a_group_of_readers_is_read_only_by_them(self, index):
        assert await index.read_page(DOMAIN, "internal/runbook", readers=()) is None
        assert await index.read_page(DOMAIN, "internal/runbook", readers=("customers",)) is None
        assert await index.read_page(DOMAIN, "internal/runbook", readers=("customers", "staff")) is not None
        assert await index.read_page(DOMAIN, "internal/runbook") is not None
        assert await index.read_page(DOMAIN, "guide/quickstart", readers=()) is not None

    @pytest.mark.parametrize(
        ("address", "url"),
        [
            ("/guide/quickstart", "/guide/quickstart"),
            ("/guide/quickstart/?x=1#authentication", "/guide/quickstart#authentication"),
            ("/guide/quickstart#invented", "/guide/quickstart"),
            ("../guide/Quickstart.mdx", "/guide/quickstart"),
            ("/docs/v2/guide/quickstart.html#Authentication", "/guide/quickstart#authentication"),
            ("webhooks", "/guide/webhooks"),
            ("/api/webhooks", "/guide/webhooks"),
            ("/guide", None),
            ("/nowhere", None),
            ("/internal/runbook", None),
        ],
    )
    async def test_link_leads_to_the_page_that_it_means(self, index, address, url):
        assert (await index.links(DOMAIN)).resolve(address) == url

    async def test_link_to_a_page_for_a_group_is_for_its_readers(self, index):
        links = await index.links(DOMAIN)
        assert links.resolve("runbook", readers=("Staff",)) == "/internal/runbook"

    async def test_missing_page_reads_as_none(self, index):
        assert await index.read_page(DOMAIN, "guide/nowhere") is None
        assert await index.read_page(DOMAIN, "../../etc/passwd") is None

    @pytest.mark.parametrize("domain", ["other.example.com", "..", "", "a/b"])
    async def test_a_site_without_an_index_is_not_found(self, index, domain):
        with pytest.raises(NotFound) as search:
            await index.search(domain, "token")
        with pytest.raises(NotFound) as read:
            await index.read_page(domain, "index.md")
        assert search.value.code == read.value.code == "not_indexed"
