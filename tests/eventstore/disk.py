"""What SQLite does to its files, recorded, and what a power cut would have left of it.

``recording`` puts functions of Python's own into the operating system layer (the VFS) of the SQLite library that
the sqlite3 module uses, https://sqlite.org/c3ref/vfs.html: files are opened as ever, and every write, truncation and
flush is noted on the way. Use it in a process of its own.

A power cut leaves what was flushed. Of what was written since, each 512-byte sector is there or is not, whatever the
order in which they were written: pages are torn, and a later write may be there without an earlier one. (What SQLite
asks of a disk, and what is kept here: a write changes no bytes but its own, https://sqlite.org/psow.html.)
"""

import _sqlite3
import ctypes
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

SECTOR = 512

Pointer = ctypes.c_void_p
_Open = ctypes.CFUNCTYPE(ctypes.c_int, Pointer, Pointer, Pointer, ctypes.c_int, Pointer)
_Delete = ctypes.CFUNCTYPE(ctypes.c_int, Pointer, Pointer, ctypes.c_int)
_Write = ctypes.CFUNCTYPE(ctypes.c_int, Pointer, Pointer, ctypes.c_int, ctypes.c_int64)
_Truncate = ctypes.CFUNCTYPE(ctypes.c_int, Pointer, ctypes.c_int64)
_Sync = ctypes.CFUNCTYPE(ctypes.c_int, Pointer, ctypes.c_int)


class _Methods(ctypes.Structure):
    """sqlite3_io_methods."""

    _fields_ = [
        ("version", ctypes.c_int),
        ("close", Pointer),
        ("read", Pointer),
        ("write", Pointer),
        ("truncate", Pointer),
        ("sync", Pointer),
        ("others", Pointer * 13),
    ]


class _Vfs(ctypes.Structure):
    """The beginning of sqlite3_vfs."""

    _fields_ = [
        ("version", ctypes.c_int),
        ("file_size", ctypes.c_int),
        ("max_path", ctypes.c_int),
        ("next", Pointer),
        ("name", ctypes.c_char_p),
        ("app_data", Pointer),
        ("open", Pointer),
        ("delete", Pointer),
    ]


Journal = list[tuple[Any, ...]]
"""("write", file, offset, bytes), ("truncate", file, size), ("sync", file, how much of the journal it covers),
("delete", file, whether that was flushed), and whatever the caller adds."""


def can_record() -> bool:
    """Whether SQLite is a library that can be reached, and not a hidden part of the interpreter."""
    return hasattr(ctypes.CDLL(_sqlite3.__file__), "sqlite3_vfs_find")


@contextmanager
def recording(fails: Callable[[str], bool] = lambda _: False) -> Iterator[Journal]:
    """Note what is done to files that are opened meanwhile; ``fails``: whether the next flush of a named file does."""
    journal: Journal = []
    library = ctypes.CDLL(_sqlite3.__file__)
    library.sqlite3_vfs_find.restype = ctypes.POINTER(_Vfs)
    library.sqlite3_vfs_find.argtypes = [ctypes.c_char_p]
    vfs = library.sqlite3_vfs_find(None).contents
    real_open, real_delete = _Open(vfs.open), _Delete(vfs.delete)
    names: dict[int, str] = {}
    patched: dict[int, _Methods] = {}
    kept: list[Any] = []  # ctypes keeps no reference to what C holds

    def patch(at: int) -> _Methods:
        real = _Methods.from_address(at)
        real_write, real_truncate, real_sync = _Write(real.write), _Truncate(real.truncate), _Sync(real.sync)

        def write(file: int, data: int, size: int, offset: int) -> int:
            journal.append(("write", names[file], offset, ctypes.string_at(data, size)))
            return int(real_write(file, data, size, offset))

        def truncate(file: int, size: int) -> int:
            journal.append(("truncate", names[file], size))
            return int(real_truncate(file, size))

        def sync(file: int, flags: int) -> int:
            covered = len(journal)
            if fails(names[file]):
                return sqlite3.SQLITE_IOERR_FSYNC
            code = int(real_sync(file, flags))
            if code == 0:
                journal.append(("sync", names[file], covered))
            return code

        methods = _Methods.from_buffer_copy(real)
        for name, kind, function in (
            ("write", _Write, write),
            ("truncate", _Truncate, truncate),
            ("sync", _Sync, sync),
        ):
            callback = kind(function)
            kept.append(callback)
            setattr(methods, name, ctypes.cast(callback, Pointer))
        return methods

    def open_(vfs_at: int, name: int | None, file: int, flags: int, out_flags: int) -> int:
        code = int(real_open(vfs_at, name, file, flags, out_flags))
        methods = Pointer.from_address(file)
        if code == 0 and name is not None and methods.value:
            names[file] = Path(ctypes.string_at(name).decode()).name
            if methods.value not in patched:
                patched[methods.value] = patch(methods.value)
            methods.value = ctypes.addressof(patched[methods.value])
        return code

    def delete(vfs_at: int, name: int, flushes: int) -> int:
        code = int(real_delete(vfs_at, name, flushes))
        if code == 0:
            journal.append(("delete", Path(ctypes.string_at(name).decode()).name, bool(flushes)))
        return code

    opening, deleting = _Open(open_), _Delete(delete)
    before, vfs.open, vfs.delete = (vfs.open, vfs.delete), ctypes.cast(opening, Pointer), ctypes.cast(deleting, Pointer)
    try:
        yield journal
    finally:
        vfs.open, vfs.delete = before


def after_power_cut(journal: Journal, survives: Callable[[], bool]) -> dict[str, bytes]:
    """The files as a power cut at the end of the journal leaves them; ``survives`` says so of an unflushed sector."""
    flushed: dict[str, int] = {}
    for entry in journal:
        if entry[0] == "sync":
            flushed[entry[1]] = max(entry[2], flushed.get(entry[1], 0))
    files: dict[str, bytearray] = {}
    for number, entry in enumerate(journal):
        if entry[0] == "delete" and (entry[2] or survives()):
            files.pop(entry[1], None)
        if entry[0] not in {"write", "truncate"}:
            continue
        content = files.setdefault(entry[1], bytearray())
        is_flushed = number < flushed.get(entry[1], 0)
        if entry[0] == "truncate":
            if is_flushed or survives():
                del content[entry[2] :]
                content.extend(bytes(entry[2] - len(content)))
        else:
            _, _, offset, data = entry
            start = 0
            while start < len(data):
                end = min(len(data), start + SECTOR - (offset + start) % SECTOR)
                if is_flushed or survives():
                    content.extend(bytes(max(0, offset + end - len(content))))
                    content[offset + start : offset + end] = data[start:end]
                start = end
    return {name: bytes(content) for name, content in files.items()}


def chances(random: Random) -> Callable[[], bool]:
    """Of what was not flushed: nothing, everything, most of it, or half of it is there."""
    share = random.choice((0.0, 1.0, 0.9, 0.5))
    return lambda: random.random() < share
