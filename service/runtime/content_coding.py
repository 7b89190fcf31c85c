"""Unpack request bodies that come compressed (``Content-Encoding``, RFC 9110, section 8.4.1), within a bound.

aiohttp can do it while it reads, but on the event loop, and it goes on with the rest of a body that was refused. So
that is turned off. Unpacking is for a thread: zlib releases the interpreter's lock while it works.
"""

import zlib
from collections.abc import Iterator

from service.domain.errors import BodyBroken, BodyTooLarge, UnsupportedMediaType

PIECE = 256 * 1024

_GZIP, _ZLIB, _RAW = zlib.MAX_WBITS | 16, zlib.MAX_WBITS, -zlib.MAX_WBITS


class Unpacking:
    """One body, in pieces, up to ``most`` bytes of it. Not for an event loop to call where the body is compressed."""

    def __init__(self, coding: str, most: int) -> None:
        """Raise UnsupportedMediaType for a coding other than gzip, deflate and identity."""
        self._coding, self._most = coding.strip().lower() or "identity", most
        if self._coding not in ("identity", "gzip", "x-gzip", "deflate"):
            raise UnsupportedMediaType(
                f"Unsupported Content-Encoding: {coding[:40]!r}. Send the body as gzip or deflate."
            )
        self._decoder: zlib._Decompress | None = None
        self._written = 0

    @property
    def is_identity(self) -> bool:
        return self._coding == "identity"

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the next piece of the body unpacked. Raises BodyTooLarge, and Invalid where it is not packed so."""
        if not self.is_identity:
            yield from self._unpacked(data)
        elif data:
            yield self._counted(data)

    def end(self) -> None:
        """Raise Invalid where the body ends before what is packed does. An empty body is empty."""
        if self._decoder is not None and not self._decoder.eof:
            raise BodyBroken()

    def _unpacked(self, data: bytes) -> Iterator[bytes]:
        if self._decoder is None:
            if not data:
                return
            self._decoder = zlib.decompressobj(self._window(data))
        try:
            while True:
                piece = self._decoder.decompress(data, PIECE)
                if piece:
                    yield self._counted(piece)
                data = self._decoder.unconsumed_tail
                if self._decoder.unused_data:
                    raise BodyBroken()
                if not data and len(piece) < PIECE:
                    return
        except zlib.error:
            raise BodyBroken() from None

    def _window(self, data: bytes) -> int:
        """Some clients send "deflate" without the header that it has (RFC 9110, section 8.4.1.2)."""
        if self._coding != "deflate":
            return _GZIP
        return _ZLIB if data[0] & 0xF == zlib.DEFLATED else _RAW

    def _counted(self, piece: bytes) -> bytes:
        self._written += len(piece)
        if self._written > self._most:
            raise BodyTooLarge(self._most)
        return piece


def unpacked(coding: str, body: bytes, most: int) -> bytes:
    """Return a whole body unpacked; see Unpacking."""
    unpacking = Unpacking(coding, most)
    whole = b"".join(unpacking.feed(body))
    unpacking.end()
    return whole
