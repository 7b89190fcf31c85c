"""Unpacking of zip archives that strangers send, within limits.

Facts about the format that matter here (APPNOTE.TXT 6.3.10, PKWARE): what an archive holds is listed in a directory at
its end, whose sizes and names are the sender's word. Entries may share bytes of the archive, so a small one may unpack
to petabytes without much compression (D. Fifield, "A better zip bomb", WOOT '19). Deflate packs at most 1,032 to 1.
A name may be absolute, lead upwards, have a drive or backslashes, or come twice; an entry may be a symbolic link, whose
target a later entry could be written through. So nothing is trusted but bytes that were counted: every name is checked
before anything is written, links are never made, and a target file must not exist yet.

``zipfile`` reads a whole directory into memory: the reader here refuses a read of that size.
"""

import io
import os
import re
import shutil
import stat
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import BinaryIO, NamedTuple

from msgspec import Struct

from service.domain.errors import DiskFull, Invalid

MAX_ARCHIVE_BYTES = 200 * 1024 * 1024
MAX_ENTRIES = 50_000
MAX_BYTES = 1024 * 1024 * 1024
"""Limit for all files together, unpacked."""
MAX_FILE_BYTES = 100 * 1024 * 1024
MAX_RATIO = 100
"""Limit for unpacked to packed size of an archive that unpacks to more than ``SMALL_BYTES``. Text packs 3 to 10 times,
drawings and logs up to 40 times.
"""
SMALL_BYTES = 10 * 1024 * 1024
MAX_DEPTH = 40
MAX_NAME_BYTES, MAX_PATH_BYTES = 255, 1_000
MAX_DIRECTORY_BYTES = 32 * 1024 * 1024
SPARE_DISK_BYTES = 256 * 1024 * 1024
"""Free space that unpacking leaves."""
SHOWN_LEFT_OUT = 10
MAX_SUFFIX, MAX_SUFFIXES = 20, 200

METHODS = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})
"""Those of other methods may want much memory for their dictionaries, and are rare."""
ENCRYPTED, UTF8 = 0x1, 0x800
DRIVE = re.compile(r"[A-Za-z]:")
LITTER = frozenset({"__MACOSX", ".DS_Store", "Thumbs.db"})
GIT = frozenset({".git"})

BAD_ARCHIVE, TOO_LARGE = "bad_archive", "too_large"


class Unpacked(Struct, frozen=True):
    """The result of unpacking an archive."""

    files: int
    bytes: int
    left_out: tuple[str, ...]
    """The first links and special files of the archive, which were not unpacked."""
    left_out_count: int
    suffixes: dict[str, int]
    """The number of files that were unpacked by the end of their name, in small letters, such as ``.pdf``."""


class _Entry(NamedTuple):
    info: zipfile.ZipInfo
    parts: tuple[str, ...]


class _Reader(io.BufferedReader):
    """A file of which no large piece is read at once; a place before its beginning is the archive's fault."""

    def read(self, size: int | None = -1, /) -> bytes:
        if size is not None and size > MAX_DIRECTORY_BYTES:
            raise _too_many()
        return super().read(size)

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        if offset < 0 and whence == io.SEEK_SET:
            raise zipfile.BadZipFile("an entry begins before the archive")
        return super().seek(offset, whence)


def unpack_zip(archive: Path, folder: Path) -> Unpacked:
    """Unpack an archive into an empty folder; a folder that alone holds everything is left away.

    Nothing is written unless every entry fits. Raises Invalid (``bad_archive``, ``too_large``), DiskFull.
    """
    size = archive.stat().st_size
    if size > MAX_ARCHIVE_BYTES:
        raise _too_large_archive()
    with _Reader(io.FileIO(archive)) as opened:
        try:
            with zipfile.ZipFile(opened) as zipped:
                entries, left_out = _planned(zipped, size)
                if shutil.disk_usage(folder).free < sum(one.info.file_size for one in entries) + SPARE_DISK_BYTES:
                    raise DiskFull()
                written = _written(zipped, entries, folder)
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, ValueError, OverflowError) as error:
            raise Invalid(
                f"This is not a zip archive that can be read: {_reason(error)}. Make it again, and upload that one.",
                code=BAD_ARCHIVE,
            ) from None
    suffixes = Counter(PurePosixPath(one.parts[-1].lower()).suffix[:MAX_SUFFIX] for one in entries)
    return Unpacked(
        len(entries), written, tuple(left_out[:SHOWN_LEFT_OUT]), len(left_out), dict(suffixes.most_common(MAX_SUFFIXES))
    )


def _planned(zipped: zipfile.ZipFile, size: int) -> tuple[list[_Entry], list[str]]:
    """Return the files to write and the names that are left out. Raise Invalid."""
    infos = zipped.infolist()
    if len(infos) > MAX_ENTRIES:
        raise _too_many()
    found: list[_Entry] = []
    left_out: list[str] = []
    for info in infos:
        parts = _parts(_name(info))
        if not LITTER.isdisjoint(parts) or any(part.lower() in GIT for part in parts):
            continue
        kind = stat.S_IFMT(info.external_attr >> 16)
        if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
            left_out.append("/".join(parts))
        elif not (info.is_dir() or kind == stat.S_IFDIR or _name(info).endswith("/")):
            _check_content(info)
            found.append(_Entry(info, parts))
    if not found:
        raise Invalid("There are no files in this archive. Put the documentation into it.", code=BAD_ARCHIVE)
    _check_names(found)
    _check_sizes([one.info for one in found], size)
    return _without_common_folder(found), left_out


