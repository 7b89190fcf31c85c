"""Short work for the event loop that thousands may want at the same moment: one piece in each turn of the loop."""

import asyncio
from collections import deque
from collections.abc import Callable
from weakref import WeakKeyDictionary

_Waiting = deque[Callable[[], None]]
_waiting: WeakKeyDictionary[asyncio.AbstractEventLoop, _Waiting] = WeakKeyDictionary()


def call_in_turn(work: Callable[[], None]) -> None:
    """Call ``work`` soon, when all has been called that came before; the loop does other things in between."""
    loop = asyncio.get_running_loop()
    waiting = _waiting.setdefault(loop, deque())
    waiting.append(work)
    if len(waiting) == 1:
        loop.call_soon(_next, loop, waiting)


def _next(loop: asyncio.AbstractEventLoop, waiting: _Waiting) -> None:
    try:
        waiting[0]()
    finally:
        waiting.popleft()
        if waiting:
            loop.call_soon(_next, loop, waiting)
