"""Signed checkpoints of the log: its state at some time, so that an auditor can detect that it was rewritten.

    data/checkpoint.key      the installation's private key (Ed25519, PEM), created when needed, readable by its owner
                             alone; with the log in PostgreSQL a secret of the vault, the same for all instances
    data/checkpoint.pub      its public key, PEM: for auditors to keep
    data/checkpoints.jsonl   a line for each checkpoint

A user who can write in the folder can write all three. So a checkpoint is proof only for those who keep it, or the
public key, elsewhere: ``docsmith audit checkpoint --output FILE``.
"""

import asyncio
import base64
import fcntl
import os
from datetime import datetime
from pathlib import Path

import msgspec
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)
from msgspec import Struct

from eventstore import Checkpoint, LogPlace, Witness, verify_checkpoint
from eventstore.sqlite.files import sync_folder
from service.domain.errors import Invalid
from service.domain.formats import NewerFormat, require_known
from service.integrity.shared_secrets import CHECKPOINT
from service.ports.shared.shared_secrets import SharedSecrets

KEY, PUBLIC_KEY, CHECKPOINTS = "checkpoint.key", "checkpoint.pub", "checkpoints.jsonl"
KEPT = "checkpoint.kept"
"""The file that says where a checkpoint was written last, for people to keep: doctor reminds of it without."""
LAST_BYTES = 16_384
"""The last line of a file of checkpoints is within its last bytes, this many."""
LOST_CHECKPOINTS = "checkpoints.lost.jsonl"
"""Those that the log does not hold, since the loss of its end was accepted."""
FORMAT, FORMAT_WITHOUT_LOG = "docsmith-checkpoint-2", "docsmith-checkpoint-1"
"""service/manual/log-format.md has both. A log without an id is signed in the older one."""


