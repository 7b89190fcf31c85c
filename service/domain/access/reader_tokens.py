"""Reader tokens: what a page fetches before it asks with a key for browsers, so that the key alone is not enough.

A token is the time of its end and the origin that it was made for, signed together with the key and the network of the
reader. Nothing is stored for it. An origin can be forged outside a browser: limits and cost bounds protect against
programs, and origins keep honest websites apart.
"""

import base64
import hmac
from datetime import datetime, timedelta
from hashlib import sha256

from msgspec import Struct

LIFETIME = timedelta(minutes=15)
_CLOCKS_DIFFER = timedelta(minutes=1)
"""Between instances."""
MAX_CHARACTERS = 800
"""Length of a token of the longest origin, and more."""
_SIGNATURE_BYTES = 16
_TIME_BYTES = 5
_LABEL = b"reader token 1"


class Reader(Struct, frozen=True):
    """The caller that a token is bound to."""

    key_id: str
    network: str
    """The part of the address that counts as one caller (``callers.counted_as``)."""


def signing_secret(secret: bytes) -> bytes:
    """Return the key that signs tokens, from the installation's secret."""
    return hmac.digest(secret, _LABEL, sha256)


def make_reader_token(secret: bytes, reader: Reader, origin: str, expires_at: datetime) -> str:
    """Return a token for calls from this origin until then."""
    body = int(expires_at.timestamp()).to_bytes(_TIME_BYTES, "big") + origin.encode()
    return base64.urlsafe_b64encode(_signature(secret, reader, body) + body).rstrip(b"=").decode()


def is_reader_token_valid(secret: bytes, token: str, reader: Reader, origin: str | None, now: datetime) -> bool:
    """Return whether it was made for this reader and has not expired. The origin is compared where one is sent."""
    if len(token) > MAX_CHARACTERS or not token.isascii():
        return False
    try:
        read = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
    except ValueError:
        return False
    signature, body = read[:_SIGNATURE_BYTES], read[_SIGNATURE_BYTES:]
    if len(body) < _TIME_BYTES or not hmac.compare_digest(signature, _signature(secret, reader, body)):
        return False
    left = int.from_bytes(body[:_TIME_BYTES], "big") - now.timestamp()
    if not 0 < left <= (LIFETIME + _CLOCKS_DIFFER).total_seconds():  # made while the clock was ahead
        return False
    return origin is None or hmac.compare_digest(origin.encode("utf-8", "replace"), body[_TIME_BYTES:])


def _signature(secret: bytes, reader: Reader, body: bytes) -> bytes:
    signed = b"\0".join((reader.key_id.encode(), reader.network.encode(), body))
    return hmac.digest(secret, signed, sha256)[:_SIGNATURE_BYTES]
