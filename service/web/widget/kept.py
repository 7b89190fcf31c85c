"""Files of earlier versions, which stay in the data folder: pages name them by their content for as long as they like.

A tag may be pinned to a version, a tab may stay open over an upgrade, and during a rolling upgrade a page has the
loader of one instance and asks another. Each version's files are in a folder named after its loader, whose time is when
that version was served last. Not derived from the log: after they are deleted, those pages need the new tag.
"""

import os
import shutil
import tempfile
from contextlib import suppress
from datetime import datetime, timedelta
from functools import lru_cache
from pathlib import Path

from service.web.widget.bundle import Script, Widget, name_of, script_of

MAX_VERSIONS = 20
MAX_AGE = timedelta(days=365)
"""Counted from the day on which the next version was served."""
_READ_AGAIN = 32
"""Files that are held in memory, of at most some 60 kB each."""


def keep_files(folder: Path, files: Widget, now: datetime) -> None:
    """Keep the files of the version that is served now, and remove those that are too many or too old. For a thread.

    Raises OSError.
    """
    folder.mkdir(mode=0o700, exist_ok=True)
    for left in folder.glob(".*"):
        shutil.rmtree(left)  # a process was killed as it wrote
    own, seconds = folder / files.loader.name, now.timestamp()
    before = _versions(folder)
    if before and before[0] != own:
        os.utime(before[0], (seconds - 1, seconds - 1))  # it was served until now
    if any(_read(own, name) is None for name in files.by_name):
        _write(own, files)
    os.utime(own, (seconds, seconds))
    oldest = (now - MAX_AGE).timestamp()
    for at, version in enumerate(_versions(folder)):
        if at >= MAX_VERSIONS or version.stat().st_mtime < oldest:
            shutil.rmtree(version)


@lru_cache(maxsize=_READ_AGAIN)
def kept_file(folder: Path, name: str) -> Script:
    """Return a file of an earlier version. For a thread. Raises FileNotFoundError: none with that content is kept."""
    for version in _versions(folder):
        if (body := _read(version, name)) is not None:
            return script_of(body)
    raise FileNotFoundError(name)


def _versions(folder: Path) -> list[Path]:
    """Return the folders of the versions, the one that was served last first."""
    try:
        found = [(entry.stat().st_mtime, entry.name, entry.path) for entry in os.scandir(folder) if entry.is_dir()]
    except OSError:  # there is none yet, or one is being removed
        return []
    return [Path(path) for _, _, path in sorted(found, reverse=True)]


def _read(version: Path, name: str) -> bytes | None:
    """Return what the name says; None for other bytes: a disk may have lost some."""
    with suppress(OSError):
        body = (version / f"{name}.js").read_bytes()
        if name_of(body) == name:
            return body
    return None


def _write(version: Path, files: Widget) -> None:
    fresh = Path(tempfile.mkdtemp(prefix=".", dir=version.parent))
    for name, one in files.by_name.items():
        (fresh / f"{name}.js").write_bytes(one.body)
    shutil.rmtree(version, ignore_errors=True)
    fresh.rename(version)
