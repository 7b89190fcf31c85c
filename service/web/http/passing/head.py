"""The head of a request that is passed on, as it travels in the first part of the body."""

from collections.abc import Mapping

from aiohttp import hdrs, web
from msgspec import Struct, msgpack
from multidict import CIMultiDict

PASSED_PATH = "/internal/requests"
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")

_OF_A_CONNECTION = frozenset(
    {"connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade", "expect"}
)
"""Headers for the next server alone (RFC 9110, section 7.6.1), and the one that is answered already."""
_TEXT = ("utf-8", "surrogateescape")
"""How aiohttp reads headers."""


class Head(Struct, frozen=True):
    """A request without its body, as it arrived from its client."""

    method: str
    target: str
    headers: tuple[tuple[bytes, bytes], ...]
    remote: str
    """The address of the other end of its connection."""
    scheme: str
    has_body: bool

    @classmethod
    def of(cls, request: web.Request, request_id: str) -> "Head":
        """Return the head to pass on. ``request_id``: the one that both instances log."""
        dropped = {*_OF_A_CONNECTION, "x-request-id"}  # and none that the client names: it names what proxies add, too
        headers = [(name, value) for name, value in request.headers.items() if name.lower() not in dropped]
        headers.append(("X-Request-Id", request_id))
        encoded = tuple((name.encode(*_TEXT), value.encode(*_TEXT)) for name, value in headers)
        return cls(request.method, request.raw_path, encoded, request.remote or "", request.scheme, request.body_exists)

    def fields(self) -> CIMultiDict[str]:
        return CIMultiDict((name.decode(*_TEXT), value.decode(*_TEXT)) for name, value in self.headers)


def encoded(head: Head) -> bytes:
    return msgpack.encode(head)


def decoded(content: bytes) -> Head:
    """Raise msgspec.DecodeError."""
    return msgpack.decode(content, type=Head)


def passed_fields(headers: Mapping[str, str]) -> CIMultiDict[str]:
    """Return the headers of an answer that its client is to get."""
    named = {name.strip().lower() for name in headers.get(hdrs.CONNECTION, "").split(",")}
    dropped = named | _OF_A_CONNECTION
    return CIMultiDict((name, value) for name, value in headers.items() if name.lower() not in dropped)
