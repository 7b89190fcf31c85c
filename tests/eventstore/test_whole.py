"""Logs and vaults that move from one storage to another, with the same hashes."""

import sqlite3
from contextlib import closing

import pytest

from eventstore import StoreCorrupt, StoreLost
from eventstore.log.whole import PAGE, copy_store
from eventstore.place import FilePlace, open_whole
from eventstore.postgres.place import TablePlace
from tests.eventstore.backends import BACKENDS, addresses
from tests.eventstore.shapes import CODEC, Noted, noted

OTHER = {"sqlite": "postgres", "postgres": "sqlite"}


def whole(backend, folder, *, read_only):
    if backend == "sqlite":
        return open_whole(FilePlace(folder / "events.db", folder / "keys.db"), read_only=read_only)
    return open_whole(TablePlace(*(one.text for one in addresses(folder))), read_only=read_only)


def copied(backend, folder, copy, progress=lambda *_: None):
    """Copy the store of a folder to the other kind of storage, in a folder of its own."""
    with (
        closing(whole(backend, folder, read_only=True)) as source,
        closing(whole(OTHER[backend], copy, read_only=False)) as target,
    ):
        return copy_store(source, target, progress)


@pytest.fixture
def folders(tmp_path):
    found = [tmp_path / name for name in ("from", "to", "back")]
    for folder in found:
        folder.mkdir()
    return found


async def fill(store, events=3):
    await store.append("note-1", [noted(n, f"secret {n}") for n in range(events)], expected_version=0)
    await store.append("note-2", [noted(1, "to be erased")], expected_version=0)
    await store.keep_secret("token", "of a code host")
    await store.keep_secret("gone", "no more")
    await store.erase("note-2")
    await store.forget_secret("gone")


async def read(store):
    return [CODEC.decode(event) for event in await store.read_stream("note-1")]


async def test_a_store_moves_there_and_back_unchanged(backend_name, folders):
    begin, there, back = folders
    async with await BACKENDS[backend_name].open(begin) as store:
        await fill(store, events=PAGE + 3)
        before = await store.read_all(limit=PAGE * 2)
    first = copied(backend_name, begin, there)
    second = copied(OTHER[backend_name], there, back)
    assert first == second
    assert first.end.hash == before[-1].hash
    for name, folder in ((OTHER[backend_name], there), (backend_name, back)):
        assert BACKENDS[name].is_sound(folder)
        async with await BACKENDS[name].open(folder) as store:
            assert await store.read_all(limit=PAGE * 2) == before
            assert await store.find_secret("token") == "of a code host"
            assert await store.secret_names() == ["token"]
            await store.append("note-3", [noted(1, "goes on")], expected_version=0)


async def test_a_copy_goes_on_where_it_was_interrupted(backend_name, folders):
    begin, there, _ = folders
    async with await BACKENDS[backend_name].open(begin) as store:
        await fill(store, events=PAGE * 2)

        def interrupted(_position, _last):
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            copied(backend_name, begin, there, interrupted)
        assert copied(backend_name, begin, there).added == PAGE + 1
        assert copied(backend_name, begin, there).added == 0
        await store.append("note-3", [noted(1, "later")], expected_version=0)
        await store.erase("note-1")
    assert copied(backend_name, begin, there).added == 1
    async with await BACKENDS[OTHER[backend_name]].open(there) as store:
        assert [event.erased for event in await store.read_stream("note-1", limit=1)] == [True]
        [event] = await store.read_stream("note-3")
        assert CODEC.decode(event) == Noted(1, "later")


async def test_a_copy_with_other_events_is_left_alone(backend_name, folders):
    begin, there, _ = folders
    async with (
        await BACKENDS[backend_name].open(begin) as store,
        await BACKENDS[OTHER[backend_name]].open(there) as other,
    ):
        await fill(store)
        await other.append("note-9", [noted(9, "mine")], expected_version=0)
        with pytest.raises(StoreLost, match="events up to 1 that"):
            copied(backend_name, begin, there)
        assert [event.stream for event in await other.read_all()] == ["note-9"]


async def test_a_changed_event_is_not_copied(folders):
    begin, there, _ = folders
    async with await BACKENDS["sqlite"].open(begin) as store:
        await fill(store)
    with closing(sqlite3.connect(begin / "events.db")) as db, db:
        db.execute("UPDATE events SET data = '{\"number\":7}' WHERE position = 2")
    with pytest.raises(StoreCorrupt, match="position 2"):
        copied("sqlite", begin, there)
    async with await BACKENDS["postgres"].open(there) as store:
        assert await store.read_all() == []
