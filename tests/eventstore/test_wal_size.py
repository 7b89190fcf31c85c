"""The write-ahead log stays short, whatever is read and written meanwhile."""

import asyncio
import sqlite3
from contextlib import closing

import pytest

from eventstore import LogBounds, StoreBusy, verify
from tests.eventstore.shapes import noted, opened

FRAME = 24 + 4096


def frames_that_fit(folder):
    return (folder / "events.db-wal").stat().st_size // FRAME


async def write(store, writer, count):
    for number in range(count):
        await store.append(f"note-{writer}", [noted(number, "x" * 2_000)], expected_version=number)


async def test_wal_of_a_busy_writer_starts_over(tmp_path):
    async with await opened(tmp_path, bounds=LogBounds(usual=50, little=10, most=100)) as store:
        await asyncio.gather(*(write(store, writer, 20) for writer in range(10)))
        assert frames_that_fit(tmp_path) < 100 + 200, "the bound and one commit"
    assert not (tmp_path / "events.db-wal").exists(), "closing takes the rest along"
    assert verify(tmp_path / "events.db").position == 200


async def test_old_snapshot_ends_appends_before_wal_fills_disk(tmp_path):
    bounds = LogBounds(usual=20, little=40, most=60, full=100)
    async with await opened(tmp_path, bounds=bounds) as store:
        await write(store, 1, 1)
        with closing(sqlite3.connect(tmp_path / "events.db", isolation_level=None)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM events").fetchone()
            with pytest.raises(StoreBusy, match="end the program that reads it"):
                await write(store, 2, 100)
            stored = await store.stream_version("note-2")
            assert frames_that_fit(tmp_path) < 100 + 20
            assert stored == len(await store.read_stream("note-2")) > 0
            reader.execute("ROLLBACK")
            await store.append("note-2", [noted(1)], expected_version=stored)
        assert store.trouble is None
    assert verify(tmp_path / "events.db").position == stored + 2


async def test_damaged_schema_does_not_hold_appends_up(tmp_path):
    async with await opened(tmp_path, bounds=LogBounds(usual=10, little=5, most=20)) as store:
        await write(store, 1, 1)
        with closing(sqlite3.connect(tmp_path / "events.db", isolation_level=None)) as other:
            other.execute("PRAGMA writable_schema = ON")
            other.execute(
                "INSERT INTO sqlite_master VALUES ('table', CAST(x'ff' AS TEXT), 'x', 0, CAST(x'ff' AS TEXT))"
            )
        async with asyncio.timeout(30):
            await write(store, 2, 50)
