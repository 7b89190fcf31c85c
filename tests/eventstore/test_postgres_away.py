"""A log in PostgreSQL that does not answer, or that came back without its end."""

import asyncio
import os
import signal
import time
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from urllib.parse import quote

import pytest

from eventstore import StoreLost, StoreUnavailable, Witness, execute, load, plan
from eventstore.postgres.away.away import PATIENCE_SECONDS, RETRY_SECONDS, Away
from eventstore.postgres.away.local_copy import LocalCopy
from eventstore.postgres.connections import Address, Connections
from eventstore.postgres.place import TablePlace
from eventstore.postgres.postgres_store import PostgresEventStore
from tests.eventstore.cluster import new_cluster, started_cluster
from tests.eventstore.shapes import COUNTER, Counted, Refused, noted, take

pytestmark = pytest.mark.slow

CUT = (
    "ALTER TABLE events DISABLE TRIGGER events_stay",
    "DELETE FROM events WHERE position > 2",
    "UPDATE head SET (position, hash) = (SELECT position, hash FROM events ORDER BY position DESC LIMIT 1)",
)
"""As a standby has it that did not get the last events."""


@pytest.fixture
def server():
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
async def opened(logs, tmp_path):
    async with AsyncExitStack() as stack:

        async def open_another(name="copy", *, log=logs[0], **options):
            store = await PostgresEventStore.open(log, vault=logs[1], local_copy=tmp_path / name, **options)
            return await stack.enter_async_context(store)

        yield open_another


def run(address, *statements):
    connections = Connections.open(address)
    try:
        return [connections.fetch(statement) for statement in statements]
    finally:
        connections.close()


def until(condition):
    """Wait until something is so."""
    ends = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < ends


async def until_copied(path, position):
    """Wait until the copy in a file has a position, and was at the end of the log."""
    while True:
        try:
            copy = await asyncio.to_thread(LocalCopy.open, path)
        except StoreUnavailable:
            continue
        reached, is_whole = copy.witness.position, copy.is_whole
        copy.close()
        if reached >= position and is_whole:
            return


async def followed(store, count):
    """Read what is in the log through a subscription, which also keeps the copy up to date."""
    return [event.data for event in await take(store, count)]


async def test_reading_goes_on_while_the_server_is_away(server, opened, tmp_path):
    store = await opened()
    following = asyncio.create_task(followed(store, 4))
    await store.append("note-1", [noted(1, "secret"), noted(2)], expected_version=0)
    await store.append("note-2", [noted(3)], expected_version=0)
    await until_copied(tmp_path / "copy", 3)
    before = await store.read_all()
    await asyncio.to_thread(server.kill)
    assert await store.read_all() == before
    assert await store.read_stream("note-1") == before[:2]
    assert before[0].personal is not None
    assert (await store.head(), await store.stream_version("note-2")) == (3, 1)
    assert await store.find(before[2].id) == before[2]
    with pytest.raises(StoreUnavailable):
        await store.append("note-2", [noted(4)], expected_version=1)
    await asyncio.to_thread(server.start)
    while True:
        try:
            await store.append("note-2", [noted(4)], expected_version=1)
            break
        except StoreUnavailable:
            continue
    assert len(await following) == 4
    assert await store.head() == 4


def taken(command, state):
    """Take from what was counted, if there is enough."""
    if command > state:
        raise Refused
    return [Counted(-command)] if command else []


ACCOUNT = replace(COUNTER, decide=taken)


async def test_command_is_not_refused_by_what_the_copy_lacks(server, opened, logs, tmp_path):
    """The copy ends before the last event, as it does for a moment whenever something was written."""
    store = await opened(log=Address(f"{logs[0].text}&statement_cache_size=0"))  # which no bell rings for
    following = asyncio.create_task(followed(store, 3))
    await execute(store, COUNTER, "1", 5)
    await until_copied(tmp_path / "copy", 1)
    following.cancel()  # and with it, the copy stays as it is
    await asyncio.wait([following])
    async with await PostgresEventStore.open(logs[0], vault=logs[1]) as other:
        await execute(other, COUNTER, "1", 50)
    await asyncio.to_thread(server.kill)
    assert (await load(store, COUNTER, "1", may_be_old=True)).state == 5  # reads go on
    for command in (0, 50):
        with pytest.raises(StoreUnavailable):
            await execute(store, ACCOUNT, "1", command)
        with pytest.raises(StoreUnavailable):
            await plan(store, ACCOUNT, "1", command)
    with pytest.raises(StoreUnavailable):
        await load(store, COUNTER, "1")
    await asyncio.to_thread(server.start)
    while True:
        try:
            done = await execute(store, ACCOUNT, "1", 50)
            break
        except StoreUnavailable:
            continue
    assert done.state == 5


