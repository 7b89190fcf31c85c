"""The progress of a call: notifications in a stream, for a client that asked for them by a token."""

from aiohttp import hdrs, web

from service.wire.mcp.requests import RequestId
from service.wire.mcp.results import EVENT_STREAM, KEEP_ALIVE, encode_progress, server_sent


class Progress:
    """Reports to the client of one request. The stream begins with the first report, or keep-alive."""

    def __init__(self, request: web.Request, token: RequestId | None) -> None:
        """``token``: the one under which the client asked for progress."""
        self._request = request
        self._token = token if _takes_streams(request) else None
        self._count = 0
        self._stream: web.StreamResponse | None = None

    async def report(self, message: str = "") -> None:
        """Send a message, such as the next words of an answer; nothing, where the client asked for no progress.

        Raises ConnectionError when the client has gone.
        """
        if self._token is None:
            return
        self._count += 1
        await self._write(server_sent(encode_progress(self._token, self._count, message)))

    async def keep_alive(self) -> None:
        """Send a comment, where the client asked for progress: proxies cut connections that are silent, and a job may
        wait longer for its turn.
        """
        if self._token is not None:
            await self._write(KEEP_ALIVE)

    async def finish(self, answer: bytes, status: int = 200) -> web.StreamResponse:
        """Send the answer itself: as the end of the stream that has begun, or as JSON."""
        if self._stream is None:
            return web.Response(status=status, body=answer, content_type="application/json")
        await self._write(server_sent(answer))
        await self._stream.write_eof()
        return self._stream

    async def _write(self, data: bytes) -> None:
        if self._stream is None:
            self._stream = web.StreamResponse(headers=EVENT_STREAM)
            await self._stream.prepare(self._request)
        await self._stream.write(data)


def _takes_streams(request: web.Request) -> bool:
    accepted = request.headers.get(hdrs.ACCEPT, "*/*")
    return "text/event-stream" in accepted or "*/*" in accepted
