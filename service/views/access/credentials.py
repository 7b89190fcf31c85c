"""The public shape of a person's passkeys and provider accounts."""

from msgspec import Struct


class PasskeyView(Struct, frozen=True, rename="camel"):
    id: str
    name: str
    added_at: str
    used_at: str | None


class CredentialsView(Struct, frozen=True, rename="camel"):
    passkeys: tuple[PasskeyView, ...]
    issuers: tuple[str, ...]
    """The identity providers at which the person has an account that signs them in."""