async def test_a_server_that_says_nothing_is_not_waited_for(server, opened, tmp_path):
    store = await opened()
    following = asyncio.create_task(followed(store, 2))
    await store.append("note-1", [noted(1)], expected_version=0)
    await until_copied(tmp_path / "copy", 1)
    sql = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
    pids = [int((server.data / "postmaster.pid").read_text().split()[0])]
    pids += [int(row[0]) for row in run(Address(server.address), sql)[0]]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        assert [event.position for event in await store.read_all()] == [1]
        assert await store.head() == 1
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
    await store.append("note-1", [noted(2)], expected_version=1)
    assert len(await following) == 2


async def test_a_start_without_the_server_serves_what_was_copied(server, opened, logs, tmp_path):
    async with await PostgresEventStore.open(logs[0], vault=logs[1], local_copy=tmp_path / "copy") as store:
        following = asyncio.create_task(followed(store, 2))
        await store.append("note-1", [noted(1), noted(2, "secret")], expected_version=0)
        await until_copied(tmp_path / "copy", 2)
        await following
    await asyncio.to_thread(server.kill)
    with pytest.raises(StoreUnavailable):
        await opened()
    with pytest.raises(StoreUnavailable):
        await opened("another copy", read_only=True)
    reading = await opened(read_only=True)
    assert [event.position for event in await reading.read_all(limit=1)] == [1]
    with pytest.raises(StoreUnavailable):  # its key is in the vault, which is away too
        await reading.read_all()
    await asyncio.to_thread(server.start)
    while True:
        try:
            assert len(await reading.read_all()) == 2
            break
        except StoreUnavailable:
            continue


async def test_lost_events_stop_every_instance(logs, opened, tmp_path):
    one, other = await opened("one"), await opened("other")
    following = asyncio.create_task(followed(one, 3))
    await other.append("note-1", [noted(1), noted(2), noted(3)], expected_version=0)
    await until_copied(tmp_path / "one", 3)
    await following
    watching = asyncio.create_task(followed(one, 99))
    run(logs[0], *CUT)
    await asyncio.to_thread(until, lambda: one.held)
    assert "position 3" in one.held
    third = await opened("third")
    for store in (one, other, third):
        with pytest.raises(StoreLost, match="position 3"):
            await store.append("note-2", [noted(1)], expected_version=0)
    await asyncio.to_thread(TablePlace(logs[0].text, logs[1].text).release)
    assert (await third.append("note-2", [noted(1)], expected_version=0)).position == 3
    watching.cancel()


async def test_lost_events_are_noticed_before_the_first_append(server, logs, opened, tmp_path):
    """The one who lost its connection knows them only from others."""
    one, other = await opened("one"), await opened("other")
    watching = asyncio.create_task(followed(one, 99))
    await other.append("note-1", [noted(1), noted(2), noted(3)], expected_version=0)
    await until_copied(tmp_path / "one", 3)
    watching.cancel()
    run(logs[0], *CUT)
    with pytest.raises(StoreLost, match="position 3"):
        await one.append("note-2", [noted(1)], expected_version=0)
    with pytest.raises(StoreLost, match="position 3"):
        await other.append("note-2", [noted(1)], expected_version=0)


async def test_lost_events_of_others_are_noticed_by_a_writer_that_connects_again(logs, opened, tmp_path):
    """Its own last event is still there."""
    one, other = await opened("one"), await opened("other")
    await one.append("note-1", [noted(1)], expected_version=0)
    watching = asyncio.create_task(followed(one, 99))
    await other.append("note-1", [noted(2), noted(3)], expected_version=1)
    await until_copied(tmp_path / "one", 3)
    watching.cancel()
    run(
        logs[0],
        *CUT,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'docsmith'"
        " AND pid <> pg_backend_pid()",
    )
    with pytest.raises(StoreLost, match="position 3"):
        await append_when_back(one)


async def test_another_log_is_not_added_to_a_copy(logs, opened, tmp_path):
    store = await opened()
    watching = asyncio.create_task(followed(store, 99))
    await store.append("note-1", [noted(1), noted(2)], expected_version=0)
    await until_copied(tmp_path / "copy", 2)
    run(
        logs[0],
        "ALTER TABLE events DISABLE TRIGGER events_stay",
        "UPDATE events SET hash = sha256('another') WHERE position = 2",
        "UPDATE head SET hash = sha256('another')",
    )
    await asyncio.to_thread(until, lambda: store.held)
    watching.cancel()


