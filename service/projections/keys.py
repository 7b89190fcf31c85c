"""API keys, as rows, and in memory for those who look one up with each request."""

import asyncio
import json
import sqlite3
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Literal, assert_never

from msgspec import Struct
from msgspec.structs import replace

from eventstore import EventStore, RecordedEvent, Views
from service.domain.access.keys import KeyChanged, KeyCreated, KeyEvent, KeyKind, KeyRevoked, KeyUsed
from service.streams import KEYS, decoded

KeyStatus = Literal["in force", "expired", "revoked"]


class KeyRow(Struct, frozen=True):
    id: str
    kind: KeyKind
    organization_id: str
    name: str
    last_four: str
    domains: tuple[str, ...]
    allowed_addresses: tuple[str, ...]
    allowed_origins: tuple[str, ...]
    created_at: datetime
    expires_at: datetime | None
    used_at: datetime | None
    """To the hour."""
    revoked_at: datetime | None

    def status(self, at: datetime) -> KeyStatus:
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if self.expires_at is not None and self.expires_at <= at else "in force"


COLUMNS = ", ".join(KeyRow.__struct_fields__)


class KeysView:
    name = "keys-2"
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
            created_at TEXT NOT NULL,
            expires_at TEXT,
            used_at TEXT,
            revoked_at TEXT
        ) STRICT;
    """

    def apply(self, db: sqlite3.Connection, events: Sequence[RecordedEvent]) -> None:
        for key_id, event in decoded(KEYS, events):
            match event:
                case KeyCreated() as made:
                    db.execute(
                        "INSERT INTO keys VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL, NULL)",
                        (
                            key_id, made.digest, made.kind, made.organization_id, made.name, made.last_four,
                            json.dumps(made.domains), json.dumps(made.allowed_addresses),
                            json.dumps(made.allowed_origins), made.created_at.isoformat(), _text(made.expires_at),
                        ),
                    )  # fmt: skip
                case KeyChanged(name=name, allowed_addresses=addresses, allowed_origins=origins):
                    db.execute(
                        "UPDATE keys SET name = coalesce(?, name),"
                        " allowed_addresses = coalesce(?, allowed_addresses),"
                        " allowed_origins = coalesce(?, allowed_origins) WHERE id = ?",
                        (
                            name,
                            None if addresses is None else json.dumps(addresses),
                            None if origins is None else json.dumps(origins),
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


def _row(row: sqlite3.Row) -> KeyRow:
    values = dict(zip(KeyRow.__struct_fields__, row, strict=True))
    for name in ("domains", "allowed_addresses", "allowed_origins"):
        values[name] = tuple(json.loads(values[name]))
    for name in ("created_at", "expires_at", "used_at", "revoked_at"):
        values[name] = datetime.fromisoformat(values[name]) if values[name] else None
    return KeyRow(**values)


async def list_keys(views: Views) -> list[KeyRow]:
    rows = await views.query(f"SELECT {COLUMNS} FROM keys ORDER BY created_at, id", ())  # noqa: S608  (no input)
    return [_row(row) for row in rows]


async def get_key(views: Views, key_id: str) -> KeyRow | None:
    row = await views.query_one(f"SELECT {COLUMNS} FROM keys WHERE id = ?", (key_id,))  # noqa: S608  (no input)
    return _row(row) if row else None


class Revocation:
    """Whether a key is revoked, with the callbacks of the requests that end with it.

    A set, since a future looks through all its callbacks to remove one, and a public key may have thousands.
    """

    __slots__ = ("_callbacks", "is_published")

    def __init__(self) -> None:
        self._callbacks: set[Callable[[], object]] = set()
        self.is_published = False

    def watch(self, callback: Callable[[], object]) -> None:
        """Call this when the key is revoked; at once if it is. It must not raise."""
        if self.is_published:
            callback()
        else:
            self._callbacks.add(callback)

    def unwatch(self, callback: Callable[[], object]) -> None:
        self._callbacks.discard(callback)

    def publish(self) -> None:
        self.is_published = True
        callbacks, self._callbacks = self._callbacks, set()
        for callback in callbacks:
            callback()


class KeyDirectory:
    """Every key in memory, by the digest of its token, as of the last event of a key that was seen.

    ``run`` keeps it up to date: what this process records is known at once, what others record within 25 ms or so.
    """

    def __init__(self, store: EventStore) -> None:
        self._store = store
        self._position = 0
        self._rows: dict[str, KeyRow] = {}
        self._digests: dict[str, str] = {}
        self._catching_up = asyncio.Lock()
        self._revocations: dict[str, Revocation] = {}

    async def run(self) -> None:
        """Follow the log until cancelled."""
        async for batch in self._store.follow(after=self._position, category=KEYS.category):
            self._apply(batch)

    async def catch_up(self) -> None:
        """Know every key that is in the log by now."""
        async with self._catching_up:
            while page := await self._store.read_all(after=self._position, category=KEYS.category):
                self._apply(page)

    def find(self, digest: str) -> KeyRow | None:
        """The key whose token has this SHA-256.

        What a caller learns from the time of it is about the digest of what they sent, which tells nothing of a token.
        """
        key_id = self._digests.get(digest)
        return None if key_id is None else self._rows[key_id]

    def revocation(self, key_id: str) -> Revocation:
        """Return the revocation of a known key, the same one for all its requests."""
        found = self._revocations.get(key_id)
        if found is None:
            found = self._revocations[key_id] = Revocation()
            if self._rows[key_id].revoked_at is not None:
                found.publish()
        return found

    def _apply(self, events: Sequence[RecordedEvent]) -> None:
        fresh = [event for event in events if event.position > self._position]
        for key_id, event in decoded(KEYS, fresh):
            self._apply_one(key_id, event)
        if fresh:
            self._position = fresh[-1].position

    def _apply_one(self, key_id: str, event: KeyEvent) -> None:
        match event:
            case KeyCreated() as made:
                self._rows[key_id] = KeyRow(
                    key_id, made.kind, made.organization_id, made.name, made.last_four, made.domains,
                    made.allowed_addresses, made.allowed_origins, made.created_at, made.expires_at, None, None,
                )  # fmt: skip
                self._digests[made.digest] = key_id
            case _ if key_id not in self._rows:
                return
            case KeyChanged() as changed:
                row = self._rows[key_id]
                self._rows[key_id] = replace(
                    row,
                    name=row.name if changed.name is None else changed.name,
                    allowed_addresses=row.allowed_addresses
                    if changed.allowed_addresses is None
                    else changed.allowed_addresses,
                    allowed_origins=row.allowed_origins if changed.allowed_origins is None else changed.allowed_origins,
                )
            case KeyUsed(used_at=used_at):
                self._rows[key_id] = replace(self._rows[key_id], used_at=used_at)
            case KeyRevoked(revoked_at=revoked_at):
                self._rows[key_id] = replace(self._rows[key_id], revoked_at=revoked_at)
                revocation = self._revocations.get(key_id)
                if revocation is not None:
                    revocation.publish()
            case unknown:
                assert_never(unknown)
