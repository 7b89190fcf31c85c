"""Capabilities of servers of models in the log: learned once, for all instances."""

import time
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime

import structlog

from eventstore import EventStore, EventStoreError, execute, load
from service.domain.errors import ServiceError
from service.domain.model_capabilities import Capability, RecordRefusal, Refusals
from service.runtime.system import now as system_now
from service.streams import MODEL_CAPABILITIES

KNOWN_SECONDS = 5.0
"""For so long a server's refusals are not read again: another instance may have learned one meanwhile."""
MAX_KNOWN = 200

log = structlog.get_logger()


class LoggedCapabilities:
    """Refusals as the log has them."""

    def __init__(
        self,
        store: EventStore,
        *,
        now: Callable[[], datetime] = system_now,
        seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store, self._now, self._seconds = store, now, seconds
        self._known: dict[str, tuple[float, Refusals]] = {}

    async def refused(self, server: str) -> frozenset[str]:
        read_at, known = self._known.get(server, (None, Refusals()))
        if read_at is None or self._seconds() - read_at >= KNOWN_SECONDS:
            with suppress(EventStoreError):  # the log is away: what was known stays
                known = (await load(self._store, MODEL_CAPABILITIES, server)).state
            self._note(server, known)
        return known.at(self._now())

    async def learn(self, server: str, capability: Capability, *, model: str, address: str) -> None:
        command = RecordRefusal(capability, model, address, self._now())
        try:
            done = await execute(self._store, MODEL_CAPABILITIES, server, command)
        except (EventStoreError, ServiceError) as error:
            log.warning("a capability of a model could not be recorded", capability=capability, reason=str(error))
            known = self._known.get(server, (0.0, Refusals()))[1]
            self._note(server, Refusals({**known.refused_at, capability: command.now}))
        else:
            log.info("a server refuses a part of requests", capability=capability, model=model)
            self._note(server, done.state)

    def _note(self, server: str, known: Refusals) -> None:
        if len(self._known) >= MAX_KNOWN:
            self._known.clear()
        self._known[server] = (self._seconds(), known)
