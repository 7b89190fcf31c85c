"""Requests from one instance of a log to another, which only they can make: see ``service.ports.shared.instances``."""

from collections.abc import AsyncGenerator, AsyncIterable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from msgspec import Struct, field

from service.domain.errors import Unavailable
from service.ports.shared.instances import Peer

SILENT_SECONDS = 15.0


class InstanceUnreachable(Unavailable):
    """Another instance does not answer, or its answer was cut off."""

    code = "instance_unreachable"


class InternalRequest(Struct, frozen=True):
    method: str
    target: str
    """The path, which begins with ``/internal/``, and its query, percent-encoded as they are sent."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """They are signed, too."""
    body: bytes | AsyncIterable[bytes] = b""
    silent_seconds: float = SILENT_SECONDS
    """Limit for the answer to begin, once the body is sent, and for each further part of it."""


class InternalAnswer(Protocol):
    @property
    def status(self) -> int:
        """Return the status; 404 is also that of an instance which does not know the path, being of another version."""

    @property
    def headers(self) -> Mapping[str, str]: ...

    def parts(self) -> AsyncGenerator[bytes, None]:
        """Yield the body as it arrives. Raises InstanceUnreachable where it ends early."""

    async def read(self, most: int) -> bytes:
        """Return the whole body. Raises InstanceUnreachable, also where it has more than ``most`` bytes."""


class InternalHttp(Protocol):
    def send(self, peer: Peer, request: InternalRequest) -> AbstractAsyncContextManager[InternalAnswer]:
        """Send the request. Raises InstanceUnreachable on entering.

        A request may have been carried out although it raises. No redirect is followed.
        """
