"""Signatures of the requests that the instances of a log send each other, by HMAC-SHA256 with a key that they share.

A signature covers the instance that is asked, the method, the path with its query, the time, the headers that it names
and the digest of the body: a request cannot be changed, sent to another instance, or sent again after
``WINDOW_SECONDS``. One that may change something also has a number of its own among these headers, so that it is
answered once only. A body that is sent while it is made has no digest yet. It goes in frames instead, each with a code
that depends on all before it, and an empty one at its end: what is changed, left out or cut off is noticed.
"""

import hmac
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256

from msgspec import Struct

WINDOW_SECONDS = 60
"""By how much the clocks of two instances may differ, and how long a request can be sent again."""
SIGNATURE, SIGNED_AT = "X-Docsmith-Signature", "X-Docsmith-Time"
SIGNED_HEADERS, BODY_DIGEST = "X-Docsmith-Signed-Headers", "X-Docsmith-Body"
NONCE = "X-Docsmith-Nonce"
"""Has a random number in each request that may change something."""
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
STREAMED = "framed"
"""In place of a digest: the body goes in frames."""
MAX_FRAME_BYTES = 256 * 1024
_LENGTH_BYTES, _CODE_BYTES = 4, 32


class BadFrame(ValueError):
    """A body is not as it was sent."""


class Signed(Struct, frozen=True):
    """The parts of a request that its signature covers."""

    to: str
    """The name of the instance that is asked."""
    method: str
    target: str
    """The path with its query, as it is sent."""
    at: int
    """Seconds since 1970."""
    body: str
    """The body's digest, or ``STREAMED``."""
    headers: tuple[tuple[str, str], ...] = ()
    """Names in lower case, in order."""

    def code(self, key: bytes) -> bytes:
        lines = [self.to, self.method, self.target, str(self.at), self.body]
        lines += [part for header in self.headers for part in header]
        return hmac.digest(key, b"".join(b"%d:%b" % (len(line), line) for line in map(_encoded, lines)), sha256)

    @property
    def is_for_one_use(self) -> bool:
        """Return whether it may be answered once only. Those of versions before the number was there have none."""
        return self.method not in SAFE_METHODS and any(name == NONCE.lower() for name, _ in self.headers)


def digest_of(body: bytes) -> str:
    return sha256(body).hexdigest()


def signed_headers(
    key: bytes, to: str, method: str, target: str, at: int, body: bytes | None, headers: Mapping[str, str]
) -> dict[str, str]:
    """Return the headers of a request with those that sign it; ``body`` None: it goes in frames."""
    named = tuple(sorted((name.lower(), value.strip()) for name, value in headers.items()))
    signed = Signed(to, method, target, at, STREAMED if body is None else digest_of(body), named)
    return {
        **headers,
        SIGNED_AT: str(at),
        SIGNED_HEADERS: " ".join(name for name, _ in named),
        BODY_DIGEST: signed.body,
        SIGNATURE: signed.code(key).hex(),
    }


def signed_part(to: str, method: str, target: str, headers: Mapping[str, str]) -> Signed | None:
    """Return what a request's headers say is signed; None where they say nothing that can be read.

    ``headers``: with names of any case.
    """
    at, body = headers.get(SIGNED_AT, ""), headers.get(BODY_DIGEST, "")
    names = headers.get(SIGNED_HEADERS, "").split()
    if not (at.isascii() and at.isdigit() and len(at) < 12) or not body or any(name not in headers for name in names):
        return None
    return Signed(to, method, target, int(at), body, tuple((name, headers[name].strip()) for name in names))


def is_genuine(key: bytes, signed: Signed, signature: str, now: float) -> bool:
    """Return whether the signature is that of a request of the last ``WINDOW_SECONDS``, by whichever clock."""
    return is_of_key(key, signed, signature) and abs(now - signed.at) <= WINDOW_SECONDS


def is_of_key(key: bytes, signed: Signed, signature: str) -> bool:
    return hmac.compare_digest(_encoded(signed.code(key).hex()), _encoded(signature))


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")  # as headers were decoded


class Frames:
    """Packs a body that is sent while it is made."""

    def __init__(self, key: bytes, signature: str) -> None:
        """``signature``: that of the request, to which the frames belong."""
        self._key, self._code = key, bytes.fromhex(signature)

    def pack(self, data: bytes) -> Iterator[bytes]:
        """Yield the frames of a part of the body."""
        for at in range(0, len(data), MAX_FRAME_BYTES):
            yield self._frame(data[at : at + MAX_FRAME_BYTES])

    def end(self) -> bytes:
        return self._frame(b"")

    def _frame(self, data: bytes) -> bytes:
        self._code = hmac.digest(self._key, self._code + data, sha256)
        return len(data).to_bytes(_LENGTH_BYTES) + self._code + data


class FrameReader:
    """Unpacks such a body."""

    def __init__(self, key: bytes, signature: str) -> None:
        self._key, self._code, self._held = key, bytes.fromhex(signature), bytearray()
        self.is_complete = False

    def unpack(self, received: bytes) -> Iterable[bytes]:
        """Yield the parts that are complete by now. Raises BadFrame."""
        self._held += received
        while len(self._held) >= _LENGTH_BYTES + _CODE_BYTES:
            length = int.from_bytes(self._held[:_LENGTH_BYTES])
            if length > MAX_FRAME_BYTES or self.is_complete:
                raise BadFrame("the body is no frames")
            end = _LENGTH_BYTES + _CODE_BYTES + length
            if len(self._held) < end:
                return
            code, data = bytes(self._held[_LENGTH_BYTES : end - length]), bytes(self._held[end - length : end])
            del self._held[:end]
            self._code = hmac.digest(self._key, self._code + data, sha256)
            if not hmac.compare_digest(code, self._code):
                raise BadFrame("a frame of the body is not as it was sent")
            if not data:
                self.is_complete = True
            else:
                yield data
        if self.is_complete and self._held:
            raise BadFrame("the body goes on after its end")

    def close(self) -> None:
        """Raise BadFrame where the body is not complete."""
        if not self.is_complete:
            raise BadFrame("the body was cut off")
