"""Adds new events of a log to its copy on this machine, on a thread of its own."""

import threading
from collections.abc import Callable

from eventstore.errors import EventStoreError, StoreClosed, StoreLost
from eventstore.log.stored import COLUMNS
from eventstore.postgres.away.local_copy import LocalCopy
from eventstore.postgres.connections import Connections

PAGE = 1_000
"""Rows in one read."""


class Copier:
    """``lost`` is called, on that thread, when the log does not hold the last event of the copy."""

    def __init__(self, copy: LocalCopy, connections: Connections, lost: Callable[[StoreLost], None]) -> None:
        self._copy, self._connections, self._lost = copy, connections, lost
        self._wake = threading.Event()
        self._is_ending = False
        self._thread = threading.Thread(target=self._run, name="eventstore-copy", daemon=True)
        self._thread.start()

    def on_head(self, position: int, hash_: bytes) -> None:
        """Copy the new events, when the log's end is not that of the copy."""
        if (position, hash_) != (self._copy.witness.position, self._copy.witness.hash) or not self._copy.is_whole:
            self._wake.set()

    def close(self) -> None:
        """End the thread. Close the connections first, so that it waits for none of them."""
        self._is_ending = True
        self._wake.set()
        self._thread.join()

    def _run(self) -> None:
        while self._wake.wait() and not self._is_ending:
            self._wake.clear()
            try:
                while self._copy_some() and not self._is_ending:
                    pass
            except StoreLost as error:
                self._lost(error)
                return
            except StoreClosed:
                return
            except (EventStoreError, MemoryError):
                continue  # the database is away, or the disk is full: the next look tries it again

    def _copy_some(self) -> bool:
        """Copy a page; return whether there may be more. Raises StoreLost, StoreUnavailable and its kinds."""
        last = self._copy.witness
        rows = self._connections.fetch(
            f"SELECT {COLUMNS} FROM events WHERE position >= $1 ORDER BY position LIMIT $2",  # noqa: S608 - our own text
            last.position,
            PAGE + 1,
        )
        if last.position:
            if not rows or (rows[0][0], bytes(rows[0][10])) != (last.position, last.hash):
                ((is_standby,),) = self._connections.fetch("SELECT pg_is_in_recovery()")
                if is_standby:  # it may be behind, and get the rest yet
                    return False
                name = self._connections.address.name
                raise StoreLost(f"{name} does not hold position {last.position} as it was stored")
            rows = rows[1:]
        self._copy.add([tuple(row) for row in rows], is_end=len(rows) < PAGE)
        return len(rows) >= PAGE
