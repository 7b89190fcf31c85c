"""Looks whether the repositories of the embedded code host are there, and hold what was written.

They are the truth, as the log is, and only backups have them besides. A disk that changes a bit says nothing, so all of
each repository is read at the start and once a day; whether its folder is there is looked at all the time.
"""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import structlog

from eventstore import Views
from service.domain.errors import Invalid, Unavailable
from service.queries.projects import list_projects
from service.runtime.hosted_place import HostedPlace
from service.runtime.processes import run_in_child

log = structlog.get_logger()

LOOK_SECONDS = 5.0
CHECK_LOOKS = round(86_400 / LOOK_SECONDS)
"""Looks between two checks of everything."""
AGAIN_LOOKS = 3
"""Looks between two checks of what was found damaged: it may have been restored."""
CHECK_SECONDS = 3_600.0
CHECK_BYTES = 4 * 1024 * 1024 * 1024
"""Limit for the address space of a check; packs are mapped into it."""


class HostedCheck:
    """``find_damages`` gets repositories, and returns what is wrong with which, by name. ``sleep``: between looks."""

    def __init__(
        self,
        place: HostedPlace,
        views: Views,
        find_damages: Callable[[list[Path]], dict[str, str]],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._place, self._views, self._find_damages, self._sleep = place, views, find_damages, sleep
        self._looks = 0
        self._damaged: dict[str, str] = {}
        self._gone: set[str] = set()

    @property
    def damage(self) -> str | None:
        """The repositories that are damaged or gone, with the way back; None while all are sound, as far as known."""
        found = self._damaged | dict.fromkeys(sorted(self._gone), "its folder is gone")
        if not found:
            return None
        name = next(iter(found)).removesuffix(".git")
        return "; ".join(f"{one}: {says}" for one, says in found.items()) + f": docsmith restore BACKUP --only {name}"

    async def run(self) -> None:
        """Run until cancelled."""
        while True:
            await self.look()
            await self._sleep(LOOK_SECONDS)

    async def look(self) -> None:
        """Look once: at the folders and, when it is time, at all that is in them."""
        if not self._place.is_here or self._place.trouble is not None:
            self._damaged, self._gone = {}, set()
            return
        projects = await list_projects(self._views)
        wanted = [self._place.repository(one.id) for one in projects if one.code_host == "local"]
        there = await asyncio.to_thread(lambda: [one for one in wanted if one.is_dir()])
        gone = {one.name for one in wanted} - {one.name for one in there}
        for name in sorted(gone - self._gone):
            log.error("a hosted repository is gone", repository=name)
        is_whole_check = self._looks % CHECK_LOOKS == 0
        suspects = there if is_whole_check else [one for one in there if one.name in self._damaged.keys() | self._gone]
        self._gone = gone
        if suspects and (is_whole_check or self._looks % AGAIN_LOOKS == 0):
            await self._check(suspects)
        self._looks += 1

    async def _check(self, repositories: list[Path]) -> None:
        try:
            found = await run_in_child(
                self._find_damages, repositories, timeout_seconds=CHECK_SECONDS, memory_bytes=CHECK_BYTES
            )
        except (Invalid, Unavailable) as error:
            log.warning("the hosted repositories were not checked", reason=str(error))
            return
        for name, says in found.items():
            if self._damaged.get(name) != says:
                log.error("a hosted repository is damaged", repository=name, reason=says)
        kept = {name: says for name, says in self._damaged.items() if name not in {one.name for one in repositories}}
        self._damaged = kept | found
