"""Reader tokens: what pages fetch before they call with a key for browsers."""

from datetime import timedelta
from typing import Annotated

from aiohttp import web
from msgspec import Struct

from service.domain.access.proof_of_work import Solution
from service.domain.access.reader_tokens import LIFETIME, make_reader_token
from service.domain.texts.times import timestamp
from service.runtime.system import now
from service.views.fields import Timestamp, described
from service.web.api.description.operations import Answer, Routes
from service.web.http.access.access import READER_SECRET, page_of, site_for
from service.web.http.access.proofs import PROOFS, require_proof
from service.web.http.connections.limits import count_briefly, require_room
from service.web.http.problems import json_response, read_body

routes = Routes()


class ReaderToken(Struct, frozen=True, rename="camel"):
    """A token for calls from one website and network."""

    token: Annotated[str, described("Send it as `X-Reader-Token`.")]
    expires_at: Annotated[Timestamp, described("When it ends; fetch the next one before.")]
    expires_in: Annotated[int, described("Seconds until it ends, for callers whose clock may be wrong.")]


class TokenBody(Struct):
    """The proof of work, where one was asked for."""

    proof: Annotated[
        Solution | None, described("The challenge of the error `proof_required`, with the number that solves it.")
    ] = None


@routes.operation(
    "POST",
    "/discovery/v1/token/{domain}",
    "createReaderToken",
    "Assistant",
    "Fetch a reader token",
    {
        200: Answer(
            f"A token for {LIFETIME // timedelta(minutes=1)} minutes.",
            ReaderToken,
            example={
                "token": "kq3vN0tq2cXb6mR1sWzY8dLhJ4",
                "expiresAt": "2026-11-23T10:15:00.000Z",
                "expiresIn": LIFETIME // timedelta(seconds=1),
            },
        )
    },
    description="For web pages that call with a key for browsers. The token is good for calls with the same key, from"
    " the same website, and from the same network. On `reader_token_expired` fetch a new one, and repeat the call."
    " While a site is asked far more than usual, the answer is `proof_required`: find the number up to `maxnumber` with"
    " SHA-256(`salt` + number) = `challenge`, and send it once, within 5 minutes. Otherwise send no body.",
    body=TokenBody,
    body_examples={
        "without": {},
        "with proof": {
            "proof": {
                "algorithm": "SHA-256",
                "challenge": "7f2bb7ae2dcf4b0d8c0c3d8a5b1e0f3b4a8d1c2e9f6a7b5c4d3e2f1a0b9c8d7e",
                "number": 31415,
                "salt": "9a1f0c3e5b7d2a4c6e8f0b1d?expires=1795428000&",
                "signature": "c6e1d2f3a4b5968778695a4b3c2d1e0f9a8b7c6d5e4f3a2b1c0d9e8f7a6b5c4d",
            }
        },
    },
    is_body_optional=True,
    errors={403: ("origin_not_allowed", "proof_required"), 409: ("conflict",)},
    limited=True,
)
async def create_reader_token(request: web.Request) -> web.Response:
    project = await site_for(request)
    reader, origin = page_of(request)
    body = await read_body(request, TokenBody) if request.body_exists else TokenBody()
    require_room(request)
    await require_proof(request, project.id, reader, origin, body.proof)
    await count_briefly(request)
    request.app[PROOFS].count_token(project.id)
    expires_at = now() + LIFETIME
    token = make_reader_token(request.app[READER_SECRET], reader, origin, expires_at)
    return json_response(ReaderToken(token, timestamp(expires_at), LIFETIME // timedelta(seconds=1)))
