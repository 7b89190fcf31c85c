"""Reader tokens: what pages fetch before they call with a key for browsers."""

from datetime import timedelta
from typing import Annotated

from aiohttp import web
from msgspec import Struct

from service.domain.access.reader_tokens import LIFETIME
from service.domain.times import timestamp
from service.runtime.system import now
from service.views.fields import Timestamp, described
from service.web.api.operations import Answer, Routes
from service.web.http.access import new_reader_token, site_for
from service.web.http.limits import count_briefly
from service.web.http.problems import json_response

routes = Routes()


class ReaderToken(Struct, frozen=True, rename="camel"):
    """A token for calls from one website and network."""

    token: Annotated[str, described("Send it as `X-Reader-Token`.")]
    expires_at: Annotated[Timestamp, described("When it ends; fetch the next one before.")]


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
            example={"token": "kq3vN0tq2cXb6mR1sWzY8dLhJ4", "expiresAt": "2026-11-23T10:15:00.000Z"},
        )
    },
    description="For web pages that call with a key for browsers. The token is good for calls with the same key, from"
    " the same website, and from the same network. On `reader_token_expired` fetch a new one, and repeat the call."
    " Send no body.",
    errors={403: ("origin_not_allowed",), 409: ("conflict",)},
    limited=True,
)
async def create_reader_token(request: web.Request) -> web.Response:
    await site_for(request)
    count_briefly(request)
    expires_at = now() + LIFETIME
    return json_response(ReaderToken(new_reader_token(request, expires_at), timestamp(expires_at)))
