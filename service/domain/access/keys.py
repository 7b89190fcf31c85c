"""API keys: their form, and what happens to them.

A token is a prefix, 30 base62 characters of randomness and 6 base62 characters of the CRC32 of both, so that
scanners (and we) reject a mistyped one without a look-up. Only its SHA-256 is kept.
"""

import hashlib
import re
import string
import zlib
from datetime import datetime, timedelta
from typing import Literal, assert_never

from msgspec import Struct
from msgspec.structs import replace

from service.domain.access.callers import checked_networks, checked_origins
from service.domain.errors import Conflict, Invalid, NotFound
from service.domain.events import Event
from service.domain.organizations import checked_name

KeyKind = Literal["admin", "assistant"]
KeyStatus = Literal["in_force", "expired", "revoked"]
KeyScope = Literal["read", "jobs", "all"]
"""Which requests an admin key opens: those that read; jobs too; everything. An assistant key has no scope."""
KeyUse = Literal["open", "server", "browser"]
"""The callers of an assistant key: any, servers alone, or pages of its origins."""

PREFIXES: dict[KeyKind, str] = {"assistant": "docsmith_dsc_", "admin": "docsmith_"}
"""In the order in which to test them: the assistant's prefix begins with the admin's."""
RANDOM_CHARACTERS = 30
CHECKSUM_CHARACTERS = 6
SCOPES: tuple[KeyScope, ...] = ("read", "jobs", "all")
"""Each includes those before it."""
LIFETIMES_DAYS = (7, 30, 60, 90)
"""Lifetimes to choose from, in days; a key may also be valid without end."""
USE_NOTED_EVERY = timedelta(hours=1)
"""How coarsely it is recorded when a key was last used: an event at most this often, not one for each request."""
BASE62 = string.digits + string.ascii_uppercase + string.ascii_lowercase


class KeyCreated(Event, frozen=True, tag="key-created"):
    kind: KeyKind
    organization_id: str
    name: str
    digest: str
    """SHA-256 of the whole token, in hex."""
    last_four: str
    domains: tuple[str, ...]
    """Which sites an assistant key serves; empty for admin keys."""
    created_at: datetime
    expires_at: datetime | None = None
    allowed_addresses: tuple[str, ...] = ()
    """Networks, such as ``192.0.2.0/24``, from which alone it may be used; empty for any."""
    allowed_origins: tuple[str, ...] = ()
    """Web origins that may use an assistant key, such as ``https://*.example.com``; empty for any."""
    scope: KeyScope = "all"
    is_server: bool = False
    """An assistant key that no web page may use."""
    needs_reader_token: bool = False
    """Calls from its origins carry a reader token (``reader_tokens``)."""


class KeyChanged(Event, frozen=True, tag="key-changed"):
    """What is None stays as it was."""

    changed_at: datetime
    name: str | None = None
    allowed_addresses: tuple[str, ...] | None = None
    allowed_origins: tuple[str, ...] | None = None
    needs_reader_token: bool | None = None


class KeyUsed(Event, frozen=True, tag="key-used"):
    """It opened something; recorded once an hour at most."""

    used_at: datetime


class KeyRevoked(Event, frozen=True, tag="key-revoked"):
    revoked_at: datetime


KeyEvent = KeyCreated | KeyChanged | KeyUsed | KeyRevoked


class CreateKey(Struct, frozen=True):
    kind: KeyKind
    organization_id: str
    name: str
    token: str
    domains: tuple[str, ...]
    now: datetime
    expires_at: datetime | None = None
    allowed_addresses: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()
    scope: KeyScope = "all"
    is_server: bool = False
    needs_reader_token: bool | None = None
    """None: where it has origins."""


class ChangeKey(Struct, frozen=True):
    """What is None stays as it is."""

    now: datetime
    name: str | None = None
    allowed_addresses: tuple[str, ...] | None = None
    allowed_origins: tuple[str, ...] | None = None
    needs_reader_token: bool | None = None


class NoteUse(Struct, frozen=True):
    now: datetime


class RevokeKey(Struct, frozen=True):
    now: datetime


KeyCommand = CreateKey | ChangeKey | NoteUse | RevokeKey


class Absent(Struct, frozen=True):
    pass


class Key(Struct, frozen=True):
    kind: KeyKind
    organization_id: str
    name: str
    domains: tuple[str, ...]
    allowed_addresses: tuple[str, ...]
    allowed_origins: tuple[str, ...]
    is_server: bool = False
    needs_reader_token: bool = False
    """As it was chosen; without origins it has no effect."""
    expires_at: datetime | None = None
    used_at: datetime | None = None
    """To the hour."""
    revoked_at: datetime | None = None
    scope: KeyScope = "all"

    def opens(self, needed: KeyScope) -> bool:
        """Return whether the key's scope includes the scope that a request needs."""
        return SCOPES.index(needed) <= SCOPES.index(self.scope)

    @property
    def use(self) -> KeyUse | None:
        """Return who calls with an assistant key; None for an admin key."""
        if self.kind == "admin":
            return None
        if self.is_server:
            return "server"
        return "browser" if self.allowed_origins else "open"

    @property
    def requires_reader_token(self) -> bool:
        return self.needs_reader_token and bool(self.allowed_origins)

    def status(self, at: datetime) -> KeyStatus:
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if self.expires_at is not None and self.expires_at <= at else "in_force"


KeyState = Absent | Key


