"""Files and folders that a power cut leaves as they are."""

import os
from pathlib import Path


def sync_all(top: Path) -> None:
    """Flush every file of a folder, and every folder in it, itself last. Raises OSError."""
    for folder, _, files in os.walk(top, topdown=False):
        for name in files:
            _sync(Path(folder, name), os.O_RDONLY | os.O_NOFOLLOW)
        sync_folder(Path(folder))


def sync_folder(folder: Path) -> None:
    """Make durable which files a folder has, and under which names. Raises OSError."""
    _sync(folder, os.O_RDONLY | os.O_DIRECTORY)


def _sync(path: Path, flags: int) -> None:
    descriptor = os.open(path, flags | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
