"""Documentation sites and the state of their indexes, as rows."""

import sqlite3
from collections.abc import Sequence
from typing import assert_never

from msgspec import Struct

from eventstore import RecordedEvent, Views
from service.domain.sites import IndexFailed, IndexKept, IndexRequested, SiteIndexed, SiteRegistered
from service.streams import SITES, decoded


class SiteRow(Struct, frozen=True):
    domain: str
    project_id: str
    organization_id: str
    index_wanted: bool
    commit: str | None
    file: str | None
    pages: int
    sections: int
    skipped_count: int
    indexed_at: str | None
    failure_code: str | None
    failure_message: str | None
    wanted_at: str | None
    """When the index was asked for that is not there yet."""
    failed_at: str | None
    failures: int
    """In a row."""


COLUMNS = (
    "domain, project_id, organization_id, index_wanted, commit_id, file, pages, sections, skipped_count, indexed_at,"
    " failure_code, failure_message, wanted_at, failed_at, failures"
)


UP_TO_DATE = """
    UPDATE sites SET index_wanted = 0, wanted_at = NULL, failure_code = NULL, failure_message = NULL, failed_at = NULL,
        failures = 0
    WHERE domain = ?
"""


class SitesView:
    name = "sites-3"
    tables = """
        CREATE TABLE sites (
            domain TEXT PRIMARY KEY,
            project_id TEXT NOT NULL,
            organization_id TEXT NOT NULL,
            index_wanted INTEGER NOT NULL DEFAULT 1,
            commit_id TEXT,
            file TEXT,
            pages INTEGER NOT NULL DEFAULT 0,
            sections INTEGER NOT NULL DEFAULT 0,
            skipped_count INTEGER NOT NULL DEFAULT 0,
            indexed_at TEXT,
            failure_code TEXT,
            failure_message TEXT,
            wanted_at TEXT,
            failed_at TEXT,
            failures INTEGER NOT NULL DEFAULT 0
        ) STRICT;
    """

    def apply(self, db: sqlite3.Connection, events: Sequence[RecordedEvent]) -> None:
        for domain, event in decoded(SITES, events):
            match event:
                case SiteRegistered(project_id=project_id, organization_id=organization_id, registered_at=at):
                    db.execute(
                        "INSERT INTO sites (domain, project_id, organization_id, wanted_at) VALUES (?, ?, ?, ?)",
                        (domain, project_id, organization_id, at.isoformat()),
                    )
                case IndexRequested(requested_at=at):
                    db.execute(
                        "UPDATE sites SET index_wanted = 1, wanted_at = coalesce(wanted_at, ?) WHERE domain = ?",
                        (at.isoformat(), domain),
                    )
                case SiteIndexed() as done:
                    db.execute(
                        "UPDATE sites SET commit_id = ?, file = ?, pages = ?, sections = ?, skipped_count = ?,"
                        " indexed_at = ? WHERE domain = ?",
                        (
                            done.commit, done.file, done.pages, done.sections, done.skipped_count,
                            done.indexed_at.isoformat(), domain,
                        ),
                    )  # fmt: skip
                    db.execute(UP_TO_DATE, (domain,))
                case IndexKept():
                    db.execute(UP_TO_DATE, (domain,))
                case IndexFailed(code=code, message=message, failed_at=at):
                    db.execute(
                        "UPDATE sites SET index_wanted = 0, failure_code = ?, failure_message = ?, failed_at = ?,"
                        " failures = failures + 1 WHERE domain = ?",
                        (code, message, at.isoformat(), domain),
                    )
                case unknown:
                    assert_never(unknown)


def _row(row: sqlite3.Row) -> SiteRow:
    domain, project_id, organization_id, index_wanted, *rest = row
    return SiteRow(domain, project_id, organization_id, bool(index_wanted), *rest)


async def list_sites(views: Views) -> list[SiteRow]:
    rows = await views.query(f"SELECT {COLUMNS} FROM sites ORDER BY domain", ())  # noqa: S608  (no input)
    return [_row(row) for row in rows]


async def get_site(views: Views, domain: str) -> SiteRow | None:
    row = await views.query_one(f"SELECT {COLUMNS} FROM sites WHERE domain = ?", (domain,))  # noqa: S608  (no input)
    return _row(row) if row else None
