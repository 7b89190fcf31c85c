"""InternalHttp over aiohttp: connections are kept, and never go through a proxy."""

import secrets
import time
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager

import aiohttp
from aiohttp import hdrs
from yarl import URL

from service.adapters.outbound import PatientResolver
from service.adapters.unreachable import reason_of
from service.domain.access.internal_signature import NONCE, SAFE_METHODS, SIGNATURE, Frames, signed_headers
from service.ports.shared.instances import Peer
from service.ports.shared.internal_http import InstanceUnreachable, InternalRequest

CONNECT_SECONDS = 3.0
KEPT_SECONDS = 30.0
"""How long an idle connection is kept: less than ``server.idle_seconds``, after which the other end closes it."""
READ_BYTES = 256 * 1024
NONCE_BYTES = 16
MAX_FIELD_BYTES = 256 * 1024
"""Limit for a header of an answer. A redirect may hold the address that was asked for, encoded once more."""


class AiohttpInternalHttp:
    """Build it, and close it, within the event loop that it is used in."""

    def __init__(self, key: bytes, *, clock: Callable[[], float] = time.time) -> None:
        """``key``: what the instances share."""
        self._key, self._clock = key, clock
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, resolver=PatientResolver(), keepalive_timeout=KEPT_SECONDS),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"User-Agent": "Docsmith"},
            skip_auto_headers=(hdrs.ACCEPT_ENCODING, hdrs.CONTENT_TYPE),
            auto_decompress=False,
            trust_env=False,
            read_bufsize=READ_BYTES,
            max_field_size=MAX_FIELD_BYTES,
        )

    async def close(self) -> None:
        await self._session.close()

    @asynccontextmanager
    async def send(self, peer: Peer, request: InternalRequest) -> AsyncIterator["_Answer"]:
        given = request.body
        body = given if isinstance(given, bytes) else None
        own = {} if request.method in SAFE_METHODS else {NONCE: secrets.token_hex(NONCE_BYTES)}
        headers = signed_headers(
            self._key, peer.name, request.method, request.target, int(self._clock()), body, {**request.headers, **own}
        )
        sending = self._session.request(
            request.method,
            URL(peer.url.rstrip("/") + request.target, encoded=True),
            headers=headers,
            data=given or None if isinstance(given, bytes) else self._framed(given, headers[SIGNATURE]),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=request.silent_seconds),
            allow_redirects=False,
        )
        with _named(peer):
            response = await sending
        try:
            yield _Answer(peer, response)
        finally:
            response.close()  # an answer that was read to its end has given its connection back already

    async def _framed(self, body: AsyncIterable[bytes], signature: str) -> AsyncIterator[bytes]:
        frames = Frames(self._key, signature)
        async for part in body:
            for frame in frames.pack(part):
                yield frame
        yield frames.end()


class _Answer:
    def __init__(self, peer: Peer, response: aiohttp.ClientResponse) -> None:
        self._peer, self._response = peer, response

    @property
    def status(self) -> int:
        return self._response.status

    @property
    def headers(self) -> Mapping[str, str]:
        return self._response.headers

    async def parts(self) -> AsyncGenerator[bytes, None]:
        with _named(self._peer):
            async for part in self._response.content.iter_any():
                yield part

    async def read(self, most: int) -> bytes:
        body = bytearray()
        async for part in self.parts():
            body += part
            if len(body) > most:
                raise InstanceUnreachable(f"The answer of the instance {self._peer.name} is larger than {most} bytes.")
        return bytes(body)


@contextmanager
def _named(peer: Peer) -> Iterator[None]:
    """Raise InstanceUnreachable for a connection that fails."""
    try:
        yield
    except (aiohttp.ClientError, OSError, ValueError) as error:
        raise InstanceUnreachable(
            f"The instance {peer.name} cannot be reached at {peer.url}: {reason_of(error)}."
        ) from error
