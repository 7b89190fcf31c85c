"""Organizations."""

import sqlite3
from collections.abc import Sequence

from msgspec import Struct

from eventstore import Views
from service.domain.texts.times import timestamp_from
from service.views.organizations import OrganizationView

SHOWN_OWNERS = 3
_OWNERS_SQL = """
    SELECT m.organization_id, p.email FROM members m JOIN people p ON p.id = m.person_id WHERE m.role = 'owner'
"""


async def list_organizations(views: Views) -> list[OrganizationView]:
    """Return all, oldest first."""
    rows = await views.query("SELECT id, name, created_at FROM organizations ORDER BY created_at, id", ())
    return [_view(row) for row in rows]


async def get_organization(views: Views, organization_id: str) -> OrganizationView | None:
    row = await views.query_one("SELECT id, name, created_at FROM organizations WHERE id = ?", (organization_id,))
    return _view(row) if row else None


class OrganizationCounts(Struct, frozen=True):
    """An organization with what belongs to it, for operators."""

    organization: OrganizationView
    people: int
    sites: int
    owners: tuple[str, ...]
    """Emails of owners, at most ``SHOWN_OWNERS``."""


async def list_organization_counts(
    views: Views, *, after: str = "", limit: int
) -> tuple[list[OrganizationCounts], str | None]:
    """Return organizations by name, those after a cursor, and the cursor of the next ones."""
    name, _, organization_id = after.partition("\n")
    rows = await views.query(
        """
        SELECT id, name, created_at,
            (SELECT count(*) FROM members WHERE organization_id = organizations.id) AS people,
            (SELECT count(*) FROM sites WHERE organization_id = organizations.id) AS sites
        FROM organizations WHERE (name, id) > (?, ?) ORDER BY name, id LIMIT ?
        """,
        (name, organization_id, limit + 1),
    )
    shown = rows[:limit]
    owners = await _owners(views, [row["id"] for row in shown])
    counts = [
        OrganizationCounts(_view(row), row["people"], row["sites"], tuple(owners.get(row["id"], ()))) for row in shown
    ]
    last = counts[-1].organization if len(rows) > limit else None
    return counts, f"{last.name}\n{last.id}" if last else None


async def _owners(views: Views, organizations: Sequence[str]) -> dict[str, list[str]]:
    marks = ", ".join("?" * len(organizations))
    rows = await views.query(f"{_OWNERS_SQL} AND m.organization_id IN ({marks}) ORDER BY p.email", organizations)
    owners: dict[str, list[str]] = {}
    for row in rows:
        named = owners.setdefault(row["organization_id"], [])
        if len(named) < SHOWN_OWNERS:
            named.append(row["email"])
    return owners


def _view(row: sqlite3.Row) -> OrganizationView:
    return OrganizationView(row["id"], row["name"], timestamp_from(row["created_at"]))
