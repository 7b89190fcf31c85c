"""Acknowledged transactions in a write-ahead log that SQLite does not see any more.

After a crash SQLite takes the frames of a WAL up to the first whose checksum does not fit, and says nothing of those
behind it (https://sqlite.org/fileformat2.html#walformat). That is right for a tail that was being written when the
power failed. It is not for a frame that was damaged later, with whole transactions behind it.

The two can be distinguished. Each commit is flushed before the next transaction begins, so a frame that goes on after a
commit frame, by its checksum, is there only if that commit had been flushed, and acknowledged. Only damage in the last
transaction of all cannot be distinguished.
"""

import os
import sqlite3
import struct
import sys
from contextlib import suppress
from pathlib import Path
from typing import IO

_HEADER, _FRAME_HEADER, _PAGE = 32, 24, 4096
_MAGIC = 0x377F0682
"""The last bit says that the checksums are of big-endian words."""
_SEEN_AT = 16
"""The place of the number of frames that SQLite takes, in the WAL's index, in the byte order of the machine."""
_TRIES = 3
_DESCRIPTORS = Path("/proc/self/fd")
"""The files that this process has open. Where that folder is missing, nothing is found."""

_Sum = tuple[int, int]


def has_lost_transactions(db: sqlite3.Connection, path: Path) -> bool:
    """Return whether the WAL of a file holds acknowledged transactions that connections to it do not see.

    The connection must have read the file already, so that SQLite has scanned the WAL. Others may be writing.
    """
    wal = path.with_name(f"{path.name}-wal")
    for _ in range(_TRIES):
        db.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
        try:
            seen = _seen_frames(path)
            found = _is_committed_behind(wal, seen)
            if not found or _seen_frames(path) == seen:
                return found
        except (FileNotFoundError, struct.error):  # the file alone is everything, or the WAL is being emptied just now
            return False
    return False  # it is being written, by a process that sees all of it


def has_first_page(path: Path) -> bool:
    """Return whether SQLite takes a file's first page, with its header, from the WAL: after a power cut in the midst of
    moving it over, the one in the file may be older than those behind it.

    A connection of this process must have read the file already.
    """
    try:
        seen = _seen_frames(path)
        with path.with_name(f"{path.name}-wal").open("rb") as file:
            (page,) = struct.unpack(">I", file.read(12)[8:])
            size = _FRAME_HEADER + page
            frames = (os.pread(file.fileno(), 4, _HEADER + number * size) for number in range(seen))
            return any(frame == b"\0\0\0\1" for frame in frames)
    except (FileNotFoundError, struct.error):
        return False


def index_descriptor(path: Path) -> int | None:
    """Return SQLite's own descriptor of the WAL's index of a file that a connection of this process has read; it stays
    open as long as that connection. None when there is none, or where descriptors cannot be listed.

    To open and close the index once more would release every lock that this process has on it
    (https://sqlite.org/howtocorrupt.html, "Posix advisory locks canceled by a separate thread doing close()").
    """
    with suppress(FileNotFoundError):
        wanted = path.with_name(f"{path.name}-shm").stat()
        for descriptor in [int(one.name) for one in _DESCRIPTORS.iterdir()]:
            with suppress(OSError):
                found = os.fstat(descriptor)
                if (found.st_dev, found.st_ino) == (wanted.st_dev, wanted.st_ino):
                    return descriptor
    return None


def _seen_frames(path: Path) -> int:
    """Return the number of frames that SQLite takes. Raise FileNotFoundError without a descriptor to read it with."""
    descriptor = index_descriptor(path)
    if descriptor is None:
        raise FileNotFoundError(path)
    return int(struct.unpack("=I", os.pread(descriptor, 4, _SEEN_AT))[0])


def _is_committed_behind(wal: Path, seen: int) -> bool:
    """Return whether a frame of this WAL goes on after a commit frame, behind those that are seen."""
    with wal.open("rb") as file:
        header = file.read(_HEADER)
        magic, _, page, _, *salts_and_sum = struct.unpack(">8I", header)
        order, salts = ">" if magic & 1 else "<", tuple(salts_and_sum[:2])
        if magic & ~1 != _MAGIC or tuple(salts_and_sum[2:]) != _checksum(header[:24], (0, 0), order):
            # The header itself is damaged: SQLite takes nothing, and the frames say what it was.
            page, order, salts = _PAGE, "<" if sys.byteorder == "little" else ">", _Frame(file, 0, _PAGE).salts
        number = max(seen, 1)
        try:
            before = _Frame(file, number - 1, page)
            while True:
                frame = _Frame(file, number, page)
                # Salts identify what the WAL held before it began again; those of the commit may be the damaged part.
                if frame.salts == salts and before.is_commit and number > seen and frame.follows(before, order):
                    return True
                before, number = frame, number + 1
        except struct.error:  # the end
            return False


class _Frame:
    """The header of a frame, and where its page is."""

    def __init__(self, file: IO[bytes], number: int, page: int) -> None:
        self._file, self._number, self._page = file, number, page
        self._at = _HEADER + number * (_FRAME_HEADER + page)
        header = struct.unpack(">6I", os.pread(file.fileno(), _FRAME_HEADER, self._at))
        self.is_commit, self.salts, self.sum = header[1] > 0, header[2:4], (header[4], header[5])

    def follows(self, before: "_Frame", order: str) -> bool:
        """Return whether its checksum goes on from that of the frame before, as stored, or as it should be stored."""
        if self._sum_after(before.sum, order) == self.sum:
            return True
        if before._number == 0:
            return False
        earlier = _Frame(self._file, before._number - 1, self._page)
        return self._sum_after(before._sum_after(earlier.sum, order), order) == self.sum

    def _sum_after(self, before: _Sum, order: str) -> _Sum:
        content = os.pread(self._file.fileno(), _FRAME_HEADER + self._page, self._at)
        return _checksum(content[:8] + content[_FRAME_HEADER:], before, order)


def _checksum(text: bytes, start: _Sum, order: str) -> _Sum:
    """Section 4.2 of the file format."""
    one, two = start
    words = struct.unpack(f"{order}{len(text) // 4}I", text)
    for first, second in zip(words[::2], words[1::2], strict=True):
        one = (one + first + two) & 0xFFFFFFFF
        two = (two + second + one) & 0xFFFFFFFF
    return one, two
