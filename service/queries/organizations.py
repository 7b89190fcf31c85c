"""Organizations."""

import sqlite3

from eventstore import Views
from service.domain.times import timestamp_from
from service.views.organizations import OrganizationView


async def list_organizations(views: Views) -> list[OrganizationView]:
    """Return all, oldest first."""
    rows = await views.query("SELECT id, name, created_at FROM organizations ORDER BY created_at, id", ())
    return [_view(row) for row in rows]


async def get_organization(views: Views, organization_id: str) -> OrganizationView | None:
    row = await views.query_one("SELECT id, name, created_at FROM organizations WHERE id = ?", (organization_id,))
    return _view(row) if row else None


def _view(row: sqlite3.Row) -> OrganizationView:
    return OrganizationView(row["id"], row["name"], timestamp_from(row["created_at"]))
