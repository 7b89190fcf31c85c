"""Faults of a PostgreSQL server, and what a log there refuses."""

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from datetime import UTC, datetime

import pytest

from eventstore import (
    Appended,
    OutcomeUnknown,
    StoreBusy,
    StoreClosed,
    StoreForeign,
    StoreLost,
    StoreNewer,
    StoreReadOnly,
    StoreUnavailable,
    WrongExpectedVersion,
    new_event_id,
)
from eventstore.postgres.connections import Address, Connections
from eventstore.postgres.place import TablePlace
from eventstore.postgres.postgres_store import PostgresEventStore
from tests.eventstore.backends import BACKENDS, addresses
from tests.eventstore.cluster import started_cluster
from tests.eventstore.shapes import noted, take

pytestmark = pytest.mark.slow

IN_TRANSACTION = "state = 'idle in transaction'"


@pytest.fixture
def server():
    """A server of the test's own, to be stopped and started."""
    cluster = started_cluster()
    yield cluster
    cluster.remove()


@pytest.fixture
def logs(server):
    """Return the addresses of a log and a vault on that server."""
    connections = Connections.open(Address(server.address))
    for schema in ("log", "vault"):
        connections.fetch(f"CREATE SCHEMA {schema}")
    connections.close()
    return Address(f"{server.address}&search_path=log"), Address(f"{server.address}&search_path=vault")


@pytest.fixture
async def opened(logs):
    async with AsyncExitStack() as stack:

        async def open_another(**options):
            return await stack.enter_async_context(await PostgresEventStore.open(logs[0], vault=logs[1], **options))

        yield open_another


def run(address, *statements):
    """Run statements as an administrator would."""
    connections = Connections.open(address)
    try:
        return [connections.fetch(statement) for statement in statements]
    finally:
        connections.close()


async def append_until(store, stream, goal):
    """Append event by event, whatever fails, each until it is stored; return how often an outcome was unknown."""
    unknown, ids = 0, [new_event_id() for _ in range(goal)]
    for version, event_id in enumerate(ids):
        while True:
            try:
                await store.append(stream, [noted(version, "secret", event_id=event_id)], expected_version=version)
                break
            except OutcomeUnknown:
                unknown += 1
            except StoreUnavailable:
                await asyncio.sleep(0)
    return unknown


@pytest.mark.slow
async def test_a_server_that_dies_loses_and_doubles_nothing(server, opened):
    store, other = await opened(), await opened()
    tasks = [
        asyncio.create_task(append_until(one, f"load-{number}", 60))
        for one in (store, other)
        for number in (range(5) if one is store else range(5, 10))
    ]
    for position in (50, 200, 350):
        while True:
            try:
                await store.wait_until(position)
                break
            except StoreUnavailable:
                await asyncio.sleep(0)
        await asyncio.to_thread(server.kill)
        await asyncio.to_thread(server.start)
    await asyncio.gather(*tasks)
    events = await store.read_all(limit=1_000)
    assert [event.position for event in events] == list(range(1, 601))
    assert len({event.id for event in events}) == 600
    for number in range(10):
        assert await other.stream_version(f"load-{number}") == 60


async def test_a_server_that_is_away_is_said_to_be(server, opened):
    store = await opened()
    await store.append("note-1", [noted(1)], expected_version=0)
    await asyncio.to_thread(server.kill)
    with pytest.raises(StoreUnavailable):
        await store.append("note-1", [noted(2)], expected_version=1)
    with pytest.raises(StoreUnavailable):
        await store.read_all()
    assert store.trouble is not None
    await asyncio.to_thread(server.start)
    with pytest.raises(WrongExpectedVersion):
        await store.append("note-1", [noted(2)], expected_version=0)
    assert await store.append("note-1", [noted(2)], expected_version=1) == Appended(2, 2)
    assert store.trouble is None


async def test_a_subscriber_hears_again_after_the_server_was_away(server, opened):
    store, other = await opened(), await opened()
    await other.append("note-1", [noted(1)], expected_version=0)
    taking = asyncio.create_task(take(store, 2))
    await store.wait_until(1)
    await asyncio.to_thread(server.kill)
    await asyncio.to_thread(server.start)
    await append_until(other, "note-2", 1)
    assert [event.stream for event in await taking] == ["note-1", "note-2"]


async def test_events_are_neither_changed_nor_deleted(logs, opened):
    store = await opened()
    await store.append("note-1", [noted(1)], expected_version=0)
    for statement in ("UPDATE events SET data = '{}'", "DELETE FROM events", "TRUNCATE events"):
        with pytest.raises(StoreReadOnly, match="stored for good"):
            run(logs[0], statement)
    assert len(await store.read_all()) == 1


