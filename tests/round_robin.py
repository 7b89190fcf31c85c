"""A plain round robin before several instances: each request to the next one, its bytes as they are.

    python -m tests.round_robin [--port N] [--retry] URL...

Each connection carries one request, to which the proxy adds ``Connection: close`` and the client's address; so no
client stays with one instance. An instance that is gone answers 502, as from a proxy without health checks. With
``--retry`` a request goes on to the next instance where one refused the connection, ended it without a byte, or
answered 503, as nginx does with ``proxy_next_upstream error http_503 non_idempotent``.
"""

import argparse
import asyncio
import re
from collections.abc import Sequence
from contextlib import suppress
from itertools import cycle
from urllib.parse import urlsplit

MAX_HEAD = 1 << 20
PIECE = 1 << 16
KEPT = 4 << 20
"""Bytes of a request that are kept to be sent to another instance."""
_DROPPED = re.compile(rb"(?im)^(?:connection|keep-alive|proxy-connection):[^\n]*\n")
_FORWARDED = re.compile(rb"(?im)^x-forwarded-for:[ \t]*([^\r\n]*)\r?\n")
BAD_GATEWAY = b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class RoundRobin:
    def __init__(self, urls: Sequence[str], *, retries: bool) -> None:
        self._urls, self._next, self._retries = urls, cycle(urls), retries
        self._serving = set[asyncio.Task[None]]()
        """Nothing else holds them once the client has closed its connection: one that waits would be collected."""

    def serve(self, client: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(client, writer))
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)

    async def _serve(self, client: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, TimeoutError):
            try:
                await self._pass_on(client, writer)
            finally:
                writer.close()

    async def _pass_on(self, client: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await client.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError as error:
            head = error.partial
        except asyncio.LimitOverrunError:
            head = await client.read(MAX_HEAD)
        if not head:
            return
        request = _Request(client, _added(head, writer.get_extra_info("peername")[0]))
        tries = len(self._urls) if self._retries else 1
        for number in range(tries):
            if await _answered(next(self._next), request, writer, is_last=number == tries - 1):
                return
        writer.write(BAD_GATEWAY)
        await writer.drain()


class _Request:
    """What a client has sent so far, as far as it fits, and what it still sends."""

    def __init__(self, client: asyncio.StreamReader, head: bytes) -> None:
        self._client = client
        self._sent: bytearray | None = bytearray(head)

    @property
    def is_kept(self) -> bool:
        return self._sent is not None

    async def send(self, to: asyncio.StreamWriter) -> None:
        """Until the client closes its side, which the other side then hears of."""
        if self._sent:
            to.write(bytes(self._sent))
            await to.drain()
        while piece := await self._client.read(PIECE):
            if self._sent is not None:
                self._sent += piece
                if len(self._sent) > KEPT:
                    self._sent = None
            to.write(piece)
            await to.drain()
        to.write_eof()


async def _answered(url: str, request: _Request, writer: asyncio.StreamWriter, *, is_last: bool) -> bool:
    """Pass the request to an instance and its answer back; return whether the client got a byte of it."""
    there = urlsplit(url)
    try:
        answer, to = await asyncio.open_connection(there.hostname, there.port, limit=MAX_HEAD)
    except OSError:
        return False
    sending = asyncio.create_task(request.send(to))
    begun = False
    try:
        while piece := await (answer.read(PIECE) if begun else _head(answer)):
            if not begun and not is_last and request.is_kept and piece[9:12] == b"503":
                return False
            begun = begun or piece[9:10] != b"1"  # an interim answer comes before another
            writer.write(piece)
            await writer.drain()
    except ConnectionError:
        if begun:
            writer.transport.abort()
    finally:
        sending.cancel()
        await asyncio.wait([sending])
        if not sending.cancelled():
            sending.exception()  # the client or the instance is gone, which ended the answer, too
        to.close()
    return begun or not request.is_kept


async def _head(answer: asyncio.StreamReader) -> bytes:
    """Return the head of an answer, which says that the connection ends with it."""
    try:
        head = await answer.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as error:
        return error.partial
    first, _, fields = head.partition(b"\r\n")
    if first[9:10] == b"1":
        return head
    return b"%s\r\nConnection: close\r\n%s" % (first, _DROPPED.sub(b"", fields))


def _added(head: bytes, peer: str) -> bytes:
    """Return the head of a request with the header fields of a proxy, its other bytes as they are."""
    first, end, fields = head.partition(b"\r\n")
    if not end or not head.endswith(b"\r\n\r\n"):
        return head
    fields = _DROPPED.sub(b"", fields)
    before = b"".join(one + b", " for one in _FORWARDED.findall(fields))
    fields = _FORWARDED.sub(b"", fields)
    return b"%s\r\nX-Forwarded-For: %s%s\r\nConnection: close\r\n%s" % (first, before, peer.encode(), fields)


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("urls", nargs="+")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--retry", action="store_true")
    options = parser.parse_args()
    robin = RoundRobin(options.urls, retries=options.retry)
    server = await asyncio.start_server(robin.serve, "127.0.0.1", options.port, limit=MAX_HEAD, backlog=2048)
    print(f"listening on http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)  # noqa: T201 - what starts it reads that
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
