"""The data keys under which personal fields are stored, one for each subject: a subject is a stream's name.

Erasing a subject deletes its key, and with it the meaning of everything sealed under it, in the log and in every copy
and backup of the log. That holds only if the key itself is in no other file: the vault is kept apart from the log.

A key is durable before the event that needs it. The other order could leave an event that can never be read.

Sealed: format (1 byte), key id (8), nonce (12), AES-256-GCM ciphertext and tag. The nonce is random; one key seals far
fewer than the 2 ** 32 texts up to which that is safe (NIST SP 800-38D, section 8.3). The associated data binds stream,
stream version and event id, so that a sealed text cannot be moved to another event.
"""

import os
from collections.abc import Collection, Iterable
from datetime import UTC, datetime
from struct import pack
from typing import Protocol

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from eventstore.errors import EventStoreError, StoreCorrupt

KEPT = "secret-"
"""The subject of a secret's key is this and the secret's name."""
_FORMAT = b"\x01"
_KEY_ID_BYTES = 8
_NONCE_BYTES = 12


class Key:
    """A subject's data key. A cipher is made for each use: it takes 1.5 µs, and kept it would take 2.5 KB, of each of
    thousands of subjects.
    """

    __slots__ = ("_key", "id")

    def __init__(self, key_id: bytes, key: bytes) -> None:
        self.id, self._key = key_id, key

    def seal(self, text: bytes, stream: bytes, stream_version: int, event_id: bytes) -> bytes:
        nonce = os.urandom(_NONCE_BYTES)
        return b"".join(
            (_FORMAT, self.id, nonce, AESGCM(self._key).encrypt(nonce, text, _bound(stream, stream_version, event_id)))
        )

    def open(self, sealed: bytes, stream: bytes, stream_version: int, event_id: bytes) -> bytes | None:
        """Return the text, or None when it was sealed under a key that is gone.

        Raises StoreCorrupt: it does not open.
        """
        nonce_at, text_at = 1 + _KEY_ID_BYTES, 1 + _KEY_ID_BYTES + _NONCE_BYTES
        if sealed[:1] != _FORMAT:
            raise StoreCorrupt("a sealed text is of an unknown format")
        if sealed[1:nonce_at] != self.id:
            return None
        try:
            return AESGCM(self._key).decrypt(
                sealed[nonce_at:text_at], sealed[text_at:], _bound(stream, stream_version, event_id)
            )
        except (InvalidTag, ValueError):  # it, or the key, has lost a bit; or some bytes
            raise StoreCorrupt(f"a sealed text of {stream.decode()} does not open with its key") from None


def new_key() -> tuple[bytes, bytes]:
    """Return the id and the secret of a key, at random."""
    return os.urandom(_KEY_ID_BYTES), AESGCM.generate_key(256)


class Vault(Protocol):
    """Keys by subject. Its methods may block, and may be called from any thread."""

    def refresh(self) -> int:
        """Notice what other processes did since: once for a page or batch. Return a number that grows when they did."""

    def find(self, subject: str) -> Key | None:
        """Return a subject's key; None when there is none, or none any more."""

    def obtain(self, subjects: Iterable[str]) -> dict[str, Key | EventStoreError]:
        """Return keys to seal with, made where there was none and then durable; one transaction for all.

        Raises:
            StoreUnavailable and its kinds: the vault cannot be written.
        """

    def erase(self, subject: str) -> None:
        """Delete a subject's key for good and leave a tombstone; again does nothing.

        Raises:
            StoreBusy: the key is deleted, but a copy of it could not be removed in time: erase again.
            StoreUnavailable and its other kinds: nothing happened.
        """

    def erase_all(self, subjects: Collection[str]) -> int:
        """Erase those subjects that are not erased yet, and return their number.

        From the beginning on nothing of any of them can be opened through this vault, whatever is raised.

        Raises:
            StoreUnavailable and its kinds: the vault cannot be written.
        """

    def keep_secret(self, name: str, text: str) -> None:
        """Store a secret; this and the next three are the blocking forms of the methods of ``Secrets``."""

    def find_secret(self, name: str) -> str | None: ...

    def forget_secret(self, name: str) -> None: ...

    def secret_names(self, *, before: datetime | None = None) -> Collection[str]: ...

    def close(self) -> None: ...


class Secrets(Protocol):
    """Secrets that the service was given to use, by name, such as the token of a code host.

    They are in the vault and nowhere else: in no event, so in no copy of the log either. Each is sealed under a key of
    its own, so that no text of a secret is found in the vault's file, and none is left in it once it is forgotten.

    Any method raises StoreUnavailable and its kinds when the vault cannot be read or written.
    """

    async def keep_secret(self, name: str, text: str) -> None:
        """Store a secret durably, under a name that none has or had. Raise SubjectErased for a name that one had."""

    async def find_secret(self, name: str) -> str | None:
        """Return a secret; None when there is none of the name, or none any more. Raise StoreCorrupt."""

    async def forget_secret(self, name: str) -> None:
        """Delete a secret for good; again does nothing."""

    async def secret_names(self, *, before: datetime | None = None) -> Collection[str]:
        """Return the names of all secrets, or of those that were kept before a time."""


def stamp(time: datetime) -> str:
    """Return a time as a vault stores it."""
    return time.astimezone(UTC).isoformat(timespec="microseconds")


def _bound(stream: bytes, stream_version: int, event_id: bytes) -> bytes:
    return pack(">IQ", len(stream), stream_version) + stream + event_id
