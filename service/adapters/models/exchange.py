"""One HTTP exchange with a model's provider, as both sides of litellm see it."""

import asyncio
import re
import ssl
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import Literal

import aiohttp
from msgspec import Struct

from service.domain.errors import Unavailable

READ_BYTES = 64 * 1024
"""aiohttp stops reading from a socket when twice this much is waiting: a reply without a reader costs no memory."""

TURN_SECONDS = 0.002
"""Time for which a stream is read in one turn of the event loop, to the next pause."""

Protocol = Literal["chat_completions", "messages", "responses"]


def protocol_of(path: str) -> Protocol | None:
    """Decide by the address alone: a model's name does not show it, since litellm uses other protocols for some of a
    provider's.
    """
    return next((protocol for end, protocol in _BY_PATH.items() if path.endswith(end)), None)


_BY_PATH: Mapping[str, Protocol] = {
    "/chat/completions": "chat_completions",
    "/messages": "messages",
    "/responses": "responses",
}


_WANTS_STREAM = re.compile(rb'"stream": ?true')


def wants_stream(body: bytes) -> bool:
    """Return whether a request asks for a stream. Its answer may be one document all the same, and is read here."""
    return _WANTS_STREAM.search(body) is not None


class Outgoing(Struct, frozen=True):
    """A request as it is sent to a provider, without the headers that belong to one connection."""

    method: str
    url: str
    headers: dict[str, str]
    body: bytes


class Exchange:
    """The settings that the model's adapter passes to an exchange, and the outcome of the exchange."""

    def __init__(self, session: aiohttp.ClientSession | None, *, first_token_timeout_seconds: float) -> None:
        self.session = session
        """None: a rehearsal, which is answered with nothing and without network."""
        self.first_token_timeout_seconds = first_token_timeout_seconds
        self.rehearsed: Outgoing | None = None
        """The request that a rehearsal would have sent."""
        self.is_sent = False
        """Whether the request has been sent already; litellm then gets its answer to read, and sends nothing."""
        self.response: aiohttp.ClientResponse | None = None
        self.taken: Protocol | None = None
        """The protocol of the stream, if it is ours to read."""
        self.is_asked = False
        """litellm has given its reading of the answer back: of a request made after that, the stream is litellm's."""
        self.wants_vectors = False
        """Vectors are read here, and litellm gets an answer without them: it holds the event loop up for half a
        second to read 100,000 numbers.
        """
        self.vectors: Sequence[Sequence[float]] | None = None
        self.url = ""
        """The address that was asked."""
        self.status = 0
        self.headers: Mapping[str, str] = {}
        self.failure: Unavailable | None = None
        """Why there was no answer at all."""

    def close(self) -> None:
        """End the provider's work: an answer not read to its end takes its connection along."""
        if self.response is not None:
            self.response.close()


EXCHANGE: ContextVar[Exchange] = ContextVar("EXCHANGE")


def open_session(*, connect_timeout_seconds: float, certificates: ssl.SSLContext | bool) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, ssl=certificates, keepalive_timeout=30),
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=connect_timeout_seconds),
        read_bufsize=READ_BYTES,
        skip_auto_headers=("User-Agent", "Accept"),  # litellm's are those of the provider's client
    )


class Silence:
    """Ends a read of a stream that has been silent for too long, with a TimeoutError.

    One clock for all reads, which is looked at when it rings: one that is set and stopped for each piece of a stream
    costs nearly as much as the piece.
    """

    def __init__(self, content: aiohttp.StreamReader) -> None:
        self._content = content
        self._loop = asyncio.get_running_loop()
        self._until: float | None = None
        self._clock: asyncio.TimerHandle | None = None

    def begin(self, seconds: float) -> None:
        """A read begins that may take so long."""
        self._until = self._loop.time() + seconds
        if self._clock is None or self._clock.when() > self._until:
            self.close()
            self._clock = self._loop.call_at(self._until, self._look)

    def end(self) -> None:
        """It has ended: time that passes until the next one is not the stream's."""
        self._until = None

    def close(self) -> None:
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None

    def _look(self) -> None:
        self._clock = None
        if self._until is None:
            return
        if self._loop.time() < self._until:
            self._clock = self._loop.call_at(self._until, self._look)
        else:
            self._content.set_exception(TimeoutError())
