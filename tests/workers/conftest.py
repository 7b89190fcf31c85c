"""A log and read tables that follow it, as the workers of one process have them."""

import asyncio

import pytest

from eventstore import SQLiteEventStore, Views
from service.projections import all_projections


@pytest.fixture
async def store(tmp_path):
    store = await SQLiteEventStore.open(tmp_path / "events.db", vault_path=tmp_path / "keys.db")
    yield store
    await store.close()


@pytest.fixture
async def views(store, tmp_path):
    """They stand still until they are told to follow."""
    views = await Views.open(tmp_path / "views.db", store, all_projections())
    yield views
    await views.close()


@pytest.fixture
async def followed(views):
    following = asyncio.create_task(views.run())
    yield views
    following.cancel()
    await asyncio.wait([following])
