"""A log and read tables that stand still until they are told to follow."""

import pytest

from eventstore import SQLiteEventStore, Views
from service.projections import all_projections


@pytest.fixture
async def store(tmp_path):
    async with await SQLiteEventStore.open(tmp_path / "events.db", vault_path=tmp_path / "keys.db") as store:
        yield store


@pytest.fixture
async def views(tmp_path, store):
    views = await Views.open(tmp_path / "views.db", store, all_projections())
    yield views
    await views.close()
