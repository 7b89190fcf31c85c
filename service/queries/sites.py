"""Documentation sites: the state of their indexes, and which may be asked without a key."""

import asyncio
import json
import sqlite3
from datetime import datetime

import msgspec
from msgspec import Struct

from eventstore import EventStore, StoreUnavailable, Views, load
from service.domain.access.spending import Spending, day_of
from service.domain.sites import SiteAccessChanged
from service.domain.texts.times import timestamp_from
from service.domain.widget import Widget
from service.streams import SITES, SPENDING, decoded
from service.views.sites import IndexFailure, SiteView, WidgetView

RETRY_SECONDS = 1.0

COLUMNS = (
    "domain, project_id, organization_id, index_wanted, wanted_at, commit_id, indexed_at, pages, sections,"
    " skipped_count, failure_code, failure_message, failed_at, failures, file, public, origins, widget"
)


class Site(Struct, frozen=True):
    """A site as it is shown, and the name of its index's folder."""

    view: SiteView
    file: str | None

    @property
    def is_behind(self) -> bool:
        """Return whether a newer index is wanted, or the last attempt failed."""
        return self.view.index_wanted or self.view.failure is not None


async def list_sites(views: Views) -> list[Site]:
    """Return all, by domain."""
    rows = await views.query(f"SELECT {COLUMNS} FROM sites ORDER BY domain", ())  # noqa: S608  (no input)
    return [_site(row) for row in rows]


async def list_organization_sites(views: Views, organization_id: str) -> list[Site]:
    """Return an organization's, by domain."""
    sql = f"SELECT {COLUMNS} FROM sites WHERE organization_id = ? ORDER BY domain"  # noqa: S608  (no input)
    return [_site(row) for row in await views.query(sql, (organization_id,))]


async def list_sites_of(views: Views, organization_id: str, *, after: str = "", limit: int) -> list[Site]:
    """Return an organization's sites, by domain, those after a domain."""
    rows = await views.query(
        f"SELECT {COLUMNS} FROM sites WHERE organization_id = ? AND domain > ? ORDER BY domain LIMIT ?",  # noqa: S608
        (organization_id, after, limit),
    )
    return [_site(row) for row in rows]


async def get_site(views: Views, domain: str) -> Site | None:
    row = await views.query_one(f"SELECT {COLUMNS} FROM sites WHERE domain = ?", (domain,))  # noqa: S608  (no input)
    return _site(row) if row else None


def _site(row: sqlite3.Row) -> Site:
    failure = None
    if row["failure_code"] is not None:
        failed_at = _time(row["failed_at"]) or ""
        failure = IndexFailure(row["failure_code"], row["failure_message"], failed_at, row["failures"])
    view = SiteView(
        domain=row["domain"],
        project_id=row["project_id"],
        organization_id=row["organization_id"],
        index_wanted=bool(row["index_wanted"]),
        wanted_at=_time(row["wanted_at"]),
        commit=row["commit_id"],
        indexed_at=_time(row["indexed_at"]),
        pages=row["pages"],
        sections=row["sections"],
        skipped_count=row["skipped_count"],
        failure=failure,
        public=bool(row["public"]),
        origins=tuple(json.loads(row["origins"])),
        widget=_widget(msgspec.json.decode(row["widget"], type=Widget)),
    )
    return Site(view, row["file"])


def _widget(widget: Widget) -> WidgetView:
    return WidgetView(
        widget.title, widget.greeting, widget.suggestions, widget.hand_off, widget.form, widget.accent
    )  # fmt: skip


def _time(text: str | None) -> str | None:
    return None if text is None else timestamp_from(text)


async def spent_on(store: EventStore, domain: str, at: datetime) -> Spending:
    """Return what a site's replies cost on that day of UTC, as far as a cost bound was set."""
    return (await load(store, SPENDING, day_of(domain, at), may_be_old=True)).state


class PublicSite(Struct, frozen=True):
    """A site that may be asked without a key."""

    organization_id: str
    origins: tuple[str, ...]
    """The websites whose pages may ask it."""


class PublicSites:
    """The public sites in memory: a site that is private and one that does not exist are missing alike.

    ``run`` keeps up with changes of any process, within 25 ms or so.
    """

    def __init__(self, store: EventStore, views: Views) -> None:
        self._store, self._views = store, views
        self._position = 0
        self._changed = asyncio.Event()
        """Sites that were opened or closed are to be read."""
        self._sites: dict[str, PublicSite] = {}

    async def load(self) -> None:
        """Read the sites from the rows as far as they go; ``run`` applies what came since."""
        self._position = min((status.position for status in self._views.status()), default=0)
        await self._read()

    async def run(self) -> None:
        """Follow the log until cancelled."""
        async with asyncio.TaskGroup() as following:
            following.create_task(self._read_changed())
            async for batch in self._store.follow(after=self._position, category=SITES.category):
                changed = [each for each in decoded(SITES, batch) if isinstance(each[1], SiteAccessChanged)]
                for domain, _ in changed:
                    self._sites.pop(domain, None)  # until its row is there: a site that was closed is closed at once
                if changed:
                    self._position = batch[-1].position
                    self._changed.set()

    async def _read_changed(self) -> None:
        """Read the rows after each change; what is not certain stays closed meanwhile."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            try:
                await self._views.wait_for(self._position)
                await self._read()
            except (StoreUnavailable, TimeoutError):
                await asyncio.sleep(RETRY_SECONDS)
                self._changed.set()

    def find(self, domain: str) -> PublicSite | None:
        return self._sites.get(domain)

    def domains(self) -> list[str]:
        """Return the domains of all, sorted."""
        return sorted(self._sites)

    async def _read(self) -> None:
        rows = await self._views.query("SELECT domain, organization_id, origins FROM sites WHERE public", ())
        if not self._changed.is_set():  # else the rows may be old, and are read again
            self._sites = {
                row["domain"]: PublicSite(row["organization_id"], tuple(json.loads(row["origins"]))) for row in rows
            }
