"""The thread that sentences are checked in: one for all replies, which take turns.

Threads that compute share one lock with the event loop, and the loop waits for each of them: eight replies that read
their passages at a time kept it from going on for 60 to 160 ms.
"""

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TypeVar

T = TypeVar("T")


async def in_turn(work: Callable[[], T]) -> T:
    """Return what the work returns. It takes some milliseconds at most: the next reply waits for it."""
    return await asyncio.get_running_loop().run_in_executor(_thread(), work)


@cache
def _thread() -> ThreadPoolExecutor:
    os.register_at_fork(after_in_child=_thread.cache_clear)
    return ThreadPoolExecutor(1, thread_name_prefix="sentence checks")
