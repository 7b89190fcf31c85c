"""The HTTP under litellm: it builds the request, this sends it, and where we know the stream we keep it.

httpx calls this transport in the task of the call, so a context variable says which exchange the request belongs to.
What litellm is given instead of a stream that we read ourselves is an empty one; the real one is on the exchange.
Whatever litellm does besides goes through its own clients. Import this late: httpx comes with litellm.

Turned down: httpx's own transport (several times the CPU per chunk), and litellm's aiohttp one (its sessions live in a
cache that is never closed in time; 200 keys kept 347 descriptors open).
"""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from urllib.parse import urlsplit

import aiohttp
import httpx

from service.adapters.models.errors import address_of, answered_with_page, is_page
from service.adapters.models.exchange import EXCHANGE, TURN_SECONDS, Exchange, Outgoing, protocol_of, wants_stream
from service.adapters.models.vector_answers import NO_VECTORS, read_vectors
from service.adapters.proxies import Proxies
from service.adapters.unreachable import reason_of
from service.domain.errors import Unavailable

MAX_ERROR_BYTES = 8 * 1024
"""litellm searches an error's text for secrets several times, on the event loop: 64 KiB took 0.3 s."""
MAX_VECTOR_BYTES = 32 << 20


class ProviderTransport(httpx.AsyncBaseTransport):
    """Holds nothing open: sessions belong to the models."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._proxies = Proxies(env)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        exchange = EXCHANGE.get()
        headers = {name: value for name, value in request.headers.items() if name not in _HOP_HEADERS}
        outgoing = Outgoing(request.method, str(request.url), headers, await request.aread())
        if exchange.session is None:
            exchange.rehearsed, exchange.taken = outgoing, protocol_of(request.url.path)
            return httpx.Response(200, headers={"content-type": "text/event-stream"}, content=b"")
        if not exchange.is_sent:
            await self.send(outgoing, exchange)
        exchange.is_sent = False
        body = await self._body(request.url.path, exchange)
        if exchange.response is not None:
            return self._answer(request, exchange, exchange.response, body)
        # A kind that litellm's client does not try again by itself, as it would a ConnectError.
        raise httpx.ReadError("no answer", request=request)

    async def send(self, outgoing: Outgoing, exchange: Exchange) -> None:
        """Send a request, and put the head of its answer on the exchange; or the failure, without a response."""
        assert exchange.session is not None
        place, exchange.url = urlsplit(outgoing.url), outgoing.url
        with _failing(exchange):
            async with asyncio.timeout(exchange.first_token_timeout_seconds):
                exchange.response = response = await exchange.session.request(
                    outgoing.method,
                    outgoing.url,
                    data=outgoing.body,
                    headers=outgoing.headers,
                    allow_redirects=False,  # a redirect would carry the key somewhere else
                    proxy=self._proxies.for_host(place.scheme, place.hostname or ""),
                )
            exchange.status, exchange.headers = response.status, response.headers
            if is_page(response.content_type, response.status):
                raise answered_with_page(address_of(outgoing.url), response.status)

    async def _body(self, path: str, exchange: Exchange) -> bytes | None:
        """Read what litellm is given of an answer; None for a stream."""
        response = exchange.response
        if response is None:
            return None
        with _failing(exchange):
            async with asyncio.timeout(exchange.first_token_timeout_seconds):
                if response.status >= 400:
                    return await response.content.read(MAX_ERROR_BYTES)
                if exchange.wants_vectors and response.status == 200 and path.endswith("/embeddings"):
                    return await _take_vectors(exchange, response)
        return None

    def _answer(
        self, request: httpx.Request, exchange: Exchange, response: aiohttp.ClientResponse, body: bytes | None
    ) -> httpx.Response:
        answer_headers = [
            (name, value) for name, value in response.headers.items() if name.lower() not in _BODY_HEADERS
        ]
        if body is not None:
            response.close()
            return httpx.Response(response.status, headers=answer_headers, content=body)
        if response.status == 200 and wants_stream(request.content) and not exchange.is_asked:
            exchange.taken = protocol_of(request.url.path)
        stream = httpx.ByteStream(b"") if exchange.taken is not None else _Body(response)
        return httpx.Response(response.status, headers=answer_headers, stream=stream)


@contextmanager
def _failing(exchange: Exchange) -> Iterator[None]:
    """Put a failure of the network on the exchange, which then has no response."""
    try:
        yield
        return
    except Unavailable as error:
        exchange.failure = error
    except TimeoutError:
        exchange.failure = Unavailable("the model's provider did not answer in time")
    except (aiohttp.ClientError, OSError) as error:
        exchange.failure = Unavailable(f"the model's provider cannot be reached: {reason_of(error)}")
    except ValueError as error:
        exchange.failure = Unavailable(f"the model's provider answers without vectors: {error}")
    exchange.close()
    exchange.response = None


async def _take_vectors(exchange: Exchange, response: aiohttp.ClientResponse) -> bytes:
    """Put the vectors on the exchange, and return an answer without them. Raise ValueError where there are none."""
    content = bytearray()
    async for data in response.content.iter_any():
        content += data
        if len(content) > MAX_VECTOR_BYTES:
            raise ValueError(f"it has more than {MAX_VECTOR_BYTES:,} bytes")
    exchange.vectors = await asyncio.to_thread(read_vectors, bytes(content))
    return NO_VECTORS


_HOP_HEADERS = frozenset({"host", "content-length", "connection", "accept-encoding", "transfer-encoding"})
_BODY_HEADERS = frozenset({"content-length", "content-encoding", "transfer-encoding", "connection"})


_PIECE_BYTES = 512
"""Bytes of a stream that litellm gets at once."""


class _Body(httpx.AsyncByteStream):
    """A stream for litellm to read."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for data in self._response.content.iter_any():
                began = time.perf_counter()
                for start in range(0, len(data), _PIECE_BYTES):
                    yield data[start : start + _PIECE_BYTES]  # litellm reads it, and takes about 1 ms for an event
                    if time.perf_counter() - began > TURN_SECONDS:
                        await asyncio.sleep(0)  # others have their turn
                        began = time.perf_counter()
        except (aiohttp.ClientError, OSError) as error:
            raise httpx.ReadError(type(error).__name__) from None

    async def aclose(self) -> None:
        self._response.close()
