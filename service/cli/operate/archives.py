"""The tar files of ``docsmith backup``: their members first, then a manifest with the SHA-256 of each."""

import hashlib
import io
import os
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import IO

import msgspec
from msgspec import Struct

from service.domain.errors import Invalid
from service.integrity.checkpoints import CHECKPOINTS, KEY, PUBLIC_KEY
from service.runtime.system import now

FORMAT, VAULT_FORMAT = "docsmith-backup-1", "docsmith-vault-1"
MANIFEST = "manifest.json"
CHUNK = 1 << 20


class NotSound(Invalid):
    """A backup that is not what was written."""


class Member(Struct, frozen=True):
    name: str
    bytes: int
    sha256: str


class Manifest(Struct, frozen=True, rename="camel"):
    format: str
    made_at: datetime
    position: int
    """Position of the last event."""
    hash: str
    """Hash of that event, in hex."""
    files: tuple[Member, ...]


class Archive:
    """A tar file as it is being written, and what is in it."""

    def __init__(self, file: Path) -> None:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        self._file = os.fdopen(descriptor, "wb")
        self._tar = tarfile.open(fileobj=self._file, mode="w", format=tarfile.PAX_FORMAT)  # noqa: SIM115 - see __exit__
        self._members: list[Member] = []

    def __enter__(self) -> "Archive":
        return self

    def __exit__(self, *_: object) -> None:
        self._tar.close()
        self._file.close()

    def add(self, path: Path, name: str) -> None:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            hashed = _Hashed(file, status.st_size)
            info = tarfile.TarInfo(name)
            info.size, info.mode, info.mtime = status.st_size, status.st_mode & 0o700, status.st_mtime
            self._tar.addfile(info, hashed)  # a shorter file is an OSError
            self._members.append(Member(name, status.st_size, hashed.sha256.hexdigest()))

    def add_if_there(self, path: Path, name: str) -> None:
        with suppress(FileNotFoundError):  # a branch that was deleted, an object that was packed
            self.add(path, name)

    def finish(self, kind: str, position: int, head: str) -> Manifest:
        manifest = Manifest(kind, now(), position, head, tuple(self._members))
        text = msgspec.json.encode(manifest)
        info = tarfile.TarInfo(MANIFEST)
        info.size, info.mode = len(text), 0o600
        self._tar.addfile(info, io.BytesIO(text))
        self._tar.close()
        self._file.flush()
        os.fsync(self._file.fileno())
        return manifest


class _Hashed(io.RawIOBase):
    """What is read through it, up to a length."""

    def __init__(self, file: IO[bytes], length: int) -> None:
        self._file, self._left, self.sha256 = file, length, hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        read = self._file.read(self._left if size < 0 else min(size, self._left))
        self._left -= len(read)
        self.sha256.update(read)
        return read


def check(file: Path, kind: str, into: Path | None = None) -> Manifest:
    """Compare an archive with its manifest, unpacking it on the way if asked to.

    Raises NotSound.
    """
    found: list[Member] = []
    manifest: Manifest | None = None
    try:
        with tarfile.open(file, mode="r:") as archive:
            for info in archive:
                content = archive.extractfile(info)
                if content is None or manifest is not None or not _is_ours(info.name, kind):
                    raise NotSound(f"{file}: {info.name!r} has no place in it.")
                if info.name == MANIFEST:
                    manifest = msgspec.json.decode(content.read(), type=Manifest)
                    continue
                with _target(into, info) as target:
                    found.append(_copied(content, target, info.name))
    except (tarfile.TarError, msgspec.MsgspecError, EOFError) as error:
        raise NotSound(f"{file}: it is not a whole backup: {error}") from error
    if manifest is None:
        raise NotSound(f"{file}: it has no manifest, so it is not a whole backup.")
    if manifest.format != kind:
        raise NotSound(f"{file}: it is a {manifest.format}, not a {kind}.")
    for member, expected in zip(found, manifest.files, strict=False):
        if member != expected:
            raise NotSound(f"{file}: {member.name} is not what was written.")
    if len(found) != len(manifest.files):
        raise NotSound(f"{file}: it has {len(found)} files, and had {len(manifest.files)}.")
    return manifest


def _is_ours(name: str, kind: str) -> bool:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\\" in name or str(path) != name:
        return False
    if kind == VAULT_FORMAT:
        return name in {MANIFEST, "keys.db", KEY}
    return name in {MANIFEST, "events.db", CHECKPOINTS, PUBLIC_KEY} or (
        len(path.parts) > 2 and path.parts[0] == "hosted" and path.parts[1].endswith(".git")
    )


@contextmanager
def _target(into: Path | None, info: tarfile.TarInfo) -> Iterator[IO[bytes]]:
    if into is None:
        with Path(os.devnull).open("wb") as nothing:
            yield nothing
        return
    path = into / info.name
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    mode = 0o700 if info.mode & 0o100 else 0o600
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


def _copied(source: IO[bytes], target: IO[bytes], name: str) -> Member:
    sha256, size = hashlib.sha256(), 0
    while chunk := source.read(CHUNK):
        sha256.update(chunk)
        size += len(chunk)
        target.write(chunk)
    return Member(name, size, sha256.hexdigest())
