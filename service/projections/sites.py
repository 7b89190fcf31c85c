"""Documentation sites and the state of their indexes, as rows."""

import json
import sqlite3
from collections.abc import Sequence
from typing import assert_never

import msgspec

from eventstore import RecordedEvent
from service.domain.sites import (
    IndexFailed,
    IndexingStarted,
    IndexKept,
    IndexRequested,
    SiteAccessChanged,
    SiteIndexed,
    SiteRegistered,
    SiteWidgetChanged,
)
from service.streams import SITES, decoded

UP_TO_DATE = """
    UPDATE sites SET index_wanted = 0, wanted_at = NULL, failure_code = NULL, failure_message = NULL, failed_at = NULL,
        failures = 0
    WHERE domain = ?
"""


class SitesView:
    name = "sites-6"
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
            failures INTEGER NOT NULL DEFAULT 0,
            public INTEGER NOT NULL DEFAULT 0,
            origins TEXT NOT NULL DEFAULT '[]',  -- JSON
            widget TEXT NOT NULL DEFAULT '{}'  -- JSON
        ) STRICT;
        CREATE INDEX sites_by_organization ON sites (organization_id, domain);
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
                case IndexingStarted():
                    pass
                case IndexKept():
                    db.execute(UP_TO_DATE, (domain,))
                case IndexFailed(code=code, message=message, failed_at=at):
                    db.execute(
                        "UPDATE sites SET index_wanted = 0, failure_code = ?, failure_message = ?, failed_at = ?,"
                        " failures = failures + 1 WHERE domain = ?",
                        (code, message, at.isoformat(), domain),
                    )
                case SiteAccessChanged(public=public, origins=origins):
                    db.execute(
                        "UPDATE sites SET public = ?, origins = ? WHERE domain = ?",
                        (public, json.dumps(origins), domain),
                    )
                case SiteWidgetChanged(widget=widget):
                    db.execute(
                        "UPDATE sites SET widget = ? WHERE domain = ?", (msgspec.json.encode(widget).decode(), domain)
                    )
                case unknown:
                    assert_never(unknown)
