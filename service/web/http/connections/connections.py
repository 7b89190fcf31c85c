"""Connections of an open network: how many there may be, how slow they may be, and the answer to what is not HTTP.

aiohttp answers what it cannot read in plain text, lets a connection take an hour for a request's head, and waits for
ever for a client that reads nothing. So each connection here has a clock for each of these, and reports every failure
as a problem.

- A head (request line and headers) that has begun to arrive has ``head_seconds``; a connection that sends nothing is
  closed after ``idle_seconds``, by aiohttp's own clock.
- A body has ``body_seconds`` (problems.py): the handler knows when it waits for one.
- A client that takes nothing of what is sent to it is cut off after ``write_seconds``.
- A request whose key is revoked has ``REVOKED_SECONDS`` to end.
"""

import asyncio
import errno
import logging
import os
import resource
import secrets
from collections.abc import Callable
from http import HTTPStatus
from socket import socket
from typing import cast

import structlog
from aiohttp import HttpVersion11, hdrs, web
from aiohttp.helpers import rfc822_formatted_time
from aiohttp.http_exceptions import LineTooLong
from msgspec import Struct

from service.domain.access.callers import address_of, counted_as, is_within
from service.domain.errors import OUT_OF_DESCRIPTORS
from service.ports.bounds import CountBound, ignore_bounds
from service.queries.access.keys import Revocation
from service.web.http.answers.security_headers import PLAIN_HEADERS
from service.web.http.problems import REQUEST_ID, encoded_problem, problem_response

log = structlog.get_logger()

LOCAL = ("127.0.0.0/8", "::1/128")
MAX_LINE_BYTES = 8190
MAX_FIELD_BYTES = 16_384
"""Limit for one header: it may hold a browser's cookies for a whole domain."""
MAX_FIELDS = 100
REVOKED_SECONDS = 0.5
"""How long a request goes on after its key was revoked: for its stream to end as its protocol ends one."""
BACKLOG, ACCEPTED_AT_ONCE = 1024, 128
PAUSE_SECONDS = 0.5
SPARE_DESCRIPTORS = 8
"""Files that can be opened before connections are accepted again."""
COMPLETE_HEAD: web.AppKey[Callable[[web.Request, web.StreamResponse], None]] = web.AppKey("COMPLETE_HEAD")
"""Adds the fields of every answer's head to that of a whole one; a signal of the application does so for the others."""
WITHOUT_BODY = frozenset({204, 205, 304})
"""Statuses of answers without a body."""
LINGERING_SECONDS = 2.0
"""How long a refused body is still read, so that the client gets to see the refusal."""


class ConnectionLimits(Struct, frozen=True):
    """See the settings of ``[server]``."""

    in_all: int = 4096
    per_address: int = 100
    head_seconds: float = 15
    idle_seconds: float = 75
    write_seconds: float = 60
    unlimited: tuple[str, ...] = LOCAL
    """Networks from which one address may have any number: trusted proxies, and this machine."""


class ConnectionLimiter:
    """Counts the connections there are."""

    def __init__(self, limits: ConnectionLimits, count_bound: CountBound = ignore_bounds) -> None:
        self.limits = limits
        self.count_bound = count_bound
        self.is_draining = False
        """Each connection is closed after its next answer: by then a proxy has other instances to connect to."""
        self.open = 0
        self._by_address: dict[str, int] = {}

    def enter(self, peer: str) -> str | None:
        """Whom a connection is counted as until ``leave``; None when there are too many."""
        address = address_of(peer)
        caller = "" if address is None or is_within(address, self.limits.unlimited) else counted_as(address)
        here, most = self._by_address.get(caller, 0), self.limits.per_address
        if self.open >= self.limits.in_all or (caller and most and here >= most):
            self.count_bound("connections")
            return None
        self.open += 1
        self._by_address[caller] = here + 1
        return caller

    def trust(self, caller: str) -> str:
        """Count a connection no longer as one of its address; return whom it is counted as."""
        if caller:
            self._by_address[""] = self._by_address.get("", 0) + 1
            self._drop(caller)
        return ""

    def leave(self, caller: str) -> None:
        self.open -= 1
        self._drop(caller)

    def _drop(self, caller: str) -> None:
        self._by_address[caller] -= 1
        if not self._by_address[caller]:
            del self._by_address[caller]


