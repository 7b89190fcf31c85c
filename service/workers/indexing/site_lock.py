"""One indexing of a site at a time, across the service and commands that run beside it."""

import asyncio
import fcntl
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

FIRST_LOOK_SECONDS, LONGEST_LOOK_SECONDS = 0.05, 1.0
"""Between two looks whether another process has ended its own."""


@asynccontextmanager
async def site_lock(root: Path, domain: str) -> AsyncIterator[None]:
    """Hold the site's lock, which the kernel frees when its holder dies. Waits without a thread."""
    descriptor = await asyncio.to_thread(_opened, root / f".{domain}.lock")
    try:
        seconds = FIRST_LOOK_SECONDS
        while not _locked(descriptor):
            await asyncio.sleep(seconds)
            seconds = min(seconds * 2, LONGEST_LOOK_SECONDS)
        yield
    finally:
        os.close(descriptor)


def _opened(file: Path) -> int:
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
