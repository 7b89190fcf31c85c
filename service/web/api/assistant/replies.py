"""Replies to those who read them: live from this process, or from another one and from the record."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable
from contextlib import aclosing, asynccontextmanager, suppress
from functools import partial

from aiohttp import web
from msgspec import Struct

from service.commands.threads import PostedMessage
from service.domain.threads.replies import INTERRUPTED, ReplyBroken, ReplyDone, ReplyEvent, TextDelta, merged
from service.domain.threads.threads import PostMessage
from service.ports.direct_reader import DirectReader
from service.web.http.access.revocation import KEY_REVOKED, SENTENCE, KeyRevoked, revocation_of
from service.web.http.app_keys import BROADCAST, FOLLOWED_REPLIES, KEEP_ALIVES, REPLIER
from service.web.http.live import with_keep_alives, write_now
from service.web.http.problems import forget_body
from service.wire import checks, data_stream, ui_messages
from service.workers.replies.broadcast import Topic

RETURNS = "resume"
"""The feature of a client that comes back for a reply whose connection it has lost, and says when it stops one."""
TURN_PIECES = 16
"""After a write of more pieces, others have their turn; between the pieces of a model they have it anyway."""
PAUSE_SECONDS = 0.001
"""A piece sooner behind the last one is part of a burst: those go out together."""
MAX_AT_ONCE = 8_192
"""Characters of a piece that is written directly: less than a connection holds for a reader who is behind."""


class ReplySubscription(Struct, frozen=True):
    """A reply that a client is about to read."""

    thread_id: str
    reply_id: str
    topic: Topic[ReplyEvent] | None
    """Where this process publishes it; None when it has ended, or another process gives it."""
    thread_key: str | None = None
    """Given for a new thread only."""
    may_return: bool = False
    """The reader's client could ask for the rest when its connection breaks."""
    features: tuple[str, ...] = ()
    """Further parts of the stream that the client asked for."""
    is_lost: bool = False
    """An earlier reader has lost it: once it is read to its end, no client waits for it any more."""


class ReplyLost(ConnectionResetError):
    """A reply goes on elsewhere, or in other words than its reader has: the reader's connection is cut, as by a crash
    of the service. Its client may ask for it from its start.
    """


async def begin_reply(
    request: web.Request, message: PostMessage, record: Callable[[], Awaitable[PostedMessage]]
) -> ReplySubscription:
    """Return the reply to a message, once that is recorded; to one that was asked before, its own.

    Raises Unavailable once this process takes no more questions.
    """
    topics, replier = request.app[BROADCAST], request.app[REPLIER]
    replier.require_running()
    topic: Topic[ReplyEvent] | None = topics.open(message.reply_id)  # before the reply can begin
    try:
        posted = await record()
    except BaseException:
        replier.stop(message.reply_id)  # the client may have left
        raise
    if posted.reply_id != message.reply_id:
        topics.close(message.reply_id)
        topic = topics.find(posted.reply_id)
    return ReplySubscription(
        posted.thread_id, posted.reply_id, topic, thread_key=posted.thread_key, may_return=bool(message.chat_id),
        features=message.features,
    )  # fmt: skip


async def events_of(request: web.Request, reply: ReplySubscription) -> AsyncGenerator[ReplyEvent | None, None]:
    """Yield a reply for a reader that is not sent its events as they are, and a None for each silence.

    A reader that leaves before the end has lost the rest: close the generator. Raises KeyRevoked.
    """
    try:
        async with _reading(request, reply) as topic:
            async with aclosing(with_keep_alives(_batches(request, reply, topic, None))) as batches:
                async for events in batches:
                    for event in events or (None,):
                        yield event
                    del events
            await _note_end(request, reply)
    except ReplyLost:
        yield ReplyBroken("interrupted", INTERRUPTED)


async def send_ui_messages(request: web.Request, reply: ReplySubscription, *, plain: bool) -> web.StreamResponse:
    """Answer with server-sent events; ``plain``: as ``ui_messages.is_plain_reader`` says."""
    encoder = ui_messages.UiMessageEncoder(plain=plain, has_checks=checks.FEATURE in reply.features)
    response = web.StreamResponse(headers={**ui_messages.HEADERS, **_headers_of(reply), "Connection": "keep-alive"})
    with suppress(KeyRevoked):
        async with _reading(request, reply) as topic:  # leaving by the exception, the reader has lost the rest
            await response.prepare(request)
            forget_body(request)
            direct = DirectWriter(request, response, encoder.encode)
            with request.app[KEEP_ALIVES].of(request, response):
                async with aclosing(_batches(request, reply, topic, direct)) as batches:
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
    with suppress(KeyRevoked):
        async with _reading(request, reply) as topic:
            await response.prepare(request)
            forget_body(request)
            direct, seen = DirectWriter(request, response, encoder.encode), 0
            async with aclosing(with_keep_alives(_batches(request, reply, topic, direct))) as batches:
                async for events in batches:
                    if events is not None:
                        await _send(response, _lines(encoder, events))
                    elif direct.pieces == seen:
                        await _send(response, [data_stream.KEEP_ALIVE])
                    seen = direct.pieces
                    del events
            await response.write_eof()
            await _note_end(request, reply)
    return response


@asynccontextmanager
async def _reading(request: web.Request, reply: ReplySubscription) -> AsyncIterator[Topic[ReplyEvent]]:
    """Count the reader, and give the topic of what it reads."""
    returns = RETURNS in reply.features
    reading = partial(
        request.app[REPLIER].reading, reply.thread_id, reply.reply_id, may_return=reply.may_return, returns=returns
    )
    if reply.topic is not None:
        with reading():
            yield reply.topic
        return
    async with request.app[FOLLOWED_REPLIES].follow(reply.thread_id, reply.reply_id, returns=returns) as followed:
        with reading(is_counted_by_giver=followed.is_counted_by_giver):
            yield followed.topic


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
    request: web.Request,
    reply: ReplySubscription,
    topic: Topic[ReplyEvent],
    direct: DirectReader[ReplyEvent] | None,
) -> AsyncGenerator[Iterable[ReplyEvent], None]:
    """Yield the reply up to its end. Raises KeyRevoked, after saying so, and ReplyLost."""
    revocation, is_over = revocation_of(request), False
    comes_back = reply.may_return and RETURNS in reply.features
    async with aclosing(topic.batches(direct, revocation)) as batches:
        async for events in batches:
            last = events[-1]
            if comes_back and isinstance(last, ReplyBroken) and last.goes_on:
                yield merged(events[:-1])
                raise ReplyLost("another instance goes on with the reply")
            is_over = isinstance(last, ReplyDone | ReplyBroken)
            yield merged(events)
            del events, last
    if is_over:
        return
    if revocation.is_published:
        yield (KEY_REVOKED,)
        raise KeyRevoked(SENTENCE)
    raise ReplyLost("the reply goes on in other words")


async def _note_end(request: web.Request, reply: ReplySubscription) -> None:
    if reply.is_lost:
        await request.app[REPLIER].record_reconnect(reply.thread_id, reply.reply_id)


def _headers_of(reply: ReplySubscription) -> dict[str, str]:
    headers = {ui_messages.THREAD_ID_HEADER: reply.thread_id, ui_messages.MESSAGE_ID_HEADER: reply.reply_id}
    if reply.thread_key is not None:
        headers[ui_messages.THREAD_KEY_HEADER] = reply.thread_key
    return headers
