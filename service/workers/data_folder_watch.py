"""Looks whether the data folder can be written, so that the service says so itself before its callers do."""

import asyncio
from contextlib import suppress
from pathlib import Path

import structlog
from msgspec import Struct

from eventstore import EventStore, EventStoreError, LogPlace
from service.runtime.data_folder import Trouble, trouble_of

log = structlog.get_logger()

LOOK_SECONDS = 1.0


class AwayLog(Struct, frozen=True):
    """A log that could not be used in full when the service was started."""

    place: LogPlace
    says: str
    """Why, in one sentence or two."""


class DataFolderWatch:
    def __init__(self, data: Path, store: EventStore, away: AwayLog | None = None) -> None:
        """``away``: for a service that only reads until the log can be used in full."""
        self._data, self._store, self._away_log = data, store, away
        self.is_writable = asyncio.Event()
        """Set when the last look found that it can be written."""
        self._was: str | None = None

    def trouble(self) -> Trouble | None:
        """Return why the data folder cannot be written, as far as is known now; each change is logged once."""
        found, why = trouble_of(self._data), self._store.trouble
        if found is None and (away := self._away()) is not None:
            found = Trouble("log_away", away)
        elif found is None and why is not None:
            found = Trouble("write_failed", f"The log cannot be written ({why}): it is tried again each second.")
        kind = None if found is None else found.kind
        if found is not None and self._was is None:
            log.warning("the data folder cannot be written", kind=kind, reason=found.says)
        elif found is None and self._was is not None:
            log.info("the data folder can be written again")
        self._was = kind
        return found

    def _away(self) -> str | None:
        if self._store.away is not None:
            return f"{self._store.away}. Until then the log's copy on this machine is read."
        return None if self._away_log is None else self._away_log.says

    def trouble_kind(self) -> str:
        """Empty when there is none."""
        trouble = self.trouble()
        return "" if trouble is None else trouble.kind

    async def _try(self) -> None:
        if self._away_log is None:
            await self._store.check_writable()
        elif not await asyncio.to_thread(self._away_log.place.is_standby):
            await (await self._away_log.place.open(read_only=True)).close()
            self._away_log = None

    async def run(self) -> None:
        """Run until cancelled."""
        while True:
            trouble = self.trouble()
            if trouble is not None and trouble.kind in {"write_failed", "log_away"}:  # only a try shows that it is over
                with suppress(EventStoreError):
                    await self._try()
                    trouble = self.trouble()
            if trouble is None:
                self.is_writable.set()
            else:
                self.is_writable.clear()
            await asyncio.sleep(LOOK_SECONDS)
