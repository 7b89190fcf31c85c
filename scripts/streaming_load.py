"""The tools of ``bench_streaming``: a provider that streams to a plan, rivals in between, and their readers.

Each chunk of the provider holds the moment at which it was sent (``time.perf_counter``, which all processes of one
machine share), so a reader knows how long it was under way. The provider and the readers are asyncio protocols
without a framework: they must cost less than what they measure.

    python scripts/streaming_load.py provider|bare|fastapi [PROVIDER_URL]

``bare`` is an aiohttp handler that passes the bytes on as they come, ``fastapi`` litellm behind sse-starlette.
"""

import asyncio
import json
import re
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

MODEL = "bench"
_MOMENT = re.compile(rb"@(\d+\.\d{6})")
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


class Plan:
    """How the provider answers from now on."""

    chunks = 10
    per_second = 50.0
    holds = False
    """Replies wait for its end before they go on."""
    hold_after = 1
    """Chunks."""
    under_way = 0


class _Provider(asyncio.Protocol):
    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._received = b""
        self._transport: asyncio.WriteTransport | None = None
        self._telling: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport)
        self._transport = transport

    def connection_lost(self, _error: Exception | None) -> None:
        if self._telling is not None:
            self._telling.cancel()

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, found, body = self._received.partition(b"\r\n\r\n")
        length = re.search(rb"(?i)content-length: *(\d+)", head)
        if not found or len(body) < int(length[1] if length else 0):
            return
        self._received = b""
        assert self._transport is not None
        if head.startswith(b"POST /plan"):
            for name, value in json.loads(body).items():
                setattr(self._plan, name, value)
        if not head.startswith(b"POST /v1/chat"):
            told = str(self._plan.under_way).encode()
            self._transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(told), told))
            return
        self._telling = asyncio.create_task(self._tell(self._transport))

    async def _tell(self, transport: asyncio.WriteTransport) -> None:
        plan, loop = self._plan, asyncio.get_running_loop()
        due, number = loop.time(), 0
        plan.under_way += 1
        try:
            transport.write(_HEAD)
            while number < plan.chunks:  # the plan as it is by now: pace and length may change meanwhile
                while plan.holds and number == plan.hold_after:
                    await asyncio.sleep(0.2)
                    due = loop.time()
                _write(transport, {"content": f" @{time.perf_counter():.6f}"}, None)
                number += 1
                due += 1 / plan.per_second
                await asyncio.sleep(due - loop.time())
            _write(transport, {}, "stop")
            transport.write(b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n")
        finally:
            plan.under_way -= 1


def _write(transport: asyncio.WriteTransport, delta: dict[str, str], finish_reason: str | None) -> None:
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    chunk = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": MODEL, "choices": [choice]}
    data = b"data: " + json.dumps(chunk, separators=(",", ":")).encode() + b"\n\n"
    transport.write(b"%x\r\n%s\r\n" % (len(data), data))


async def provide() -> None:
    plan = Plan()
    server = await asyncio.get_running_loop().create_server(lambda: _Provider(plan), "127.0.0.1", 0, backlog=4096)
    print(f"listening on http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


async def pass_on(provider: str) -> None:
    """The bare proxy, as aiohttp's documentation writes one."""
    import aiohttp
    from aiohttp import web

    async def handle(request: web.Request) -> web.StreamResponse:
        body = await request.read()
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        async with session.post(f"{provider}/v1/chat/completions", data=body) as answer:
            await response.prepare(request)
            async for piece in answer.content.iter_any():
                await response.write(piece)
        return response

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        app = web.Application()
        app.router.add_post("/v1/chat/completions", handle)
        runner = web.AppRunner(app, access_log=None, handler_cancellation=True)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        print(f"listening on http://127.0.0.1:{runner.addresses[0][1]}", flush=True)
        await asyncio.Event().wait()


def serve_fastapi(provider: str) -> None:
    """litellm's library behind FastAPI and sse-starlette, as their documentation writes it."""
    import socket

    import fastapi
    import litellm
    import uvicorn
    from sse_starlette.sse import EventSourceResponse

    app = fastapi.FastAPI()

    @app.post("/v1/chat/completions")
    async def reply(body: dict[str, Any]) -> Any:
        answer = await litellm.acompletion(
            model=f"openai/{MODEL}", api_base=f"{provider}/v1", api_key="none", messages=body["messages"], stream=True
        )

        async def events() -> Any:
            async for chunk in answer:
                yield {"data": chunk.model_dump_json()}

        return EventSourceResponse(events())

    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    listening.listen(4096)
    print(f"listening on http://127.0.0.1:{listening.getsockname()[1]}", flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[listening])


class Reader(asyncio.Protocol):
    """Reads one streamed answer and notes when its pieces came, in seconds of ``time.perf_counter``."""

    def __init__(self, request: bytes, *, search_step: bytes = b"") -> None:
        self._request, self._search_step = request, search_step
        self._rest = self._tail = b""
        self._transport: asyncio.WriteTransport | None = None
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.begun: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """The first chunk of the provider is here."""
        self.asked_at = self.first_at = self.search_at = self.latest_at = 0.0
        self.longest_silence = 0.0
        """Between two pieces of its text."""
        self.took: list[float] = []
        """From the provider to here, for each chunk."""
        self.status = b""

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self.asked_at = time.perf_counter()
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        now = time.perf_counter()
        self.status = self.status or data[:12]
        self._tail = (self._tail + data)[-7:]
        whole, _, self._rest = (self._rest + data).rpartition(b"\n")
        if not self.search_at and self._search_step and self._search_step in data:
            self.search_at = now
        found = _MOMENT.findall(whole)
        if found:
            if not self.first_at:
                self.first_at = self.latest_at = now
                self.begun.set_result(None)
            self.longest_silence = max(self.longest_silence, now - self.latest_at)
            self.latest_at = now
            self.took += [now - float(moment) for moment in found]
        if self._tail.endswith(b"\r\n0\r\n\r\n"):  # the last chunk
            assert self._transport is not None
            self._transport.close()

    def connection_lost(self, _error: Exception | None) -> None:
        for waiting in (self.ended, self.begun):
            if not waiting.done():
                waiting.set_result(None)


async def read(url: str, body: dict[str, Any], headers: dict[str, str], *, search_step: bytes = b"") -> Reader:
    """Ask; ``reader.ended`` is done when all has come."""
    place = urlsplit(url)
    data = json.dumps(body).encode()
    named = {"Host": place.netloc, "Content-Type": "application/json", "Content-Length": str(len(data)), **headers}
    head = f"POST {place.path} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in named.items()) + "\r\n"
    _, reader = await asyncio.get_running_loop().create_connection(
        lambda: Reader(head.encode() + data, search_step=search_step), place.hostname, place.port
    )
    return reader


def cpu_seconds(pid: int) -> float:
    """Processor seconds of a process and all that it has started, so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return (int(fields[11]) + int(fields[12])) / 100 + sum(cpu_seconds(int(child)) for child in children)


def peak_mb(pid: int) -> float:
    """The most memory that a process has had at once."""
    peak = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    return int(peak[1]) / 1024 if peak else 0.0


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["provider"]:
            asyncio.run(provide())
        case ["bare", provider]:
            asyncio.run(pass_on(provider))
        case ["fastapi", provider]:
            serve_fastapi(provider)
