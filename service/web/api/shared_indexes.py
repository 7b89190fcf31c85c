"""Indexes for the other instances of the log: whichever has built one sends it as an archive, and its vectors.
Whichever builds one says how far it is.
"""

import asyncio
from collections.abc import Iterator

import msgspec
import structlog
from aiohttp import web

from service.domain.errors import Invalid
from service.retrieval.index.transfer import packed
from service.web.http.app_keys import INDEX_FOLDER, INDEXING, MEANING
from service.web.http.internal import InternalRoutes, body_parts
from service.workers.indexing.sharing import INDEX_PATH, PROGRESS_PATH
from service.workers.indexing.vector_sharing import AT_ONCE, VECTORS_PATH, WantedVectors

log = structlog.get_logger()

PIECE_SECONDS = 60.0
"""For a piece to be taken."""

routes = InternalRoutes()


@routes.operation(INDEX_PATH, "GET")
async def send_index(request: web.Request) -> web.StreamResponse:
    """Send a finished index as a tar archive. Raises HTTPNotFound where this instance does not have it."""
    try:
        folder = request.app[INDEX_FOLDER](request.match_info["domain"], request.match_info["name"])
    except Invalid:
        raise web.HTTPNotFound from None
    pieces = packed(folder)
    try:
        piece = await _next(pieces)
    except (OSError, ValueError):
        raise web.HTTPNotFound from None
    response = web.StreamResponse(headers={"Content-Type": "application/x-tar"})
    response.enable_chunked_encoding()
    await response.prepare(request)
    try:
        while piece:
            async with asyncio.timeout(PIECE_SECONDS):
                await response.write(piece)
            piece = await _next(pieces)
    except (OSError, ValueError, TimeoutError) as error:  # removed meanwhile, or the other instance takes nothing
        log.info("index not sent", index=folder.name, reason=f"{type(error).__name__}: {error}")
        response.force_close()
        if request.transport is not None:
            request.transport.abort()
        return response
    await response.write_eof()
    return response


@routes.operation(PROGRESS_PATH, "GET")
async def send_progress(request: web.Request) -> web.Response:
    """Answer how far the indexing of a site is on this instance; null where it is with none."""
    found = request.app[INDEXING].here(request.match_info["domain"])
    return web.Response(body=msgspec.json.encode(found), content_type="application/json")


@routes.operation(VECTORS_PATH, "POST")
async def send_vectors(request: web.Request) -> web.StreamResponse:
    """Send those of the vectors that are here. Raises HTTPNotFound where this instance has none of the model."""
    meaning = request.app[MEANING]
    body = b"".join([part async for part in body_parts(request)])
    try:
        wanted = msgspec.msgpack.decode(body, type=WantedVectors)
    except msgspec.DecodeError:
        raise web.HTTPNotFound from None
    if meaning is None or meaning.model.name != wanted.model:
        raise web.HTTPNotFound
    try:
        vectors = await meaning.vectors(request.match_info["domain"])
    except Invalid:
        raise web.HTTPNotFound from None
    found = await asyncio.to_thread(vectors.stored, wanted.hashes[:AT_ONCE])
    return web.Response(body=msgspec.msgpack.encode(found), content_type="application/msgpack")


async def _next(pieces: Iterator[bytes]) -> bytes:
    return await asyncio.to_thread(next, pieces, b"")
