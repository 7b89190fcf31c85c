"""Replies to those who read them: live from this process, or from the record."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import AbstractContextManager, aclosing, suppress

from aiohttp import web
from aiohttp_sse import EventSourceResponse
from msgspec import Struct

from service.domain.threads.replies import ReplyBroken, ReplyDone, ReplyEvent, ReplyReplay, TextDelta, merged
from service.ports.direct_reader import DirectReader
from service.queries.threads import position_of_reply
from service.streams import THREADS, decoded
from service.web.http.app_keys import CLOSING, REPLIER, STORE, VIEWS
from service.web.http.live import with_keep_alives, write_now
from service.web.http.revocation import KEY_REVOKED, SENTENCE, KeyRevoked, revocation_of
from service.wire import checks, data_stream, ui_messages
from service.workers.broadcast import Topic

RETURNS = "resume"
"""The feature of a client that comes back for a reply whose connection it has lost, and says when it stops one."""
TURN_PIECES = 16
"""After a write of more pieces, others have their turn; between the pieces of a model they have it anyway."""
PAUSE_SECONDS = 0.001
"""A piece sooner behind the last one is part of a burst: those go out together."""
MAX_AT_ONCE = 8_192
"""Characters of a piece that is written directly: less than a connection holds for a reader who is behind."""
GOING_DOWN = ReplyBroken("unavailable", "The service is restarting; ask again in a moment.")


class ReplySubscription(Struct, frozen=True):
    """A reply that a client is about to read."""

    thread_id: str
    reply_id: str
    topic: Topic[ReplyEvent] | None
    """Where this process publishes it; None when it has ended, or another process gives it: then it is on record."""
    thread_key: str | None = None
    """Given for a new thread only."""
    may_return: bool = False
    """The reader's client could ask for the rest when its connection breaks."""
    features: tuple[str, ...] = ()
    """Further parts of the stream that the client asked for."""
    is_lost: bool = False
    """An earlier reader has lost it: once it is read to its end, no client waits for it any more."""


async def send_ui_messages(request: web.Request, reply: ReplySubscription, *, plain: bool) -> web.StreamResponse:
    """Answer with server-sent events; ``plain``: as ``ui_messages.is_plain_reader`` says."""
    encoder = ui_messages.UiMessageEncoder(plain=plain, has_checks=checks.FEATURE in reply.features)
    response = EventSourceResponse(sep="\n", allow_all_methods=True)
    response.headers.update({**ui_messages.HEADERS, **_headers_of(reply)})
    with suppress(KeyRevoked), _reading(request, reply):  # leaving by the exception, the reader has lost the rest
        await response.prepare(request)
        direct = DirectWriter(request, response, encoder.encode)
        async with response, aclosing(_batches(request, reply, direct)) as batches:
            async for events in batches:
                await _send(response, [piece for event in events for piece in encoder.encode(event)])
                del events  # the result of a search is large, and the next event may be long in coming
        await _note_end(request, reply)
    return response


async def send_data_stream(
    request: web.Request, reply: ReplySubscription, *, headers: dict[str, str]
) -> web.StreamResponse:
    """Answer with the lines of AI SDK 4."""
    encoder = data_stream.DataStreamEncoder(has_checks=checks.FEATURE in reply.features)
    response = web.StreamResponse(headers={**data_stream.HEADERS, **_headers_of(reply), **headers})
    with suppress(KeyRevoked), _reading(request, reply):
        await response.prepare(request)
        direct, seen = DirectWriter(request, response, encoder.encode), 0
        async with aclosing(_batches(request, reply, direct)) as batches:
            async for events in with_keep_alives(batches):
                if events is not None:
                    await _send(response, _lines(encoder, events))
                elif direct.pieces == seen:
                    await _send(response, [data_stream.KEEP_ALIVE])
                seen = direct.pieces
                del events
        await response.write_eof()
        await _note_end(request, reply)
    return response


def _reading(request: web.Request, reply: ReplySubscription) -> AbstractContextManager[None]:
    return request.app[REPLIER].reading(
        reply.thread_id, reply.reply_id, may_return=reply.may_return, returns=RETURNS in reply.features
    )


