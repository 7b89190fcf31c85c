"""Memory of what servers of models refuse, shared by all who ask them."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Protocol

from service.domain.model_capabilities import Capability, RecordRefusal, Refusals, decide, evolve


class Capabilities(Protocol):
    async def refused(self, server: str) -> frozenset[str]:
        """Return the capabilities that a server refuses, as learned within the last day. ``server``: an id for its
        address, its model and the settings of that.
        """

    async def learn(self, server: str, capability: Capability, *, model: str, address: str) -> None:
        """Remember a refusal. Failures of the memory are not raised: a refusal is then learned again."""


class LearnedHere:
    """Remembers in this process alone."""

    def __init__(self, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._now = now
        self._servers: dict[str, Refusals] = {}

    async def refused(self, server: str) -> frozenset[str]:
        return self._servers.get(server, Refusals()).at(self._now())

    async def learn(self, server: str, capability: Capability, *, model: str, address: str) -> None:
        state = self._servers.get(server, Refusals())
        for event in decide(RecordRefusal(capability, model, address, self._now()), state):
            self._servers[server] = evolve(state, event)
