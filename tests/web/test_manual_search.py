"""The search of the manual over HTTP: without a key, a project or a model, and within limits."""

import re

import aiohttp
import pytest
from yarl import URL

from service.adapters.builtin.answer import BuiltinAnswer
from service.domain.access.usage import Limits
from service.web.http.app_keys import MANUAL_SEARCH
from service.web.http.connections.admission import AdmissionSettings
from service.web.pages import manual
from service.workers.indexing.manual_search import ManualSearch
from tests.web.entrance import entrance


def names_in(folder):
    return [file.name for file in folder.iterdir()]


@pytest.fixture
async def search():
    search = ManualSearch(manual.FOLDER, BuiltinAnswer())
    yield search
    await search.close()


def with_manual(search):
    def prepare(app):
        app[MANUAL_SEARCH] = search
        app.add_routes(manual.routes)

    return prepare


async def page_of(http, entry, query, *, status=200):
    async with http.get(URL(f"{entry.url}/manual/search").with_query(q=query)) as response:
        assert response.status == status
        return await response.text()


async def test_manual_search_answers_and_leads_to_sections(tmp_path, search):
    async with entrance(tmp_path, prepare=with_manual(search)) as entry, aiohttp.ClientSession() as http:
        page = await page_of(http, entry, "How do I restore a backup?")
        answer = page.split('id="answer"')[1].split("</section>")[0]
        assert "docsmith restore" in answer
        links = re.findall(r'href="([^"]+)"', page.split('class="prose"')[1])
        assert "../manual/operate#restore-it" in links
        for link in links:
            address = URL(f"{entry.url}/manual/search").join(URL(link))
            async with http.get(address.with_fragment(None)) as response:
                assert response.status == 200, link
                assert not address.fragment or f'id="{address.fragment}"' in await response.text(), link


async def test_manual_search_shows_what_was_typed_as_text(tmp_path, search):
    async with entrance(tmp_path, prepare=with_manual(search)) as entry, aiohttp.ClientSession() as http:
        page = await page_of(http, entry, "<zorblax>")
        assert "<zorblax>" not in page
        assert "The manual has no page with the words of" in page
        assert 'class="card answer"' not in await page_of(http, entry, "x" * 5_000)
        assert "Type a question" in await page_of(http, entry, " ")


async def test_manual_search_is_limited_by_address(tmp_path, search):
    settings = AdmissionSettings(limits=Limits(address_searches=2))
    async with entrance(tmp_path, settings, prepare=with_manual(search)) as entry, aiohttp.ClientSession() as http:
        for _ in range(2):
            assert 'class="results"' in await page_of(http, entry, "backup")
        page = await page_of(http, entry, "backup")
        assert "You have searched too often in the last minute" in page
        assert 'class="results"' not in page


async def test_every_page_is_found_by_its_title(search):
    for name, page in manual.pages().items():
        found = (await search.find(page.title, asker="reader")).sections
        assert name in [section.path for section in found], page.title


async def test_closed_search_leaves_no_folder(tmp_path):
    search = ManualSearch(manual.FOLDER, BuiltinAnswer(), scratch=tmp_path)
    await search.find("backup", asker="reader")
    assert len(names_in(tmp_path)) == 1
    await search.close()
    assert names_in(tmp_path) == []