def _name(info: zipfile.ZipInfo) -> str:
    """Return the name of an entry; of one that is in UTF-8 without saying so, as macOS packs it, in UTF-8."""
    name = info.orig_filename
    if not info.flag_bits & UTF8:
        with suppress(UnicodeError):
            name = name.encode("cp437").decode("utf-8")
    return name.replace("\\", "/")


def _parts(name: str) -> tuple[str, ...]:
    if name.startswith("/") or DRIVE.match(name):
        raise _bad_name(name, "it is absolute")
    parts = tuple(part for part in name.split("/") if part not in ("", "."))
    if ".." in parts:
        raise _bad_name(name, "it leads out of the archive")
    if not parts:
        raise _bad_name(name, "it is empty")
    if not name.isprintable():
        raise _bad_name(name, "it has characters that cannot be shown")
    if len(parts) > MAX_DEPTH:
        raise _bad_name(name, f"it is nested deeper than {MAX_DEPTH} folders")
    if len(name.encode()) > MAX_PATH_BYTES or any(len(part.encode()) > MAX_NAME_BYTES for part in parts):
        raise _bad_name(name, f"a name has at most {MAX_NAME_BYTES} bytes, and a path {MAX_PATH_BYTES:,}")
    return parts


def _check_content(info: zipfile.ZipInfo) -> None:
    if info.flag_bits & ENCRYPTED:
        raise Invalid(f"{_shown(info)} is encrypted. Make the archive again without a password.", code=BAD_ARCHIVE)
    if info.compress_type not in METHODS:
        raise Invalid(
            f"{_shown(info)} is packed by a method that is not read here ({info.compress_type})."
            " Make the archive again with deflate, the usual method.",
            code=BAD_ARCHIVE,
        )
    if info.file_size > MAX_FILE_BYTES:
        raise Invalid(
            f"{_shown(info)} has more than {MAX_FILE_BYTES >> 20} MiB. Leave it out of the archive.", code=TOO_LARGE
        )


def _check_names(entries: Iterable[_Entry]) -> None:
    files: set[tuple[str, ...]] = set()
    folders: set[tuple[str, ...]] = set()
    for info, parts in entries:
        if parts in files:
            raise _bad_name(_name(info), "it comes twice")
        files.add(parts)
        for depth in range(len(parts) - 1, 0, -1):
            if parts[:depth] in folders:
                break
            folders.add(parts[:depth])
    if both := files & folders:
        raise _bad_name("/".join(min(both)), "it is a file and a folder")


def _check_sizes(infos: Iterable[zipfile.ZipInfo], size: int) -> None:
    unpacked = packed = 0
    for info in infos:
        unpacked, packed = unpacked + info.file_size, packed + info.compress_size
    if unpacked > MAX_BYTES:
        raise _too_much(f"{MAX_BYTES >> 20:,} MiB")
    if packed > size or (unpacked > SMALL_BYTES and unpacked > MAX_RATIO * size):
        raise _too_much(f"{MAX_RATIO} times its size")


def _without_common_folder(entries: list[_Entry]) -> list[_Entry]:
    """Return the entries below the one folder that all are in, as code hosts pack a branch."""
    first = {one.parts[0] for one in entries}
    if len(first) > 1 or any(len(one.parts) == 1 for one in entries):
        return entries
    return [_Entry(one.info, one.parts[1:]) for one in entries]


def _written(zipped: zipfile.ZipFile, entries: Iterable[_Entry], folder: Path) -> int:
    total = 0
    for info, parts in entries:
        target = folder.joinpath(*parts)
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        is_program = info.create_system == 3 and (info.external_attr >> 16) & stat.S_IXUSR  # 3: made on Unix
        with zipped.open(info) as source, _created(target, 0o700 if is_program else 0o600) as made:
            while piece := source.read(1 << 16):
                total += len(piece)
                if total > MAX_BYTES:
                    raise _too_much(f"{MAX_BYTES >> 20:,} MiB")
                made.write(piece)
    return total


def _created(target: Path, mode: int) -> BinaryIO:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.fdopen(os.open(target, flags, mode), "wb")


def _shown(info: zipfile.ZipInfo) -> str:
    return _quoted(_name(info))


def _quoted(name: str) -> str:
    return repr(name if len(name) <= 200 else f"{name[:200]}…")


def _reason(error: Exception) -> str:
    text = "".join(character if character.isprintable() else " " for character in str(error))[:200]
    return text.rstrip(".") or type(error).__name__


def _bad_name(name: str, reason: str) -> Invalid:
    return Invalid(f"The archive has a name that cannot be used, {_quoted(name)}: {reason}.", code=BAD_ARCHIVE)


def _too_many() -> Invalid:
    return Invalid(f"The archive has more than {MAX_ENTRIES:,} entries. Leave some out.", code=TOO_LARGE)


def _too_much(limit: str) -> Invalid:
    return Invalid(f"The archive unpacks to more than {limit}. Leave out what is not documentation.", code=TOO_LARGE)


def _too_large_archive() -> Invalid:
    return Invalid(f"The archive has more than {MAX_ARCHIVE_BYTES >> 20} MiB. Leave some files out.", code=TOO_LARGE)