class SignedCheckpoint(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A checkpoint as people keep it: one JSON object."""

    format: str
    log: str = ""
    """The log's id."""
    position: int
    hash: str
    """Hash of the event at that position, in hex."""
    time: datetime
    public_key: str
    """The 32 bytes of an Ed25519 key, in base64."""
    signature: str
    """In base64."""

    @classmethod
    def of(cls, checkpoint: Checkpoint, key: Ed25519PublicKey) -> "SignedCheckpoint":
        return cls(
            format=FORMAT if checkpoint.log else FORMAT_WITHOUT_LOG,
            log=checkpoint.log,
            position=checkpoint.position,
            hash=checkpoint.hash.hex(),
            time=checkpoint.signed_at,
            public_key=key_text(key),
            signature=base64.b64encode(checkpoint.signature).decode(),
        )

    def witness(self) -> Witness:
        return Witness("the signed checkpoint", self.position, bytes.fromhex(self.hash))

    def checkpoint(self) -> Checkpoint:
        signature = base64.b64decode(self.signature)
        return Checkpoint(self.position, bytes.fromhex(self.hash), self.time, signature, self.log)

    def is_signed_with(self, key: Ed25519PublicKey) -> bool:
        return verify_checkpoint(key, self.checkpoint())

    def own_key(self) -> Ed25519PublicKey:
        return Ed25519PublicKey.from_public_bytes(base64.b64decode(self.public_key))


class _Formatted(Struct):
    format: str


def key_text(key: Ed25519PublicKey) -> str:
    return base64.b64encode(key.public_bytes(Encoding.Raw, PublicFormat.Raw)).decode()


def parse_checkpoints(text: bytes, name: str) -> list[SignedCheckpoint]:
    """Return the checkpoints of a file with one JSON object on each line, or one in all; an unfinished end is skipped.

    Raise NewerFormat when a newer release wrote it, Invalid when something else is in it.
    """
    try:
        return [_parsed(text)]
    except NewerFormat as error:
        raise NewerFormat(f"{name}: {error}") from None
    except (msgspec.MsgspecError, ValueError):
        pass
    *lines, _ = text.split(b"\n")
    try:
        return [_parsed(line) for line in lines if line.strip()]
    except NewerFormat as error:
        raise NewerFormat(f"{name}: {error}") from None
    except (msgspec.MsgspecError, ValueError) as error:
        raise Invalid(f"{name}: there is something in it that is not a checkpoint: {error}") from error


def read_checkpoints(file: Path) -> list[SignedCheckpoint]:
    """Return the checkpoints of a file that was kept elsewhere. Raise NewerFormat, OSError, or Invalid for none."""
    found = parse_checkpoints(file.read_bytes(), str(file))
    if not found:
        raise Invalid(f"{file}: no checkpoint found in it; give a file that docsmith audit checkpoint wrote.")
    return found


def _parsed(text: bytes) -> SignedCheckpoint:
    found = msgspec.json.decode(text, type=_Formatted).format
    require_known(found, FORMAT)
    one = msgspec.json.decode(text, type=SignedCheckpoint)
    if one.format != (FORMAT if one.log else FORMAT_WITHOUT_LOG):
        raise ValueError(f"its format is {found}")
    one.checkpoint()  # raises ValueError, as the next line does
    one.own_key()
    return one


def read_public_key(file: Path) -> Ed25519PublicKey:
    try:
        key = load_pem_public_key(file.read_bytes())
    except (ValueError, UnsupportedAlgorithm) as error:
        raise Invalid(f"{file}: not a public key in PEM.") from error
    if not isinstance(key, Ed25519PublicKey):
        raise Invalid(f"{file}: not an Ed25519 key.")
    return key


async def obtain_key(secrets: SharedSecrets, data: Path) -> Ed25519PrivateKey:
    """Return the installation's key, made when there is none; its public key is in the data folder by then."""
    text = await secrets.obtain(CHECKPOINT, _new_key)
    try:
        key = load_pem_private_key(text, password=None)
    except ValueError as error:
        raise Invalid(f"{KEY}: not a private key in PEM.") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise Invalid(f"{KEY}: not an Ed25519 key.")
    await asyncio.to_thread(_write_public_key, data / PUBLIC_KEY, key.public_key())
    return key


def _new_key() -> bytes:
    return Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _write_public_key(file: Path, key: Ed25519PublicKey) -> None:
    text = key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    if not file.exists() or file.read_bytes() != text:
        _write_durably(file, text, os.O_TRUNC, 0o600)


def last_position(file: Path) -> int:
    try:
        lines = file.read_bytes().splitlines()
        return _parsed(lines[-1]).position if lines else 0
    except (FileNotFoundError, msgspec.MsgspecError, ValueError):
        return 0


def last_checkpoint(file: Path) -> SignedCheckpoint | None:
    """Return the newest checkpoint of a file; None where there is none, or where its last line is damaged."""
    try:
        with file.open("rb") as opened:
            opened.seek(max(opened.seek(0, os.SEEK_END) - LAST_BYTES, 0))
            lines = opened.read().splitlines()
        return _parsed(lines[-1]) if lines else None
    except (OSError, NewerFormat, msgspec.MsgspecError, ValueError):
        return None


def append_line(file: Path, line: bytes) -> None:
    """Durably, after the last whole line: a process may have been killed in the midst of one."""
    with file.open("a+b", buffering=0) as opened:
        fcntl.flock(opened, fcntl.LOCK_EX)
        opened.seek(0)
        opened.truncate(opened.read().rfind(b"\n") + 1)
        opened.write(line)
        os.fsync(opened.fileno())


def set_apart(file: Path, log: LogPlace) -> int:
    """Move the checkpoints of what a log does not hold to a file beside their own; the number of them.

    A line that is no checkpoint stays where it is.
    """
    if not file.exists():
        return 0
    with file.open("r+b", buffering=0) as opened:
        fcntl.flock(opened, fcntl.LOCK_EX)
        content = opened.read()
        lines = content.splitlines(keepends=True)
        signed = {line: one for line in lines if (one := _witness_in(line)) is not None}
        gone = set(log.not_held(list(signed.values())))
        lost = {line: None for line in lines if signed.get(line) in gone}
        if lost:
            other = file.with_name(LOST_CHECKPOINTS)
            _write_durably(other, b"".join(lost), os.O_APPEND, 0o600)
            fresh = file.with_name(f".{file.name}.{os.getpid()}")
            fresh.unlink(missing_ok=True)
            _write_durably(fresh, b"".join(line for line in lines if line not in lost), os.O_EXCL, 0o600)
            fresh.replace(file)
            sync_folder(file.parent)
    return len(lost)


def checkpoints_through(text: bytes, position: int) -> bytes:
    """Return a file's lines without the checkpoints of later events, for a copy of the log up to a position.

    A line that is no checkpoint stays in it.
    """
    lines = text.splitlines(keepends=True)
    return b"".join(line for line in lines if (one := _witness_in(line)) is None or one.position <= position)


def _witness_in(line: bytes) -> Witness | None:
    try:
        return _parsed(line).witness()
    except (msgspec.MsgspecError, ValueError, Invalid):
        return None


def _write_durably(file: Path, content: bytes, flags: int, mode: int) -> None:
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | flags, mode)
    try:
        os.write(descriptor, content)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
