"""Requests that the instances of a log send each other, at paths that begin with ``/internal/``.

A request without a genuine signature (``service.domain.access.internal_signature``) is answered as one for an address
where there is nothing. So is each on an instance that shares its log with no other. One that may change something is
answered once. Which were, is kept in the memory of this process: no other has the name for which they are signed.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Collection, Iterator

import structlog
from aiohttp import web
from msgspec import Struct

from service.domain.access.internal_signature import (
    BODY_DIGEST,
    SIGNATURE,
    STREAMED,
    WINDOW_SECONDS,
    BadFrame,
    FrameReader,
    digest_of,
    is_genuine,
    is_of_key,
    signed_part,
)
from service.domain.errors import BodyBroken, BodyTooSlow, Unavailable
from service.web.http.connections.connections import Connection
from service.web.http.problems import ACTOR, BODY_SECONDS, OUTCOME_UNKNOWN, OUTCOME_UNKNOWN_SENTENCE, Handler

log = structlog.get_logger()


class InternalAccess:
    """Opens the internal paths, once the key is known."""

    def __init__(self, name: str, *, clock: Callable[[], float] = time.time) -> None:
        """``name``: that of this instance."""
        self._name, self._clock = name, clock
        self.key: bytes | None = None
        """The secret that the instances share; None: nothing is open."""
        self._used: OrderedDict[str, float] = OrderedDict()
        """Signatures of requests that may be answered once only, until a time at which they are too old."""

    def admits(self, request: web.Request) -> bool:
        """Return whether another instance has sent the request.

        Raises Unavailable (``OUTCOME_UNKNOWN``): it was admitted before, and may be answered once only.
        """
        key, signature = self.key, request.headers.get(SIGNATURE, "")
        signed = signed_part(self._name, request.method, request.raw_path, request.headers)
        if key is None or signed is None:
            return False
        if is_genuine(key, signed, signature, self._clock()):
            if signed.is_for_one_use:
                self._use(signature)
            return True
        if is_of_key(key, signed, signature):
            behind = round(self._clock() - signed.at)
            log.warning("refused a request of another instance: the clocks differ, or it is old", seconds=behind)
        return False

    def _use(self, signature: str) -> None:
        now = self._clock()
        while self._used and next(iter(self._used.values())) < now:
            self._used.popitem(last=False)
        if signature in self._used:
            log.warning("refused a request of another instance: it was sent before")
            raise Unavailable(OUTCOME_UNKNOWN_SENTENCE, code=OUTCOME_UNKNOWN)
        self._used[signature] = now + 2 * WINDOW_SECONDS  # it may be of a clock that is ahead


INTERNAL_ACCESS: web.AppKey[InternalAccess] = web.AppKey("INTERNAL_ACCESS")
_BODY: web.RequestKey[bytes] = web.RequestKey("internal_body")


class _Route(Struct, frozen=True):
    path: str
    methods: Collection[str]
    handler: Handler

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Answer a genuine request. Raises HTTPNotFound for any other, whatever its method."""
        if not request.app[INTERNAL_ACCESS].admits(request):
            raise web.HTTPNotFound
        if request.method not in self.methods or not await _has_its_body(request):
            raise web.HTTPNotFound
        if isinstance(request.protocol, Connection):
            request.protocol.trust()
        request[ACTOR] = "instance"
        return await self.handler(request)


async def _has_its_body(request: web.Request) -> bool:
    """Return whether the body is the one that is signed; of one in frames, ``body_parts`` finds out."""
    digest = request.headers[BODY_DIGEST]
    if digest == STREAMED:
        return True
    try:
        async with asyncio.timeout(request.app[BODY_SECONDS]):
            request[_BODY] = await request.read()
    except TimeoutError:
        raise BodyTooSlow from None
    return digest_of(request[_BODY]) == digest


class InternalRoutes:
    """The internal paths of a module; add ``routes`` to the application."""

    def __init__(self) -> None:
        self.routes: list[web.RouteDef] = []

    def operation(self, path: str, *methods: str) -> Callable[[Handler], Handler]:
        """Have the decorated handler answer these methods at a path that begins with ``/internal/``; once for each."""

        def add(handler: Handler) -> Handler:
            self.routes.append(web.route("*", path, _Route(path, methods, handler).answer))
            return handler

        return add

    def __iter__(self) -> Iterator[web.RouteDef]:
        return iter(self.routes)


async def body_parts(request: web.Request) -> AsyncIterator[bytes]:
    """Yield the body of an internal request as it arrives, each part as it was sent. Raises BodyBroken."""
    if _BODY in request:
        yield request[_BODY]
        return
    key = request.app[INTERNAL_ACCESS].key
    assert key is not None
    reader = FrameReader(key, request.headers[SIGNATURE])
    try:
        async for received in request.content.iter_any():
            for part in reader.unpack(received):
                yield part
        reader.close()
    except (BadFrame, web.RequestPayloadError) as error:
        raise BodyBroken from error
