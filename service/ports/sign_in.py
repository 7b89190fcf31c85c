"""Prove who a person is: an account at an identity provider, or a passkey."""

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct


class Attempt(Struct, frozen=True):
    """The secrets of one sign-in, which the browser keeps while the person is at the provider."""

    state: str
    """Returned by the provider; it shows that the answer belongs to this browser."""
    nonce: str
    """Returned within the ID token; it shows that the token was made for this sign-in."""
    verifier: str
    """The secret of PKCE (RFC 7636): the code is worth nothing without it."""


class Account(Struct, frozen=True):
    """An account at an identity provider, which has verified its email address."""

    issuer: str
    subject: str
    email: str
    name: str
    wanted: str = ""
    """The one of several people with this address as whom they want to sign in."""


class IdentityProvider(Protocol):
    name: str
    """The provider's name for people."""

    async def authorization_url(self, attempt: Attempt, redirect_url: str) -> str:
        """Return the provider's address to send the browser to. Raise Unavailable where it cannot be reached."""

    async def account(self, code: str, attempt: Attempt, redirect_url: str, issuer: str | None) -> Account:
        """Return the account that a code stands for. A code works once.

        ``issuer``: the one that the provider's redirect named (RFC 9207), if it did.

        Raises:
            Unavailable: the provider cannot be reached.
            Forbidden: it refused the code, sent what cannot be trusted, or has not verified the email address.
        """


class Origin(Struct, frozen=True):
    """The website whose passkeys are used: a passkey of another one never fits."""

    url: str
    """Scheme, host and port, as browsers name an origin."""
    host: str


class NewPasskey(Struct, frozen=True):
    passkey_id: str
    public_key: str
    sign_count: int


class UsedPasskey(Struct, frozen=True):
    passkey_id: str
    person_id: str


class Passkeys(Protocol):
    """Challenges are valid for minutes, for one purpose, and once."""

    async def registration_options(self, origin: Origin, person: tuple[str, str, str], known: Sequence[str]) -> str:
        """Return the options for a new passkey, as JSON for the browser.

        ``person``: id, email address and name. ``known``: the ids of the person's passkeys, whose devices the browser
        then refuses.
        """

    async def verify_registration(self, origin: Origin, person_id: str, answer: bytes) -> NewPasskey:
        """Return the passkey that a browser made for this person. Raise Forbidden where it does not prove that."""

    async def sign_in_options(self, origin: Origin) -> str:
        """Return the options for a sign-in with any passkey of the website, as JSON for the browser."""

    def claimed(self, answer: bytes) -> UsedPasskey:
        """Return the passkey and the person that an answer names, unproven. Raise Forbidden where it names none."""

    async def verify_sign_in(self, origin: Origin, public_key: str, sign_count: int, answer: bytes) -> int:
        """Return the device's new counter. Raise Forbidden where the answer does not prove that the device has the key,
        its owner confirmed it (by PIN, finger or face), and the challenge is fresh.
        """
