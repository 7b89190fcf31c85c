"""The threads that hold a log's connections: one that writes, and some that read."""

import asyncio
import contextlib
import sqlite3
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import TypeVar

from eventstore import files
from eventstore.errors import StoreClosed
from eventstore.events import Append
from eventstore.log_file import Batch, LogWriter

T = TypeVar("T")

READERS = 4


class WriterThread:
    """Runs commits, one at a time, and reports each on the event loop.

    Not an executor: its futures and their locks are a tenth of what a lone append costs.
    """

    def __init__(self, log: LogWriter, report: Callable[[Batch | BaseException], None]) -> None:
        self._log, self._report = log, report
        self._loop = asyncio.get_running_loop()
        self._work: SimpleQueue[tuple[Sequence[Sequence[Append]], bool] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="eventstore-writer", daemon=True)
        self._thread.start()

    def commit(self, appends: Sequence[Sequence[Append]], *, wants_events: bool) -> None:
        self._work.put((appends, wants_events))

    def close(self) -> None:
        self._work.put(None)
        self._thread.join()
        self._log.close()

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            appends, wants_events = work
            result: Batch | BaseException
            try:
                result = self._log.commit(appends, wants_events=wants_events)
            except BaseException as error:  # noqa: BLE001 - the appenders' edge: whatever it is, they are told
                result = error
            with contextlib.suppress(RuntimeError):  # the event loop has ended, and with it whoever would listen
                self._loop.call_soon_threadsafe(self._report, result)


class Readers:
    """Threads that read, each with its own connection."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._local = threading.local()
        self._connections: list[sqlite3.Connection] = []
        self._executor = ThreadPoolExecutor(READERS, thread_name_prefix="eventstore-reader")

    async def run(self, read: Callable[[sqlite3.Connection], T]) -> T:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._executor, self._call, read)
        except RuntimeError as error:
            if "shutdown" in str(error):
                raise StoreClosed("the store is closed") from None
            raise

    def _call(self, read: Callable[[sqlite3.Connection], T]) -> T:
        try:
            db: sqlite3.Connection | None = getattr(self._local, "db", None)
            if db is None:
                db = self._local.db = files.connect_offline(self._path)
                self._connections.append(db)
            return read(db)
        except sqlite3.Error as error:
            raise files.explained(error, self._path) from error

    def close(self) -> None:
        self._executor.shutdown()
        for db in self._connections:
            db.close()
