"""Requests from one instance of a log to another, which only they can make: see ``service.ports.shared.instances``."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from msgspec import DecodeError, Struct, field, json

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


async def ask_instance(
    http: InternalHttp, peer: Peer, request: InternalRequest, wanted: Any, *, seconds: float, most: int
) -> Any:
    """Return the JSON that another instance answers, as the type ``wanted``; None for a status other than 200.

    Raises InstanceUnreachable, also where the answer takes longer than ``seconds``, has more than ``most`` bytes or is
    of another type.
    """
    try:
        async with asyncio.timeout(seconds), http.send(peer, request) as answer:
            return json.decode(await answer.read(most), type=wanted) if answer.status == 200 else None
    except TimeoutError:
        raise InstanceUnreachable("it takes too long") from None
    except DecodeError as error:
        raise InstanceUnreachable(str(error)) from None
