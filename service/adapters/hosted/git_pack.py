"""Receive a pack: check all of it, and move it into the repository when it is sound.

This runs in a process of its own, since a few bytes of a pack may be gigabytes of an object.
"""

import re
import shutil
import stat
import struct
import tempfile
import zlib
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import BinaryIO

from dulwich.errors import ApplyDeltaError, ChecksumMismatch, GitProtocolError, ObjectFormatException
from dulwich.object_store import DiskObjectStore
from dulwich.objects import Commit, ObjectID, Tag, Tree
from dulwich.pack import Pack, UnresolvedDeltas
from msgspec import Struct

from service.adapters.git.names import HFS_IGNORED, NTFS_DOTGIT
from service.adapters.git.repositories import UNPACK_LIMIT, ObjectStore, children_first, linked
from service.adapters.hosted.pack_scan import MAX_OBJECT_BYTES, refusal
from service.domain.errors import NO_ROOM, DiskFull

NOT_A_PACK = (
    ChecksumMismatch, ApplyDeltaError, UnresolvedDeltas, ObjectFormatException, GitProtocolError,
    AssertionError, ValueError, TypeError, KeyError, IndexError, OverflowError, EOFError, struct.error, zlib.error,
)  # fmt: skip
"""Errors that dulwich raises for bytes that are not a pack."""

SHORT_NAMES = "|".join(
    f"{stem}~[1-4]|" + "|".join(f"{hashed[:length]}~[1-9][0-9]{{{6 - length}}}" for length in range(7))
    for stem, hashed in (("gitmod", "gi7eba"), ("gitatt", "gi7d29"))
)
"""How NTFS shortens them: by a number, or by a hash of the name."""
GIT_READS = re.compile(rf"(?:\.gitmodules|\.gitattributes|{SHORT_NAMES})[ .]*(?::.*)?", re.IGNORECASE | re.DOTALL)
"""Files that git reads and that are no links (git's fsck.c: gitmodulesSymlink; path.c: is_ntfs_dot_generic)."""
MAX_MESSAGE_BYTES = 1024 * 1024
"""Limit for the message of a commit or an annotated tag, in bytes: they are shown on pages."""


class Received(Struct, frozen=True):
    problem: bytes | None = None
    """Why nothing of it was stored, in git's words."""
    kinds: Mapping[ObjectID, str] = {}
    """Kinds of the tips that are in the repository now: ``commit``, ``tag``, ``tree`` or ``blob``."""


class Malformed(Exception):
    """It is not what a git client sends."""


def receive(repository: Path, pack: BinaryIO, tips: tuple[ObjectID, ...]) -> Received:
    """Store a pack and say what the tips are. What is refused is never seen, as in git's quarantine: whatever is in the
    store is complete. Raises Malformed, DiskFull.
    """
    store = ObjectStore(repository / "objects", fsync_object_files=True)
    with closing(store):
        problem = _unpack(store, pack)
        if problem is not None:
            return Received(problem)
        store.settle()
        return Received(kinds={tip: store[tip].type_name.decode() for tip in tips if tip in store})


def _unpack(store: ObjectStore, spooled: BinaryIO) -> bytes | None:
    if (problem := refusal(spooled)) is not None:
        return problem
    incoming = Path(tempfile.mkdtemp(prefix="tmp_objdir-incoming-", dir=store.path))
    try:
        DiskObjectStore.init(incoming / "objects").close()
        quarantine = DiskObjectStore(incoming / "objects", alternates=[store.path], fsync_object_files=True)
        try:
            pack = quarantine.add_thin_pack(spooled.read, spooled.read)
            problem = _fsck(pack, store)
            if problem is None:
                _move_in(pack, Path(quarantine.pack_dir), store)
            return problem
        finally:
            for alternate in quarantine.alternates:
                alternate.close()
            quarantine.close()
    except OSError as error:
        if error.errno in NO_ROOM:
            raise DiskFull from error
        raise
    except MemoryError:
        return b"the pack takes more memory than a push may"
    except NOT_A_PACK as error:
        raise Malformed(type(error).__name__) from error
    finally:
        shutil.rmtree(incoming, ignore_errors=True)


def _fsck(pack: Pack, store: ObjectStore) -> bytes | None:
    """Return what git's fsck would refuse in the new objects, or the missing objects that they name."""
    names = set(pack)
    for one in pack.iterobjects():
        try:
            size = one.raw_length()
            if size > MAX_OBJECT_BYTES:
                return b"object is larger than 100 MB"
            if not isinstance(one, (Commit, Tree, Tag)):
                continue
            if size > MAX_MESSAGE_BYTES and not isinstance(one, Tree):
                return b"message is larger than 1 MB"
            one.check()
            if isinstance(one, Tree):
                problem = _unsafe_name(one)
                if problem is not None:
                    return problem
        except (ObjectFormatException, ValueError, AssertionError):
            return b"fsck error in packed object"
        if any(name not in names and name not in store for name in linked(one)):
            return b"missing necessary objects"
    return None


def _unsafe_name(tree: Tree) -> bytes | None:
    for name, mode, _ in tree.iteritems():
        plain = HFS_IGNORED.sub("", name.decode("utf-8", "replace"))
        if any(NTFS_DOTGIT.fullmatch(part) for part in plain.split("\\")):
            return b"hasDotgit: contains '.git'"
        if stat.S_ISLNK(mode) and any(GIT_READS.fullmatch(part) for part in plain.split("\\")):
            return b"gitmodulesSymlink: a symbolic link has the name of a file that git reads"
    return None


def _move_in(pack: Pack, folder: Path, store: ObjectStore) -> None:
    """A small pack as single files: a pack for each push would mean two open files for each."""
    if len(pack) <= UNPACK_LIMIT:
        for one in children_first(pack.iterobjects()):
            store.add_object(one)
        return
    for suffix in (".pack", ".idx"):  # in this order: a pack counts when it has an index
        file = folder / f"pack-{pack.name().decode()}{suffix}"
        file.rename(Path(store.pack_dir) / file.name)
    store.added(Path(store.pack_dir))
