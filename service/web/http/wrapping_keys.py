"""Gives a wrapping key of the vault to another instance: ``GET /internal/wrapping-keys/ID?for=PUBLIC_KEY``.

It is signed under a key of its own, as ``service.integrity.wrapping_exchange`` says: the one that signs all other
internal requests is in the vault, which cannot be read without a wrapping key.
"""

import asyncio
import re
from typing import TYPE_CHECKING

import structlog
from aiohttp import web
from msgspec import Struct

from service.web.http.internal import InternalAccess
from service.web.http.problems import ACTOR

if TYPE_CHECKING:
    from eventstore.postgres.wrapping.wrapping_keys import WrappingKeys

log = structlog.get_logger()

_PUBLIC = re.compile(r"[0-9a-f]{64}")


class Giver(Struct, frozen=True):
    access: InternalAccess
    """With the key for these requests."""
    keys: "WrappingKeys"
    secret: bytes


GIVER: web.AppKey[Giver] = web.AppKey("GIVER")


async def give(request: web.Request) -> web.Response:
    """Answer a genuine request for a wrapping key that is here. Raise HTTPNotFound for any other."""
    giver = request.app[GIVER]
    public, key_id = request.query.get("for", ""), request.match_info["id"]
    is_plain = request.method == "GET" and not request.can_read_body
    if not (is_plain and _PUBLIC.fullmatch(public) and giver.access.admits(request)):
        raise web.HTTPNotFound
    request[ACTOR] = "instance"
    from service.integrity.wrapping_exchange import answer_to

    key = await asyncio.to_thread(giver.keys.find, key_id)
    if key is None:
        raise web.HTTPNotFound
    try:
        answer = answer_to(public, giver.secret, key_id, key)
    except ValueError:  # a point of small order
        raise web.HTTPNotFound from None
    log.info("gave a wrapping key of the vault to another instance", id=key_id)
    return web.Response(body=answer, headers={"Cache-Control": "no-store"})


routes = [web.route("*", "/internal/wrapping-keys/{id:[0-9a-f]{32}}", give)]
