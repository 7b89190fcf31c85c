"""Going on when the log cannot be written for a while: a full disk, another process that holds the file.

What was done must not be lost for that (a model's reply has been paid for), and no worker may end.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import structlog

from eventstore import StoreUnavailable

log = structlog.get_logger()

T = TypeVar("T")

FIRST_WAIT_SECONDS = 0.25
LONGEST_WAIT_SECONDS = 2.0
"""So long at most after PostgreSQL is back, or a disk has room, nothing goes on yet."""


async def retry_while_unavailable(act: Callable[[], Awaitable[T]], *, first_seconds: float = FIRST_WAIT_SECONDS) -> T:
    """Do it, and again for as long as the store is unavailable: nothing was stored by what failed so, or it is unknown.

    What must not be recorded twice carries a ``CommandId``, the same for each try.
    ``first_seconds``: before the second try; twice as long before each further one.
    """
    seconds = first_seconds
    while True:
        try:
            return await act()
        except StoreUnavailable as error:
            log.warning("the log cannot be used; it is tried again", kind=type(error).__name__, seconds=seconds)
        await asyncio.sleep(seconds)
        seconds = min(seconds * 2, LONGEST_WAIT_SECONDS)
