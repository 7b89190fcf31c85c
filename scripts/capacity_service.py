"""The service with its model's provider in the same process, for ``bench_capacity``.

A reply takes one file descriptor then, its reader's, so that 10,000 fit where a process may have 20,000. All else is as
in production: litellm makes each request, aiohttp's client reads each answer; only the connection between the client
and the provider is memory instead of a socket. SIGUSR1 ends all replies.

    python -m scripts.capacity_service DATA

``PACE_SECONDS`` in the environment is the time between two tokens of a reply.
"""

import asyncio
import json
import os
import re
import signal
import sys
import time
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp.client_proto import ResponseHandler

from scripts.streaming_load import MODEL
from service.adapters.models import litellm_model
from service.adapters.models.exchange import READ_BYTES
from service.main.process.serving import serve
from service.runtime.settings.settings_file import load_settings

_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
_END = b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n"


class _Provider(asyncio.Transport):
    """The provider's end of one connection: answers the request written to it, a token at a time."""

    __slots__ = ("_client", "_clock", "_loop", "_pace", "_received", "_replies")

    def __init__(self, client: ResponseHandler, pace: float, replies: "set[_Provider]") -> None:
        super().__init__()
        self._client, self._pace, self._replies = client, pace, replies
        self._loop = asyncio.get_running_loop()
        self._received = b""
        self._clock: asyncio.TimerHandle | None = None

    def write(self, data: Any) -> None:
        self._received += bytes(data)
        head, found, body = self._received.partition(b"\r\n\r\n")
        length = re.search(rb"(?i)content-length: *(\d+)", head)
        if found and length and len(body) >= int(length[1]):
            self._received = b""
            self._replies.add(self)
            self._loop.call_soon(self._client.data_received, _HEAD)
            self._clock = self._loop.call_later(0.0, self._tell)

    def _tell(self) -> None:
        self._client.data_received(_chunk({"content": f" @{time.perf_counter():.6f}"}, None))
        self._clock = self._loop.call_later(self._pace, self._tell)

    def end(self) -> None:
        self._stop()
        self._client.data_received(_chunk({}, "stop") + _END)

    def _stop(self) -> None:
        self._replies.discard(self)
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None

    def close(self) -> None:
        self._stop()
        self._loop.call_soon(self._client.connection_lost, None)

    abort = close

    def is_closing(self) -> bool:
        return False

    def get_write_buffer_size(self) -> int:
        return 0

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass


def _chunk(delta: dict[str, str], finish_reason: str | None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    chunk = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": MODEL, "choices": [choice]}
    data = b"data: " + json.dumps(chunk, separators=(",", ":")).encode() + b"\n\n"
    return b"%x\r\n%s\r\n" % (len(data), data)


class _InProcess(aiohttp.BaseConnector):
    """Connects to providers in this process."""

    def __init__(self, pace: float, replies: set[_Provider]) -> None:
        super().__init__(limit=0)
        self._pace, self._replies = pace, replies

    async def _create_connection(self, *_: Any, **__: Any) -> ResponseHandler:
        client: ResponseHandler = self._factory()
        client.connection_made(_Provider(client, self._pace, self._replies))
        return client


async def _serve(data: Path) -> None:
    replies: set[_Provider] = set()
    pace = float(os.environ.pop("PACE_SECONDS", "10"))

    def session(**_: object) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            connector=_InProcess(pace, replies),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None),
            read_bufsize=READ_BYTES,
            skip_auto_headers=("User-Agent", "Accept"),
        )

    def end_all() -> None:
        for reply in list(replies):
            reply.end()

    setattr(litellm_model, "open_session", session)  # noqa: B010  (no setting names a provider inside of the service)
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, end_all)
    settings = load_settings(None, os.environ)
    await serve(data, settings, lambda: settings, drill=False)


if __name__ == "__main__":
    asyncio.run(_serve(Path(sys.argv[1])))
