"""A small proxy that does what the shipped Caddyfile has Caddy do, and counts it: health checks, and repeating what is
safe to repeat. A request goes to the instance with the fewest under way.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

import aiohttp
from aiohttp import web

SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
HEALTH_SECONDS = 0.5
TRY_SECONDS = 15.0
TRY_INTERVAL = 0.2
FAIL_SECONDS = 5.0
"""How long an instance that could not be reached gets no requests."""
HOP_BY_HOP = frozenset({"connection", "keep-alive", "transfer-encoding", "te", "trailer", "upgrade", "content-length"})
LONGEST = aiohttp.ClientTimeout(total=None, sock_connect=2)


@dataclass
class Upstream:
    url: Callable[[], str]
    """Where it listens now: a restart may take another port."""
    is_healthy: bool = False
    failed_until: float = 0.0
    requests: int = 0
    """Under way, event streams included, which are as long as what they tell of."""
    short_requests: int = 0
    """Those that are no event streams."""


class Proxy:
    def __init__(self, urls: Sequence[Callable[[], str]]) -> None:
        self.upstreams = [Upstream(url) for url in urls]
        self.counts: Counter[str] = Counter()
        """``passed``; ``moved``: reached no instance at first; ``repeated``: safe, and the answer had not begun;
        ``left``: the client had gone before the answer's end; ``refused`` and ``cut``: a client felt it.
        """
        self.changed = asyncio.Condition()
        self.url = ""

    async def until(self, upstream: Upstream, *, is_healthy: bool) -> None:
        async with self.changed:
            await self.changed.wait_for(lambda: upstream.is_healthy is is_healthy)

    async def until_idle(self, upstream: Upstream) -> None:
        """Wait until an instance answers nothing but event streams."""
        async with self.changed:
            await self.changed.wait_for(lambda: not upstream.short_requests)

    async def check_health(self) -> None:
        """Until cancelled."""
        while True:
            await asyncio.gather(*(self._check(one) for one in self.upstreams))
            await asyncio.sleep(HEALTH_SECONDS)

    async def _check(self, upstream: Upstream) -> None:
        healthy = False
        with suppress(aiohttp.ClientError, TimeoutError):
            timeout = aiohttp.ClientTimeout(total=5)
            async with self._http.get(f"{upstream.url()}/readyz/requests", timeout=timeout) as answer:
                healthy = answer.status == 200
        if healthy:
            upstream.failed_until = 0.0
        if healthy is not upstream.is_healthy:
            async with self.changed:
                upstream.is_healthy = healthy
                self.changed.notify_all()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        loop = asyncio.get_running_loop()
        until = loop.time() + TRY_SECONDS
        while loop.time() < until:
            upstream = self._choose(loop.time())
            if upstream is None:
                await asyncio.sleep(TRY_INTERVAL)
                continue
            response, is_short = web.StreamResponse(), not request.path.endswith("/events")
            upstream.requests += 1
            upstream.short_requests += is_short
            try:
                await self._pass_on(request, body, upstream, response)
            except aiohttp.ClientConnectorError:
                upstream.failed_until = loop.time() + FAIL_SECONDS
                self.counts["moved"] += 1
            except (aiohttp.ClientError, TimeoutError) as error:
                if response.prepared:
                    self.counts["left" if _has_left(request) else "cut"] += 1
                    raise ConnectionResetError from error
                if request.method not in SAFE:
                    break
                self.counts["repeated"] += 1
            else:
                self.counts["passed"] += 1
                return response
            finally:
                upstream.requests -= 1
                upstream.short_requests -= is_short
                async with self.changed:
                    self.changed.notify_all()
        self.counts["refused"] += 1
        return web.Response(status=502)

    def _choose(self, now: float) -> Upstream | None:
        here = [one for one in self.upstreams if one.is_healthy and one.failed_until <= now]
        return min(here, key=lambda one: one.requests) if here else None

    async def _pass_on(
        self, request: web.Request, body: bytes, upstream: Upstream, response: web.StreamResponse
    ) -> None:
        headers = [(name, value) for name, value in request.headers.items() if name.lower() not in HOP_BY_HOP]
        headers.append(("X-Forwarded-For", request.remote or ""))
        async with self._http.request(
            request.method, upstream.url() + request.path_qs, data=body or None, headers=headers,
            allow_redirects=False, timeout=LONGEST,
        ) as answer:  # fmt: skip
            response.set_status(answer.status, answer.reason)
            for name, value in answer.headers.items():
                if name.lower() not in HOP_BY_HOP:
                    response.headers.add(name, value)
            await response.prepare(request)
            async for piece in answer.content.iter_any():
                await response.write(piece)
            await response.write_eof()

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=60)
        async with aiohttp.ClientSession(connector=connector, auto_decompress=False) as self._http:
            app = web.Application(client_max_size=512 << 20)
            app.router.add_route("*", "/{path:.*}", self.handle)
            runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=1)
            await runner.setup()
            checking = asyncio.create_task(self.check_health())
            try:
                site = web.TCPSite(runner, "127.0.0.1", 0)
                await site.start()
                self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
                for one in self.upstreams:
                    await self.until(one, is_healthy=True)
                yield
            finally:
                checking.cancel()
                await asyncio.wait([checking])
                await runner.cleanup()


def _has_left(request: web.Request) -> bool:
    """Return whether the client has closed its connection, as one does that has read all it wanted."""
    return request.transport is None or request.transport.is_closing()
