"""Folders that are on the disk whole or not at all, and never change afterwards.

One is written under another name, beside its place. The last file in it lists all others with their sums: a folder that
has lost or changed a byte is known before it is relied on. A folder made from an older one shares its files where they
stay as they are.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from service.runtime.scratch import remove_leftovers, scratch_folder

SUMS_FILE = "sums.json"
_CHUNK = 1 << 20


@contextmanager
def building(target: Path) -> Iterator[Path]:
    """The folder to write into. Once its writer has sealed it, it takes its place; else nothing is left of it, nor of
    what killed ones have left there.
    """
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    clear_away(target.parent)
    with scratch_folder(target.parent, f".{target.name}.building-") as folder:
        yield folder
        if (folder / SUMS_FILE).exists():
            if target.exists():
                shutil.rmtree(target)
            folder.replace(target)
            _sync(target.parent)


def clear_away(folder: Path) -> None:
    """Remove what killed processes have left beside the indexes of a domain."""
    remove_leftovers(left for left in folder.glob(".*") if left.is_dir())
    for archive in folder.glob(".*.tar*"):  # of a program before this one, which had them here
        archive.unlink(missing_ok=True)


def seal(folder: Path, known: Mapping[str, str] = {}) -> None:
    """Everything on the disk for good, with the sums that ``is_whole`` checks. ``known``: of files that are as they
    were in a sealed folder; they are not read.
    """
    names = sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file())
    sums = {name: known.get(name) or _sum(folder / name) for name in names}
    (folder / SUMS_FILE).write_text(json.dumps(sums, indent=0), encoding="utf-8")
    for name in (*(name for name in names if name not in known), SUMS_FILE):
        _sync(folder / name)
    for each in (*(each for each in folder.rglob("*") if each.is_dir()), folder):
        _sync(each)


def sums_of(folder: Path) -> dict[str, str]:
    """Raises OSError and ValueError for what is not sealed."""
    return decoded_sums((folder / SUMS_FILE).read_bytes())


def decoded_sums(content: bytes) -> dict[str, str]:
    """Return the sums of a sealed folder's list, by the files' names. Raises ValueError."""
    sums = json.loads(content)
    if not isinstance(sums, dict) or not sums or not all(isinstance(sum_, str) for sum_ in sums.values()):
        raise ValueError("no sums")
    return sums


def digest_of(folder: Path) -> str:
    """Return the digest of a sealed folder's list of sums. Raises OSError."""
    return hashlib.sha256((folder / SUMS_FILE).read_bytes()).hexdigest()


def adopt(folder: Path) -> None:
    """Put a sealed folder that came from elsewhere on the disk for good."""
    for each in (*folder.rglob("*"), folder):
        _sync(each)


def is_whole(folder: Path) -> bool:
    """Return whether every file of an index is as it was written. Reads all of them."""
    try:
        return all(_sum(folder / name) == known for name, known in sums_of(folder).items())
    except (OSError, ValueError, AttributeError):
        return False


def copy_checked(source: Path, target: Path, known: str) -> None:
    """Raises ValueError when it is not what its sum says: damage must not get a new sum."""
    sum_ = hashlib.sha256()
    with source.open("rb") as read, target.open("wb") as written:
        while chunk := read.read(_CHUNK):
            sum_.update(chunk)
            written.write(chunk)
    if sum_.hexdigest() != known:
        raise ValueError(f"{source.name} is damaged")


def _sum(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _sync(file: Path) -> None:
    descriptor = os.open(file, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def share_files(before: Path, folder: Path, sums: Mapping[str, str]) -> dict[str, str]:
    """Put an index's files into a new folder. tantivy's segments never change, so they are the same files; the lists of
    them, which it writes over, and the tables are copies. Returns the sums of those that are the same.
    """
    shared: dict[str, str] = {}
    for name, sum_ in sums.items():
        source, copy = before / name, folder / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith((".db", ".json")):
            copy_checked(source, copy, sum_)
        else:
            os.link(source, copy)
            shared[name] = sum_
    return shared
