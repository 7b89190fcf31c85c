"""Documentation sites and the state of their indexes."""

import sqlite3

from msgspec import Struct

from eventstore import Views
from service.domain.times import timestamp_from
from service.views.sites import IndexFailure, SiteView

COLUMNS = (
    "domain, project_id, organization_id, index_wanted, wanted_at, commit_id, indexed_at, pages, sections,"
    " skipped_count, failure_code, failure_message, failed_at, failures, file"
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
    )
    return Site(view, row["file"])


def _time(text: str | None) -> str | None:
    return None if text is None else timestamp_from(text)
