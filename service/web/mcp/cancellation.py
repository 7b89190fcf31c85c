"""Calls that a later message can cancel.

Modern clients cancel a call by closing its connection, as do those without a key. Legacy ones send
``notifications/cancelled`` with the request's id and leave the connection open (2025-11-25, "Cancellation"). There is
no session to tell whose id it is: it is that of the same caller, by key, address and client. Where two calls fit, none
is cancelled. The notification may reach another instance than the call did. So each is asked how many calls fit there,
and the one that has the only one cancels it. One that does not answer is taken to have none.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import msgspec
import structlog
from aiohttp import web
from msgspec import Struct

from service.ports.shared.instances import Instances, Peer
from service.ports.shared.internal_http import InstanceUnreachable, InternalHttp, InternalRequest, ask_instance
from service.wire.mcp.requests import RequestId

log = structlog.get_logger()

T = TypeVar("T")

CALLS_PATH = "/internal/calls"
ANSWER_SECONDS = 2.0
"""For another instance to answer."""
MAX_BYTES = 100


class NamedCall(Struct, frozen=True):
    """A call as its client names it, and whether it is to be cancelled, or only looked for."""

    caller: str
    request_id: RequestId
    cancels: bool = False


class Cancelled(Exception):
    """The client has cancelled the call."""


class RunningCalls:
    """The calls of legacy clients that are under way."""

    def __init__(self, instances: Instances | None = None, http: InternalHttp | None = None) -> None:
        """``http``: None where there are no other instances."""
        self._instances, self._http = instances, http
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

    async def cancel(self, caller: str, request_id: RequestId) -> None:
        """Cancel a call, at whichever instance it is."""
        asked, http = NamedCall(caller, request_id), self._http
        peers = [] if self._instances is None else [peer for peer in self._instances.others() if peer.url]
        if http is None or not peers:
            self.find(NamedCall(caller, request_id, cancels=True))
            return
        here, elsewhere = self.find(asked), await asyncio.gather(*(_found(http, peer, asked) for peer in peers))
        if here + sum(elsewhere) != 1:
            return
        cancelled = NamedCall(caller, request_id, cancels=True)
        if here:
            self.find(cancelled)
        else:
            await _found(http, peers[elsewhere.index(1)], cancelled)

    def find(self, call: NamedCall) -> int:
        """Return how many calls that is here. Where it is only one, it is cancelled if that was asked for."""
        tasks = self._tasks.get((call.caller, call.request_id), [])
        if len(tasks) == 1 and call.cancels:
            tasks[0].cancel()
        return len(tasks)

    def __len__(self) -> int:
        """Return the number of calls under way."""
        return sum(map(len, self._tasks.values()))


async def _found(http: InternalHttp, peer: Peer, call: NamedCall) -> int:
    """Return how many calls that is at another instance, which cancels it if that is asked for."""
    asked = InternalRequest("POST", CALLS_PATH, body=msgspec.msgpack.encode(call))
    try:
        return await ask_instance(http, peer, asked, int, seconds=ANSWER_SECONDS, most=MAX_BYTES) or 0
    except InstanceUnreachable as error:
        log.info("calls are not known", instance=peer.name, reason=str(error))
        return 0


RUNNING_CALLS: web.AppKey[RunningCalls] = web.AppKey("RUNNING_CALLS")
