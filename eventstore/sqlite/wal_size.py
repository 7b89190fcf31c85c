"""Keeps the write-ahead log of the log short, beside the commits and not in their way.

SQLite's own checkpoint runs inside each commit that leaves 1,000 frames or more: one caller waits until hundreds of
pages are written and flushed. Here a thread with a connection of its own moves them while commits go on. But a WAL
starts over only with a commit that finds all of it moved, and beside a busy writer that thread is always a little late.
So when little is left to move, the writer waits for it, between two commits.

A WAL cannot start over while it is read, either. The readers of this package read a page at a time; a shell or a
backup may hold an old snapshot for long. ``LogBounds`` says what then happens.
"""

import os
import sqlite3
import struct
import threading
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Literal

from msgspec import Struct

from eventstore.errors import EventStoreError, StoreBusy
from eventstore.sqlite import files
from eventstore.sqlite.wal import index_descriptor

_COUNTS_AT, _COUNTS = 16, struct.Struct("=I76xI")
"""The numbers of frames in the WAL, and of those moved, in its index (https://sqlite.org/walformat.html)."""
_WAIT_SECONDS = 0.1
"""The longest wait of a checkpoint for readers, once the WAL is too long."""


class LogBounds(Struct, frozen=True):
    """The bounds of writing. Lengths of the WAL are in frames, of 4 KB with SQLite's usual pages."""

    busy_timeout_seconds: float = files.BUSY_TIMEOUT_SECONDS
    """How long an append waits for another process that is writing."""
    usual: int = 2_048
    """A WAL of this length is moved into the file. Twice as long, a new log waits longer for its file to grow: a flush
    of a file that has become longer takes twice the time. Half as long, a busy writer waits for more moves.
    """
    little: int = 512
    """The most that is moved while the writer waits: about 2 ms and a flush."""
    most: int = 16_384
    """With a WAL of this length the writer waits for those who read it, 0.1 s for each further ``little``."""
    full: int = 262_144
    """With a WAL of this length appends are refused until those who read it let go."""


LOG_BOUNDS = LogBounds()


class WalKeeper:
    """Belongs to the writer's thread. ``db`` is the writer's connection, which has read the file already."""

    def __init__(self, db: sqlite3.Connection, path: Path, synchronous: str, bounds: LogBounds) -> None:
        self._path, self._synchronous, self._bounds = path, synchronous, bounds
        self._work: SimpleQueue[Literal["PASSIVE", "RESTART"] | None] = SimpleQueue()
        self._is_idle = threading.Event()
        self._is_idle.set()
        self._next_at = 0
        """The length from which the writer waits again."""
        self._frames = 0
        """The length of the WAL when it was last looked at: after each commit, so not again before the next. What
        another process adds in between may let one commit more into a full WAL.
        """
        self._index: int | None = None
        with suppress(OSError):  # of too many open files; then SQLite's own checkpoints go on
            self._index = index_descriptor(path)
        if self._index is not None:
            db.execute("PRAGMA wal_autocheckpoint = 0")
            self._counts()
        self._thread = threading.Thread(target=self._run, name="eventstore-checkpoints", daemon=True)
        self._thread.start()

    def require_space(self) -> None:
        """Raise StoreBusy when the WAL must not grow."""
        if self._frames < self._bounds.full or self._counts()[0] < self._bounds.full:
            return
        self._checkpoint("RESTART")
        self._is_idle.wait()
        frames, moved = self._counts()
        if frames >= self._bounds.full and moved < frames:
            raise StoreBusy(
                f"{self._path.name}: its write-ahead log has {frames:,} frames and cannot start over while an old "
                "state of the log is being read; end the program that reads it",
                file=self._path.name,
            )

    def tidy(self) -> None:
        """Have frames moved if it is time. For after a commit."""
        frames, moved = self._counts()
        if frames < self._bounds.usual:
            self._next_at = 0
        elif frames >= max(self._next_at, self._bounds.most):
            self._wait_for("RESTART", frames)
        elif not self._is_idle.is_set():
            pass
        elif frames - moved > self._bounds.little:
            self._checkpoint("PASSIVE")
        elif frames >= self._next_at:
            self._wait_for("PASSIVE", frames)

    def close(self) -> None:
        """Wait for the thread. What is left in the WAL is moved when its last connection is closed."""
        self._work.put(None)
        self._thread.join()

    def _counts(self) -> tuple[int, int]:
        """Return the number of frames in the WAL, and of those that have been moved."""
        if self._index is None:
            return 0, 0
        self._frames, moved = _COUNTS.unpack(os.pread(self._index, _COUNTS.size, _COUNTS_AT))
        return self._frames, moved

    def _wait_for(self, mode: Literal["PASSIVE", "RESTART"], frames: int) -> None:
        self._next_at = frames + self._bounds.little  # while it is read it may not start over: not with each commit
        self._checkpoint(mode)
        self._is_idle.wait()

    def _checkpoint(self, mode: Literal["PASSIVE", "RESTART"]) -> None:
        self._is_idle.wait()
        self._is_idle.clear()
        self._work.put(mode)

    def _run(self) -> None:
        db: sqlite3.Connection | None = None
        while (mode := self._work.get()) is not None:
            # As with SQLite's own checkpoints, a full disk is not reported: the WAL still has everything.
            # What is raised here would end this thread, and the writer would wait for good. MemoryError stands for
            # SQLITE_NOMEM, UnicodeDecodeError for a message that quotes a damaged schema.
            with suppress(sqlite3.Error, EventStoreError, MemoryError, UnicodeDecodeError):
                if db is None:
                    db = files.connect(self._path, busy_timeout_seconds=_WAIT_SECONDS)
                    db.execute(f"PRAGMA synchronous = {self._synchronous}")
                db.execute(f"PRAGMA wal_checkpoint({mode})").fetchone()
            self._is_idle.set()
        if db is not None:
            db.close()
