"""Proof of work: what a page solves before it gets a reader token while its site is asked far more than usual.

The format is that of ALTCHA's first version (https://altcha.org/docs/v2/proof-of-work): the SHA-256 of a salt and a
secret number, which is found by trying all numbers up to ``maxnumber``. The challenge is signed, so that nothing is
stored for it. It is bound to the caller by the key of the signature, and to its end by ``expires`` in the salt.

To try one number takes about 1.6 µs in a browser on a desktop and five times that on a phone, where a challenge takes
about 200 ms: 25,000 numbers on average.
"""

import hmac
from collections.abc import Mapping
from datetime import datetime, timedelta
from hashlib import sha256
from statistics import median
from typing import Annotated, Literal

from msgspec import Meta, Struct

from service.domain.access.reader_tokens import Reader
from service.domain.errors import Forbidden

MAX_NUMBER = 50_000
LIFETIME = timedelta(minutes=5)
USUAL_FACTOR = 3
"""A site is over its usual rate at this many times its median hour."""
HOURS = 7 * 24
"""Hours that the median is of."""
_LABEL = b"proof of work 1"
_MOST = 200
"""Characters of a field."""


class Challenge(Struct, frozen=True):
    """Work for one caller: the number up to `maxnumber` whose SHA-256, behind the salt, is the challenge."""

    algorithm: Annotated[Literal["SHA-256"], Meta(description="The hash.")]
    challenge: Annotated[str, Meta(description="The hash of the salt and the number, in hexadecimal.")]
    maxnumber: Annotated[int, Meta(description="The largest number that it can be.")]
    salt: Annotated[str, Meta(description="The text before the number.")]
    signature: Annotated[str, Meta(description="Send it back as it is.")]


class Solution(Struct, frozen=True):
    """A challenge and its number."""

    algorithm: Annotated[Literal["SHA-256"], Meta(description="That of the challenge.")]
    challenge: Annotated[str, Meta(max_length=_MOST, description="That of the challenge.")]
    number: Annotated[int, Meta(ge=0, le=MAX_NUMBER, description="The number that solves it.")]
    salt: Annotated[str, Meta(max_length=_MOST, description="That of the challenge.")]
    signature: Annotated[str, Meta(max_length=_MOST, description="That of the challenge.")]


class ProofRequired(Forbidden):
    """The caller has work to do before this."""

    code = "proof_required"

    def __init__(self, challenge: Challenge) -> None:
        super().__init__("This site is very busy. Solve the challenge, and send the solution as proof.")
        self.challenge = challenge


def proof_secret(secret: bytes, reader: Reader, origin: str) -> bytes:
    """Return the key that signs the challenges of one caller, from the installation's secret."""
    bound = b"\0".join((_LABEL, reader.key_id.encode(), reader.network.encode(), origin.encode()))
    return hmac.digest(secret, bound, sha256)


def new_challenge(secret: bytes, random: str, number: int, at: datetime) -> Challenge:
    """Return a challenge that ends after ``LIFETIME``. ``random``: hexadecimal; ``number``: at most ``MAX_NUMBER``."""
    expires = int((at + LIFETIME).timestamp())
    salt = f"{random}?expires={expires}&"  # with the "&" no digit of the number can be taken for one of the salt
    challenge = sha256(f"{salt}{number}".encode()).hexdigest()
    return Challenge("SHA-256", challenge, MAX_NUMBER, salt, _signature(secret, challenge))


def solved_at(secret: bytes, solution: Solution) -> datetime | None:
    """Return when a solved challenge ends, as it says itself; None when it is not ours or its number is wrong."""
    challenge = sha256(f"{solution.salt}{solution.number}".encode("utf-8", "replace")).hexdigest()
    if solution.challenge != challenge:  # by which it is known that it was used
        return None
    if not solution.salt.endswith("&"):  # else the first digits of a number could stand in the salt
        return None
    if not hmac.compare_digest(_signature(secret, challenge).encode(), solution.signature.encode("utf-8", "replace")):
        return None
    _, _, expires = solution.salt.removesuffix("&").partition("?expires=")
    return datetime.fromtimestamp(int(expires)).astimezone()


def is_over_usual(counts: Mapping[int, int], at: datetime, least: int) -> bool:
    """Return whether the last 60 minutes have more than ``least`` of what is counted, and more than the usual hour.

    ``counts``: by hours since 1970. The hour before this one counts as far as it is within the 60 minutes.
    """
    hour, elapsed = divmod(at.timestamp() / 3600, 1)
    this = int(hour)
    rate = counts.get(this, 0) + counts.get(this - 1, 0) * (1 - elapsed)
    usual = median(counts.get(this - ago, 0) for ago in range(1, HOURS + 1))
    return rate > max(least, USUAL_FACTOR * usual)


def _signature(secret: bytes, challenge: str) -> str:
    return hmac.digest(secret, challenge.encode(), sha256).hex()