@pytest.mark.parametrize(
    "change",
    ["DELETE FROM events WHERE position = 3", "UPDATE events SET hash = sha256('another') WHERE position = 3"],
)
async def test_a_standby_without_the_last_events_is_noticed(logs, opened, change):
    store, other = await opened(), await opened()
    await store.append("note-1", [noted(1), noted(2), noted(3)], expected_version=0)
    run(
        logs[0],
        "ALTER TABLE events DISABLE TRIGGER events_stay",
        change,
        "UPDATE head SET (position, hash) = (SELECT position, hash FROM events ORDER BY position DESC LIMIT 1)",
    )
    with pytest.raises(StoreLost, match="position 3"):
        await store.append("note-2", [noted(1)], expected_version=0)
    assert await other.stream_version("note-2") == 0


async def test_a_role_that_may_only_read_cannot_append(server, logs, opened):
    store = await opened()
    await store.append("note-1", [noted(1)], expected_version=0)
    run(
        logs[0],
        "CREATE ROLE reader LOGIN",
        "GRANT USAGE ON SCHEMA log, vault TO reader",
        "GRANT SELECT ON ALL TABLES IN SCHEMA log TO reader",
        "GRANT SELECT ON ALL TABLES IN SCHEMA vault TO reader",
    )
    reader = [Address(one.text.replace("docsmith@", "reader@")) for one in logs]
    async with await PostgresEventStore.open(reader[0], vault=reader[1]) as reading:
        assert len(await reading.read_all()) == 1
        with pytest.raises(StoreReadOnly, match="permission denied"):
            await reading.append("note-1", [noted(2)], expected_version=1)
    async with await PostgresEventStore.open(reader[0], vault=reader[1], read_only=True) as reading:
        assert len(await reading.read_all()) == 1


