"""Wrapping keys in a folder outside the database, and the wrapping of a key.

Wrapped: nonce (12 bytes), AES-256-GCM ciphertext and tag. The nonce is random; one wrapping key wraps far fewer than
the 2 ** 32 keys up to which that is safe (NIST SP 800-38D, section 8.3). The associated data binds subject and key id,
so that a wrapped key cannot be moved to another subject.
"""

import os
import re
from hashlib import sha256
from pathlib import Path
from struct import pack

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from eventstore.errors import StoreCorrupt
from eventstore.sqlite.files import sync_folder

KEY_BYTES = 32
_NONCE_BYTES = 12
_ID = re.compile(r"[0-9a-f]{32}")
_ENDING = ".key"


def id_of(key: bytes) -> str:
    """Return the id of a wrapping key. The key cannot be found from it, and a wrong key has another one."""
    return sha256(b"wrapping key " + key).hexdigest()[:32]


class WrappingKeys:
    """Wrapping keys in files of a folder, each named by its id. Its methods block, and may be of any thread."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._known: dict[str, bytes] = {}

    def make(self) -> str:
        """Keep a new key durably, and return its id."""
        return self.add(AESGCM.generate_key(KEY_BYTES * 8))

    def add(self, key: bytes) -> str:
        """Keep a key durably, and return its id; again does nothing."""
        if len(key) != KEY_BYTES:
            raise ValueError(f"a wrapping key has {KEY_BYTES} bytes")
        key_id = id_of(key)
        if self.find(key_id) is None:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            fresh = self.folder / f".{key_id}.{os.getpid()}.{os.urandom(4).hex()}"
            descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            try:
                with os.fdopen(descriptor, "w") as file:
                    file.write(f"{key.hex()}\n")
                    file.flush()
                    os.fsync(descriptor)
                fresh.replace(self._file(key_id))
            finally:
                fresh.unlink(missing_ok=True)
            sync_folder(self.folder)
        return key_id

    def find(self, key_id: str) -> bytes | None:
        """Return a key; None where there is none. Raise StoreCorrupt for a file that is not what its name says."""
        if (known := self._known.get(key_id)) is not None:
            return known
        try:
            text = self._file(key_id).read_text(encoding="ascii", errors="replace").strip()
        except FileNotFoundError:
            return None
        key = bytes.fromhex(text) if re.fullmatch(r"[0-9a-f]{64}", text) else b""
        if id_of(key) != key_id:
            raise StoreCorrupt(f"{self._file(key_id)} does not have the wrapping key that its name says")
        self._known[key_id] = key
        return key

    def ids(self) -> list[str]:
        """Return the ids of all keys of the folder."""
        names = (file.name.removesuffix(_ENDING) for file in self.folder.glob(f"*{_ENDING}"))
        return sorted(name for name in names if _ID.fullmatch(name))

    def destroy(self, key_id: str) -> bool:
        """Overwrite and delete a key's file; return whether there was one."""
        self._known.pop(key_id, None)
        try:
            with self._file(key_id).open("r+b") as file:
                file.write(os.urandom(2 * KEY_BYTES))
                file.flush()
                os.fsync(file.fileno())
        except FileNotFoundError:
            return False
        self._file(key_id).unlink(missing_ok=True)
        sync_folder(self.folder)
        return True

    def _file(self, key_id: str) -> Path:
        if not _ID.fullmatch(key_id):
            raise ValueError("a wrapping key's id has 32 hexadecimal digits")
        return self.folder / f"{key_id}{_ENDING}"


def wrap(wrapping: bytes, key: bytes, subject: str, key_id: bytes) -> bytes:
    nonce = os.urandom(_NONCE_BYTES)
    return nonce + AESGCM(wrapping).encrypt(nonce, key, _bound(subject, key_id))


def unwrap(wrapping: bytes, wrapped: bytes, subject: str, key_id: bytes) -> bytes:
    """Raise StoreCorrupt: it does not open."""
    try:
        return AESGCM(wrapping).decrypt(wrapped[:_NONCE_BYTES], wrapped[_NONCE_BYTES:], _bound(subject, key_id))
    except (InvalidTag, ValueError):
        raise StoreCorrupt(f"the wrapped key of {subject} does not open") from None


def _bound(subject: str, key_id: bytes) -> bytes:
    name = subject.encode()
    return pack(">I", len(name)) + name + key_id
