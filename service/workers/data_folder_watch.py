"""Looks whether the data folder can be written, so that the service says so itself before its callers do."""

import asyncio
from contextlib import suppress
from pathlib import Path

import structlog

from eventstore import EventStore, EventStoreError
from service.runtime.data_folder import Trouble, trouble_of

log = structlog.get_logger()

LOOK_SECONDS = 1.0


class DataFolderWatch:
    def __init__(self, data: Path, store: EventStore) -> None:
        self._data, self._store = data, store
        self.is_writable = asyncio.Event()
        """Set when the last look found that it can be written."""
        self._was: str | None = None

    def trouble(self) -> Trouble | None:
        """Return why the data folder cannot be written, as far as is known now; each change is logged once."""
        found, why = trouble_of(self._data), self._store.trouble
        if found is None and why is not None:
            found = Trouble("write_failed", f"The log cannot be written ({why}): it is tried again each second.")
        kind = None if found is None else found.kind
        if found is not None and self._was is None:
            log.warning("the data folder cannot be written", kind=kind, reason=found.says)
        elif found is None and self._was is not None:
            log.info("the data folder can be written again")
        self._was = kind
        return found

    def trouble_kind(self) -> str:
        """Empty when there is none."""
        trouble = self.trouble()
        return "" if trouble is None else trouble.kind

    async def run(self) -> None:
        """Run until cancelled."""
        while True:
            trouble = self.trouble()
            if trouble is not None and trouble.kind == "write_failed":  # a quota, a limit: only a try shows it
                with suppress(EventStoreError):
                    await self._store.check_writable()
                    trouble = self.trouble()
            if trouble is None:
                self.is_writable.set()
            else:
                self.is_writable.clear()
            await asyncio.sleep(LOOK_SECONDS)