class Connection(web.RequestHandler):
    """One connection, with its clocks."""

    __slots__ = (
        "_busy",
        "_caller",
        "_clock",
        "_head_since",
        "_limiter",
        "_revocation",
        "_revoked_clock",
        "_write_clock"
    )  # fmt: skip

    def __init__(self, server: web.Server, connection_limiter: ConnectionLimiter, *, logger: logging.Logger) -> None:
        limits = connection_limiter.limits
        super().__init__(
            server,
            loop=asyncio.get_running_loop(),
            keepalive_timeout=limits.idle_seconds,
            access_log=cast("logging.Logger", None),  # as its own runner does
            logger=logger,
            max_line_size=MAX_LINE_BYTES,
            max_field_size=MAX_FIELD_BYTES,
            max_headers=MAX_FIELDS,
            lingering_time=LINGERING_SECONDS,
            auto_decompress=False,  # read_bytes and git_http unpack bodies, off the event loop
        )
        self._limiter = connection_limiter
        self._caller: str | None = None
        self._busy = False
        self._head_since: float | None = None
        self._clock: asyncio.TimerHandle | None = None
        self._write_clock: asyncio.TimerHandle | None = None
        self._revocation: Revocation | None = None
        self._revoked_clock: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        peer = transport.get_extra_info("peername")
        self._caller = self._limiter.enter(str(peer[0]) if isinstance(peer, tuple) and peer else "")
        if self._caller is None:
            there = cast("asyncio.Transport", transport)
            there.write(_too_many())
            there.close()
        else:
            self._look_at_clock()
            super().connection_made(transport)

    def connection_lost(self, exc: BaseException | None) -> None:
        if self._caller is not None:
            self._limiter.leave(self._caller)
            self._caller = None
            self.end()
            for clock in (self._clock, self._write_clock):
                if clock is not None:
                    clock.cancel()
            super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._caller is None:
            return
        if not self._busy and self._head_since is None:
            self._head_since = self._loop.time()
        super().data_received(data)

    def _look_at_clock(self) -> None:
        """Now and then, since a clock set and stopped for each request costs more than the request's parsing."""
        seconds = self._limiter.limits.head_seconds
        if self._head_since is not None and self._loop.time() - self._head_since >= seconds:
            self._cut()
        self._clock = self._loop.call_later(seconds / 4, self._look_at_clock)

    def begin(self) -> None:
        """A request has arrived, and is being answered."""
        self._busy, self._head_since = True, None

    def end(self) -> None:
        self._busy = False
        if self._revocation is not None:
            self._revocation.unwatch(self._on_revoked)
            self._revocation = None
        if self._revoked_clock is not None:
            self._revoked_clock.cancel()
            self._revoked_clock = None

    def trust(self) -> None:
        """It is of another instance, which may have any number."""
        if self._caller:
            self._caller = self._limiter.trust(self._caller)

    def end_with(self, revocation: Revocation) -> None:
        """Cut the request under way if it goes on for ``REVOKED_SECONDS`` after its key was revoked."""
        self._revocation = revocation
        revocation.watch(self._on_revoked)

    def _on_revoked(self) -> None:
        self._revoked_clock = self._loop.call_later(REVOKED_SECONDS, self._cut)

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._write_clock is None:
            self._write_clock = self._loop.call_later(self._limiter.limits.write_seconds, self._cut)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._write_clock is not None:
            self._write_clock.cancel()
            self._write_clock = None

    def _cut(self) -> None:
        if self.transport is not None:
            self.transport.abort()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,  # noqa: ARG002  (quotes what was sent)
    ) -> web.StreamResponse:
        """The answer to what is no HTTP, or to a failure outside of every handler; the connection ends with it."""
        self.log_exception("request not read", exc_info=exc)
        if request.writer.output_size > 0:
            raise ConnectionError("the answer has begun")
        if isinstance(exc, LineTooLong):
            status = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
        elif isinstance(exc, UnicodeEncodeError) and "Expect" in request.headers:
            status = HTTPStatus.EXPECTATION_FAILED  # aiohttp quotes what it refuses, and cannot when it is no text
        response = problem_response(f"req_{secrets.token_hex(12)}", status)
        response.force_close()
        return response

    async def finish_response(
        self, request: web.BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        """Errors that aiohttp answers before any of our code is asked become problems, too."""
        if isinstance(resp, web.HTTPException) and resp.status >= 400:
            resp = problem_response(request.get(REQUEST_ID) or f"req_{secrets.token_hex(12)}", resp.status)
        if self._limiter.is_draining or request.content.exception() is not None:
            resp.force_close()  # where a body that cannot be read ends, the next request does not begin
        if self._upgraded or not _is_short(request, resp):
            return await super().finish_response(request, resp, start_time)
        request._finish()
        try:
            await _send(request, cast("web.Response", resp))
        except ConnectionError:
            return resp, True
        return resp, False


def _is_short(request: web.BaseRequest, response: web.StreamResponse) -> bool:
    """Return whether an answer is one like nearly all: a status and a body for a client that goes on asking."""
    return (
        type(response) is web.Response
        and type(response.body) is bytes
        and response.status >= 200
        and response.status not in WITHOUT_BODY
        and request.method in ("GET", "POST")
        and request.version == HttpVersion11
        and request.keep_alive
        and response.keep_alive is None
        and not (response.prepared or response.chunked or response.compression or response._cookies)
    )


async def _send(request: web.BaseRequest, response: web.Response) -> None:
    """Send a short answer, as aiohttp would in nine more calls, of which each asks for what ``_is_short`` has seen."""
    headers, body, writer = response.headers, cast("bytes", response.body), request.writer
    headers.setdefault(hdrs.CONTENT_LENGTH, str(len(body)))
    headers.setdefault(hdrs.CONTENT_TYPE, "application/octet-stream")
    headers.setdefault(hdrs.DATE, rfc822_formatted_time())
    if isinstance(request, web.Request) and request._match_info is not None:
        request.app[COMPLETE_HEAD](request, response)
    await writer.write_headers(f"HTTP/1.1 {response.status} {response.reason}", headers)
    response._keep_alive = True
    await writer.write_eof(body)
    response._eof_sent = True


def _too_many() -> bytes:
    body = encoded_problem(
        503, "too_many_connections", "There are too many connections; try again.", f"req_{secrets.token_hex(12)}"
    )
    headers = {
        **PLAIN_HEADERS,
        "Content-Type": "application/problem+json",
        "Content-Length": str(len(body)),
        "Cache-Control": "no-store",
        "Retry-After": "5",
        "Connection": "close",
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 503 Service Unavailable\r\n{lines}\r\n".encode() + body


class Acceptor:
    """Takes connections from a listening socket, and pauses while the process may open no more files.

    asyncio's own acceptor logs a traceback for each connection that waits, each second: 177 MB were seen.
    """

    def __init__(self, bound: socket, factory: Callable[[], Connection], count_bound: CountBound) -> None:
        self._loop = asyncio.get_running_loop()
        self._socket, self._factory, self._count_bound = bound, factory, count_bound
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_closed = False
        bound.setblocking(False)
        bound.listen(BACKLOG)
        self._loop.add_reader(bound.fileno(), self._accept)

    def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._loop.remove_reader(self._socket.fileno())
            self._socket.close()

    def _accept(self) -> None:
        for _ in range(ACCEPTED_AT_ONCE):
            try:
                taken, _address = self._socket.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in (*OUT_OF_DESCRIPTORS, errno.ENOBUFS, errno.ENOMEM):
                    raise
                self._pause(error)
                return
            taken.setblocking(False)
            task = self._loop.create_task(self._serve(taken))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _serve(self, taken: socket) -> None:
        try:
            await self._loop.connect_accepted_socket(self._factory, taken)
        except OSError:  # the client has left already
            taken.close()

    def _pause(self, error: OSError) -> None:
        self._count_bound("descriptors")
        self._loop.remove_reader(self._socket.fileno())
        log.warning("no connection is accepted until files are closed", reason=error.strerror)
        self._loop.call_later(PAUSE_SECONDS, self._resume)

    def _resume(self) -> None:
        if self._is_closed:
            return
        if free_descriptors() < SPARE_DESCRIPTORS:  # else it would be one connection, and the next pause
            self._loop.call_later(PAUSE_SECONDS, self._resume)
            return
        log.info("connections are accepted again")
        self._loop.add_reader(self._socket.fileno(), self._accept)


def free_descriptors() -> int:
    """Return how many more files this process may open, as far as the system reports it."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        return soft - len(os.listdir("/dev/fd"))  # noqa: PTH208  (a link to a folder without a file for each)
    except FileNotFoundError:
        return SPARE_DESCRIPTORS  # the system does not report it
    except OSError:
        return 0


async def listen(
    server: web.Server, bound: socket, connection_limiter: ConnectionLimiter, logger: logging.Logger
) -> Acceptor:
    """Take connections from a bound socket; to stop, close what is returned."""
    return Acceptor(
        bound, lambda: Connection(server, connection_limiter, logger=logger), connection_limiter.count_bound
    )
