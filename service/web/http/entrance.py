"""The one middleware of every request: its id, its connection's clocks, its span, its problems, its log line.

One, since each middleware of its own costs a short request what its answer's head costs.
"""

import random
import re
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from aiohttp import web

from service.ports.tracer import Tracer
from service.runtime.logs import RequestLine, log_request
from service.web.http.access.hosts import UNKNOWN_HOST, elsewhere, is_host_ours, is_page
from service.web.http.access.people import session_tokens
from service.web.http.answers.cors import is_preflight, preflight
from service.web.http.connections.connections import Connection
from service.web.http.problems import ACTOR, REQUEST_ID, X_REQUEST_ID, Handler, problem, problems
from service.web.http.routes import VISIT, Visit, route_of
from service.web.http.tracing import traced

if TYPE_CHECKING:
    from service.web.http.passing.sending import PassingOn

SANE_REQUEST_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/+=-]{0,127}")

Measure = Callable[[Visit, str, int, float], None]
"""Called when an answer has ended, with the method, the status (0 when it was cut off) and the seconds."""
Fresh = Callable[[], Awaitable[None]]
"""Waits until reads show what other instances have written."""
STATELESS = re.compile(r"/(?:healthz|readyz|metrics|internal|assets|docs|sdk)(?:/|$)|unknown$")
"""Routes whose answers do not come from the log."""
Recall = Callable[[str], Awaitable[None]]
"""Called with the cookie of a session, which another instance may have begun. Raises Unavailable."""


class Entrance:
    """The outermost middleware."""

    def __init__(
        self,
        tracer: Tracer | None = None,
        measure: Measure | None = None,
        fresh: Fresh | None = None,
        recall: Recall | None = None,
        passing_on: "PassingOn | None" = None,
    ) -> None:
        self._tracer = tracer if tracer is not None and tracer.is_on else None
        self._measure, self._fresh, self._recall, self._passing_on = measure, fresh, recall, passing_on

    @web.middleware
    async def enter(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answer a request. Its id is the caller's, if sane, else ours: in the answer, in logs, in event metadata."""
        visit = request[VISIT] = Visit(route_of(request), time.perf_counter())
        theirs = request.headers.get(X_REQUEST_ID)
        request_id = theirs if theirs and SANE_REQUEST_ID.fullmatch(theirs) else new_request_id()
        request[REQUEST_ID] = request_id
        if self._passing_on is not None:
            handler = partial(self._passing_on.answer, handler=handler)
        connection = request.protocol  # aiohttp's own, in a test
        if isinstance(connection, Connection):
            connection.begin()
        status = 0
        try:
            if self._fresh is not None and not STATELESS.match(visit.route):
                await self._fresh()
            if is_preflight(request):
                response: web.StreamResponse = preflight()
            elif is_page(request) and not is_host_ours(request):
                response = problem(request, 421, "unknown_host", UNKNOWN_HOST)
            elif not _is_signed_in(request) and (address := elsewhere(request)) is not None:
                response = web.Response(status=307, headers={"Location": address, "Cache-Control": "no-store"})
            else:
                if self._recall is not None and session_tokens(request):
                    handler = partial(_recalled, self._recall, handler)
                if self._tracer is None:
                    response = await problems(request, handler)
                else:
                    response = await traced(self._tracer, request, handler)
            status = response.status
            return response
        finally:
            if isinstance(connection, Connection):
                connection.end()
            method, route, seconds = request.method, visit.route, time.perf_counter() - visit.started
            if self._measure is not None:
                self._measure(visit, method, status, seconds)
            actor, milliseconds = request.get(ACTOR, ""), round(seconds * 1000, 1)
            log_request(RequestLine(method, route, status or "cut", milliseconds, request_id, actor, datetime.now(UTC)))


def _is_signed_in(request: web.Request) -> bool:
    """Return whether the browser keeps a session by the name that it has opened; the sign-in page says that it has
    ended.
    """
    return bool(session_tokens(request)) and request.path != "/sign-in"


async def _recalled(recall: Recall, handler: Handler, request: web.Request) -> web.StreamResponse:
    for token in session_tokens(request):
        await recall(token)
    return await handler(request)


def new_request_id() -> str:
    """96 random bits: they distinguish requests, and open nothing, so no system call is made for them."""
    return f"req_{_random.getrandbits(96):024x}"


_random = random.Random()  # noqa: S311  (as its docstring says)
