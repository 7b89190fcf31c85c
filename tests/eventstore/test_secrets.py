"""Secrets in the vault: found again by every process, in no file as text, and gone once forgotten."""

import sqlite3

import pytest

from eventstore import NewEvent, SQLiteEventStore, StoreReadOnly, SubjectErased

TOKEN = "ghp_" + "s3cret" * 6


def contents(folder):
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


async def test_secret_is_found_by_another_process(open_store):
    one, other = await open_store(), await open_store()
    assert await one.find_secret("a") is None
    await one.keep_secret("a", TOKEN)
    assert await other.find_secret("a") == TOKEN
    assert list(await other.secret_names()) == ["a"]


async def test_secret_is_in_no_file_and_no_event(open_store, tmp_path):
    store = await open_store()
    await store.keep_secret("a", TOKEN)
    await store.append("thing-1", [NewEvent("made", b"{}")], expected_version=0)
    assert TOKEN.encode() not in contents(tmp_path)
    assert len(await store.read_all()) == 1


async def test_forgotten_secret_is_gone_for_good(open_store, tmp_path):
    one, other = await open_store(), await open_store()
    await one.keep_secret("a", TOKEN)
    await one.keep_secret("b", "another")
    assert await other.find_secret("a") == TOKEN
    await one.forget_secret("a")
    await one.forget_secret("a")
    assert await other.find_secret("a") is None
    assert await one.find_secret("b") == "another"
    with pytest.raises(SubjectErased):
        await one.keep_secret("a", TOKEN)


async def test_vault_of_before_is_upgraded_and_readable(tmp_path):
    """A vault without the table of secrets, as earlier programs wrote it."""
    async with await SQLiteEventStore.open(tmp_path / "log.db", vault_path=tmp_path / "vault.db"):
        pass
    with sqlite3.connect(tmp_path / "vault.db") as old:
        old.execute("DROP TABLE secrets")
        old.execute("PRAGMA user_version = 1")
    old.close()
    async with await SQLiteEventStore.open(
        tmp_path / "log.db", vault_path=tmp_path / "vault.db", read_only=True
    ) as store:
        assert await store.find_secret("a") is None
        with pytest.raises(StoreReadOnly):
            await store.keep_secret("a", TOKEN)
    async with await SQLiteEventStore.open(tmp_path / "log.db", vault_path=tmp_path / "vault.db") as store:
        await store.keep_secret("a", TOKEN)
        assert await store.find_secret("a") == TOKEN
