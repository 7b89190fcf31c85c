"""Passes a request on to the instance that is home to the embedded code host, and its answer back, as streams.

A git request, an upload and the page of a pull request always need the repositories. For all others that is known once
they ask for one, before anything was done; their bodies are small, and were read as a whole.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import structlog
from aiohttp import web

from service.domain.access.internal_signature import SAFE_METHODS
from service.domain.errors import BodyBroken, BodyTooSlow, Unavailable
from service.ports.shared.instances import RENEW_SECONDS, Instances, Peer
from service.ports.shared.internal_http import InstanceUnreachable, InternalAnswer, InternalHttp, InternalRequest
from service.runtime.hosted_place import HostedPlace, noting_asked
from service.web.http.passing.head import METHODS, PASSED_PATH, Head, encoded, passed_fields
from service.web.http.passing.receiving import IS_PASSED
from service.web.http.problems import BODY_SECONDS, OUTCOME_UNKNOWN, OUTCOME_UNKNOWN_SENTENCE, REQUEST_ID, Handler
from service.web.http.routes import route_of

log = structlog.get_logger()

LONGEST_SECONDS = 4_000.0
"""For the answer to begin, and between two parts of it: longer than home takes for any request."""
RETRY_SECONDS = 5.0
LOOK_SECONDS = 0.25
LOOKS = round((2 * RENEW_SECONDS + 1) / LOOK_SECONDS)
"""For home to be seen by an instance that has just started: each of the two renews its lease, and the one reads it."""
KEPT_BY_ONE = "/operator/audit/verify"
"""The beginning of routes that show what runs in the memory of one instance: a check of the log."""
OF_ONE = "/operator/health/live"
"""A route whose page shows one instance, which its query names."""
UPLOADS = frozenset({"/v2/uploads", "/v2/projects/{projectId}/upload"})
"""Routes whose bodies are not read as a whole; those of pages are forms with a file."""


class HomeAway(Unavailable):
    """The instance that has the repositories of the embedded code host cannot be reached."""

    code = "home_away"

    def __init__(self) -> None:
        super().__init__(
            "The instance that is home to the embedded code host does not answer. Try again in some seconds.",
            retry_after_seconds=RETRY_SECONDS,
        )


class PassingOn:
    """``sleep``: between two looks whether home is there."""

    def __init__(
        self,
        instances: Instances,
        http: InternalHttp,
        place: HostedPlace,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._instances, self._http, self._place, self._sleep = instances, http, place, sleep
        self._has_waited = False
        """Home was there, or a request has waited for it as long as it may."""

    async def answer(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answer the request here, or have home answer it. Raises HomeAway."""
        if IS_PASSED in request or request.method not in METHODS:
            return await handler(request)
        route = route_of(request)
        if (keeper := self._keeper_of(request, route)) is not None:
            return await self._pass_on(request, request.content.iter_any(), keeper)
        if self._place.is_here:
            return await handler(request)
        if route.startswith("/hosted/") or route in UPLOADS or request.content_type == "multipart/form-data":
            return await self._pass_on(request, request.content.iter_any())
        with noting_asked() as asked:
            try:
                response = await handler(request)
                if not asked.for_repository or response.prepared:
                    return response
            except Exception:
                if not asked.for_repository:
                    raise
        return await self._pass_on(request, _whole(await _read(request)))

    async def _home(self) -> Peer:
        """Return home, which is waited for only until it was first seen. Raises HomeAway."""
        looks = 0
        while True:
            home = next((peer for peer in self._instances.others() if peer.is_home and peer.url), None)
            if home is not None:
                self._has_waited = True
                return home
            if self._has_waited or looks == LOOKS:
                self._has_waited = True
                raise HomeAway
            looks += 1
            await self._sleep(LOOK_SECONDS)

    def _keeper_of(self, request: web.Request, route: str) -> Peer | None:
        """Return the other instance whose memory has what the request asks for; None where any will do, or this one."""
        if route == OF_ONE:
            name = request.query.get("instance")
            return next((peer for peer in self._instances.others() if peer.url and peer.name == name), None)
        return self._keeper() if route.startswith(KEPT_BY_ONE) else None

    def _keeper(self) -> Peer | None:
        """Return the instance that answers for all, the same on each; None for this one.

        It is the leader, which stays the same while others begin and end; without one it is the first by name.
        """
        peers = [peer for peer in self._instances.others() if peer.url]
        if self._instances.leads() or not peers:
            return None
        first = min(peers, key=lambda peer: (not peer.leads, peer.name))
        return first if first.leads or first.name < self._instances.name else None

    async def _pass_on(
        self, request: web.Request, body: AsyncIterator[bytes], keeper: Peer | None = None
    ) -> web.StreamResponse:
        """Have home answer, or the given one."""
        home, sent = keeper or await self._home(), _Sent(encoded(Head.of(request, request[REQUEST_ID])), body)
        asked = InternalRequest(request.method, PASSED_PATH, body=sent.parts(), silent_seconds=LONGEST_SECONDS)
        answered: web.StreamResponse | None = None
        try:
            async with self._while_alive(home), self._http.send(home, asked) as answer:
                answered = web.StreamResponse(status=answer.status, headers=passed_fields(answer.headers))
                return await _answer(request, answered, answer)
        except (InstanceUnreachable, TimeoutError) as error:
            log.warning("a request was not passed on to its end", instance=home.name, reason=str(error) or "it ended")
            if answered is not None and answered.prepared:
                answered.force_close()
                if request.transport is not None:
                    request.transport.abort()
                return answered
            if sent.has_begun and request.method not in SAFE_METHODS:
                raise Unavailable(OUTCOME_UNKNOWN_SENTENCE, code=OUTCOME_UNKNOWN) from None
            if keeper is not None:
                raise InstanceUnreachable("Another instance does not answer. Try again in some seconds.") from None
            raise HomeAway from None

    @asynccontextmanager
    async def _while_alive(self, home: Peer) -> AsyncIterator[None]:
        """Raise TimeoutError once home has ended: a paused one keeps its connections."""
        async with asyncio.timeout(None) as limit:
            watching = asyncio.create_task(self._watch(home, limit))
            try:
                yield
            finally:
                watching.cancel()

    async def _watch(self, home: Peer, limit: asyncio.Timeout) -> None:
        while self._instances.find(home.name) is not None:
            await self._sleep(RENEW_SECONDS)
        limit.reschedule(asyncio.get_running_loop().time())


class _Sent:
    """A request's head and body, as they are sent."""

    def __init__(self, head: bytes, body: AsyncIterator[bytes]) -> None:
        self._head, self._body = head, body
        self.has_begun = False

    async def parts(self) -> AsyncIterator[bytes]:
        self.has_begun = True
        yield self._head
        async for part in self._body:
            yield part


async def _read(request: web.Request) -> bytes:
    """Return the body, which the handler may not have read yet. Raises BodyTooSlow, BodyBroken."""
    try:
        async with asyncio.timeout(request.app[BODY_SECONDS]):
            return await request.read()
    except TimeoutError:
        raise BodyTooSlow from None
    except web.RequestPayloadError:
        raise BodyBroken from None


async def _whole(body: bytes) -> AsyncIterator[bytes]:
    if body:
        yield body


async def _answer(request: web.Request, response: web.StreamResponse, answer: InternalAnswer) -> web.StreamResponse:
    await response.prepare(request)
    async for part in answer.parts():
        await response.write(part)
    await response.write_eof()
    return response