def decide(command: KeyCommand, state: KeyState) -> list[KeyEvent]:
    """Return the events of a command. Raise NotFound, Conflict (it exists, or is revoked) or Invalid (its fields)."""
    match command, state:
        case CreateKey() as new, Absent():
            return [_created(new)]
        case CreateKey(), Key():
            raise Conflict("This key exists already.")
        case ChangeKey() | NoteUse() | RevokeKey(), Absent():
            raise NotFound("Key not found. List the keys to see their ids.")
        case ChangeKey(), Key(revoked_at=datetime()):
            raise Conflict("This key was revoked. Create a new one.")
        case ChangeKey() as change, Key():
            changed = _changed(change, state)
            return [changed] if evolve(state, changed) != state else []
        case NoteUse() | RevokeKey(), Key(revoked_at=datetime()):
            return []
        case NoteUse(now=now), Key(used_at=used_at):
            return [] if used_at is not None and now - used_at < USE_NOTED_EVERY else [KeyUsed(now)]
        case RevokeKey(now=now), Key():
            return [KeyRevoked(now)]
        case _:
            raise AssertionError(command)


def _created(new: CreateKey) -> KeyCreated:
    if kind_of(new.token) != new.kind:
        raise Invalid("The token does not have the form of its kind.")
    if (new.kind == "assistant") != bool(new.domains):
        raise Invalid("An assistant key serves at least one site; an admin key names none.")
    if new.kind == "assistant" and new.scope != "all":
        raise Invalid(f"An assistant key has no scope: {new.scope}. Leave it out.")
    if new.expires_at is not None and new.expires_at <= new.now:
        raise Invalid("A key cannot expire before it is made.")
    origins = _origins_of(new.kind, new.allowed_origins)
    needs_reader_token = bool(origins) if new.needs_reader_token is None else new.needs_reader_token
    _require_use(new.kind, origins, is_server=new.is_server, needs_reader_token=needs_reader_token)
    return KeyCreated(
        kind=new.kind,
        organization_id=new.organization_id,
        name=checked_name(new.name),
        digest=digest_of(new.token),
        last_four=new.token[-4:],
        domains=new.domains,
        created_at=new.now,
        expires_at=new.expires_at,
        allowed_addresses=checked_networks(new.allowed_addresses),
        allowed_origins=origins,
        scope=new.scope,
        is_server=new.is_server,
        needs_reader_token=needs_reader_token,
    )


def _require_use(kind: KeyKind, origins: tuple[str, ...], *, is_server: bool, needs_reader_token: bool) -> None:
    """Raise Invalid for what cannot be together."""
    if is_server and kind == "admin":
        raise Invalid("An admin key is for servers already. Leave the choice out.")
    if is_server and origins:
        raise Invalid("A key for servers cannot have origins: no web page may use it. Leave one of the two out.")
    if needs_reader_token and not origins:
        raise Invalid("Reader tokens need origins: name the websites that may use the key.")


def _changed(change: ChangeKey, key: Key) -> KeyChanged:
    name, addresses = change.name, change.allowed_addresses
    origins = None if change.allowed_origins is None else _origins_of(key.kind, change.allowed_origins)
    _require_use(
        key.kind,
        key.allowed_origins if origins is None else origins,
        is_server=key.is_server,
        needs_reader_token=bool(change.needs_reader_token),
    )
    return KeyChanged(
        changed_at=change.now,
        name=None if name is None else checked_name(name),
        allowed_addresses=None if addresses is None else checked_networks(addresses),
        allowed_origins=origins,
        needs_reader_token=change.needs_reader_token,
    )


def evolve(state: KeyState, event: KeyEvent) -> KeyState:
    match event:
        case KeyCreated() as made:
            return Key(
                made.kind, made.organization_id, made.name, made.domains, made.allowed_addresses, made.allowed_origins,
                made.is_server, made.needs_reader_token, made.expires_at, scope=made.scope,
            )  # fmt: skip
        case KeyChanged() as changed:
            assert isinstance(state, Key)
            fields = ("name", "allowed_addresses", "allowed_origins", "needs_reader_token")
            named = {name: getattr(changed, name) for name in fields}
            return replace(state, **{name: value for name, value in named.items() if value is not None})
        case KeyUsed(used_at=used_at):
            assert isinstance(state, Key)
            return replace(state, used_at=used_at)
        case KeyRevoked(revoked_at=revoked_at):
            assert isinstance(state, Key)
            return replace(state, revoked_at=revoked_at)
        case _:
            assert_never(event)


def _origins_of(kind: KeyKind, origins: tuple[str, ...]) -> tuple[str, ...]:
    if origins and kind == "admin":
        raise Invalid("An admin key cannot have origins: it must not be used in a browser. Leave them out.")
    return checked_origins(origins)


def make_token(kind: KeyKind, random: str) -> str:
    """Return a token from 30 random base62 characters. Raise Invalid for other characters."""
    if len(random) != RANDOM_CHARACTERS or not set(random) <= set(BASE62):
        raise Invalid("A token takes 30 base62 characters.")
    body = PREFIXES[kind] + random
    return body + _checksum(body)


_FORM = re.compile(rf"docsmith_(dsc_)?[0-9A-Za-z]{{{RANDOM_CHARACTERS + CHECKSUM_CHARACTERS}}}")


def kind_of(token: str) -> KeyKind | None:
    """Return which kind of key this is by its form, or None when it cannot be one of ours."""
    found = _FORM.fullmatch(token)
    if found is None or _checksum(token[:-CHECKSUM_CHARACTERS]) != token[-CHECKSUM_CHARACTERS:]:
        return None
    return "admin" if found[1] is None else "assistant"


def digest_of(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


_PAIRS = [one + two for one in BASE62 for two in BASE62]


def _checksum(body: str) -> str:
    """CRC32 as six base62 digits, two at a time: it is made for each request. (62 ** 6 > 2 ** 32)"""
    rest, last = divmod(zlib.crc32(body.encode()), 3844)
    first, middle = divmod(rest, 3844)
    return _PAIRS[first] + _PAIRS[middle] + _PAIRS[last]
