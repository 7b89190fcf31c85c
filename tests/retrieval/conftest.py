import pytest

from service.retrieval.search.query import SiteIndexes
from tests.retrieval.sites import Indexed


@pytest.fixture
async def indexed(tmp_path):
    index = SiteIndexes(tmp_path / "index")
    yield Indexed(index)
    await index.close()
