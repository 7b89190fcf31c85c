"""The replies that this instance gives, for the readers of another one."""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing, suppress

from aiohttp import web

from service.domain.threads.live_lines import SILENCE, TOPIC_HEADER, encoded_line
from service.domain.threads.replies import ReplyEvent, merged
from service.web.api.assistant.replies import PAUSE_SECONDS
from service.web.http.app_keys import BROADCAST, REPLIER
from service.web.http.internal import InternalRoutes
from service.web.http.live import with_keep_alives, write_now
from service.workers.followed_replies import SILENCE_SECONDS

routes = InternalRoutes()


@routes.operation("/internal/replies/{replyId}", "GET")
async def follow_reply(request: web.Request) -> web.StreamResponse:
    """Answer with the reply's lines: all, or those after an event of the very same topic."""
    reply_id, query = request.match_info["replyId"], request.query
    topic = request.app[BROADCAST].find(reply_id)
    if topic is None:
        raise web.HTTPNotFound
    is_again = query.get("topic") == topic.id
    after, thread_id = int(query["after"]) if is_again else 0, query["thread"]
    response = web.StreamResponse(headers={"Content-Type": "application/x-ndjson", TOPIC_HEADER: topic.id})
    replier, returns = request.app[REPLIER], query.get("returns") == "1"
    with (
        suppress(ConnectionResetError),
        replier.reading(thread_id, reply_id, may_return=True, returns=returns, is_instance=True),
    ):
        if is_again:
            await replier.record_reconnect(thread_id, reply_id)
        await response.prepare(request)
        lines = _Lines(request, response, after)
        batches = topic.batches(lines.write_now, after=after)
        async with aclosing(with_keep_alives(batches, seconds=SILENCE_SECONDS)) as kept:
            async for events in kept:
                await (response.write(SILENCE) if events is None else lines.write(events))
        await response.write_eof()
    return response


@routes.operation("/internal/replies/{replyId}/left", "POST")
async def leave_reply(request: web.Request) -> web.Response:
    """Note that the last reader of another instance has left, whose stream has ended before: as one here who leaves."""
    reply_id, query, replier = request.match_info["replyId"], request.query, request.app[REPLIER]
    returns = query.get("returns") == "1"
    with suppress(_Left), replier.reading(query["thread"], reply_id, may_return=True, returns=returns):
        raise _Left
    return web.Response(status=204)


class _Left(Exception):
    """The last reader has left."""


class _Lines:
    def __init__(self, request: web.Request, response: web.StreamResponse, published: int) -> None:
        self._transport, self._response, self._published = request.transport, response, published
        self._time, self._burst_until = asyncio.get_running_loop().time, 0.0

    async def write(self, events: Sequence[ReplyEvent]) -> None:
        self._published += len(events)
        await self._response.write(encoded_line(self._published, list(merged(events))))

    def write_now(self, event: ReplyEvent) -> bool:
        """Write an event in the call that publishes it, unless it is part of a burst or the reader is behind."""
        transport, now = self._transport, self._time()
        if transport is None or transport.is_closing() or transport.get_write_buffer_size() or now < self._burst_until:
            return False
        self._burst_until = now + PAUSE_SECONDS
        self._published += 1
        write_now(self._response, encoded_line(self._published, [event]))
        return True
