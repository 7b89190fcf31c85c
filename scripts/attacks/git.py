"""The contents of a push, built by hand: files, commits, packs, and things that look like packs."""

import base64
import hashlib
import struct
import zlib
from collections.abc import Iterable, Mapping
from time import time

from dulwich.object_format import DEFAULT_OBJECT_FORMAT
from dulwich.objects import Blob, Commit, ShaFile, Tree
from dulwich.pack import PackChunkGenerator, full_unpacked_object

ZERO = b"0" * 40
FLUSH = b"0000"
CAPABILITIES = b"\0report-status agent=siege"
FETCH_CAPABILITIES = b" side-band-64k thin-pack ofs-delta multi_ack_detailed agent=siege\n"
COMMIT, TREE, BLOB, OFS_DELTA, REF_DELTA = 1, 2, 3, 6, 7


def line(data: bytes) -> bytes:
    return b"%04x" % (len(data) + 4) + data


def basic(token: str) -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(f"docsmith:{token}".encode()).decode()}


def tree_of(files: Mapping[str, bytes], objects: list[ShaFile]) -> bytes:
    """Return the id of the files' tree, with all that it is made of appended to ``objects``."""
    folders: dict[str, dict[str, bytes]] = {}
    tree = Tree()
    for path, content in files.items():
        name, _, rest = path.partition("/")
        if rest:
            folders.setdefault(name, {})[rest] = content
            continue
        blob = Blob.from_string(content)
        objects.append(blob)
        tree.add(name.encode(), 0o100644, blob.id)
    for name, inside in folders.items():
        tree.add(name.encode(), 0o040000, tree_of(inside, objects))
    objects.append(tree)
    return tree.id


def commit_of(tree: bytes, parent: bytes | None) -> Commit:
    made = Commit()
    made.tree, made.message = tree, b"Siege\n"
    made.parents = [parent] if parent is not None and parent != ZERO else []
    made.author = made.committer = b"Siege <siege@example.com>"
    made.author_time = made.commit_time = int(time())
    made.author_timezone = made.commit_timezone = 0
    return made


def pack_of(objects: Iterable[ShaFile]) -> bytes:
    records = [full_unpacked_object(one) for one in {one.id: one for one in objects}.values()]
    return b"".join(PackChunkGenerator(DEFAULT_OBJECT_FORMAT, num_records=len(records), records=iter(records)))


def push_of(old: bytes, new: bytes, pack: bytes, ref: bytes = b"refs/heads/main") -> bytes:
    return line(old + b" " + new + b" " + ref + CAPABILITIES) + FLUSH + pack


def files_push(files: Mapping[str, bytes], old: bytes) -> tuple[bytes, bytes]:
    """Return the commit of these files and no others upon the old one, and the body of its push."""
    objects: list[ShaFile] = []
    commit = commit_of(tree_of(files, objects), old)
    return commit.id, push_of(old, commit.id, pack_of([*objects, commit]))


# Packs that no program writes


def entry(kind: int, size: int, compressed: bytes, before: bytes = b"") -> bytes:
    """One object of a pack; ``before`` is what a delta names as its base."""
    first, size = (kind << 4) | (size & 15), size >> 4
    head = bytearray()
    while size:
        head.append(first | 0x80)
        first, size = size & 0x7F, size >> 7
    head.append(first)
    return bytes(head) + before + compressed


def raw_pack(entries: Iterable[bytes], count: int | None = None) -> bytes:
    found = list(entries)
    body = b"PACK" + struct.pack(">II", 2, len(found) if count is None else count) + b"".join(found)
    return body + hashlib.sha1(body, usedforsecurity=False).digest()


def zeros(size: int) -> bytes:
    """Return a number of zero bytes, compressed: a thousandth of them."""
    packer = zlib.compressobj(9)
    piece = bytes(1 << 20)
    made = [packer.compress(piece) for _ in range(size >> 20)]
    return b"".join([*made, packer.flush()])


def varint(number: int) -> bytes:
    made = bytearray()
    while number >= 0x80:
        made.append((number & 0x7F) | 0x80)
        number >>= 7
    return bytes([*made, number])


def delta(base_size: int, copies: int) -> tuple[bytes, int]:
    """Return a delta that copies the first 64 KiB of its base so often, and the size of its result."""
    size = min(base_size, 0xFFFF)
    copy = b"\xb0" + struct.pack("<H", size)
    return varint(base_size) + varint(size * copies) + copy * copies, size * copies


def offset(number: int) -> bytes:
    """Return the distance to a delta's base as a pack writes it."""
    made = [number & 0x7F]
    while number := number >> 7:
        number -= 1
        made.append(0x80 | (number & 0x7F))
    return bytes(reversed(made))
