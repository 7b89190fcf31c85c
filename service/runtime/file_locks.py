"""Locks on files, which the kernel frees when their holder dies."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from service.domain.errors import needs_room


def lock_of(folder: Path) -> Path:
    """Return the file beside a folder whose lock who changes it holds."""
    return folder.with_name(f".{folder.name}.lock")


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """One holder at a time, across threads and processes; the kernel frees it when its holder dies."""
    with needs_room():
        file.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def only_if_free(file: Path) -> Iterator[bool]:
    """Lock the file without waiting; yield whether it was free."""
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        yield False
    else:
        yield True
    finally:
        os.close(descriptor)
