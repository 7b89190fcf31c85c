"""When keys were last used: one event an hour for each key in use, whatever the number of its requests."""

import asyncio
from datetime import datetime

import structlog

from eventstore import EventStore, StoreUnavailable
from service.commands.access.keys import note_use_of_key
from service.domain.access.keys import USE_NOTED_EVERY
from service.domain.errors import ServiceError
from service.queries.access.keys import KnownKey

log = structlog.get_logger()

RETRY_SECONDS = 60.0
"""After the log could not be written."""


class KeyUses:
    def __init__(self, store: EventStore) -> None:
        self._store = store
        self._used: set[str] = set()
        self._any = asyncio.Event()

    def note(self, key: KnownKey, at: datetime) -> None:
        """The key opened something just now."""
        if key.state.used_at is None or at - key.state.used_at >= USE_NOTED_EVERY:
            self._used.add(key.id)
            self._any.set()

    async def run(self) -> None:
        """Record uses until cancelled."""
        while True:
            await self._any.wait()
            self._any.clear()
            used, self._used = self._used, set()
            for key_id in used:
                try:
                    await note_use_of_key(self._store, key_id)
                except ServiceError as error:
                    log.warning("use of a key not recorded", key_id=key_id, code=error.code)
                except StoreUnavailable as error:
                    log.warning("use of a key not recorded", key_id=key_id, reason=str(error))
                    await asyncio.sleep(RETRY_SECONDS)
