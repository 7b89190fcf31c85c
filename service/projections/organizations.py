"""Organizations, as rows."""

import sqlite3
from collections.abc import Sequence

from eventstore import RecordedEvent
from service.streams import ORGANIZATIONS, decoded


class OrganizationsView:
    name = "organizations-1"
    tables = "CREATE TABLE organizations (id TEXT PRIMARY KEY, name TEXT NOT NULL, created_at TEXT NOT NULL) STRICT;"

    def apply(self, db: sqlite3.Connection, events: Sequence[RecordedEvent]) -> None:
        for organization_id, made in decoded(ORGANIZATIONS, events):
            row = (organization_id, made.name, made.created_at.isoformat())
            db.execute("INSERT INTO organizations VALUES (?, ?, ?)", row)
