"""The data keys under which personal fields are stored, one for each subject: a subject is a stream's name.

Erasing a subject deletes its key, and with it the meaning of everything sealed under it, in the log and in every copy
and backup of the log. That holds only if the key itself is in no other file:

- The vault is a file of its own; never restore an old one over it.
- ``secure_delete`` overwrites the deleted key with zeros (https://sqlite.org/pragma.html#pragma_secure_delete), and
  the WAL, which has older pages, is emptied before ``erase`` returns. A file system that keeps old blocks is beyond us.

A key is durable before the event that needs it. The other order could leave an event that nobody can ever read.

Sealed: format (1 byte), key id (8), nonce (12), AES-256-GCM ciphertext and tag. The nonce is random; one key seals far
fewer than the 2 ** 32 texts up to which that is safe (NIST SP 800-38D, section 8.3). The associated data binds stream,
stream version and event id, so that a sealed text cannot be moved to another event.
"""

import os
import sqlite3
import threading
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from struct import pack

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from eventstore import files
from eventstore.errors import EventStoreError, StoreClosed, StoreCorrupt, StoreReadOnly, StoreUnavailable, SubjectErased

APPLICATION_ID = 0x45764B79
"""'EvKy'."""

_FORMAT = b"\x01"
_KEY_ID_BYTES = 8
_NONCE_BYTES = 12
_KNOWN_KEYS = 4_096
_CACHED_KIB = 512
"""Of the file's pages. Keys that are in use are known; the others come in no order, and the system has their pages."""


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
        """The text, or None when it was sealed under a key that is gone.

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


class Vault:
    """Keys by subject. Its methods may block, and may be called from any thread.

    In a vault that is only read, and has no file, every subject is erased.
    """

    def __init__(
        self, path: Path, db: sqlite3.Connection | None, clock: Callable[[], datetime], read_only: bool
    ) -> None:
        self._path, self._db, self._clock, self._read_only = path, db, clock, read_only
        self._lock = threading.RLock()
        self._keys: dict[str, Key | None] = {}
        self._concealed: set[str] = set()
        """Subjects that are to be erased, but that the file cannot be relieved of."""
        self._seen_version = -1
        self._generation = 0
        self._is_closed = False

    @classmethod
    def open(
        cls, path: Path, *, read_only: bool = False, clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> "Vault":
        if read_only and not path.exists():
            return cls(path, None, clock, read_only)
        try:
            if not read_only:
                _make_private(path)
            db = files.connect_offline(path) if read_only else files.connect(path)
            try:
                if not read_only:
                    files.use_wal(db, path)
                    db.execute("PRAGMA synchronous = FULL")
                    db.execute("PRAGMA secure_delete = ON")
                    db.execute(f"PRAGMA cache_size = -{_CACHED_KIB}")
                    # No older file is kept of it: that would have the keys of what is erased later.
                    files.migrate(db, "eventstore.migrations.vault", APPLICATION_ID, path)
                    # What a killed process had deleted may still be in the WAL. When another one is at work here,
                    # the WAL is its to empty.
                    db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            except BaseException:
                db.close()
                raise
        except sqlite3.Error as error:
            raise files.explained(error, path) from error
        except OSError as error:
            raise StoreUnavailable(f"{path.name}: {error.strerror}") from error
        return cls(path, db, clock, read_only)

    def refresh(self) -> int:
        """Take note of what other processes did since: once for a page or batch. A number that grows when they did."""
        with self._lock:
            if self._db is None:
                return self._generation
            try:
                (version,) = self._db.execute("PRAGMA data_version").fetchone()
            except sqlite3.Error as error:
                raise self._explained(error) from error
            if version != self._seen_version:
                self._seen_version = version
                self._generation += 1
                self._keys.clear()
            return self._generation

    def find(self, subject: str) -> Key | None:
        """A subject's key, or None when there is none (any more)."""
        try:
            return self._keys[subject]
        except KeyError:
            pass
        with self._lock:
            row = None
            if self._db is not None and subject not in self._concealed:
                try:
                    row = self._db.execute(
                        "SELECT key_id, key FROM keys WHERE subject = ? AND key IS NOT NULL", (subject,)
                    ).fetchone()
                except sqlite3.Error as error:
                    raise self._explained(error) from error
            if len(self._keys) >= _KNOWN_KEYS:
                self._keys.clear()
            key = self._keys[subject] = None if row is None else Key(*row)
            return key

    def obtain(self, subjects: Iterable[str]) -> dict[str, Key | EventStoreError]:
        """Keys to seal with, made where there was none and then durable; one transaction for all.

        Raises:
            StoreUnavailable and its kinds: the vault cannot be written.
        """
        found: dict[str, Key | EventStoreError] = {}
        with self._lock:
            self.refresh()
            for subject in subjects:
                if subject in self._concealed:
                    found[subject] = SubjectErased(subject)
                elif (key := self.find(subject)) is not None:
                    found[subject] = key
            if missing := [subject for subject in subjects if subject not in found]:
                found |= self._make(missing)
        return found

    def _make(self, subjects: list[str]) -> dict[str, Key | EventStoreError]:
        db = self._writable()
        found: dict[str, Key | EventStoreError] = {}
        try:
            with files.transaction(db):
                now = self._now()
                for subject in subjects:
                    db.execute(
                        "INSERT INTO keys (subject, key_id, key, created_at) VALUES (?, ?, ?, ?)"
                        " ON CONFLICT DO NOTHING",
                        (subject, os.urandom(_KEY_ID_BYTES), AESGCM.generate_key(256), now),
                    )
                    key_id, key = db.execute("SELECT key_id, key FROM keys WHERE subject = ?", (subject,)).fetchone()
                    found[subject] = SubjectErased(subject) if key is None else Key(key_id, key)
        except sqlite3.Error as error:
            raise self._explained(error) from error
        self._keys |= {subject: key if isinstance(key, Key) else None for subject, key in found.items()}
        return found

    def erase(self, subject: str) -> None:
        """Delete a subject's key for good and leave a tombstone; again does nothing.

        Raises:
            StoreBusy: the key is deleted, but others kept the WAL from being emptied of it for too long: erase again.
            StoreUnavailable and its other kinds: nothing happened.
        """
        with self._lock:
            self._erase([subject])

    def erase_all(self, subjects: Collection[str]) -> int:
        """Erase those subjects that the file does not call erased; the number of them.

        From the beginning on nothing of any of them can be opened through this vault, whatever is raised.

        Raises:
            StoreUnavailable and its kinds: the file cannot be written.
        """
        with self._lock:
            self._concealed.update(subjects)
            for subject in subjects:
                self._keys.pop(subject, None)
            if todo := [subject for subject in subjects if not self._is_erased(subject)]:
                self._erase(todo)
            self._concealed.difference_update(subjects)
            return len(todo)

    def _is_erased(self, subject: str) -> bool:
        if self._db is None:
            return True  # so is every subject of a vault without a file
        sql = "SELECT erased_at IS NOT NULL FROM keys WHERE subject = ?"
        try:
            return bool(self._db.execute(sql, (subject,)).fetchone() == (1,))
        except sqlite3.Error as error:
            raise self._explained(error) from error

    def _erase(self, subjects: Sequence[str]) -> None:
        db = self._writable()
        try:
            with files.transaction(db):
                now = self._now()
                db.executemany(
                    "INSERT INTO keys (subject, created_at, erased_at) VALUES (?, ?, ?)"
                    " ON CONFLICT DO UPDATE SET key = NULL, key_id = NULL, erased_at = excluded.erased_at"
                    " WHERE erased_at IS NULL",
                    [(subject, now, now) for subject in subjects],
                )
            self._keys |= dict.fromkeys(subjects)
            files.empty_wal(db, self._path)
        except sqlite3.Error as error:
            raise self._explained(error) from error

    def close(self) -> None:
        with self._lock:
            if self._db is not None:
                self._db.close()
            self._db, self._is_closed = None, True
            self._keys.clear()

    def _writable(self) -> sqlite3.Connection:
        if self._is_closed:
            raise StoreClosed("the vault is closed")
        if self._read_only or self._db is None:
            raise StoreReadOnly(f"{self._path.name} was opened for reading")
        return self._db

    def _explained(self, error: sqlite3.Error) -> Exception:
        return StoreClosed("the vault is closed") if self._is_closed else files.explained(error, self._path)

    def _now(self) -> str:
        return self._clock().astimezone(UTC).isoformat(timespec="microseconds")


def _make_private(path: Path) -> None:
    """Make the file readable for its owner only; SQLite gives its WAL the same mode."""
    os.close(os.open(path, os.O_CREAT | os.O_RDONLY | os.O_CLOEXEC, 0o600))
    if path.stat().st_mode & 0o077:
        path.chmod(0o600)


def _bound(stream: bytes, stream_version: int, event_id: bytes) -> bytes:
    return pack(">IQ", len(stream), stream_version) + stream + event_id
