"""A vault whose keys are wrapped under a key outside the database, and the change of that key."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, closing
from datetime import UTC, datetime, timedelta

import pytest

from eventstore import StoreCorrupt, StoreUnavailable
from eventstore.log.whole import copy_store
from eventstore.place import FilePlace, open_whole
from eventstore.postgres.connections import Connections
from eventstore.postgres.place import TablePlace
from eventstore.postgres.postgres_store import PostgresEventStore
from eventstore.postgres.wrapping.rotation import Rotation
from eventstore.postgres.wrapping.wrapping_keys import WrappingKeys, id_of
from tests.eventstore.backends import addresses
from tests.eventstore.shapes import noted

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


class Clock:
    def __init__(self):
        self.now = BEGIN

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def rotation(tmp_path, clock):
    """A vault that is wrapped, by the wrapping keys of one instance."""
    found = Rotation.open(addresses(tmp_path)[1], WrappingKeys(tmp_path / "one"), clock=clock)
    found.begin()
    with closing(found):
        yield found


@pytest.fixture
async def opened(tmp_path):
    async with AsyncExitStack() as stack:

        async def open_another(folder="one"):
            log, vault = addresses(tmp_path)
            wrapping = WrappingKeys(tmp_path / folder)
            return await stack.enter_async_context(await PostgresEventStore.open(log, vault=vault, wrapping=wrapping))

        yield open_another


def fetch(tmp_path, sql, *values, part=1):
    with closing(Connections.open(addresses(tmp_path)[part])) as connections:
        return connections.fetch(sql, *values)


def wrapped_under(tmp_path):
    """Return how many living keys are wrapped under each wrapping key; None: not wrapped."""
    rows = fetch(tmp_path, "SELECT wrapped_under, count(*) FROM keys WHERE key IS NOT NULL GROUP BY 1")
    return {row[0]: row[1] for row in rows}


def rewrap(rotation, batch=500):
    after, batches = "", 0
    while (after := rotation.rewrap(after, batch=batch)) is not None:
        batches += 1
    return batches


def replaced(rotation):
    """Change the wrapping key, and return the ids before and now."""
    (before,) = [key_id for key_id, state in rotation.states().items() if state == "current"]
    now = rotation.make_next()
    assert rotation.switch(now)
    return before, now


async def append(store, number, begin=1):
    for one in range(begin, begin + number):
        await store.append(f"note-{one}", [noted(one, f"secret {one}")], expected_version=0)


async def texts(store):
    return [event.erased for event in await store.read_all(limit=1_000)]


async def test_no_key_is_in_the_tables_as_it_is(tmp_path, rotation, opened):
    store = await opened()
    await append(store, 3)
    await store.keep_secret("token", "opensesame")
    (current,) = rotation.states()
    assert wrapped_under(tmp_path) == {current: 4}
    with closing(
        TablePlace(*(one.text for one in addresses(tmp_path)), tmp_path / "one").vault_rows(read_only=True)
    ) as rows:
        plain = [row[2] for row in rows.keys("", 10)]
    stored = [bytes(row[0]) for row in fetch(tmp_path, "SELECT key FROM keys")]
    assert not [key for key in plain for one in stored if key in one]
    wrapping = rotation.keys.find(current)
    everything = fetch(tmp_path, "SELECT row_to_json(wrapping_keys)::text FROM wrapping_keys")
    assert wrapping.hex() not in str(everything)
    again = await opened()
    assert await texts(again) == [False] * 3
    assert await again.find_secret("token") == "opensesame"


async def test_keys_are_wrapped_again_in_batches_while_events_are_written(tmp_path, rotation, opened):
    store = await opened()
    await append(store, 25)
    before, now = replaced(rotation)
    await append(store, 5, begin=26)  # by one that knew the other wrapping key
    assert wrapped_under(tmp_path) == {before: 25, now: 5}
    assert await texts(await opened()) == [False] * 30, "two wrapping keys are valid meanwhile"
    assert rotation.retire() == []
    assert rewrap(rotation, batch=10) == 3
    assert wrapped_under(tmp_path) == {now: 30}
    assert rotation.retire() == [before]
    assert await texts(await opened()) == [False] * 30


async def test_a_wrapping_key_is_destroyed_after_its_days(tmp_path, rotation, opened, clock):
    store = await opened()
    await append(store, 2)
    before, now = replaced(rotation)
    rewrap(rotation)
    rotation.retire()
    clock.now += timedelta(days=30)
    assert rotation.destroy_retired(clock.now - timedelta(days=30)) == []
    assert rotation.delete_destroyed() == []
    clock.now += timedelta(seconds=1)
    assert rotation.destroy_retired(clock.now - timedelta(days=30)) == [before]
    assert rotation.delete_destroyed() == [before]
    assert rotation.keys.ids() == [now]
    assert await texts(await opened()) == [False] * 2


async def test_an_archive_opens_nothing_once_its_wrapping_key_is_destroyed(tmp_path, rotation, opened, clock):
    store = await opened()
    await append(store, 2)
    archived = fetch(tmp_path, "SELECT subject, key_id, key, wrapped_under FROM keys ORDER BY subject")
    await store.erase("note-1")
    before, _ = replaced(rotation)
    rewrap(rotation)
    rotation.retire()
    clock.now += timedelta(days=1)
    sql = "UPDATE keys SET key_id = $2, key = $3, wrapped_under = $4, erased_at = NULL WHERE subject = $1"
    fetch(tmp_path, sql, *archived[0])
    assert await texts(await opened()) == [False, False], "until then an archive has the key of what was erased"
    fetch(tmp_path, "UPDATE keys SET key_id = NULL, key = NULL, wrapped_under = NULL, erased_at = 'x'"
          " WHERE subject = 'note-1'")  # fmt: skip
    rotation.destroy_retired(clock.now)
    rotation.delete_destroyed()
    fetch(tmp_path, sql, *archived[0])
    with pytest.raises(StoreUnavailable, match=before):
        await (await opened()).read_stream("note-1")


async def test_a_change_goes_on_wherever_it_was_interrupted(tmp_path, rotation, opened, clock):
    """Each step is done by an instance that begins with nothing but its files, as after a kill."""
    await append(await opened(), 7)
    (before,) = rotation.states()

    def fresh():
        return closing(Rotation.open(addresses(tmp_path)[1], WrappingKeys(tmp_path / "one"), clock=clock))

    with fresh() as one:
        now = one.make_next()
    with fresh() as one:
        assert one.make_next() == now
        assert one.switch(now)
    with fresh() as one:
        assert not one.switch(now)
        after = one.rewrap(batch=3)
    assert wrapped_under(tmp_path) == {before: 4, now: 3}
    with fresh() as one:
        assert one.rewrap(batch=3) != after
    with fresh() as one:
        assert rewrap(one) == 1
        assert one.retire() == [before]
    with fresh() as one:
        assert one.retire() == []
        assert one.destroy_retired(clock.now + timedelta(seconds=1)) == [before]
    with fresh() as one:
        assert one.delete_destroyed() == [before]
        assert one.delete_destroyed() == []
    assert await texts(await opened()) == [False] * 7


async def test_erasing_while_keys_are_wrapped_again_is_not_undone(tmp_path, rotation, opened):
    store = await opened()
    await append(store, 30)
    replaced(rotation)
    with ThreadPoolExecutor(1) as pool:
        wrapping = pool.submit(rewrap, rotation, 1)
        for number in range(1, 31, 2):
            await store.erase(f"note-{number}")
        wrapping.result(timeout=60)
    assert await texts(await opened()) == [True, False] * 15
    assert sum(wrapped_under(tmp_path).values()) == 15


async def test_many_changes_at_once_lose_no_key(tmp_path, rotation, opened):
    store, other = await opened(), await opened()
    with ThreadPoolExecutor(2) as pool:

        def change():
            for _ in range(4):
                rotation.switch(rotation.make_next())
                rewrap(rotation, batch=7)
                rotation.retire()

        changes = [pool.submit(change) for _ in range(2)]
        await asyncio.gather(append(store, 40), append(other, 40, begin=41))
        for one in changes:
            one.result(timeout=120)
    rewrap(rotation)
    rotation.retire()
    (current,) = [key_id for key_id, state in rotation.states().items() if state == "current"]
    assert wrapped_under(tmp_path) == {current: 80}
    assert {state for key_id, state in rotation.states().items() if key_id != current} == {"retired"}
    assert await texts(await opened()) == [False] * 80


async def test_an_instance_without_the_wrapping_key_reads_no_text(tmp_path, rotation, opened):
    await append(await opened(), 1)
    stranger = await opened("another")
    with pytest.raises(StoreUnavailable, match="docsmith vault import"):
        await stranger.read_stream("note-1")
    with pytest.raises(StoreUnavailable, match="docsmith vault import"):
        await append(stranger, 1, begin=2)
    (current,) = rotation.states()
    WrappingKeys(tmp_path / "another").add(rotation.keys.find(current))
    assert await texts(stranger) == [False]
    await append(stranger, 1, begin=2)


def test_a_damaged_wrapping_key_is_noticed(tmp_path):
    keys = WrappingKeys(tmp_path)
    key_id = keys.make()
    file = tmp_path / f"{key_id}.key"
    assert file.stat().st_mode & 0o777 == 0o600
    for damaged in ("", "00" * 32, file.read_text()[:-5], "?" * 64):
        file.write_text(damaged)
        with pytest.raises(StoreCorrupt, match=key_id):
            WrappingKeys(tmp_path).find(key_id)
    assert WrappingKeys(tmp_path / "none").ids() == []
    assert keys.destroy(key_id)
    assert not keys.destroy(key_id)
    assert keys.find(key_id) is None
    with pytest.raises(ValueError, match="32"):
        keys.find("../../etc/passwd")
    assert id_of(b"a") != id_of(b"b")


async def test_a_key_moved_to_another_subject_does_not_open(tmp_path, rotation, opened):
    await append(await opened(), 2)
    ((key_id, key),) = fetch(tmp_path, "SELECT key_id, key FROM keys WHERE subject = 'note-1'")
    fetch(tmp_path, "UPDATE keys SET key_id = $1, key = $2 WHERE subject = 'note-2'", key_id, key)
    with pytest.raises(StoreCorrupt, match="wrapped key of note-2"):
        await (await opened()).read_stream("note-2")


async def test_a_vault_that_is_not_wrapped_becomes_so_and_is_refused_to_old_programs(tmp_path, opened):
    store = await opened()
    await append(store, 3)
    with closing(Rotation.open(addresses(tmp_path)[1], WrappingKeys(tmp_path / "one"))) as rotation:
        assert rotation.rows() == []
        assert rotation.rewrap() is None
        current = rotation.begin()
        assert rotation.begin() is None
        assert rewrap(rotation) == 1
    assert wrapped_under(tmp_path) == {current: 3}
    assert fetch(tmp_path, "SELECT oldest FROM vault_schema")[0][0] == 2
    assert await texts(await opened()) == [False] * 3


async def test_copies_between_wrapped_unwrapped_and_files_have_the_same_keys(tmp_path, rotation, opened):
    store = await opened()
    await append(store, 4)
    await store.keep_secret("token", "opensesame")
    await store.erase("note-2")
    wrapped = TablePlace(*(one.text for one in addresses(tmp_path)), tmp_path / "one")
    plain = TablePlace(*(one.text for one in addresses(tmp_path / "plain")))
    files = FilePlace(tmp_path / "events.db", tmp_path / "keys.db")
    again = TablePlace(*(one.text for one in addresses(tmp_path / "again")), tmp_path / "again")
    with closing(again.rotation()) as other:
        other.begin()
    for source, target in ((wrapped, plain), (plain, files), (files, again), (again, wrapped)):
        with closing(open_whole(source, read_only=True)) as rows, closing(open_whole(target, read_only=False)) as into:
            copy_store(rows, into, lambda *_: None)
        async with await target.open() as copied:
            assert await texts(copied) == [False, True, False, False]
            assert await copied.find_secret("token") == "opensesame"
    assert set(wrapped_under(tmp_path / "plain")) == {None}
    assert None not in wrapped_under(tmp_path / "again")
    assert not set(wrapped_under(tmp_path / "again")) & set(wrapped_under(tmp_path))


def test_what_instances_hold_is_noted(tmp_path, rotation):
    (current,) = rotation.states()
    rotation.note_held("one")
    with closing(Rotation.open(addresses(tmp_path)[1], WrappingKeys(tmp_path / "two"))) as other:
        other.note_held("two")
        assert rotation.holders(current) == {"one"}
        other.keys.add(rotation.keys.find(current))
        other.note_held("two")
    assert rotation.holders(current) == {"one", "two"}
    rotation.keep_holders(["one"])
    (row,) = rotation.rows()
    assert (row.id, row.state, row.holders, row.living, row.copied_at) == (current, "current", ("one",), 0, None)
    rotation.note_copied()
    assert rotation.rows()[0].copied_at is not None


def test_a_next_wrapping_key_that_is_lost_is_given_up(rotation):
    lost = rotation.make_next()
    rotation.give_up_next(lost)
    assert rotation.make_next() != lost
