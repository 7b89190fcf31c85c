"""Read the fields that a page's form sends."""

import asyncio
import re
from collections.abc import Mapping
from urllib.parse import parse_qsl

from aiohttp import web

from service.domain.errors import BodyBroken, BodyTooLarge, BodyTooSlow, Invalid, UnsupportedMediaType
from service.web.http.problems import BODY_SECONDS

MAX_FIELDS = 1_000
SMALL_FORM_BYTES = 10_000
"""Limit for a form of a few short fields."""
UNREADABLE = "The form could not be read. Open the page again, and send it from there."
MAX_BYTES = 1024 * 1024
"""The longest text of a form has 82,768 characters, which may be twelve bytes each."""
MAX_READ_AT_ONCE = 32_768
"""Bytes; a longer form is read on a thread."""
_ID = re.compile("[0-9a-f]{32}")


async def read_form(request: web.Request, *, max_bytes: int = MAX_BYTES) -> Mapping[str, str]:
    """Return the fields of a form without files; of several with one name the last, without outer space.

    Raises UnsupportedMediaType, BodyTooSlow, BodyTooLarge, BodyBroken, and Invalid.
    """
    if request.content_type != "application/x-www-form-urlencoded":
        raise UnsupportedMediaType("Send the form as application/x-www-form-urlencoded.")
    if (request.content_length or 0) > max_bytes:
        raise BodyTooLarge(max_bytes)
    try:
        async with asyncio.timeout(request.app[BODY_SECONDS]):
            body = await request.read()
    except TimeoutError:
        raise BodyTooSlow from None
    except web.RequestPayloadError:
        raise BodyBroken from None
    if len(body) > max_bytes:
        raise BodyTooLarge(max_bytes)
    try:
        fields = _fields(body) if len(body) <= MAX_READ_AT_ONCE else await asyncio.to_thread(_fields, body)
    except ValueError:  # neither ASCII nor UTF-8 within, or too many
        raise Invalid(UNREADABLE) from None
    return {name: value.strip() for name, value in fields}


def _fields(body: bytes) -> list[tuple[str, str]]:
    """Raise ValueError."""
    return parse_qsl(body.decode("ascii"), keep_blank_values=True, max_num_fields=MAX_FIELDS, errors="strict")


def new_id_of(form: Mapping[str, str]) -> str:
    """Return the id that the page chose for the new thing, so that a form sent twice creates one. Raise Invalid."""
    if not _ID.fullmatch(form.get("id", "")):
        raise Invalid("The form was not sent as the page has it. Open the page again, and send it from there.")
    return form["id"]
