"""Calls that a later message can cancel.

Modern clients cancel a call by closing its connection. Legacy ones send ``notifications/cancelled`` with the request's
id and leave the connection open (2025-11-25, "Cancellation"). There is no session to tell whose id it is: it is that of
the same caller, by key, address and client. Where two calls fit, none is cancelled. A notification that reaches another
process of the same store does nothing there, which the protocol allows.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from aiohttp import web

from service.wire.mcp.requests import RequestId

T = TypeVar("T")


class Cancelled(Exception):
    """The client has cancelled the call."""


class RunningCalls:
    """The calls of legacy clients that are under way."""

    def __init__(self) -> None:
        self._tasks: dict[tuple[str, RequestId], list[asyncio.Task[Any]]] = {}

    async def run(self, caller: str, request_id: RequestId, work: Coroutine[Any, Any, T]) -> T:
        """Return the result of a call. Raise Cancelled, and what the call raises."""
        key, task = (caller, request_id), asyncio.create_task(work, name="call of a tool")
        self._tasks.setdefault(key, []).append(task)
        try:
            return await task
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if current is not None and current.cancelling():  # the client has gone
                raise
            raise Cancelled("The call was cancelled.") from None
        finally:
            self._tasks[key].remove(task)
            if not self._tasks[key]:
                del self._tasks[key]

    def cancel(self, caller: str, request_id: RequestId) -> None:
        tasks = self._tasks.get((caller, request_id), [])
        if len(tasks) == 1:
            tasks[0].cancel()

    def __len__(self) -> int:
        """Return the number of calls under way."""
        return sum(map(len, self._tasks.values()))


RUNNING_CALLS: web.AppKey[RunningCalls] = web.AppKey("RUNNING_CALLS")
