"""LinkChecker over aiohttp: HEAD, and GET where a server refuses HEAD. Redirects pass the same guard.

No cookies, no credentials, no body: servers learn that someone looked, and the address.
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress

import aiohttp

from service.adapters.outbound import guarded_connector, is_refusal
from service.ports.link_checker import LinkAnswer, LinkError

PARALLEL = 8
PARALLEL_PER_HOST = 2
MAX_REDIRECTS = 5
RECEIVE_BYTES = 16_384
"""Enough for a head. A site that sends thousands of interim answers (1xx) has them parsed in small portions."""
LINK_SECONDS, ALL_SECONDS = 10.0, 60.0
"""Limits for one address, and for all of one call."""
REFUSES_HEAD = range(400, 600)
CERTAIN = frozenset({401, 407, 410, 429})
"""Answers to HEAD that GET would not change."""


class AiohttpLinkChecker:
    def __init__(self, *, allow_private: bool, all_seconds: float = ALL_SECONDS) -> None:
        self._allow_private = allow_private
        self._all_seconds = all_seconds

    async def ask(self, urls: Sequence[str]) -> Mapping[str, LinkAnswer]:
        answers: dict[str, LinkAnswer] = {}
        connector = guarded_connector(
            allow_private=self._allow_private,
            receive_bytes=RECEIVE_BYTES,
            limit=PARALLEL,
            limit_per_host=PARALLEL_PER_HOST,
        )
        async with aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=self._all_seconds, sock_connect=LINK_SECONDS, sock_read=LINK_SECONDS),
            headers={"User-Agent": "Docsmith link check", "Accept": "*/*"},
            auto_decompress=False,
            trust_env=False,
        ) as session:
            slots = asyncio.Semaphore(PARALLEL)

            async def ask_one(url: str) -> None:
                async with slots:
                    answers[url] = await _answer(session, url)

            with suppress(TimeoutError):
                async with asyncio.timeout(self._all_seconds), asyncio.TaskGroup() as asking:
                    for url in dict.fromkeys(urls):
                        asking.create_task(ask_one(url))
        return answers


async def _answer(session: aiohttp.ClientSession, url: str) -> LinkAnswer:
    if not url.lower().startswith(("http://", "https://")):
        return LinkAnswer(None, "address_not_allowed")
    try:
        async with asyncio.timeout(2 * LINK_SECONDS):
            status = await _status(session, "HEAD", url)
            if status in REFUSES_HEAD and status not in CERTAIN:
                status = await _status(session, "GET", url)
            return LinkAnswer(status)
    except (aiohttp.ClientError, OSError, ValueError) as error:
        return LinkAnswer(None, _kind(error))


async def _status(session: aiohttp.ClientSession, method: str, url: str) -> int:
    headers = {"Range": "bytes=0-0"} if method == "GET" else {}
    async with session.request(
        method, url, headers=headers, max_redirects=MAX_REDIRECTS, allow_redirects=True
    ) as response:
        status = response.status
        response.close()  # the body is of no interest
        return 200 if status == 416 else status  # there is something, though not of one byte


def _kind(error: Exception) -> LinkError:
    match error:
        case TimeoutError():
            return "timed_out"
        case aiohttp.ClientConnectorDNSError():
            return "not_resolved"
        case aiohttp.ClientSSLError():
            return "tls"
        case aiohttp.ClientConnectorError():
            return "address_not_allowed" if is_refusal(error) else "not_connected"
        case aiohttp.InvalidURL() | aiohttp.NonHttpUrlClientError() | ValueError():
            return "address_not_allowed"
        case _:
            return "bad_answer"
