"""API keys, from the read models, and in memory for requests that look one up each."""

import asyncio
import json
import sqlite3
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from msgspec import Struct

from eventstore import EventStore, RecordedEvent, Views
from service.domain.access.keys import Key, KeyCreated
from service.domain.errors import NotFound
from service.domain.texts.times import timestamp
from service.runtime.system import now
from service.streams import KEYS, decoded
from service.views.access.keys import KeyList, KeyView

COLUMNS = (
    "id, kind, organization_id, name, last_four, domains, allowed_addresses, allowed_origins, is_server,"
    " needs_reader_token, created_at, expires_at, used_at, revoked_at, scope"
)


async def list_keys(views: Views) -> list[KeyView]:
    """Return all, oldest first."""
    rows, at = await views.query(f"SELECT {COLUMNS} FROM keys ORDER BY created_at, id", ()), now()  # noqa: S608  (ours)
    return [_view(row, at) for row in rows]


async def keys_page(views: Views, organization_id: str, *, limit: int, cursor: str | None = None) -> KeyList:
    """Return some of an organization's keys, the newest first; after the key whose id is the cursor."""
    before = "AND (created_at, id) < (SELECT created_at, id FROM keys WHERE id = :cursor)" if cursor else ""
    rows = await views.query(
        f"SELECT {COLUMNS} FROM keys WHERE organization_id = :organization {before}"  # noqa: S608  (ours)
        " ORDER BY created_at DESC, id DESC LIMIT :limit",
        {"organization": organization_id, "cursor": cursor, "limit": limit + 1},
    )
    at = now()
    keys = tuple(_view(row, at) for row in rows[:limit])
    return KeyList(keys, keys[-1].id if len(rows) > limit else None)


async def keys_that_expire(views: Views, organization_id: str, within: timedelta, *, limit: int) -> list[KeyView]:
    """Return the keys of an organization that expire within this time from now, or did within it before and were in
    use; the first ones first.
    """
    at = now()
    rows = await views.query(
        f"SELECT {COLUMNS} FROM keys WHERE organization_id = :organization AND revoked_at IS NULL"  # noqa: S608  (ours)
        " AND expires_at BETWEEN :earliest AND :latest AND (expires_at > :now OR used_at IS NOT NULL)"
        " ORDER BY expires_at, id LIMIT :limit",
        {
            "organization": organization_id, "earliest": (at - within).isoformat(), "now": at.isoformat(),
            "latest": (at + within).isoformat(), "limit": limit,
        },
    )  # fmt: skip
    return [_view(row, at) for row in rows]


async def key_of(views: Views, organization_id: str, key_id: str) -> KeyView:
    """Return a key of an organization. Raise NotFound, for a key of another one as well."""
    key = await get_key(views, key_id)
    if key is None or key.organization_id != organization_id:
        raise NotFound(f"Key not found: {key_id}. List the keys to see their ids.", code="key_not_found")
    return key


async def key_names(views: Views, organization_id: str | None) -> dict[str, str]:
    """Return the name of each key of an organization, or of all, by its id; revoked ones too."""
    rows = await views.query(
        "SELECT id, name FROM keys WHERE organization_id = coalesce(?, organization_id)", (organization_id,)
    )
    return {row["id"]: row["name"] for row in rows}


async def get_key(views: Views, key_id: str) -> KeyView | None:
    row = await views.query_one(f"SELECT {COLUMNS} FROM keys WHERE id = ?", (key_id,))  # noqa: S608  (no input)
    return _view(row, now()) if row else None


def _view(row: sqlite3.Row, at: datetime) -> KeyView:
    computed = ("status", "use", "reader_tokens")
    values = {name: row[name] for name in KeyView.__struct_fields__ if name not in computed}
    for name in ("domains", "allowed_addresses", "allowed_origins"):
        values[name] = tuple(json.loads(values[name]))
    times = {name: row[name] and datetime.fromisoformat(row[name]) for name in values if name.endswith("_at")}
    key = Key(
        row["kind"], row["organization_id"], row["name"], values["domains"], values["allowed_addresses"],
        values["allowed_origins"], bool(row["is_server"]), bool(row["needs_reader_token"]),
        times["expires_at"], times["used_at"], times["revoked_at"], row["scope"],
    )  # fmt: skip
    values["scope"] = row["scope"] if row["kind"] == "admin" else None
    values |= {name: time and timestamp(time) for name, time in times.items()}
    return KeyView(**values, status=key.status(at), use=key.use, reader_tokens=key.requires_reader_token)


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


class KnownKey(Struct, frozen=True):
    id: str
    state: Key


class KeyDirectory:
    """Every key in memory, by the digest of its token, as of the last event of a key that was seen.

    ``run`` keeps it up to date: what this process records is known at once, what others record within 25 ms or so.
    """

    def __init__(self, store: EventStore) -> None:
        self._store = store
        self._position = 0
        self._keys: dict[str, KnownKey] = {}
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

    def find(self, digest: str) -> KnownKey | None:
        """Return the key whose token has this SHA-256.

        The time that it takes depends on the digest of what the caller sent, which says nothing about a token.
        """
        key_id = self._digests.get(digest)
        return None if key_id is None else self._keys[key_id]

    def revocation(self, key_id: str) -> Revocation:
        """Return the revocation of a known key, the same one for all its requests."""
        found = self._revocations.get(key_id)
        if found is None:
            found = self._revocations[key_id] = Revocation()
            if self._keys[key_id].state.revoked_at is not None:
                found.publish()
        return found

    def _apply(self, events: Sequence[RecordedEvent]) -> None:
        fresh = [event for event in events if event.position > self._position]
        for key_id, event in decoded(KEYS, fresh):
            known = self._keys.get(key_id)
            if isinstance(event, KeyCreated):
                self._digests[event.digest] = key_id
            elif known is None:
                continue
            state = KEYS.evolve(KEYS.initial if known is None else known.state, event)
            assert isinstance(state, Key)
            self._keys[key_id] = KnownKey(key_id, state)
            if state.revoked_at is not None and key_id in self._revocations:
                self._revocations[key_id].publish()
        if fresh:
            self._position = fresh[-1].position
