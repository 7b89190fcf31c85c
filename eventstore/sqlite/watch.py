"""Notices what other processes commit to the files of a store, without waking the event loop for nothing.

Not on the event loop: one that is woken every 25 ms, and hands a look at the file to another thread each time, uses two
hundredths of a core to find that nothing has happened. A thread that sleeps and looks by itself uses a tenth of that.
"""

import asyncio
import contextlib
import sqlite3
import threading
from collections.abc import Callable

from eventstore.errors import EventStoreError

POLL_SECONDS = 0.025
"""Between two looks at what other processes committed: 15 ms of delay at the median."""


class FileWatch:
    """See Watch. Looks at the log's ``PRAGMA data_version`` and at the vault's, between ``begin`` and ``end``.

    The connection is its own from now on. ``refresh`` is the vault's, ``head`` reads the log's last position, ``known``
    returns the last one that needs no report: what this process commits itself is no news.
    """

    def __init__(
        self,
        db: sqlite3.Connection,
        *,
        refresh: Callable[[], int],
        head: Callable[[sqlite3.Connection], int],
        known: Callable[[], int],
    ) -> None:
        self._db, self._refresh, self._head, self._known = db, refresh, head, known
        self._loop = asyncio.get_running_loop()
        self._changed = asyncio.Event()
        self._found = 0
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        self._asked = 0
        self._is_watching = self._is_closed = False

    def begin(self) -> None:
        self._changed.clear()
        self._is_watching = True
        self.again()  # before the thread begins, which would report the same change twice if it was much faster
        if self._thread is None:
            thread = threading.Thread(target=self._run, name="eventstore-watch", daemon=True)
            thread.start()
            self._thread = thread

    def end(self) -> None:
        self._is_watching = False

    def look(self) -> None:
        self._wake.set()

    def again(self) -> None:
        self._asked += 1
        self._wake.set()

    async def changed(self) -> int:
        await self._changed.wait()
        self._changed.clear()
        return self._found

    def close(self) -> None:
        self._is_closed = True
        self._wake.set()
        if self._thread is not None:
            self._thread.join()
        self._db.close()

    def _run(self) -> None:
        seen = seen_vault = answered = -1
        while not self._is_closed:
            self._wake.wait(POLL_SECONDS if self._is_watching else None)
            self._wake.clear()
            if self._is_closed or not self._is_watching:
                continue
            # Readers get the error themselves; here it is tried again.
            with contextlib.suppress(sqlite3.Error, EventStoreError, MemoryError):
                asked = self._asked
                (version,) = self._db.execute("PRAGMA data_version").fetchone()
                vault = self._refresh()
                is_news = asked != answered or vault != seen_vault
                if is_news or (version != seen and self._head(self._db) > self._known()):
                    self._tell(vault)
                seen, seen_vault, answered = version, vault, asked

    def _tell(self, vault: int) -> None:
        with contextlib.suppress(RuntimeError):  # the event loop has ended, and with it all who would listen
            self._loop.call_soon_threadsafe(self._told, vault)

    def _told(self, vault: int) -> None:
        self._found = vault
        self._changed.set()
