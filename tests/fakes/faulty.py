"""A proxy before a server, for faults: at one request, or at all while the server is away."""

from collections.abc import Callable
from typing import Literal

import aiohttp
from aiohttp import web

Fault = Literal["refused", "500", "503", "dropped", "garbage"]
FAULTS: tuple[Fault, ...] = ("refused", "500", "503", "dropped", "garbage")
"""A connection that is refused; a status without work done; an answer that is lost, or replaced, after the work."""

GARBAGE = b"<!doctype html><title>Sign in</title>\n" + bytes(range(256))
_NOT_PASSED_ON = {"host", "connection", "content-length", "content-encoding", "transfer-encoding", "keep-alive"}


class FaultyProxy:
    """Passes requests on, each over a connection of its own, so that every one can be refused."""

    def __init__(self, upstream: Callable[[], str]) -> None:
        self._upstream = upstream
        self.requests: list[str] = []
        self._fault: Fault | None = None
        self._at = -1
        self._is_away: Callable[[], bool] = lambda: False
        self._runner: web.AppRunner | None = None
        self._site: web.TCPSite | None = None
        self._port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    async def fail(self, fault: Fault, at: int) -> None:
        """Apply the fault to the request of this number, counted from 0 from now on."""
        self.requests.clear()
        self._fault, self._at = fault, at
        if fault == "refused" and at == 0:
            await self._close()

    def be_away(self, is_away: Callable[[], bool]) -> None:
        """Answer 503 to all requests for as long as ``is_away`` says so."""
        self._is_away = is_away

    async def reopen(self) -> None:
        """Listen again after a refused connection."""
        if self._site is None:
            assert self._runner is not None
            self._site = web.TCPSite(self._runner, "127.0.0.1", self._port, reuse_address=True)
            await self._site.start()

    async def _close(self) -> None:
        assert self._site is not None
        await self._site.stop()
        self._site = None

    async def __aenter__(self) -> "FaultyProxy":
        app = web.Application(client_max_size=100_000_000)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0)
        await self._runner.setup()
        await self.reopen()
        self._port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._runner is not None
        await self._runner.cleanup()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        number = len(self.requests)
        self.requests.append(f"{request.method} {request.path}")
        fault = self._fault if number == self._at else None
        if self._is_away() or fault in ("500", "503"):
            return web.Response(status=int(fault or 503), headers={"Connection": "close"})
        if self._fault == "refused" and number + 1 == self._at:
            await self._close()
        status, headers, body = await self._passed_on(request)
        if fault == "dropped":
            assert request.transport is not None
            request.transport.abort()
            return web.Response()
        if fault == "garbage":
            return web.Response(body=GARBAGE, headers={"Content-Type": "text/html", "Connection": "close"})
        return web.Response(status=status, headers={**headers, "Connection": "close"}, body=body)

    async def _passed_on(self, request: web.Request) -> tuple[int, dict[str, str], bytes]:
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _NOT_PASSED_ON}
        async with (
            aiohttp.ClientSession(auto_decompress=False) as session,
            session.request(
                request.method, self._upstream() + request.path_qs, headers=headers, data=await request.read(),
                allow_redirects=False,
            ) as response,
        ):  # fmt: skip
            kept = {name: value for name, value in response.headers.items() if name.lower() not in _NOT_PASSED_ON}
            return response.status, kept, await response.read()
