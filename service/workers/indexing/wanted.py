"""The sites whose index is older than it should be: why, since when, and the results of the tries."""

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timedelta
from typing import NamedTuple

from service.domain.errors import NO_ROOM
from service.runtime.processes import OUT_OF_MEMORY, PROCESS_DIED, TIMED_OUT
from service.runtime.system import now
from service.views.sites import IndexingView

BEHIND_SECONDS = 60.0
"""After which a site whose index is wanted counts as behind."""
MAX_BEHIND = 50
"""Sites that are named at a time."""
RESTING = frozenset({TIMED_OUT, OUT_OF_MEMORY, PROCESS_DIED, "too_large", "internal"})
"""Failures that cost much: after them a site waits even when it is asked for again."""


class Wanted:
    """A site whose index is older than it should be."""

    def __init__(self) -> None:
        self.wanted, self.indexed = asyncio.Event(), asyncio.Event()
        self.since = now()
        self.stage = "it waits for its turn"
        self.failures, self.code = 0, ""
        self.has_task = False
        self.is_long = False
        self.seen: str | None = None
        """The index that the site had when it was decided to index it."""
        self.done = (0, 0)
        """Files that were read, and all."""

    def reason(self) -> str:
        """Return a sentence without anything of the site's own, for all to read."""
        text = f"behind since {at(self.since)}: {self.stage}"
        if self.failures:
            text += f"; {self.failures} {'try' if self.failures == 1 else 'tries'} failed, the last one: {self.code}"
        return text


class Progress:
    """How far the indexing of a site is, whichever instance it is with."""

    def __init__(
        self,
        here: Callable[[str], IndexingView | None],
        elsewhere: Callable[[str], Awaitable[IndexingView | None]] | None = None,
    ) -> None:
        """``elsewhere``: None where no other instance shares the log."""
        self.here, self._elsewhere = here, elsewhere

    async def __call__(self, domain: str) -> IndexingView | None:
        """Return how far it is; None while none is under way or waits. Raises StoreUnavailable."""
        found = None if self._elsewhere is None else await self._elsewhere(domain)
        return found or self.here(domain)


def reasons_behind(sites: Mapping[str, Wanted]) -> Mapping[str, str]:
    """Return why sites are behind; those that wait the longest."""
    late = now() - timedelta(seconds=BEHIND_SECONDS)
    found = [(domain, site) for domain, site in sites.items() if site.failures or site.since < late]
    found.sort(key=lambda item: item[1].since)
    return {domain: site.reason() for domain, site in found[:MAX_BEHIND]}


class Failure(NamedTuple):
    code: str
    may_pass: bool
    after_seconds: float = 0.0

    @property
    def rests(self) -> bool:
        return self.code in RESTING


def says_no_room(error: OSError | sqlite3.Error) -> bool:
    if isinstance(error, OSError):
        return error.errno in NO_ROOM
    return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_FULL


def at(time: datetime) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")


async def first_of(waits: "list[Awaitable[object]]") -> None:
    """Wait for the first of these, and leave the others."""
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
