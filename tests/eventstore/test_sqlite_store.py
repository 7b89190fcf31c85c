"""The SQLite store survives what happens to files and processes.

The normal run kills 60 writers; ``KILLS=200`` makes it that many.
"""

import asyncio
import json
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import aclosing, closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from eventstore import (
    Appended,
    LogBounds,
    SQLiteEventStore,
    StoreBusy,
    StoreCorrupt,
    StoreReadOnly,
    StoreUnavailable,
    Views,
    verify,
)
from tests.eventstore.shapes import CODEC, Noted, files_with, noted, opened
from tests.eventstore.test_views import Texts, dump

ROOT = Path(__file__).parent.parent.parent
KILLS = int(os.environ.get("KILLS", "60"))


# Several processes


@pytest.mark.slow
async def test_kill_nine_loses_nothing_that_was_acknowledged(tmp_path):
    command = [sys.executable, "-m", "tests.eventstore.killed", str(tmp_path), str(KILLS), "1"]
    ran = await asyncio.to_thread(
        subprocess.run, command, cwd=ROOT, check=True, stdout=subprocess.PIPE, timeout=KILLS + 240
    )
    told = [json.loads(line) for line in ran.stdout.splitlines()]
    assert len({stream.split("-")[1] for stream, _, _ in told}) > KILLS / 2
    verified = verify(tmp_path / "events.db")
    assert verified.is_sound, verified
    async with await opened(tmp_path) as store:
        events = await store.read_all(limit=1_000_000)
        assert [event.position for event in events] == list(range(1, len(events) + 1))
        there = {(event.stream, event.stream_version, event.position) for event in events}
        assert {tuple(one) for one in told} <= there
        assert len({event.id for event in events}) == len({where[:2] for where in there}) == len(events)
        assert all(not event.erased and event.personal is not None for event in events)
        for name in ("views.db", "fresh.db"):
            async with await Views.open(tmp_path / name, store, [Texts()]) as views:
                if name == "views.db":
                    assert views.status()[0].position > 0
                await views.catch_up()
                assert views.status()[0].failed is None
    assert dump(tmp_path / "views.db") == dump(tmp_path / "fresh.db")


# What happens to files


async def test_a_locked_file_is_busy_and_then_is_not(tmp_path):
    async with await opened(tmp_path, bounds=LogBounds(busy_timeout_seconds=0.05)) as store:
        with closing(sqlite3.connect(tmp_path / "events.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(StoreBusy):
                await store.append("note-1", [noted(1)], expected_version=0)
            assert await store.read_all() == []
            other.execute("ROLLBACK")
        assert await store.append("note-1", [noted(1)], expected_version=0) == Appended(1, 1)


async def test_full_disk_is_survived(tmp_path):
    async with await opened(tmp_path) as store:
        await store.append("note-1", [noted(1, "x" * 10_000)], expected_version=0)
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, limits[1]))  # a write beyond it fails as a full disk's does
        try:
            outcomes = await asyncio.gather(
                *(store.append(f"big-{n}", [noted(n, "x" * 50_000)], expected_version=0) for n in range(20)),
                return_exceptions=True,
            )
            assert all(isinstance(outcome, StoreUnavailable) for outcome in outcomes)
            assert len(await store.read_all()) == 1
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert await store.append("note-1", [noted(2)], expected_version=1) == Appended(2, 2)
    assert verify(tmp_path / "events.db").position == 2


async def test_reading_store_works_while_another_writes(tmp_path):
    with pytest.raises(StoreUnavailable):
        await opened(tmp_path, read_only=True)
    async with await opened(tmp_path) as store:
        await store.append("note-1", [noted(1, "secret")], expected_version=0)
        async with await opened(tmp_path, read_only=True) as reader:
            assert CODEC.decode((await reader.read_all())[0]) == Noted(1, "secret")
            with pytest.raises(StoreReadOnly):
                await reader.append("note-1", [noted(2)], expected_version=1)
            with pytest.raises(StoreReadOnly):
                await reader.erase("note-1")


async def test_a_log_without_its_vault_is_read_as_erased(tmp_path):
    async with await opened(tmp_path) as store:
        await store.append("note-1", [noted(1, "secret")], expected_version=0)
    (tmp_path / "keys.db").unlink()
    async with await opened(tmp_path, read_only=True) as reader:
        assert CODEC.decode((await reader.read_all())[0]) == Noted(1, "[erased]")
    async with await opened(tmp_path) as store:  # a new key opens nothing that the old one sealed
        await store.append("note-1", [noted(2, "new")], expected_version=1)
        assert [CODEC.decode(event) for event in await store.read_all()] == [Noted(1, "[erased]"), Noted(2, "new")]


