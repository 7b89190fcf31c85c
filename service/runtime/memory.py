"""Memory that the C library keeps although nothing is in it, and how often Python looks for cycles among all objects.

glibc gives each thread an arena of its own to allocate from, keeps what was freed among what is in use, and once it has
seen a large block freed, puts such blocks there, too. With a job and 18 answers a second, memory that was free but kept
grew by 55 MB an hour, while what was in use stayed as it was. With one arena, large blocks apart, and free memory
returned every minute, 3 MB of it are kept. Other C libraries do not have these calls: then nothing is done here.
"""

import ctypes
import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

SECONDS = 60.0
"""Between two times that memory is given back."""
LARGE_BYTES = 272 * 1024
"""Blocks of this size are mapped one by one. It is more than the 256 KiB that asyncio allocates for each read of a
socket: to map, shrink and unmap these is three system calls, which cost more than the read itself.
"""
TRIM_BYTES = 1024 * 1024
"""Free memory at the end of the arena that is kept: with less, each of those blocks would move its end twice."""

REST = 1_000
"""After a full collection none is due for this many times as long as it took: they take 0.1 % of the time."""
MOST_REST_SECONDS = 600.0
"""The longest between two full collections that are due: there may be far fewer objects by then."""
_NEVER = 1 << 30

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8
"""malloc.h, for mallopt(3)."""


def keep_little() -> None:
    """Call it before there are threads. They share an arena: Python's lock lets hardly two of them run at once."""
    mallopt = _of_c("mallopt")
    if mallopt is not None:
        mallopt(_M_ARENA_MAX, 1)
        mallopt(_M_MMAP_THRESHOLD, LARGE_BYTES)
        mallopt(_M_TRIM_THRESHOLD, TRIM_BYTES)


def give_back() -> None:
    """Return what is free to the system. Takes some 5 ms for 100 MB, in which other threads run but cannot allocate."""
    malloc_trim = _of_c("malloc_trim")
    if malloc_trim is not None:
        malloc_trim(0)


@contextmanager
def seldom_collected(clock: Callable[[], float] = time.monotonic) -> Iterator[None]:
    """Have Python collect everything seldom meanwhile, by the time that it takes.

    A full collection holds the event loop up, for 2.4 s with 10,000 open replies. Python made one whenever a quarter
    more objects had survived the small ones, every 10 s then, and found nothing: hardly any cycle here lives so long.
    Of three minutes of jobs and replies, 400 objects were left to it, and 800,000 to the small ones.
    """
    before = gc.get_threshold()
    began = due = clock()

    def collected(phase: str, about: dict[str, int]) -> None:
        nonlocal began, due
        if about["generation"] == 2:
            if phase == "start":
                began = clock()
            else:
                ended = clock()
                due = ended + min(REST * (ended - began), MOST_REST_SECONDS)
                gc.set_threshold(*before[:2], _NEVER)
        elif phase == "stop" and clock() >= due and gc.get_threshold()[2] == _NEVER:
            gc.set_threshold(*before)

    gc.callbacks.append(collected)
    try:
        yield
    finally:
        gc.callbacks.remove(collected)
        gc.set_threshold(*before)


@cache
def _of_c(name: str) -> Callable[..., Any] | None:
    try:
        function: Callable[..., Any] = getattr(ctypes.CDLL(None), name)
    except (OSError, AttributeError, TypeError):
        return None
    return function
