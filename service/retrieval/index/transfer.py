"""An index as a stream of bytes, from the instance that has it to one that has not.

It is a plain tar archive of the folder's files, the list of their sums first. Its reader knows the list's digest from
the log, checks each file against the list while it is written, and lets the folder take its place only when all of it
is there: an archive that was changed, cut off or mixed up leaves nothing.
"""

import hashlib
import os
import re
import tarfile
from collections.abc import Iterator
from pathlib import Path

from service.retrieval.index.atomic_folder import SUMS_FILE, adopt, decoded_sums

MAX_FILES, MAX_BYTES, MAX_SUMS_BYTES = 10_000, 16 << 30, 4 << 20
"""Limits for an archive: its files, their bytes together, and those of the list of sums."""
PIECE_BYTES = 1 << 20
_BLOCK = tarfile.BLOCKSIZE
_NAME = re.compile(r"[A-Za-z0-9._][A-Za-z0-9._-]{0,90}(/[A-Za-z0-9._-]{1,90}){0,3}")


class BadArchive(ValueError):
    """An archive is not the one that was asked for."""


def packed(folder: Path) -> Iterator[bytes]:
    """Yield the archive of a finished index, in pieces of which none is empty. Raises OSError, also where the index is
    removed meanwhile.
    """
    content = (folder / SUMS_FILE).read_bytes()
    yield _head(SUMS_FILE, len(content)) + content + _padding(len(content))
    for name in decoded_sums(content):
        with (folder / name).open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            yield _head(name, size)
            while piece := file.read(PIECE_BYTES):
                yield piece
        if padding := _padding(size):
            yield padding
    yield bytes(2 * _BLOCK)


def _head(name: str, size: int) -> bytes:
    member = tarfile.TarInfo(name)
    member.size, member.mode = size, 0o600
    return member.tobuf(tarfile.USTAR_FORMAT)


def _padding(size: int) -> bytes:
    return bytes(-size % _BLOCK)


class Unpacking:
    """Writes the files of an archive into an empty folder, from pieces of any size."""

    def __init__(self, folder: Path, digest: str, *, max_bytes: int = MAX_BYTES) -> None:
        """``digest``: that of the list of sums; empty for an index of an event that has none."""
        self._folder, self._digest, self._left = folder, digest, max_bytes
        self._held = bytearray()
        self._sums: dict[str, str] | None = None
        self._name = ""
        self._size = self._skip = 0
        """Bytes of the file, and of its padding, that are still to come."""
        self._sum = hashlib.sha256()
        self._file = -1
        self._listed = bytearray()
        self._is_ended = False

    def __enter__(self) -> "Unpacking":
        return self

    def __exit__(self, *_: object) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def feed(self, piece: bytes) -> None:
        """Write the next bytes. Raises BadArchive, and OSError."""
        self._held += piece
        while self._step():
            pass

    def finish(self) -> None:
        """Put all of it on the disk for good. Raises BadArchive where something is missing."""
        if not self._is_ended or self._sums is None:
            raise BadArchive("the archive was cut off")
        if self._sums:
            raise BadArchive(f"the archive lacks {min(self._sums)}")
        adopt(self._folder)

    def _step(self) -> bool:
        """Handle what has arrived; return whether there may be more to handle."""
        if self._name:
            return self._take()
        if self._skip:
            skipped = min(self._skip, len(self._held))
            del self._held[:skipped]
            self._skip -= skipped
            return skipped > 0
        if len(self._held) < _BLOCK:
            return False
        block = bytes(self._held[:_BLOCK])
        del self._held[:_BLOCK]
        if block == bytes(_BLOCK):
            self._is_ended = True
        elif self._is_ended:
            raise BadArchive("the archive goes on after its end")
        else:
            self._begin(block)
        return True

    def _begin(self, block: bytes) -> None:
        try:
            member = tarfile.TarInfo.frombuf(block, "ascii", "strict")
        except (tarfile.HeaderError, ValueError) as error:
            raise BadArchive(f"the head of a file is unreadable: {error}") from None
        name, most = member.name, self._left
        if not member.isreg() or not _NAME.fullmatch(name) or ".." in name:
            raise BadArchive(f"the archive has {name!r} in it")
        if self._sums is None:
            most = MAX_SUMS_BYTES
            if name != SUMS_FILE:
                raise BadArchive("the archive does not begin with the list of sums")
        elif name not in self._sums:
            raise BadArchive(f"the archive has {name} in it, which is not listed")
        if not 0 <= member.size <= most:  # a header can hold a negative size
            raise BadArchive(f"the archive has more than {most} bytes, or a file of a negative size")
        self._left -= member.size
        path = self._folder / name
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        self._name, self._size, self._skip = name, member.size, -member.size % _BLOCK
        self._sum = hashlib.sha256()

    def _take(self) -> bool:
        part = bytes(self._held[: self._size])
        del self._held[: self._size]
        self._sum.update(part)
        self._size -= len(part)
        if self._sums is None:
            self._listed += part
        view = memoryview(part)
        while view:
            view = view[os.write(self._file, view) :]
        if self._size:
            return False
        os.close(self._file)
        self._file, name, self._name = -1, self._name, ""
        if self._sums is None:
            self._list()
        elif self._sums.pop(name) != self._sum.hexdigest():
            raise BadArchive(f"{name} is not what its sum says")
        return True

    def _list(self) -> None:
        if self._digest and self._sum.hexdigest() != self._digest:
            raise BadArchive("the list of sums is not the one in the log")
        try:
            self._sums = decoded_sums(bytes(self._listed))
        except ValueError as error:
            raise BadArchive(f"the list of sums cannot be read: {error}") from None
        if len(self._sums) > MAX_FILES:
            raise BadArchive(f"the archive has more than {MAX_FILES} files")
