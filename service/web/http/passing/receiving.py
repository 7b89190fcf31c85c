"""Answers, at home, the requests that other instances pass on: as if their clients had sent them here.

Nothing of the request changes but its connection. Its headers and the address of its client's end are those that the
other instance saw, so keys, cookies, limits and the word of trusted proxies count as they would there.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

import msgspec
from aiohttp import HttpVersion11, web
from aiohttp.base_protocol import BaseProtocol
from aiohttp.http_parser import RawRequestMessage
from aiohttp.streams import EMPTY_PAYLOAD, StreamReader
from multidict import CIMultiDictProxy
from yarl import URL

from service.domain.access.internal_signature import MAX_FRAME_BYTES
from service.domain.errors import BodyBroken
from service.web.http.connections.connections import MAX_FIELD_BYTES, MAX_FIELDS, MAX_LINE_BYTES
from service.web.http.internal import InternalRoutes, body_parts
from service.web.http.passing.head import METHODS, PASSED_PATH, Head, decoded
from service.web.http.problems import MAX_BODY_BYTES

IS_PASSED = web.RequestKey("is_passed", bool)
"""Set on a request that another instance has passed on."""
BUFFER_BYTES = 256 * 1024
"""Limit for what is held of a body that its handler has not read."""
MAX_HEAD_BYTES = 2 * (MAX_LINE_BYTES + MAX_FIELDS * MAX_FIELD_BYTES)
"""More than the head of any request that an instance takes."""

routes = InternalRoutes()


@routes.operation(PASSED_PATH, *METHODS)
async def answer_passed(request: web.Request) -> web.StreamResponse:
    parts = body_parts(request)
    head = await _head(parts)
    if head.method != request.method:
        raise BodyBroken
    loop = asyncio.get_running_loop()
    flow = _Flow(loop)
    body = StreamReader(flow, BUFFER_BYTES, loop=loop) if head.has_body else EMPTY_PAYLOAD
    filling = asyncio.create_task(_fill(body, parts, flow), name="passed-body") if head.has_body else None
    try:
        inner = _request(request, head, body)
        response = await request.app._handle(inner)
        if not response.prepared:
            await response.prepare(inner)
        await response.write_eof()
        return response
    finally:
        if filling is not None:
            filling.cancel()
            with suppress(asyncio.CancelledError):
                await asyncio.wait([filling])


async def _head(parts: AsyncIterator[bytes]) -> Head:
    """Return the head of a request, which may go in several frames, all but the last of them full. Raise BodyBroken."""
    content = b""
    async for part in parts:
        content += part
        try:
            return decoded(content)
        except msgspec.DecodeError:
            if len(part) < MAX_FRAME_BYTES or len(content) > MAX_HEAD_BYTES:
                break
    raise BodyBroken


def _request(outer: web.Request, head: Head, body: StreamReader) -> web.Request:
    fields = head.fields()
    message = RawRequestMessage(
        head.method, head.target, HttpVersion11, CIMultiDictProxy(fields), head.headers, False, None, False, False,
        _url(head.target),
    )  # fmt: skip
    inner = web.Request(
        message, body, outer.protocol, outer.writer, outer.task, asyncio.get_running_loop(),
        client_max_size=MAX_BODY_BYTES, scheme=head.scheme, remote=head.remote,
    )  # fmt: skip
    inner[IS_PASSED] = True
    return inner


def _url(target: str) -> URL:
    """Return the URL as aiohttp reads it from a request: what begins with two slashes is a path, too."""
    if not target.startswith("/"):
        return URL(target, encoded=True)
    before, _, fragment = target.partition("#")
    path, _, query = before.partition("?")
    return URL.build(path=path, query_string=query, fragment=fragment, encoded=True)


async def _fill(body: StreamReader, parts: AsyncIterator[bytes], flow: "_Flow") -> None:
    """Feed the body to its handler, as fast as that reads."""
    try:
        async for part in parts:
            await flow.is_open.wait()
            body.feed_data(part)
        body.feed_eof()
    except (BodyBroken, ConnectionError) as error:
        broken = web.RequestPayloadError("the body was cut off")
        broken.__cause__ = error
        body.set_exception(broken)


class _Flow(BaseProtocol):
    """Stands for the connection where a body's reader asks for less, or for more."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self.is_open = asyncio.Event()
        self.is_open.set()

    @property
    def connected(self) -> bool:
        """Return whether a reader may wait for more: where the body is cut off, ``_fill`` says so."""
        return True

    def pause_reading(self) -> None:
        self.is_open.clear()

    def resume_reading(self, resume_parser: bool = True) -> None:  # noqa: ARG002  (aiohttp's own)
        self.is_open.set()
