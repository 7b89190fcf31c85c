"""How a person signs in besides one-time links: passkeys, and an account at an identity provider.

One stream for each person. Nothing here is secret: a passkey's private key never leaves its device.
"""

from datetime import datetime
from typing import assert_never

from msgspec import Struct
from msgspec.structs import replace

from service.domain.errors import Conflict, Forbidden, NotFound
from service.domain.events import Event, PersonalText
from service.domain.organizations import checked_name

MAX_PASSKEYS = 20
"""Limit for the passkeys of one person."""


class PasskeyAdded(Event, frozen=True, tag="passkey-added"):
    passkey_id: str
    """The credential's id, base64url without padding."""
    public_key: str
    """The COSE key, base64url without padding (RFC 9052, section 7)."""
    sign_count: int
    name: PersonalText
    added_at: datetime


class PasskeyUsed(Event, frozen=True, tag="passkey-used"):
    passkey_id: str
    sign_count: int
    """The device's counter; 0 where it keeps none."""
    used_at: datetime


class PasskeyRemoved(Event, frozen=True, tag="passkey-removed"):
    passkey_id: str
    removed_at: datetime


class AccountLinked(Event, frozen=True, tag="account-linked"):
    """The person signed in by an account at an identity provider for the first time."""

    issuer: str
    subject: str
    """The provider's id of the account, which it never gives to another; an email address it may."""
    linked_at: datetime


class AccountUnlinked(Event, frozen=True, tag="account-unlinked"):
    issuer: str
    unlinked_at: datetime


CredentialEvent = PasskeyAdded | PasskeyUsed | PasskeyRemoved | AccountLinked | AccountUnlinked


class AddPasskey(Struct, frozen=True):
    passkey_id: str
    public_key: str
    sign_count: int
    name: str
    now: datetime


class UsePasskey(Struct, frozen=True):
    passkey_id: str
    sign_count: int
    now: datetime


class RemovePasskey(Struct, frozen=True):
    passkey_id: str
    now: datetime


class LinkAccount(Struct, frozen=True):
    issuer: str
    subject: str
    now: datetime


class UnlinkAccount(Struct, frozen=True):
    issuer: str
    now: datetime


class ForgetCredentials(Struct, frozen=True):
    """Remove all passkeys and linked accounts, such as those of someone who had lost every right."""

    now: datetime


CredentialCommand = AddPasskey | UsePasskey | RemovePasskey | LinkAccount | UnlinkAccount | ForgetCredentials


class Passkey(Struct, frozen=True):
    id: str
    public_key: str
    sign_count: int
    name: str
    added_at: datetime
    used_at: datetime | None = None


class Credentials(Struct, frozen=True):
    passkeys: tuple[Passkey, ...] = ()
    accounts: dict[str, str] = {}
    """The subject of the account at each issuer."""

    def passkey(self, passkey_id: str) -> Passkey | None:
        return next((one for one in self.passkeys if one.id == passkey_id), None)


def decide(command: CredentialCommand, state: Credentials) -> list[CredentialEvent]:
    """Return the events of a command.

    Raises:
        NotFound: the passkey is not among them.
        Conflict: the passkey exists already, or there are too many.
        Forbidden: a device's counter did not grow, so that another device has the same key or an answer was sent twice
            (WebAuthn Level 3, section 6.1.1); or another account of the same issuer is linked, so that the provider
            gave the address to someone else.
        Invalid: the name.
    """
    match command:
        case AddPasskey():
            return [_added(command, state)]
        case UsePasskey(passkey_id=passkey_id, sign_count=count, now=now):
            known = _require(state, passkey_id).sign_count
            if (known or count) and count <= known:
                raise Forbidden("This passkey was used from a copy. Sign in another way, remove it and add a new one.")
            return [PasskeyUsed(passkey_id, count, now)]
        case RemovePasskey(passkey_id=passkey_id, now=now):
            _require(state, passkey_id)
            return [PasskeyRemoved(passkey_id, now)]
        case LinkAccount(issuer=issuer, subject=subject, now=now):
            linked = state.accounts.get(issuer)
            if linked is not None and linked != subject:
                raise Forbidden(
                    "Another account of the provider signs in this person. Sign in with that one, or disconnect it on"
                    " the account page."
                )
            return [AccountLinked(issuer, subject, now)] if linked is None else []
        case UnlinkAccount(issuer=issuer, now=now):
            return [AccountUnlinked(issuer, now)] if issuer in state.accounts else []
        case ForgetCredentials(now=now):
            removed = [PasskeyRemoved(one.id, now) for one in state.passkeys]
            return [*removed, *(AccountUnlinked(issuer, now) for issuer in state.accounts)]
        case _:
            assert_never(command)


def _added(command: AddPasskey, state: Credentials) -> PasskeyAdded:
    if state.passkey(command.passkey_id) is not None:
        raise Conflict("This passkey is yours already. Sign in with it.")
    if len(state.passkeys) >= MAX_PASSKEYS:
        raise Conflict(f"You have {MAX_PASSKEYS} passkeys. Remove one before you add another.")
    name = checked_name(command.name)
    return PasskeyAdded(command.passkey_id, command.public_key, command.sign_count, name, command.now)


def _require(state: Credentials, passkey_id: str) -> Passkey:
    passkey = state.passkey(passkey_id)
    if passkey is None:
        raise NotFound("Passkey not found. Sign in another way.")
    return passkey


def evolve(state: Credentials, event: CredentialEvent) -> Credentials:
    match event:
        case PasskeyAdded(passkey_id=passkey_id) as added:
            passkey = Passkey(passkey_id, added.public_key, added.sign_count, added.name, added.added_at)
            return replace(state, passkeys=(*state.passkeys, passkey))
        case PasskeyUsed(passkey_id=passkey_id, sign_count=count, used_at=used_at):
            used = tuple(
                replace(one, sign_count=count, used_at=used_at) if one.id == passkey_id else one
                for one in state.passkeys
            )
            return replace(state, passkeys=used)
        case PasskeyRemoved(passkey_id=passkey_id):
            return replace(state, passkeys=tuple(one for one in state.passkeys if one.id != passkey_id))
        case AccountLinked(issuer=issuer, subject=subject):
            return replace(state, accounts={**state.accounts, issuer: subject})
        case AccountUnlinked(issuer=unlinked):
            return replace(
                state, accounts={issuer: one for issuer, one in state.accounts.items() if issuer != unlinked}
            )
        case _:
            assert_never(event)
