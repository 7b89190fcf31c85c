"""Sends the requests of ``code_host_protocol`` and receives the answers; one session for all code hosts.

- A redirect is an answer, never followed: it would carry the token to wherever it points.
- Tried again with growing pauses: what cannot have reached the host, what may be done twice (all but POST) and, for
  every request, what the host refused because of its rate. The time to wait is in ``Retry-After`` (RFC 9110, section
  10.2.3), from GitHub also in ``X-RateLimit-Reset`` (seconds since 1970) and from GitLab in ``RateLimit-Reset``;
  GitHub's secondary limits are a 403 that may hold only words, and mean a minute.
- Where it goes is the operator's own word, a setting of the project, which may well be in a private network. Where
  people in a browser, or callers of the API, named it, the flow is ``guarded``: only addresses of the public internet
  are connected to (``outbound``), and without the environment's proxies, which would connect where we may not.
- Nothing of the user's is read: no netrc (it would replace the token), no cookies. Proxies are the environment's.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar
from urllib.parse import urlsplit

import aiohttp
import structlog
from yarl import URL

from service.adapters.code_hosts.protocol import ApiAnswer, ApiRequest, NoAnswer, Steps
from service.adapters.outbound import guarded_connector, is_refusal
from service.adapters.proxies import Proxies
from service.adapters.retry_after import retry_after_seconds
from service.adapters.unreachable import reason_of
from service.domain.errors import Forbidden, RateLimited, Unavailable, is_temporary
from service.ports.code_host import CODE_HOST_UNAVAILABLE

log = structlog.get_logger()

T = TypeVar("T")

TRIES = 5
MAX_WAIT_SECONDS = 20.0
"""Limit for the waits of one request that a host asks for. One that asks for more is reported as rate limited: a job
comes back then, and holds no slot meanwhile.
"""
MAX_PAUSE_SECONDS = 8.0
UNTOLD_WAIT_SECONDS = 60.0
"""When a host limits the rate without saying for how long; GitHub asks for at least a minute then."""
MAX_ANSWER_BYTES = 4 * 1024 * 1024
TIMEOUT = aiohttp.ClientTimeout(total=60, connect=15)
CONNECTIONS_PER_HOST = 8

_NEVER_SENT = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)


class ApiClient:
    """Close it. ``sleep`` and ``jitter`` (0 to 1) are for tests."""

    def __init__(
        self,
        env: Mapping[str, str],
        *,
        allow_private: bool = False,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        jitter: Callable[[], float] = random.random,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._proxies, self._allow_private = Proxies(env), allow_private
        self._sleep, self._jitter, self._now = sleep, jitter, now
        self._sessions: dict[bool, aiohttp.ClientSession] = {}
        """By whether they are guarded."""

    async def close(self) -> None:
        sessions = list(self._sessions.values())
        self._sessions.clear()
        for session in sessions:
            await session.close()

    async def run(self, steps: Steps[T], *, guarded: bool = False) -> T:
        """Send what the flow asks for until it has its result; its errors are the caller's. ``guarded``: only to
        addresses of the public internet, unless the settings allow others; else raises Forbidden.
        """
        guarded = guarded and not self._allow_private
        try:
            request = next(steps)
            while True:
                try:
                    answer = await self.send(request, guarded=guarded)
                except NoAnswer as error:
                    request = steps.throw(error)
                else:
                    request = steps.send(answer)
        except StopIteration as end:
            result: T = end.value
            return result
        finally:
            steps.close()

    async def send(self, request: ApiRequest, *, guarded: bool = False) -> ApiAnswer:
        """The host's answer, of whatever status but those of a limited rate.

        Raises:
            RateLimited: it asks us to wait for longer than we do.
            NoAnswer: none came to what may not be done twice.
            Unavailable: it cannot be reached.
        """
        if request.after_seconds:
            await self._sleep(request.after_seconds)
        waited, repeatable = 0.0, request.method != "POST"
        for attempt in range(1, TRIES + 1):
            seconds = self._jitter() * min(MAX_PAUSE_SECONDS, 2.0**attempt)  # full jitter
            try:
                answer = await self._once(request, guarded=guarded)
            except _NEVER_SENT as error:
                if is_refusal(error):
                    raise _not_allowed(request) from None
                if attempt == TRIES or isinstance(error, aiohttp.ClientSSLError):
                    raise _unreachable(request, error) from None
                log.info("code host not reached, trying again", host=_host(request), kind=type(error).__name__)
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                if not repeatable:
                    raise NoAnswer(f"{_host(request)} broke off ({type(error).__name__}).") from None
                if attempt == TRIES:
                    raise _unreachable(request, error) from None
                log.info("code host broke off, trying again", host=_host(request), kind=type(error).__name__)
            else:
                asked = asked_to_wait(answer, self._now())
                if answer.status >= 500 and not repeatable:
                    sentence = f"{_host(request)} has a problem of its own (status {answer.status})."
                    raise NoAnswer(sentence, retry_after_seconds=asked)
                if asked is not None:
                    if attempt == TRIES or waited + asked > MAX_WAIT_SECONDS:
                        raise RateLimited(
                            f"{_host(request)} limits the rate of requests and asks to wait {asked:.0f} seconds; "
                            "try again then.",
                            retry_after_seconds=asked,
                        )
                    seconds += asked
                elif answer.status < 500 or attempt == TRIES:
                    return answer
                log.info("code host asks to come back", host=_host(request), status=answer.status)
            waited += seconds
            await self._sleep(seconds)
        raise AssertionError(attempt)

    def _session(self, *, guarded: bool) -> aiohttp.ClientSession:
        if guarded not in self._sessions:
            self._sessions[guarded] = aiohttp.ClientSession(
                timeout=TIMEOUT,
                cookie_jar=aiohttp.DummyCookieJar(),
                connector=guarded_connector(allow_private=False, limit_per_host=CONNECTIONS_PER_HOST)
                if guarded
                else aiohttp.TCPConnector(limit_per_host=CONNECTIONS_PER_HOST),
            )
        return self._sessions[guarded]

    async def _once(self, request: ApiRequest, *, guarded: bool) -> ApiAnswer:
        url = URL(request.url, encoded=True)  # quoted by us: %2F must stay what it is
        async with self._session(guarded=guarded).request(
            request.method,
            url,
            data=request.body or None,
            headers=dict(request.headers),
            allow_redirects=False,
            proxy=None if guarded else self._proxies.for_host(url.scheme, url.host or ""),
        ) as response:
            body = bytearray()
            async for piece in response.content.iter_chunked(65_536):
                body += piece
                if len(body) > MAX_ANSWER_BYTES:
                    raise Unavailable(f"{_host(request)} sends an answer that is too long.", code=CODE_HOST_UNAVAILABLE)
            headers = {name.lower(): value for name, value in response.headers.items()}
            return ApiAnswer(response.status, headers, bytes(body))


def asked_to_wait(answer: ApiAnswer, now: float) -> float | None:
    """Seconds that the host asks us to stay away, None when it does not limit our rate. ``now``: since 1970."""
    headers = answer.headers
    limited = (
        answer.status == 429
        or ((answer.status == 403 or is_temporary(answer.status)) and "retry-after" in headers)
        or (
            answer.status == 403
            and (headers.get("x-ratelimit-remaining") == "0" or b"secondary rate limit" in answer.body)
        )
    )
    if not limited:
        return None
    if "retry-after" in headers:
        asked = retry_after_seconds(headers, now=now)
        return UNTOLD_WAIT_SECONDS if asked is None else asked
    for name in ("x-ratelimit-reset", "ratelimit-reset"):
        text = headers.get(name, "").strip()
        if text.isascii() and text.isdigit():
            value = min(float(text[:12]), 1e12)
            return max(0.0, value - now + 1) if value > 1e9 else value
    return UNTOLD_WAIT_SECONDS


def _host(request: ApiRequest) -> str:
    url = urlsplit(request.url)
    return f"{url.scheme}://{url.netloc}"


def _not_allowed(request: ApiRequest) -> Forbidden:
    return Forbidden(
        f"{_host(request)} is not an address of the public internet. Ask the operator to create the project at the"
        " terminal.",
        code="address_not_allowed",
    )


def _unreachable(request: ApiRequest, error: BaseException) -> Unavailable:
    return Unavailable(f"{_host(request)} cannot be reached: {reason_of(error)}.", code=CODE_HOST_UNAVAILABLE)
