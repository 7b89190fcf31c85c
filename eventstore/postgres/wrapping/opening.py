"""Converts keys to the form in which they are stored, and back: they are the same unless the vault is wrapped."""

from eventstore.errors import WrappingKeyMissing
from eventstore.postgres.wrapping.wrapping_keys import WrappingKeys, unwrap, wrap

CURRENT = "(SELECT id FROM wrapping_keys WHERE state = 'current')"
"""The wrapping key for new keys; NULL for a vault that is not wrapped."""
LOCKED = "wrapping AS (SELECT id FROM wrapping_keys WHERE state = 'current' FOR SHARE)"
"""For a statement that stores keys wrapped under it: it stays the current one until the end of the transaction. So once
another one has replaced it, none is stored under it any more."""


class Wrapper:
    """Opens and wraps keys with the wrapping keys of a folder; without a folder, of vaults that are not wrapped."""

    def __init__(self, name: str, keys: WrappingKeys | None) -> None:
        """``name``: that of the vault, for errors."""
        self._name, self._keys = name, keys

    def opened(self, subject: str, key_id: bytes, stored: bytes, wrapped_under: str | None) -> bytes:
        """Raise WrappingKeyMissing, StoreCorrupt."""
        if wrapped_under is None:
            return bytes(stored)
        return unwrap(self._wrapping(wrapped_under), bytes(stored), subject, bytes(key_id))

    def stored(self, subject: str, key_id: bytes, key: bytes, under: str | None) -> bytes:
        """Raise WrappingKeyMissing, StoreCorrupt."""
        return key if under is None else wrap(self._wrapping(under), key, subject, key_id)

    def _wrapping(self, wrapping_id: str) -> bytes:
        found = None if self._keys is None else self._keys.find(wrapping_id)
        if found is None:
            where = "" if self._keys is None else f" in {self._keys.folder}"
            raise WrappingKeyMissing(
                f"{self._name}: its keys are wrapped under {wrapping_id}, which is not{where}",
                remedy="a running instance gives it to a service that starts, or import a copy: docsmith vault import",
            )
        return found
