"""Reads by one instance of what another has just written."""

import asyncio

import pytest

from eventstore import NewEvent, SQLiteEventStore, Views
from service.queries.read_models import FreshReads


class Names:
    name = "names-1"
    tables = "CREATE TABLE names (name TEXT);"

    def apply(self, db, events):
        db.executemany("INSERT INTO names VALUES (?)", [(event.stream,) for event in events])


def opened(folder):
    return SQLiteEventStore.open(folder / "events.db", vault_path=folder / "keys.db")


@pytest.fixture
async def one(tmp_path):
    async with await opened(tmp_path) as store:
        yield store


@pytest.fixture
async def other(tmp_path, one):
    """The log as another instance has it, the instance's views, and what makes its reads fresh."""
    async with await opened(tmp_path) as store, await Views.open(tmp_path / "views.db", store, [Names()]) as views:
        following = asyncio.create_task(views.run())
        fresh = FreshReads(store, views)
        yield store, views, fresh
        await fresh.close()
        following.cancel()
        await asyncio.wait([following])


async def test_read_shows_what_another_instance_has_written(one, other):
    _, views, fresh = other
    for number in range(20):
        await one.append(f"job-{number}", [NewEvent("made", b"{}")], expected_version=0)
        await fresh()
        assert len(await views.query("SELECT name FROM names")) == number + 1


async def test_requests_that_come_together_are_all_fresh(one, other):
    _, views, fresh = other

    async def write_and_read(number):
        await one.append(f"job-{number}", [NewEvent("made", b"{}")], expected_version=0)
        await fresh()
        return await views.query("SELECT name FROM names WHERE name = ?", (f"job-{number}",))

    found = await asyncio.gather(*(write_and_read(number) for number in range(50)))
    assert all(len(rows) == 1 for rows in found)


async def test_log_that_is_away_holds_no_read_up(other):
    store, views, fresh = other
    await store.close()
    await asyncio.gather(*(fresh() for _ in range(10)))
    assert await views.query("SELECT name FROM names") == []
