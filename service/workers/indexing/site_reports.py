"""How well each site was read, in a child process: a large site's sections take a while to look through."""

import sqlite3
from collections import OrderedDict
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import convert

from service.domain.errors import NotFound, Unavailable
from service.queries.sites import Site
from service.runtime.processes import run_in_child
from service.runtime.shares import Shares
from service.views.sites import SiteReportView

if TYPE_CHECKING:
    from service.retrieval.index.check import SiteCheck

SECONDS, MEMORY_BYTES = 120.0, 2 * 1024**3
SLOTS, SLOTS_EACH, WAITING_EACH, WAIT_SECONDS = 3, 1, 8, 150.0
KEPT = 16
"""Reports in memory, each of a thousand findings of a kind at most."""


class SiteReports:
    """``path_of`` returns the folder of a site's index, by domain and name."""

    def __init__(self, path_of: Callable[[str, str], Path], on_refused: Callable[[], None] = lambda: None) -> None:
        self._path_of = path_of
        self._shares = Shares(SLOTS, (SLOTS_EACH,), waiting=WAITING_EACH, seconds=WAIT_SECONDS, on_refused=on_refused)
        self._kept: OrderedDict[tuple[str, str], SiteReportView] = OrderedDict()

    async def report(self, site: Site) -> SiteReportView:
        """Return the report of the index that the site has.

        Raises NotFound (``not_indexed``), and Unavailable when it takes too long, a newer index has taken over, or this
        one is still at the instance that built it.
        """
        if site.file is None:
            raise NotFound("This site has not been indexed yet.", code="not_indexed")
        name = (site.view.domain, site.file)
        if name not in self._kept:
            async with self._shares.slot(site.view.organization_id):
                if name not in self._kept:
                    self._kept[name] = await self._made(*name)
        self._kept.move_to_end(name)
        report = self._kept[name]
        while len(self._kept) > KEPT:
            self._kept.popitem(last=False)
        return report

    async def _made(self, domain: str, file: str) -> SiteReportView:
        try:
            check = await run_in_child(
                _check, self._path_of(domain, file), timeout_seconds=SECONDS, memory_bytes=MEMORY_BYTES
            )
        except (sqlite3.Error, OSError):
            raise Unavailable(
                "This index was replaced, or is not fetched from another instance yet. Try again.",
                retry_after_seconds=1.0,
            ) from None
        return convert(check, SiteReportView, from_attributes=True)


def _check(folder: Path) -> "SiteCheck":
    # In the child alone: their expressions take 40 ms to compile.
    from service.retrieval.index.check import check_index
    from service.retrieval.index.stored import PAGES_FILE

    uri = f"{(folder / PAGES_FILE).absolute().as_uri()}?mode=ro&immutable=1"
    with closing(sqlite3.connect(uri, uri=True)) as db:
        return check_index(db)
