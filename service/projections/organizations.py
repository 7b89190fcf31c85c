"""Organizations, as rows."""

import sqlite3
from collections.abc import Sequence

from msgspec import Struct

from eventstore import RecordedEvent, Views
from service.streams import ORGANIZATIONS, decoded


class OrganizationRow(Struct, frozen=True):
    id: str
    name: str
    created_at: str


class OrganizationsView:
    name = "organizations-1"
    tables = "CREATE TABLE organizations (id TEXT PRIMARY KEY, name TEXT NOT NULL, created_at TEXT NOT NULL) STRICT;"

    def apply(self, db: sqlite3.Connection, events: Sequence[RecordedEvent]) -> None:
        for organization_id, made in decoded(ORGANIZATIONS, events):
            row = (organization_id, made.name, made.created_at.isoformat())
            db.execute("INSERT INTO organizations VALUES (?, ?, ?)", row)


async def list_organizations(views: Views) -> list[OrganizationRow]:
    rows = await views.query("SELECT id, name, created_at FROM organizations ORDER BY created_at, id", ())
    return [OrganizationRow(*row) for row in rows]


async def get_organization(views: Views, organization_id: str) -> OrganizationRow | None:
    row = await views.query_one("SELECT id, name, created_at FROM organizations WHERE id = ?", (organization_id,))
    return OrganizationRow(*row) if row else None
