"""How an instance gives a wrapping key of the vault to another one.

Both know a secret that is in no database (``DOCSMITH_VAULT_SECRET``): the key of the instances is in the vault, which
an instance without a wrapping key cannot read. A request is signed under the secret. The answer is encrypted under a
key that comes from the secret and from a key exchange of this request alone (X25519), so that one who learns the secret
later cannot read what was sent before. The id of a wrapping key is its digest: another key in its place is refused.
"""

import hmac
import os
from hashlib import sha256

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from eventstore.postgres.wrapping.wrapping_keys import id_of
from service.domain.errors import Invalid
from service.integrity.log_place import VAULT_SECRET

MIN_CHARACTERS = 32
PUBLIC_BYTES = 32
_NONCE_BYTES = 12


def checked_secret(text: str) -> bytes | None:
    """Return the secret of the instances; None where there is none. Raise Invalid ``bad_vault_secret``."""
    if not text:
        return None
    if len(text) < MIN_CHARACTERS:
        raise Invalid(
            f"{VAULT_SECRET} has {len(text)} characters, and needs at least {MIN_CHARACTERS}: openssl rand -hex 32",
            code="bad_vault_secret",
        )
    return text.encode()


def signing_key(secret: bytes) -> bytes:
    """Return the key under which requests for wrapping keys are signed."""
    return hmac.digest(secret, b"docsmith: requests for wrapping keys", sha256)


class Asking:
    """The one that asks for a wrapping key, once."""

    def __init__(self, secret: bytes, key_id: str) -> None:
        self._secret, self._key_id = secret, key_id
        self._private = X25519PrivateKey.generate()

    @property
    def public(self) -> str:
        """Return the public key to send in the request, in hexadecimal digits."""
        return self._private.public_key().public_bytes_raw().hex()

    def opened(self, answer: bytes) -> bytes | None:
        """Return the wrapping key; None for an answer that is not as it was sent, or has another key."""
        theirs, nonce, sealed = (
            answer[:PUBLIC_BYTES],
            answer[PUBLIC_BYTES : PUBLIC_BYTES + _NONCE_BYTES],
            answer[PUBLIC_BYTES + _NONCE_BYTES :],
        )
        try:
            shared = self._private.exchange(X25519PublicKey.from_public_bytes(theirs))
            key = _cipher(self._secret, shared).decrypt(nonce, sealed, self._key_id.encode())
        except (InvalidTag, ValueError):
            return None
        return key if id_of(key) == self._key_id else None


def answer_to(public: str, secret: bytes, key_id: str, key: bytes) -> bytes:
    """Return a wrapping key, encrypted for the one that asked. Raise ValueError for a bad public key."""
    mine = X25519PrivateKey.generate()
    shared = mine.exchange(X25519PublicKey.from_public_bytes(bytes.fromhex(public)))
    nonce = os.urandom(_NONCE_BYTES)
    sealed = _cipher(secret, shared).encrypt(nonce, key, key_id.encode())
    return mine.public_key().public_bytes_raw() + nonce + sealed


def _cipher(secret: bytes, shared: bytes) -> AESGCM:
    return AESGCM(HKDF(SHA256(), 32, salt=secret, info=b"docsmith: a wrapping key").derive(shared))