@pytest.mark.slow
async def test_a_failover_that_lost_events_is_found(server, tmp_path):
    standby = new_cluster()
    both = quote(f"{server.folder},{standby.folder}", safe="")
    addresses = [
        Address(f"postgresql://docsmith@/postgres?host={both}&target_session_attrs=primary&search_path={schema}")
        for schema in ("log", "vault")
    ]
    run(Address(server.address), "CREATE SCHEMA log", "CREATE SCHEMA vault")
    async with AsyncExitStack() as stack:
        stores = [
            await stack.enter_async_context(
                await PostgresEventStore.open(addresses[0], vault=addresses[1], local_copy=tmp_path / f"copy-{number}")
            )
            for number in range(3)
        ]
        following = [asyncio.create_task(followed(store, 99)) for store in stores]
        await stores[0].append("note-1", [noted(1)], expected_version=0)
        await asyncio.to_thread(standby.follow, server)  # and it is cut off from then on
        await stores[0].append("note-1", [noted(2)], expected_version=1)
        for number in range(3):
            await until_copied(tmp_path / f"copy-{number}", 2)
        await asyncio.to_thread(server.kill)
        assert len(await stores[1].read_all()) == 2
        (standby.data / "standby.signal").unlink()
        await asyncio.to_thread(standby.start)
        for store in stores:
            with pytest.raises(StoreLost, match="position 2"):
                await append_when_back(store)
            await asyncio.to_thread(until, lambda store=store: store.held)
            assert [event.position for event in await store.read_all()] == [1]
        for task in following:
            task.cancel()
    await asyncio.to_thread(standby.remove)
    await asyncio.to_thread(server.start)


async def append_when_back(store):
    while True:
        try:
            return await store.append("note-2", [noted(1)], expected_version=0)
        except StoreLost:
            raise
        except StoreUnavailable:
            continue


def test_a_damaged_copy_is_made_again(tmp_path):
    (tmp_path / "copy").write_bytes(b"not a database" * 1_000)
    copy = LocalCopy.open(tmp_path / "copy")
    assert (copy.witness.position, copy.is_whole) == (0, False)
    copy.close()


async def test_times_never_go_back_between_instances(logs, opened):
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    clocks = [lambda: noon, lambda: noon - timedelta(hours=1), lambda: noon + timedelta(minutes=1)]
    stores = [await opened(f"copy-{number}", clock=clock) for number, clock in enumerate(clocks)]
    for turn in range(3):
        for number, store in enumerate(stores):
            for _ in range(2):  # the second one is stored by a single statement
                version = await store.stream_version(f"note-{number}")
                await store.append(f"note-{number}", [noted(turn)], expected_version=version)
    times = [event.recorded_at for event in await stores[0].read_all()]
    assert times == sorted(times)
    assert (times[0], times[-1]) == (noon, noon + timedelta(minutes=1))


def test_one_look_is_made_at_a_time():
    seconds = [100.0]
    away = Away(lambda: seconds[0])
    away.require_turn()
    away.failed("it is gone")
    with pytest.raises(StoreUnavailable, match="it is gone"):
        away.require_turn()
    seconds[0] += RETRY_SECONDS
    away.require_turn()
    with pytest.raises(StoreUnavailable):
        away.require_turn()
    seconds[0] += PATIENCE_SECONDS
    away.require_turn()
    away.answered()
    away.require_turn()
    assert away.why is None


async def test_a_standby_that_is_behind_has_lost_nothing(server, logs, opened):
    """Nothing more reaches it from its primary. Once it is promoted, what it lacks is lost."""
    standby = new_cluster()
    try:
        store = await opened()
        await store.append("note-1", [noted(1), noted(2)], expected_version=0)
        standby.follow(server)
        with (standby.data / "postgresql.conf").open("a") as settings:
            settings.write("primary_conninfo = ''\n")
        (standby.data / "postgresql.auto.conf").write_text("")
        await store.append("note-1", [noted(3), noted(4)], expected_version=2)
        events = await store.read_all()
        seen = [Witness("the view", event.position, event.hash) for event in (events[0], events[3])]
        standby.start()
        behind = TablePlace(*(one.text.replace(str(server.folder).replace("/", "%2F"),
                              str(standby.folder).replace("/", "%2F")) for one in logs))  # fmt: skip
        assert await asyncio.to_thread(behind.is_standby)
        assert await asyncio.to_thread(behind.find_loss, seen) is None
        other = Witness("another", 2, events[0].hash)
        loss = await asyncio.to_thread(behind.find_loss, [*seen, other])
        assert (loss.witness, loss.is_behind) == (other, False)
        await asyncio.to_thread(standby.promote)
        loss = await asyncio.to_thread(behind.find_loss, seen)
        assert (loss.witness, loss.lost_from) == (seen[1], 3)
    finally:
        standby.remove()


def test_copy_that_cannot_be_opened_now_is_kept(tmp_path):
    copy = LocalCopy.open(tmp_path / "copy")
    copy.close()
    (tmp_path / "copy-wal").mkdir()  # as without a descriptor, or on a full disk
    before = (tmp_path / "copy").read_bytes()
    with pytest.raises(StoreUnavailable):
        LocalCopy.open(tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == before
