import pytest

from service.retrieval.query import FtsIndex
from tests.retrieval.sites import Indexed


@pytest.fixture
async def indexed(tmp_path):
    index = FtsIndex(tmp_path / "index")
    yield Indexed(index)
    await index.close()
