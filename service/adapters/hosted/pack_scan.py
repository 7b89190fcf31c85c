"""How much a pack unpacks to, found out before anything is kept of it (gitformat-pack(5)).

dulwich looks at an object once it has all of it in memory: a megabyte of zeros may be a gigabyte of them.
"""

import zlib
from collections.abc import Iterator
from mmap import ACCESS_READ, mmap
from typing import BinaryIO

from msgspec import Struct

MAX_OBJECT_BYTES = 100 * 1024 * 1024
"""As other code hosts have it (GitHub, "About large files on GitHub")."""
MAX_UNPACKED_BYTES = 4 * 1024**3
"""Limit for all objects of one push, in bytes."""

_OFS_DELTA, _REF_DELTA = 6, 7
_PIECE = 64 * 1024
_SPARE = 64
"""Compressed, what cannot be compressed takes a little more than as it is."""


class Entry(Struct, frozen=True):
    """An object of a pack: where the next one begins, and what it unpacks to, with what a delta makes."""

    end: int
    bytes: int


class Unreadable(Exception):
    """The file is no pack."""


def refusal(pack: BinaryIO) -> bytes | None:
    """Return why the pack from here to the file's end is too large to be unpacked, in git's words, or None. What is no
    pack is for others to refuse.
    """
    start = pack.tell()
    try:
        with mmap(pack.fileno(), 0, access=ACCESS_READ) as data:
            return _refusal(data, start)
    except (Unreadable, ValueError):  # ValueError: the file is empty
        return None
    finally:
        pack.seek(start)


def _refusal(data: mmap, start: int) -> bytes | None:
    unpacked = 0
    for entry in _entries(data, start):
        unpacked += entry.bytes
        if entry.bytes > MAX_OBJECT_BYTES:
            return b"object is larger than 100 MB"
        if unpacked > MAX_UNPACKED_BYTES:
            return b"the pack is larger than 4 GB unpacked"
    return None


def _entries(data: mmap, start: int) -> Iterator[Entry]:
    """Yield the objects in their order; one that is too large ends it."""
    head, end = data[start : start + 12], start + 12
    if len(head) < 12 or head[:4] != b"PACK" or int.from_bytes(head[4:8]) not in (2, 3):
        raise Unreadable
    for _ in range(int.from_bytes(head[8:])):
        entry = _entry(data, end)
        yield entry
        end = entry.end


def _entry(data: mmap, at: int) -> Entry:
    kind = _byte(data, at) >> 4 & 7
    size, at = _size(data, at, first_bits=4)
    if size > MAX_OBJECT_BYTES:
        return Entry(at, size)
    if kind == _OFS_DELTA:
        while _byte(data, at) & 0x80:
            at += 1
        at += 1
    elif kind == _REF_DELTA:
        at += 20
    head, end = _inflated(data, at, size)
    if kind not in (_OFS_DELTA, _REF_DELTA):
        return Entry(end, size)
    _, after = _size(head, 0, first_bits=7)
    result, _ = _size(head, after, first_bits=7)
    return Entry(end, size + result)


def _inflated(data: mmap, at: int, size: int) -> tuple[bytes, int]:
    """Return the beginning of an object, and where its last byte was. Raise Unreadable where it is longer than that."""
    decoder, left, head = zlib.decompressobj(), size, b""
    piece = min(_PIECE, size + _SPARE)
    try:
        while not decoder.eof:
            taken = data[at : at + piece]
            if not taken:
                raise Unreadable
            while True:
                out = decoder.decompress(taken, _PIECE)
                left -= len(out)
                if left < 0:
                    raise Unreadable
                head = head or out[:20]
                at += len(taken) - len(decoder.unused_data if decoder.eof else decoder.unconsumed_tail)
                taken = decoder.unconsumed_tail
                if decoder.eof or (not taken and len(out) < _PIECE):
                    break
    except zlib.error:
        raise Unreadable from None
    return head, at


def _size(data: mmap | bytes, at: int, *, first_bits: int) -> tuple[int, int]:
    """Return a number of which each byte has seven bits, the first ``first_bits``, and where it ends."""
    byte = _byte(data, at)
    size, shift = byte & ((1 << first_bits) - 1), first_bits
    while byte & 0x80:
        at += 1
        byte = _byte(data, at)
        size |= (byte & 0x7F) << shift
        shift += 7
        if shift > 70:
            raise Unreadable
    return size, at + 1


def _byte(data: mmap | bytes, at: int) -> int:
    if at >= len(data):
        raise Unreadable
    return data[at]
