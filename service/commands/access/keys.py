"""Keys: create, change and revoke one, and note that it was used. What changes one returns the position in the log."""

from datetime import datetime

from msgspec import Struct
from msgspec.structs import asdict

from eventstore import EventStore, Metadata, Views, execute
from service.domain.access.keys import ChangeKey, CreateKey, KeyKind, KeyScope, NoteUse, RevokeKey
from service.domain.errors import NotFound
from service.queries.organizations import get_organization
from service.queries.sites import get_site
from service.runtime.system import new_id, new_key_token, now
from service.streams import KEYS


class NewKey(Struct, frozen=True):
    kind: KeyKind
    organization_id: str
    name: str
    domains: tuple[str, ...] = ()
    expires_at: datetime | None = None
    allowed_addresses: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()
    scope: KeyScope = "all"
    is_server: bool = False
    needs_reader_token: bool | None = None
    """None: where it has origins."""


class CreatedKey(Struct, frozen=True):
    id: str
    token: str
    """Shown this once."""


async def create_key(
    store: EventStore, views: Views, new: NewKey, metadata: Metadata, *, key_id: str = "", token: str = ""
) -> CreatedKey:
    """Create a key, with an id that the caller chose so that a repeat creates no second one, and perhaps a new token.

    Raise Invalid, NotFound when the organization, or a site of it, is not there, and Conflict when the id is used.
    """
    if await get_organization(views, new.organization_id) is None:
        raise NotFound(f"Organization not found: {new.organization_id}. List them with: docsmith organization list")
    for domain in new.domains:
        site = await get_site(views, domain)
        if site is None or site.view.organization_id != new.organization_id:
            raise NotFound(f"Site not found: {domain}. List them with: docsmith project list")
    key_id, token = key_id or new_id(), token or new_key_token(new.kind)
    await execute(store, KEYS, key_id, CreateKey(**asdict(new), token=token, now=now()), metadata=metadata)
    return CreatedKey(key_id, token)


async def change_key(store: EventStore, key_id: str, change: ChangeKey, metadata: Metadata) -> int:
    """Raises NotFound, Invalid, and Conflict when it is revoked."""
    return (await execute(store, KEYS, key_id, change, metadata=metadata)).position


async def note_use_of_key(store: EventStore, key_id: str) -> int:
    """Record that a key was used, at most once an hour. Raise NotFound."""
    return (await execute(store, KEYS, key_id, NoteUse(now()))).position


async def revoke_key(store: EventStore, key_id: str, metadata: Metadata) -> int:
    """Revoke a key for good; a repeat does nothing. Raise NotFound."""
    return (await execute(store, KEYS, key_id, RevokeKey(now()), metadata=metadata)).position