def _lines(encoder: data_stream.DataStreamEncoder, events: Iterable[ReplyEvent]) -> list[bytes]:
    return [line for event in events for line in encoder.encode(event)]


async def _send(response: web.StreamResponse, pieces: list[bytes]) -> None:
    """Waits while the reader is behind. Raises ConnectionError when it has gone; a connection whose reader takes
    nothing for too long is cut (``connections``), and the reader can catch up from the record.
    """
    if not pieces:
        return
    await response.write(b"".join(pieces))
    if len(pieces) > TURN_PIECES:
        await asyncio.sleep(0)  # a write that need not wait gives no one else a turn


class DirectWriter:
    """The ``DirectReader`` of a client: writes each piece of text that is not part of a burst, unless it is behind."""

    def __init__(
        self, request: web.Request, response: web.StreamResponse, encode: Callable[[ReplyEvent], list[bytes]]
    ) -> None:
        self._transport, self._response, self._encode = request.transport, response, encode
        self._revocation = revocation_of(request)
        self._time, self._burst_until = asyncio.get_running_loop().time, 0.0
        self.pieces = 0
        """How many were sent."""

    def __call__(self, event: ReplyEvent, /) -> bool:
        transport = self._transport
        if not isinstance(event, TextDelta) or len(event.text) > MAX_AT_ONCE or self._revocation.is_published:
            return False
        if transport is None or transport.is_closing() or transport.get_write_buffer_size():
            return False
        now = self._time()
        if now < self._burst_until:
            return False
        self._burst_until = now + PAUSE_SECONDS
        self.pieces += 1
        write_now(self._response, b"".join(self._encode(event)))
        return True


async def _batches(
    request: web.Request, reply: ReplySubscription, direct: DirectReader[ReplyEvent]
) -> AsyncGenerator[Iterable[ReplyEvent], None]:
    """Yield the reply up to its end. Raises KeyRevoked, after saying so."""
    revocation, is_over = revocation_of(request), False
    if reply.topic is None:
        async with aclosing(_on_record(request, reply)) as recorded:
            async for event in recorded:
                is_over = isinstance(event, ReplyDone | ReplyBroken)
                yield (event,)
                del event
    else:
        async with aclosing(reply.topic.batches(direct, revocation)) as batches:
            async for events in batches:
                is_over = isinstance(events[-1], ReplyDone | ReplyBroken)
                yield merged(events)
                del events
    if revocation.is_published and not is_over:
        yield (KEY_REVOKED,)
        raise KeyRevoked(SENTENCE)


async def _on_record(request: web.Request, reply: ReplySubscription) -> AsyncGenerator[ReplyEvent, None]:
    """Yield what is on record of a reply, and what comes to be, to its end."""
    store, views = request.app[STORE], request.app[VIEWS]
    position = await position_of_reply(store, views, reply.reply_id)
    replay = ReplyReplay(reply.thread_id, reply.reply_id)
    after = 0 if position is None else position - 1
    async with aclosing(store.subscribe(after=after, stream=THREADS.stream(reply.thread_id))) as subscription:
        revocation = revocation_of(request)
        async for recorded in with_keep_alives(subscription, request.app[CLOSING], revocation=revocation):
            for _, event in decoded(THREADS, [recorded] if recorded is not None else []):
                for published in replay.apply(event):
                    yield published
            if replay.is_over:
                return
    if not revocation.is_published:
        yield GOING_DOWN


async def _note_end(request: web.Request, reply: ReplySubscription) -> None:
    if reply.is_lost:
        await request.app[REPLIER].record_reconnect(reply.thread_id, reply.reply_id)


def _headers_of(reply: ReplySubscription) -> dict[str, str]:
    headers = {ui_messages.THREAD_ID_HEADER: reply.thread_id, ui_messages.MESSAGE_ID_HEADER: reply.reply_id}
    if reply.thread_key is not None:
        headers[ui_messages.THREAD_KEY_HEADER] = reply.thread_key
    return headers
