"""Instances that answer each other in one process, and may be away."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

from msgspec import Struct, field

from service.ports.shared.internal_http import InstanceUnreachable


class Asked(Struct, frozen=True):
    """A request as it arrived."""

    to: str
    method: str
    target: str
    headers: dict[str, str]
    body: bytes


class Answered(Struct, frozen=True):
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    parts: Sequence[bytes] = ()
    is_cut: bool = False
    """The body ends early."""


class FakeInternalHttp:
    def __init__(self, answer: Callable[[Asked], Awaitable[Answered]]) -> None:
        self._answer = answer
        self.away: set[str] = set()
        """Names of instances that cannot be reached."""

    @asynccontextmanager
    async def send(self, peer, request):
        if peer.name in self.away:
            raise InstanceUnreachable(f"The instance {peer.name} cannot be reached.")
        body = request.body if isinstance(request.body, bytes) else b"".join([part async for part in request.body])
        headers = {name.lower(): value for name, value in request.headers.items()}
        asked = Asked(peer.name, request.method, request.target, headers, body)
        yield _FakeAnswer(await self._answer(asked))


class _FakeAnswer:
    def __init__(self, answered: Answered) -> None:
        self._answered, self.status, self.headers = answered, answered.status, answered.headers

    async def parts(self) -> AsyncIterator[bytes]:
        for part in self._answered.parts:
            yield part
        if self._answered.is_cut:
            raise InstanceUnreachable("The answer was cut off.")

    async def read(self, most):
        body = b"".join([part async for part in self.parts()])
        if len(body) > most:
            raise InstanceUnreachable("The answer is too large.")
        return body
