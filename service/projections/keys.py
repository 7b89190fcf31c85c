"""API keys, as rows: found by the digest of the token."""

import json
import sqlite3
from collections.abc import Sequence
from datetime import datetime
from typing import assert_never

from msgspec import Struct

from eventstore import RecordedEvent, Views
from service.domain.keys import KeyCreated, KeyKind, KeyRevoked
from service.streams import KEYS, decoded


class KeyRow(Struct, frozen=True):
    id: str
    kind: KeyKind
    organization_id: str
    name: str
    last_four: str
    domains: tuple[str, ...]
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None


COLUMNS = "id, kind, organization_id, name, last_four, domains, created_at, expires_at, revoked_at"


class KeysView:
    name = "keys-1"
    tables = """
        CREATE TABLE keys (
            id TEXT PRIMARY KEY,
            digest TEXT NOT NULL UNIQUE,
            kind TEXT NOT NULL,
            organization_id TEXT NOT NULL,
            name TEXT NOT NULL,
            last_four TEXT NOT NULL,
            domains TEXT NOT NULL,
            created_at TEXT NOT NULL,
            expires_at TEXT,
            revoked_at TEXT
        ) STRICT;
    """

    def apply(self, db: sqlite3.Connection, events: Sequence[RecordedEvent]) -> None:
        for key_id, event in decoded(KEYS, events):
            match event:
                case KeyCreated() as made:
                    db.execute(
                        "INSERT INTO keys VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, NULL)",
                        (
                            key_id, made.digest, made.kind, made.organization_id, made.name, made.last_four,
                            json.dumps(made.domains), made.created_at.isoformat(),
                            made.expires_at.isoformat() if made.expires_at else None,
                        ),
                    )  # fmt: skip
                case KeyRevoked(revoked_at=revoked_at):
                    db.execute("UPDATE keys SET revoked_at = ? WHERE id = ?", (revoked_at.isoformat(), key_id))
                case unknown:
                    assert_never(unknown)


def _row(row: sqlite3.Row) -> KeyRow:
    key_id, kind, organization_id, name, last_four, domains, created_at, expires_at, revoked_at = row
    return KeyRow(
        key_id, kind, organization_id, name, last_four, tuple(json.loads(domains)), datetime.fromisoformat(created_at),
        datetime.fromisoformat(expires_at) if expires_at else None,
        datetime.fromisoformat(revoked_at) if revoked_at else None,
    )  # fmt: skip


async def key_of_digest(views: Views, digest: str) -> KeyRow | None:
    row = await views.query_one(f"SELECT {COLUMNS} FROM keys WHERE digest = ?", (digest,))  # noqa: S608  (no input)
    return _row(row) if row else None


async def list_keys(views: Views) -> list[KeyRow]:
    rows = await views.query(f"SELECT {COLUMNS} FROM keys ORDER BY created_at, id", ())  # noqa: S608  (no input)
    return [_row(row) for row in rows]
