"""WebhookSender over aiohttp: one request, one connection, no redirects, no cookies, no unpacking of answers."""

import math
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import aiohttp
from yarl import URL

from service.adapters.outbound import guarded_connector, is_refusal
from service.ports.webhook_sender import Answer, SendingError

TIMEOUT_SECONDS = 15.0
"""For everything, from the look-up of the name to the answer: what the specification recommends at least."""
MAX_ANSWER_BYTES = 16 * 1024
"""Read and thrown away, out of politeness; then the connection is closed."""


class AiohttpWebhookSender:
    """Build it, and close it, within the event loop that it is used in."""

    def __init__(
        self, *, allow_private: bool, timeout_seconds: float = TIMEOUT_SECONDS, user_agent: str = "Docsmith"
    ) -> None:
        self._allow_private = allow_private
        self._session = aiohttp.ClientSession(
            connector=guarded_connector(allow_private=allow_private, limit=0, force_close=True),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=timeout_seconds),
            headers={"User-Agent": user_agent},
            auto_decompress=False,
            trust_env=False,
        )

    async def close(self) -> None:
        await self._session.close()

    async def send(self, url: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        if not self._allow_private and not url.startswith("https://"):
            return Answer(None, "address_not_allowed")
        try:
            address = URL(url, encoded=True)  # what was registered, byte for byte
            async with self._session.post(
                address, data=body, headers={"Content-Type": "application/json", **headers}, allow_redirects=False
            ) as response:
                with suppress(aiohttp.ClientError, OSError, EOFError):  # the head is answer enough
                    await response.content.readexactly(MAX_ANSWER_BYTES)
                return Answer(response.status, "", _retry_after(response.headers.get("Retry-After", "")))
        except (aiohttp.ClientError, OSError, ValueError) as error:
            return Answer(None, _kind(error))


def _kind(error: Exception) -> SendingError:
    match error:
        case TimeoutError():
            return "timed_out"
        case aiohttp.ClientConnectorDNSError():
            return "not_resolved"
        case aiohttp.ClientSSLError():
            return "tls"
        case aiohttp.ClientConnectorError():
            return "address_not_allowed" if is_refusal(error) else "not_connected"
        case aiohttp.InvalidURL() | ValueError():
            return "address_not_allowed"
        case aiohttp.ClientOSError() | aiohttp.ServerDisconnectedError() | OSError():
            return "disconnected"
        case _:
            return "bad_answer"


def _retry_after(text: str) -> float | None:
    """Seconds from now, of a number or a date (RFC 9110, section 10.2.3); None when it is neither."""
    if text.isascii() and text.isdigit():
        return float(text[:9])
    try:
        until = parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError):
        return None
    seconds = ((until if until.tzinfo else until.replace(tzinfo=UTC)) - datetime.now(UTC)).total_seconds()
    return float(math.ceil(max(seconds, 0.0)))
