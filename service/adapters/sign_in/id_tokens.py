"""ID tokens: their signature, and the verified email address in them."""

from base64 import urlsafe_b64decode
from collections.abc import Mapping
from typing import Any

from service.domain.errors import Forbidden

ALGORITHMS = (
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519",
)  # fmt: skip
"""Asymmetric ones alone: the provider has the private key, and no one else."""
LEAST_RSA_BITS = 2_048
KEY_TYPES = ("RSA", "EC", "OKP")


class KeySource:
    """A key set as the provider publishes it; without keys that are secret, or meant for encryption."""

    def __init__(self, published: Mapping[str, Any]) -> None:
        keys = published.get("keys")
        self.keys = [
            key
            for key in (keys if isinstance(keys, list) else [])
            if isinstance(key, dict)
            and key.get("kty") in KEY_TYPES
            and key.get("use", "sig") == "sig"
            and not _is_short(key)
        ]


def _is_short(key: Mapping[str, Any]) -> bool:
    """Return whether a key is an RSA key that is too short (RFC 7518, section 3.3), or cannot be read."""
    if key.get("kty") != "RSA":
        return False
    modulus = key.get("n")
    try:
        read = urlsafe_b64decode(modulus + "=" * (-len(modulus) % 4)) if isinstance(modulus, str) else b""
    except ValueError:
        return True
    return int.from_bytes(read, "big").bit_length() < LEAST_RSA_BITS


def read_id_token(token: str, source: KeySource) -> dict[str, Any] | None:
    """Return the claims of a token that one of the keys has signed; None for any other. Takes a millisecond or two."""
    from joserfc import jwt
    from joserfc.errors import JoseError
    from joserfc.jwk import KeySet

    if not source.keys:
        return None
    try:
        keys = KeySet.import_key_set({"keys": source.keys})
        claims = jwt.decode(token, keys, algorithms=ALGORITHMS).claims
    except (JoseError, ValueError, TypeError, KeyError, RecursionError):
        return None
    return claims if isinstance(claims, dict) else None


def email_of(claims: Mapping[str, Any], provider: str) -> str:
    """Return the account's email address. Raise Forbidden unless the provider says that it has verified it: at many,
    anyone can claim any address.
    """
    email, is_verified = claims.get("email"), claims.get("email_verified")
    if not isinstance(email, str) or not email:
        raise Forbidden(f"{provider} sent no email address. Allow the client to read it there.")
    if is_verified is not True and is_verified != "true":  # some providers send the text
        raise Forbidden(f"{provider} has not verified your email address. Verify it there, then sign in again.")
    return email
