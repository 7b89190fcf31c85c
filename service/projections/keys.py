"""API keys, as rows."""

import json
import sqlite3
from collections.abc import Sequence
from datetime import datetime
from typing import assert_never

from eventstore import RecordedEvent
from service.domain.access.keys import KeyChanged, KeyCreated, KeyRevoked, KeyUsed
from service.streams import KEYS, decoded


class KeysView:
    name = "keys-4"
    tables = """
        CREATE TABLE keys (
            id TEXT PRIMARY KEY,
            digest TEXT NOT NULL UNIQUE,
            kind TEXT NOT NULL,
            organization_id TEXT NOT NULL,
            name TEXT NOT NULL,
            last_four TEXT NOT NULL,
            domains TEXT NOT NULL,
            allowed_addresses TEXT NOT NULL,
            allowed_origins TEXT NOT NULL,
            is_server INTEGER NOT NULL,
            needs_reader_token INTEGER NOT NULL,
            created_at TEXT NOT NULL,
            expires_at TEXT,
            used_at TEXT,
            revoked_at TEXT,
            scope TEXT NOT NULL
        ) STRICT;
        CREATE INDEX keys_by_organization ON keys (organization_id, created_at, id);
    """

    def apply(self, db: sqlite3.Connection, events: Sequence[RecordedEvent]) -> None:
        for key_id, event in decoded(KEYS, events):
            match event:
                case KeyCreated() as made:
                    db.execute(
                        "INSERT INTO keys VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL, NULL, ?)",
                        (
                            key_id, made.digest, made.kind, made.organization_id, made.name, made.last_four,
                            json.dumps(made.domains), json.dumps(made.allowed_addresses),
                            json.dumps(made.allowed_origins), made.is_server, made.needs_reader_token,
                            made.created_at.isoformat(), _text(made.expires_at), made.scope,
                        ),
                    )  # fmt: skip
                case KeyChanged(name=name, allowed_addresses=addresses, allowed_origins=origins) as changed:
                    db.execute(
                        "UPDATE keys SET name = coalesce(?, name),"
                        " allowed_addresses = coalesce(?, allowed_addresses),"
                        " allowed_origins = coalesce(?, allowed_origins),"
                        " needs_reader_token = coalesce(?, needs_reader_token) WHERE id = ?",
                        (
                            name,
                            None if addresses is None else json.dumps(addresses),
                            None if origins is None else json.dumps(origins),
                            changed.needs_reader_token,
                            key_id,
                        ),
                    )
                case KeyUsed(used_at=used_at):
                    db.execute("UPDATE keys SET used_at = ? WHERE id = ?", (used_at.isoformat(), key_id))
                case KeyRevoked(revoked_at=revoked_at):
                    db.execute("UPDATE keys SET revoked_at = ? WHERE id = ?", (revoked_at.isoformat(), key_id))
                case unknown:
                    assert_never(unknown)


def _text(time: datetime | None) -> str | None:
    return None if time is None else time.isoformat()
