"""Turns that instances take, over PostgreSQL."""

import asyncio
from contextlib import AsyncExitStack
from datetime import timedelta

import pytest

from service.adapters.postgres.tables import Tables
from service.adapters.postgres.turns import TIME_SECONDS, TableTurns
from tests.eventstore.backends import addresses


@pytest.fixture
async def opened(tmp_path):
    async with AsyncExitStack() as stack:

        async def opened(**options):
            tables = await Tables.open(addresses(tmp_path)[0].text, "service_log")
            stack.push_async_callback(tables.close)
            return tables, TableTurns(tables, **options)

        yield opened


async def waiting(tables):
    """Wait until the server has one more that waits for a turn."""
    while not await tables.fetch(  # noqa: ASYNC110  (the server rings no bell for that)
        "SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        " AND objid::bigint = hashtext(current_schema())::bigint & 4294967295"
    ):
        await asyncio.sleep(0)


async def test_turns_come_in_the_order_of_asking(opened):
    (tables, one), (_, two) = [await opened() for _ in range(2)]
    order = []

    async def take(turns, name):
        async with turns.turn():
            order.append(name)

    async with one.turn():
        second = asyncio.create_task(take(two, "second"))
        await waiting(tables)
        third = asyncio.create_task(take(one, "third"))
        order.append("first")
    await asyncio.gather(second, third)
    assert order == ["first", "second", "third"]


async def test_alone_no_turn_is_taken(opened):
    tables, turns = await opened(is_alone=lambda: True)
    await tables.close()
    async with turns.turn():
        pass


async def test_without_a_database_one_goes_on_without_a_turn(opened):
    tables, turns = await opened()
    await tables.close()
    for _ in range(2):
        async with turns.turn():
            pass


async def test_error_in_a_turn_ends_it(opened):
    (_, one), (_, two) = [await opened() for _ in range(2)]
    with pytest.raises(ZeroDivisionError):
        async with one.turn():
            raise ZeroDivisionError
    async with two.turn():
        pass


async def test_turn_gives_the_time_that_all_share_now_and_then(opened):
    seconds = [0.0]
    _, turns = await opened(seconds=lambda: seconds[0])
    tables, alone = await opened(is_alone=lambda: True)
    for one in (turns, alone):
        async with one.turn() as shared:
            ((there,),) = await tables.fetch("SELECT clock_timestamp()")
            assert timedelta(0) <= there - shared < timedelta(minutes=1)
        async with one.turn() as shared:
            assert shared is None
    seconds[0] += TIME_SECONDS
    async with turns.turn() as shared:
        assert shared > there
