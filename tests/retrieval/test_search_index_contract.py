"""The index on disk and the fake that stands for it elsewhere do the same."""

import pytest

from tests.contracts.search_index import COMMIT, DOMAIN, PAGES, SearchIndexContract
from tests.fakes.search_index import FakeSearchIndex


class TestSiteIndexes(SearchIndexContract):
    @pytest.fixture
    async def index(self, indexed):
        await indexed.fill(PAGES, commit=COMMIT)
        return indexed.index


class TestFakeSearchIndex(SearchIndexContract):
    @pytest.fixture
    def index(self):
        fake = FakeSearchIndex()
        fake.put(DOMAIN, PAGES, commit=COMMIT)
        return fake
