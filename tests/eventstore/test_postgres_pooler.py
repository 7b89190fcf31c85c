"""A log and its vault behind PgBouncer in transaction mode."""

import asyncio
from contextlib import AsyncExitStack, closing

import asyncpg
import pytest

from eventstore import Appended, StoreBusy, StoreLost, StoreReadOnly, WrongExpectedVersion
from eventstore.postgres.connections import Address, Connections
from eventstore.postgres.place import TablePlace
from tests.eventstore.cluster import started_cluster
from tests.eventstore.pooler import started_pooler
from tests.eventstore.shapes import noted, take
from tests.eventstore.test_postgres_away import CUT

pytestmark = pytest.mark.slow


@pytest.fixture
def server():
    cluster = started_cluster()
    yield cluster
    cluster.remove()


@pytest.fixture
def place(server):
    """The place of a log and a vault in two databases of a server, each reached by way of the pooler."""
    with closing(Connections.open(Address(server.address))) as connections:
        connections.fetch("CREATE DATABASE log")
        connections.fetch("CREATE DATABASE vault")
    pooler = started_pooler(server)
    yield TablePlace(pooler.address("log"), pooler.address("vault"))
    pooler.close()


async def test_instances_write_and_read_by_way_of_a_pooler(place):
    async with AsyncExitStack() as stack:
        stores = [await stack.enter_async_context(await place.open()) for _ in range(3)]
        following = asyncio.create_task(take(stores[2], 40))

        async def fill(store, stream):
            for version in range(20):
                await store.append(stream, [noted(version, "secret")], expected_version=version)

        await asyncio.gather(fill(stores[0], "note-1"), fill(stores[1], "note-2"))
        assert [event.position for event in await following] == list(range(1, 41))
        with pytest.raises(WrongExpectedVersion):
            await stores[2].append("note-1", [noted(1)], expected_version=3)
        assert await stores[2].append("note-3", [noted(1)], expected_version=0) == Appended(41, 1)
        await stores[0].erase("note-2")
        assert all(event.erased for event in await stores[1].read_stream("note-2"))
        assert not any(event.erased for event in await stores[1].read_stream("note-1"))


async def test_a_log_is_examined_by_way_of_a_pooler(place):
    async with await place.open() as store:
        await store.append("note-1", [noted(1, "secret"), noted(2)], expected_version=0)
    assert await asyncio.to_thread(place.exists)
    assert (await asyncio.to_thread(place.verify)).position == 2
    assert len(await asyncio.to_thread(place.log_id)) == 32
    assert await asyncio.to_thread(place.subjects_without_keys) == []
    async with await place.open(read_only=True) as reading:
        assert len(await reading.read_all()) == 2
    async with await place.open() as store:  # none of those who read has left a connection that only reads
        assert await store.append("note-1", [noted(3)], expected_version=2) == Appended(3, 3)


async def test_who_only_reads_cannot_write_by_way_of_a_pooler(place):
    async with await place.open():
        pass
    reading = closing(Connections.open(Address(place.log), read_only=True))
    with reading as connections, pytest.raises(StoreReadOnly, match="read, and not written"):
        connections.fetch("UPDATE head SET position = 7 RETURNING 1")


def test_a_log_is_kept_to_those_who_use_it_by_way_of_a_pooler(place):
    with place.served() as lost, place.served():
        with pytest.raises(StoreBusy, match="another service"), place.served_alone():
            pass
        assert lost() is None
    with place.served_alone(), pytest.raises(StoreBusy, match="being moved"), place.served():
        pass
    with place.served():
        pass


async def test_many_statements_by_way_of_a_pooler_are_not_mixed_up(place):
    """A statement with values is two messages, which may go to two connections of the server outside a transaction."""
    async with await place.open() as store, await place.open() as other:
        for number in range(20):
            await store.append(f"note-{number}", [noted(number, "secret")], expected_version=0)
        found = await asyncio.gather(
            *(one.read_stream(f"note-{number}") for _ in range(5) for number in range(20) for one in (store, other))
        )
    assert [events[0].stream for events in found] == [
        f"note-{number}" for _ in range(5) for number in range(20) for _ in range(2)
    ]


async def several_connections(address):
    """Let the pooler have several connections of the server, between which it changes with each transaction."""
    async with AsyncExitStack() as stack:
        for _ in range(4):
            connection = await asyncpg.connect(address.text, statement_cache_size=0)
            stack.push_async_callback(connection.close)
            await stack.enter_async_context(connection.transaction())
            await connection.execute("SELECT 1")


async def test_all_instances_learn_of_a_loss_by_way_of_a_pooler(place, server):
    async with await place.open() as store, await place.open() as other:
        await store.append("note-1", [noted(1), noted(2), noted(3)], expected_version=0)
        await several_connections(Address(place.log))
        with closing(Connections.open(Address(f"{server.address.replace('/postgres', '/log')}"))) as connections:
            for statement in CUT:
                connections.fetch(statement)
        with pytest.raises(StoreLost, match="position 3"):
            await store.append("note-2", [noted(1)], expected_version=0)
        assert "position 3" in await asyncio.to_thread(place.held)
        with pytest.raises(StoreLost, match="position 3"):
            await other.append("note-2", [noted(1)], expected_version=0)
