"""The hash chain over the log, and its verification from the file alone.

An event's hash is SHA-256 over a header of fixed size and then its texts, one after the other:

    hash before (32 bytes; zeros before the first event), then eleven big-endian signed 64-bit numbers:
    position, stream version, schema version, and the lengths in bytes of
    stream, id, type, recorded_at, metadata, data, sealed (-1 when it is NULL) and format;
    then stream, id, type, recorded_at, metadata, data, sealed and format themselves.

All lengths come first, so no two different events have the same bytes. The sealed part is hashed as stored, as
ciphertext: an erasure does not break the chain. What the chain alone cannot show is a tail that was cut off, or
written again together with its hashes: for that, keep signed checkpoints (Ed25519, RFC 8032) out of reach of
those who can write the log.

The metadata of the first event name the log: ``"log"``, 32 random hex digits, which each checkpoint signs as well, and
``"key"``, if the program that began it gave one (``CoreEventStore.identify``): the public key of its checkpoints.
Logs from before have none, and neither do their checkpoints. service/manual/log-format.md has all of this for those who
check a log with a program of their own.
"""

import hashlib
import struct
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from msgspec import Struct

GENESIS = bytes(32)
"""Stands for the hash before the first event."""

FORMAT = b"eventstore-1"

NOT_SIGNED = "it is not the event of the signed checkpoint"

_pack = struct.Struct(">32s11q").pack
_sha256 = hashlib.sha256
_FORMAT_LENGTH = len(FORMAT)
_KNOWN_STREAMS = 1_000_000
"""The last versions of this many streams are kept; those of others are looked up in the log."""


def event_hash(
    previous: bytes,
    position: int,
    stream: bytes,
    stream_version: int,
    id: bytes,  # noqa: A002 - the column's name
    type: bytes,  # noqa: A002 - the column's name
    schema_version: int,
    recorded_at: bytes,
    metadata: bytes,
    data: bytes,
    sealed: bytes | None,
) -> bytes:
    """Return the hash of an event from its stored bytes and the hash of the one before it."""
    header = _pack(
        previous, position, stream_version, schema_version, len(stream), len(id), len(type), len(recorded_at),
        len(metadata), len(data), -1 if sealed is None else len(sealed), _FORMAT_LENGTH,
    )  # fmt: skip
    return _sha256(b"".join((header, stream, id, type, recorded_at, metadata, data, sealed or b"", FORMAT))).digest()


class Checkpoint(Struct, frozen=True):
    """The state of the log at some time, signed by its writer."""

    position: int
    hash: bytes
    """The hash of the event at that position."""
    signed_at: datetime
    signature: bytes = b""
    log: str = ""
    """The log's id; empty for a log without one."""


class Verified(Struct, frozen=True):
    """The result of a verification."""

    position: int
    """The position of the last sound event; 0 when there is none."""
    hash: bytes
    """The hash of that event, which a checkpoint signs."""
    bad_position: int | None = None
    """The first place at which the log is not what its writer wrote; 0 when the events are, but not the file."""
    problem: str | None = None

    @property
    def is_sound(self) -> bool:
        return self.bad_position is None


class ChainCheck:
    """Checks rows of a log, one page after the other.

    ``signed`` has the hashes that checkpoints sign, by position: two of one position that differ cannot both be of this
    log. ``version_before`` returns the version of a stream before an event of that position and version, as stored.
    """

    def __init__(self, signed: Mapping[int, set[bytes]], version_before: Callable[[bytes, int, int], int]) -> None:
        self._signed, self._version_before = signed, version_before
        self._versions: dict[bytes, int] = {}

    def check(self, rows: Sequence[tuple[Any, ...]], last: int, last_hash: bytes) -> tuple[int, bytes, str | None]:
        """Return how far these rows are sound, the hash there, and what is wrong with the next."""
        versions, signed = self._versions, self._signed
        if len(versions) > _KNOWN_STREAMS:
            versions.clear()
        for (
            types, position, stream, version, id_, type_, schema_version, recorded_at, metadata, data, sealed, hash_,
        ) in rows:  # fmt: skip
            if position != last + 1:
                return last, last_hash, "the event is missing"
            if not types:
                return last, last_hash, "a value is of another type"
            try:  # as event_hash does it: the call alone would take a tenth as long again
                header = _pack(
                    last_hash, position, version, schema_version, len(stream), len(id_), len(type_), len(recorded_at),
                    len(metadata), len(data), -1 if sealed is None else len(sealed), _FORMAT_LENGTH,
                )  # fmt: skip
                text = b"".join((header, stream, id_, type_, recorded_at, metadata, data, sealed or b"", FORMAT))
            except (TypeError, struct.error):
                return last, last_hash, "a number is of another type"
            if _sha256(text).digest() != hash_:
                return last, last_hash, "its hash does not fit what is stored"
            before = versions.get(stream)
            if version != (self._version_before(stream, position, version) if before is None else before) + 1:
                return last, last_hash, "its stream version does not follow the one before"
            if signed and signed.get(position, {hash_}) != {hash_}:
                return last, last_hash, NOT_SIGNED
            versions[stream] = version
            last, last_hash = position, hash_
        return last, last_hash, None


def log_id_in(metadata: bytes) -> str:
    """Return the id that the metadata of a log's first event give it; empty when they give none."""
    try:
        return msgspec.json.decode(metadata, type=_Named).log
    except msgspec.MsgspecError:
        return ""


def log_key_in(metadata: bytes) -> str:
    """Return the key that the metadata of a log's first event name as that of its checkpoints; empty for none."""
    try:
        return msgspec.json.decode(metadata, type=_Named).key
    except msgspec.MsgspecError:
        return ""


def naming_log(metadata: bytes, log: str, key: str = "") -> bytes:
    """Return the metadata of a log's first event, encoded, with the log's id and the key of its checkpoints, if any."""
    names = msgspec.json.encode({"log": log, "key": key} if key else {"log": log})
    return names[:-1] + (b"" if metadata == b"{}" else b",") + metadata[1:]


class _Named(Struct):
    log: str = ""
    key: str = ""


def sign_checkpoint(
    key: Ed25519PrivateKey,
    position: int,
    hash: bytes,  # noqa: A002
    signed_at: datetime,
    log: str = "",
) -> Checkpoint:
    unsigned = Checkpoint(position, hash, signed_at, log=log)
    return msgspec.structs.replace(unsigned, signature=key.sign(_signed_text(unsigned)))


def verify_checkpoint(key: Ed25519PublicKey, checkpoint: Checkpoint) -> bool:
    """Return whether this checkpoint was signed with the key."""
    try:
        key.verify(checkpoint.signature, _signed_text(checkpoint))
    except InvalidSignature:
        return False
    return True


def _signed_text(checkpoint: Checkpoint) -> bytes:
    time, end = checkpoint.signed_at.isoformat(), f"{checkpoint.position}\n{checkpoint.hash.hex()}\n"
    if not checkpoint.log:
        return f"eventstore checkpoint 1\n{end}{time}\n".encode()
    time = time.replace("+00:00", "Z")  # as it stands in the JSON, so that others need not write it again
    return f"eventstore checkpoint 2\n{checkpoint.log}\n{end}{time}\n".encode()