async def test_a_lost_transaction_is_not_gone_on_with(logs, opened):
    ending = [True]

    def clock():  # between the statements of a transaction
        if ending:
            ending.clear()
            run(logs[0], f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {IN_TRANSACTION}")
            while run(logs[0], f"SELECT FROM pg_stat_activity WHERE {IN_TRANSACTION}")[0]:
                time.sleep(0.02)
        return datetime.now(UTC)

    store = await opened(clock=clock)
    with pytest.raises(StoreUnavailable):
        await store.append("note-1", [noted(1)], expected_version=0)
    assert await store.read_all() == []
    assert await store.append("note-1", [noted(2)], expected_version=0) == Appended(1, 1)


async def test_one_that_is_paused_in_a_transaction_keeps_no_other_from_appending(opened):
    is_paused, goes_on = threading.Event(), threading.Event()

    def clock():  # between the statements of a transaction
        is_paused.set()
        goes_on.wait()
        return datetime.now(UTC)

    paused, other = await opened(clock=clock), await opened()
    appending = asyncio.create_task(paused.append("note-1", [noted(1)], expected_version=0))
    await asyncio.to_thread(is_paused.wait)
    try:
        assert await other.append("note-2", [noted(2)], expected_version=0) == Appended(1, 1)
    finally:
        goes_on.set()
    with pytest.raises(StoreUnavailable):
        await appending
    assert await paused.append("note-1", [noted(1)], expected_version=0) == Appended(2, 1)


def end_of_lock(address):
    """End the connection that keeps a log to one service, as a network may; by the return it has no lock any more."""
    run(address, "SELECT pg_terminate_backend(pid, 60000) FROM pg_locks WHERE locktype = 'advisory' AND granted")


def until(condition):
    """Wait until something is so."""
    ends = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < ends


def test_a_lock_that_was_lost_is_taken_again(logs):
    place = TablePlace(logs[0].text, logs[1].text)
    with place.served_alone() as another:
        for _ in range(2):
            end_of_lock(logs[0])
            until(lambda: run(logs[0], "SELECT FROM pg_locks WHERE locktype = 'advisory' AND granted")[0])
        with pytest.raises(StoreBusy, match="another service"), place.served_alone():
            pass
        assert another() is None
    with place.served_alone():
        pass


def test_services_share_a_log_that_no_one_has_alone(logs):
    place = TablePlace(logs[0].text, logs[1].text)
    with place.served() as one, place.served() as other:
        with pytest.raises(StoreBusy, match="another service"), place.served_alone():
            pass
        end_of_lock(logs[0])
        until(lambda: len(run(logs[0], "SELECT FROM pg_locks WHERE locktype = 'advisory' AND granted")[0]) == 2)
        assert one() is None
        assert other() is None
    with place.served_alone(), pytest.raises(StoreBusy, match="being moved or restored"), place.served():
        pass


def test_a_lock_that_another_took_is_said_to_be_lost(server, logs):
    place = TablePlace(logs[0].text, logs[1].text)
    with place.served_alone() as another:
        connections = Connections.open(logs[0])
        held = connections.run(connections.connect())
        wait = held.execute("SELECT pg_advisory_lock(id) FROM (SELECT (classid::bigint << 32) + objid::bigint AS id"
                            " FROM pg_locks WHERE locktype = 'advisory') AS taken")  # fmt: skip
        waiting = asyncio.run_coroutine_threadsafe(wait, connections.loop)
        until(lambda: run(logs[0], "SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")[0])
        end_of_lock(logs[0])
        waiting.result(timeout=60)
        until(another)
        assert "is in other use now" in another()
        connections.run(held.close())
        connections.close()


async def test_an_erasure_in_a_vault_of_before_is_noticed(logs, opened):
    store, other = await opened(), await opened()
    await store.append("note-1", [noted(1, "secret")], expected_version=0)
    for subject in ("note-7", "note-8", "note-9"):
        await store.erase(subject)
    assert not (await store.read_stream("note-1"))[0].erased
    run(logs[1], "UPDATE erasures SET generation = 1")  # as after a restore of its database
    await other.erase("note-1")
    assert (await store.read_stream("note-1"))[0].erased


async def test_a_closed_store_is_said_to_be_closed(tmp_path):
    connections = Connections.open(addresses(tmp_path)[0])
    waiting = ThreadPoolExecutor(4)
    sleeping = [waiting.submit(connections.fetch, "SELECT pg_sleep(60)") for _ in range(4)]
    while connections.fetch("SELECT count(*) FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(60)'")[0][0] < 4:  # noqa: ASYNC110  (nothing tells when)
        await asyncio.sleep(0.02)
    await asyncio.to_thread(connections.close)
    for one in sleeping:
        with pytest.raises(StoreClosed):
            one.result(timeout=60)
    waiting.shutdown()
    with pytest.raises(StoreClosed):
        connections.fetch("SELECT 1")


@pytest.mark.parametrize("typed", ["u:hun/ter2@h/d", "u:hun?ter2@h/d", "u:hun#ter2@h/d", "u:hun[ter2@h/d"])
def test_a_password_that_is_not_encoded_is_not_shown(typed):
    with pytest.raises(ValueError, match=r"encode|begins") as refused:
        Address(f"postgresql://{typed}")
    assert "ter2" not in str(refused.value)
    assert "hun" not in str(refused.value)


async def test_a_newer_schema_is_left_alone(logs, opened):
    await opened()
    run(logs[0], "UPDATE log_schema SET step = 8, oldest = 1")
    await opened()  # it says that programs of this age can go on beside it
    run(logs[0], "UPDATE log_schema SET step = 9, oldest = 9")
    with pytest.raises(StoreNewer):
        await opened()


async def test_a_database_without_a_log_is_not_read_as_one(logs):
    with pytest.raises(StoreForeign, match="has no vault"):
        await PostgresEventStore.open(logs[0], vault=logs[1], read_only=True)


async def test_no_error_shows_a_password(server, tmp_path):
    address = Address(server.address.replace("docsmith@", "stranger:hunter2@"))
    with pytest.raises(StoreUnavailable) as raised:
        await PostgresEventStore.open(address, vault=address)
    assert "stranger" in str(raised.value)
    assert "hunter2" not in str(raised.value)
    for text in ("mysql://u:hunter2@h/d", "postgresql://u:hunter2@h/d?statement_cache_size=some"):
        with pytest.raises(ValueError, match=r"begins with|is a number") as refused:
            Address(text)
        assert "hunter2" not in str(refused.value)


async def test_a_log_is_read_behind_a_pooler(tmp_path):
    log, vault = addresses(tmp_path)
    async with await BACKENDS["postgres"].open(tmp_path) as store:
        await store.append("note-1", [noted(1, "secret")], expected_version=0)
    plain = [Address(f"{one.text}&statement_cache_size=0") for one in (log, vault)]
    async with await PostgresEventStore.open(plain[0], vault=plain[1]) as store:
        await store.append("note-1", [noted(2, "secret")], expected_version=1)
        assert len(await store.read_stream("note-1")) == 2


def test_changed_rows_of_a_log_are_found(tmp_path):
    async def fill():
        async with await BACKENDS["postgres"].open(tmp_path) as store:
            await store.append("note-1", [noted(1), noted(2), noted(3)], expected_version=0)

    asyncio.run(fill())
    log, _ = addresses(tmp_path)
    assert BACKENDS["postgres"].is_sound(tmp_path)
    run(log, "DROP TRIGGER events_stay ON events")
    assert not BACKENDS["postgres"].is_sound(tmp_path)
    run(log, "UPDATE events SET type = 'counted' WHERE position = 2")
    assert not BACKENDS["postgres"].is_sound(tmp_path)
