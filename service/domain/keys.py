"""API keys: their form, and what happens to them.

A token is a prefix, 30 base62 characters of randomness and 6 base62 characters of the CRC32 of both, so that
scanners (and we) reject a mistyped one without a look-up. Only its SHA-256 is kept.
"""

import hashlib
import string
import zlib
from datetime import datetime
from typing import Literal, assert_never

from msgspec import Struct

from service.domain.errors import Conflict, Invalid, NotFound
from service.domain.events import Event
from service.domain.organizations import checked_name

KeyKind = Literal["admin", "assistant"]

PREFIXES: dict[KeyKind, str] = {"assistant": "docsmith_dsc_", "admin": "docsmith_"}
"""In the order in which to test them: the assistant's prefix begins with the admin's."""
RANDOM_CHARACTERS = 30
CHECKSUM_CHARACTERS = 6
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


class KeyRevoked(Event, frozen=True, tag="key-revoked"):
    revoked_at: datetime


KeyEvent = KeyCreated | KeyRevoked


class CreateKey(Struct, frozen=True):
    kind: KeyKind
    organization_id: str
    name: str
    token: str
    domains: tuple[str, ...]
    now: datetime
    expires_at: datetime | None = None


class RevokeKey(Struct, frozen=True):
    now: datetime


KeyCommand = CreateKey | RevokeKey


class Absent(Struct, frozen=True):
    pass


class Key(Struct, frozen=True):
    kind: KeyKind
    revoked: bool = False


KeyState = Absent | Key


def decide(command: KeyCommand, state: KeyState) -> list[KeyEvent]:
    match command, state:
        case CreateKey() as new, Absent():
            if kind_of(new.token) != new.kind:
                raise Invalid("The token does not have the form of its kind.")
            if (new.kind == "assistant") != bool(new.domains):
                raise Invalid("An assistant key names the domains that it serves; an admin key names none.")
            if new.expires_at is not None and new.expires_at <= new.now:
                raise Invalid("A key cannot expire before it is made.")
            return [
                KeyCreated(
                    kind=new.kind,
                    organization_id=new.organization_id,
                    name=checked_name(new.name),
                    digest=digest_of(new.token),
                    last_four=new.token[-4:],
                    domains=new.domains,
                    created_at=new.now,
                    expires_at=new.expires_at,
                )
            ]
        case CreateKey(), Key():
            raise Conflict("This key exists already.")
        case RevokeKey(), Absent():
            raise NotFound("There is no such key.")
        case RevokeKey(), Key(revoked=True):
            return []
        case RevokeKey(now=now), Key():
            return [KeyRevoked(now)]
        case _:
            raise AssertionError(command)


def evolve(state: KeyState, event: KeyEvent) -> KeyState:
    match event:
        case KeyCreated(kind=kind):
            return Key(kind)
        case KeyRevoked():
            assert isinstance(state, Key)
            return Key(state.kind, revoked=True)
        case _:
            assert_never(event)


def make_token(kind: KeyKind, random: str) -> str:
    """A token from 30 random base62 characters."""
    if len(random) != RANDOM_CHARACTERS or not set(random) <= set(BASE62):
        raise Invalid("A token takes 30 base62 characters.")
    body = PREFIXES[kind] + random
    return body + _checksum(body)


def kind_of(token: str) -> KeyKind | None:
    """Which kind of key this is by its form, or None when it cannot be one of ours."""
    for kind, prefix in PREFIXES.items():
        rest = token.removeprefix(prefix)
        if rest is not token and len(rest) == RANDOM_CHARACTERS + CHECKSUM_CHARACTERS and set(rest) <= set(BASE62):
            return kind if _checksum(token[:-CHECKSUM_CHARACTERS]) == token[-CHECKSUM_CHARACTERS:] else None
    return None


def digest_of(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def _checksum(body: str) -> str:
    number, characters = zlib.crc32(body.encode()), []
    for _ in range(CHECKSUM_CHARACTERS):  # 62 ** 6 > 2 ** 32
        number, digit = divmod(number, 62)
        characters.append(BASE62[digit])
    return "".join(reversed(characters))
