"""A vault that cannot be written is a trouble of the store, though all else is stored; and a disk that says nothing."""

import sqlite3
from contextlib import closing

import pytest

from eventstore import NewEvent, SQLiteEventStore, StoreUnavailable
from eventstore.sqlite import files


async def test_vault_that_cannot_be_written_is_told_until_it_can(tmp_path):
    async with await SQLiteEventStore.open(tmp_path / "events.db", vault_path=tmp_path / "keys.db") as store:
        with closing(sqlite3.connect(tmp_path / "keys.db", isolation_level=None)) as vault:
            vault.execute("CREATE TRIGGER no BEFORE INSERT ON keys BEGIN SELECT RAISE(ABORT, 'no room'); END")
            with pytest.raises(StoreUnavailable):
                await store.append("a-1", [NewEvent("said", b"{}", b'{"text": "x"}')], expected_version=0)
            await store.append("b-1", [NewEvent("done", b"{}")], expected_version=0)
            assert "keys.db" in store.trouble
            vault.execute("DROP TRIGGER no")
        await store.check_writable()
        assert store.trouble is None
        await store.append("a-1", [NewEvent("said", b"{}", b'{"text": "x"}')], expected_version=0)


async def test_vault_is_tried_when_the_store_is(tmp_path):
    async with await SQLiteEventStore.open(tmp_path / "events.db", vault_path=tmp_path / "keys.db") as store:
        with closing(sqlite3.connect(tmp_path / "keys.db", isolation_level=None)) as vault:
            vault.execute("BEGIN EXCLUSIVE")
            with pytest.raises(StoreUnavailable, match=r"keys\.db"):
                await store.check_writable()
            vault.execute("ROLLBACK")
        await store.check_writable()


def test_error_of_a_file_on_a_disk_that_is_gone_is_explained(tmp_path):
    missing = tmp_path / "gone" / "views.db"
    with pytest.raises(sqlite3.OperationalError) as error:
        files.connect(missing, read_only=True)
    assert isinstance(files.explained(error.value, missing), StoreUnavailable)