@pytest.fixture
async def unprivileged(tmp_path):
    """A folder of one's own, as somebody whom permissions bind: root may write everywhere, so it acts as another."""
    if os.geteuid() != 0:
        yield tmp_path
        return
    await (await opened(tmp_path)).close()  # imports what it needs, perhaps from where only root may read
    verify(tmp_path / "events.db")
    nobody = 65534
    folder = Path(tempfile.mkdtemp())  # not below the test's own folder, which only root may enter
    os.chown(folder, nobody, nobody)
    os.seteuid(nobody)
    try:
        yield folder
    finally:
        os.seteuid(0)
        shutil.rmtree(folder)


async def test_read_only_copy_is_read_and_verified(unprivileged):
    async with await opened(unprivileged) as store:
        await store.append("note-1", [noted(1)], expected_version=0)
    unprivileged.chmod(0o500)
    async with await opened(unprivileged, read_only=True) as reader:
        assert len(await reader.read_all()) == 1
    assert verify(unprivileged / "events.db").position == 1
    with pytest.raises(StoreUnavailable):
        await SQLiteEventStore.open(unprivileged / "other.db", vault_path=unprivileged / "keys.db")
    unprivileged.chmod(0o700)


async def test_a_file_that_is_no_log_is_refused(tmp_path):
    (tmp_path / "events.db").write_bytes(b"not a database, but long enough to be looked at" * 100)
    with pytest.raises(StoreCorrupt):
        await opened(tmp_path)
    (tmp_path / "events.db").unlink()
    with closing(sqlite3.connect(tmp_path / "events.db")) as db:
        db.execute("CREATE TABLE something (else_)")
    with pytest.raises(StoreCorrupt):
        await opened(tmp_path)
    with pytest.raises(StoreCorrupt):
        await opened(tmp_path, read_only=True)


async def test_a_log_of_a_newer_program_is_left_alone(tmp_path):
    await (await opened(tmp_path)).close()
    with closing(sqlite3.connect(tmp_path / "events.db", isolation_level=None)) as db:
        db.execute("PRAGMA user_version = 1000")
    with pytest.raises(StoreUnavailable, match="newer"):
        await opened(tmp_path)


async def test_the_log_is_readable_with_any_shell(tmp_path):
    now = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    async with await opened(tmp_path, clock=lambda: now) as store:
        await store.append("note-1", [noted(1, "secret"), noted(2)], expected_version=0)
    with closing(sqlite3.connect(tmp_path / "events.db")) as db:
        rows = db.execute("SELECT stream, type, recorded_at, data ->> 'number', metadata FROM events").fetchall()
    time = "2026-01-02T03:04:05.000000+00:00"
    assert rows[0][:4] == ("note-1", "noted", time, 1)
    assert rows[1] == ("note-1", "noted", time, 2, "{}")


# Erasing


async def test_personal_text_is_in_no_file_nor_its_key_after_erasure(tmp_path):
    secret = b"the quick brown secret"
    async with await opened(tmp_path) as store:
        for number in range(3):
            await store.append(f"note-{number}", [noted(1, secret.decode())], expected_version=0)
        with closing(sqlite3.connect(tmp_path / "keys.db")) as db:
            keys = dict(db.execute("SELECT subject, key FROM keys").fetchall())
        assert files_with(tmp_path, secret) == []
        assert files_with(tmp_path, keys["note-1"]) != []
        await store.erase("note-1")
        assert files_with(tmp_path, keys["note-1"]) == []
        assert files_with(tmp_path, keys["note-2"]) != []
        with closing(sqlite3.connect(tmp_path / "keys.db")) as db:
            (tombstone,) = db.execute("SELECT key, key_id, erased_at FROM keys WHERE subject = 'note-1'").fetchall()
        assert tombstone[:2] == (None, None)
        assert tombstone[2] is not None
    assert files_with(tmp_path, keys["note-1"]) == []
    assert (tmp_path / "keys.db").stat().st_mode & 0o777 == 0o600


class ErasingMeanwhile(SQLiteEventStore):
    """What it reads of the log arrives when a subject has been erased since."""

    erases = ""

    async def read_all(self, **where):
        events = await super().read_all(**where)
        if self.erases:
            subject, self.erases = self.erases, ""
            await self.erase(subject)
        return events


async def test_text_of_another_process_reaches_no_one_after_erasure(tmp_path):
    async with (
        asyncio.timeout(60),
        await opened(tmp_path) as other,
        await ErasingMeanwhile.open(tmp_path / "events.db", vault_path=tmp_path / "keys.db") as store,
        aclosing(store.subscribe()) as events,
    ):
        for number in range(10):  # the first ones may be read by the subscriber itself
            store.erases = f"note-{number}"
            await other.append(f"note-{number}", [noted(number, "secret")], expected_version=0)
            event = await anext(events)
            if not store.erases:
                break
        assert CODEC.decode(event) == Noted(number, "[erased]")
