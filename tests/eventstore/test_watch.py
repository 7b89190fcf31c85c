import asyncio
import sqlite3
import threading

import pytest

from eventstore.sqlite.watch import FileWatch


class Log:
    """A file with one table, and what a watch of it asks for."""

    def __init__(self, path):
        self.db = sqlite3.connect(path, isolation_level=None)
        self.db.execute("PRAGMA journal_mode=WAL")
        self.db.execute("CREATE TABLE events (position INTEGER PRIMARY KEY)")
        self.vault = 1
        self.known = 0
        self.error = None
        self.has_looked = threading.Event()
        """At the log's end."""
        self.watch = FileWatch(
            sqlite3.connect(path, isolation_level=None, check_same_thread=False),
            refresh=lambda: self.vault, head=self.head, known=lambda: self.known,
        )  # fmt: skip

    def head(self, db):
        if self.error is not None:
            error, self.error = self.error, None
            raise error
        (found,) = db.execute("SELECT coalesce(max(position), 0) FROM events").fetchone()
        self.has_looked.set()
        return found

    def commit(self):
        self.db.execute("INSERT INTO events DEFAULT VALUES")


@pytest.fixture
async def log(tmp_path):
    log = Log(tmp_path / "log.db")
    yield log
    await asyncio.to_thread(log.watch.close)
    log.db.close()


async def changed(log):
    async with asyncio.timeout(60):
        return await log.watch.changed()


async def test_new_watcher_is_notified_at_once_and_of_each_commit(log):
    log.watch.begin()
    assert await changed(log) == 1
    log.commit()
    assert await changed(log) == 1
    log.vault = 2
    assert await changed(log) == 2


async def test_known_change_notifies_no_watcher(log):
    log.watch.begin()
    await changed(log)
    log.known = 1
    log.has_looked.clear()
    waiting = asyncio.create_task(changed(log))
    log.commit()
    assert await asyncio.to_thread(log.has_looked.wait, 60)
    assert not waiting.done()
    log.commit()
    await waiting


async def test_watcher_that_asks_again_is_notified_again(log):
    log.watch.begin()
    await changed(log)
    log.watch.again()
    await changed(log)


async def test_watcher_after_a_pause_is_notified_at_once_again(log):
    log.watch.begin()
    await changed(log)
    log.watch.end()
    log.commit()
    log.watch.begin()
    await changed(log)


async def test_closing_ends_the_thread(log):
    before = set(threading.enumerate())
    log.watch.begin()
    await changed(log)
    await asyncio.to_thread(log.watch.close)
    assert "eventstore-watch" not in {thread.name for thread in set(threading.enumerate()) - before}


async def test_watch_goes_on_once_there_is_memory_again(log):
    log.watch.begin()
    await changed(log)
    log.error = MemoryError()
    log.commit()
    assert await changed(log) == 1
    assert log.error is None
