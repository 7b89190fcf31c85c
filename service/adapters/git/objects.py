"""Reading trees and blobs that strangers wrote, within limits, and writing commits on top of them.

A pack of 0.3 MB can hold a file of 300 MB, and eight trees 100 million paths; so sizes are read from the headers of
the objects before anything is inflated, and a walk counts what it meets.
"""

import re
import stat
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from dulwich.object_store import DiskObjectStore
from dulwich.objects import S_ISGITLINK, Blob, Commit, ObjectID, Tree, parse_tree
from dulwich.pack import Pack
from dulwich.repo import Repo

from service.adapters.git.names import MAX_DEPTH, MAX_PATH_BYTES, checked_path, difference, folded, shown, unusable
from service.domain.errors import Damaged, Invalid, NotFound
from service.ports.docs_source import (
    LeftOut,
    NewCommit,
    TreeFile,
    WrittenCommit,
)

MAX_ENTRIES = 200_000
"""Limit for the entries of one commit, trees counted too."""

MAX_TREE_BYTES = 32 * 1024 * 1024
"""Limit for one tree object, in bytes: about 800,000 entries."""

MAX_BLOB_BYTES = 2 * 1024 * 1024
"""A file larger than this is not read, but for the index, which has a limit for each kind of page (``size_limit``)."""

MAX_INFLATED_BYTES = 64 * 1024 * 1024
"""Limit for any object that a wanted one is a delta of, in bytes."""

LFS_POINTER = b"version https://git-lfs"

OFS_DELTA, REF_DELTA = 6, 7
"""Kinds of pack entries that are deltas (gitformat-pack(5))."""

FILE_NAME = re.compile(rb"\.[A-Za-z]\w{0,9}\Z")
"""A link of such a name leads to a file, as far as its name says."""

IDENTITY = re.compile(r"[^<>\x00-\x1f\x7f]*[^<>\x00-\x20\x7f] <[^<>\x00-\x20\x7f]*>")


class Entry(NamedTuple):
    name: bytes
    mode: int
    id: ObjectID


class Objects:
    """The objects of one repository and its alternates, for one task. The packs are those of the repository, which
    closes them.
    """

    def __init__(self, repository: Repo) -> None:
        store = repository.object_store
        assert isinstance(store, DiskObjectStore)
        self._stores: list[DiskObjectStore] = [store, *(a for a in store.alternates if isinstance(a, DiskObjectStore))]
        self._packs: list[Pack] = []
        self._sizes: dict[tuple[int, int], tuple[int, int]] = {}
        self._look()

    def _look(self) -> None:
        self._packs = [pack for store in self._stores for pack in store.packs]

    def _find(self, name: ObjectID) -> tuple[int, int] | None:
        for number, pack in enumerate(self._packs):
            try:
                return number, pack.index.object_offset(name)
            except KeyError:
                continue
        return None

    def __contains__(self, name: ObjectID) -> bool:
        """Return whether the object is here and can be read, as far as a look at its header or its loose file says."""
        return self._find(name) is not None or any(store.contains_loose(name) for store in self._stores)

    def size(self, name: ObjectID) -> int | None:
        """Return the bytes that reading the object needs at most: its own, or those of the largest that it is a delta
        of. None when the object does not exist.
        """
        place = self._find(name)
        if place is None:
            loose = self._loose_size(name)
            if loose is not None:
                return loose
            self._look()  # packed in the meantime
            self._sizes.clear()
            place = self._find(name)
        return None if place is None else self._packed_size(*place)

    def _loose_size(self, name: ObjectID) -> int | None:
        text = name.decode("ascii")
        for store in self._stores:
            try:
                with (Path(store.path) / text[:2] / text[2:]).open("rb") as file:
                    first = file.read(128)
                if not first:  # a power cut has emptied it
                    continue
                head = zlib.decompressobj().decompress(first, 64)
                return int(head.split(b"\0", 1)[0].split(b" ")[1])
            except FileNotFoundError:
                continue
            except (zlib.error, IndexError, ValueError):
                raise Damaged(f"The object {text[:12]} is damaged.") from None
        return None

    def _packed_size(self, number: int, offset: int) -> int:
        largest, followed = 0, []
        while True:
            known = self._sizes.get((number, offset))
            if known is not None:
                largest = max(largest, known[0])
                break
            followed.append((number, offset))
            _, size, base = self._header(number, offset)
            largest = max(largest, size)
            if base is None or len(followed) > 5_000:
                break
            number, offset = base
        for place in followed:
            self._sizes[place] = (largest, 0)  # an upper bound for each of the chain
        return largest

    def _header(self, number: int, offset: int) -> tuple[int, int, tuple[int, int] | None]:
        """Kind, inflated size and, for a delta, the place of its base."""
        pack = self._packs[number]
        head = _peek(pack, offset, 512)
        kind, size, at = (head[0] >> 4) & 7, head[0] & 15, 1
        shift = 4
        while head[at - 1] & 0x80:
            size |= (head[at] & 0x7F) << shift
            shift, at = shift + 7, at + 1
        if kind == OFS_DELTA:
            distance = head[at] & 0x7F
            while head[at] & 0x80:
                at += 1
                distance = ((distance + 1) << 7) | (head[at] & 0x7F)
            at += 1
            base: tuple[int, int] | None = (number, offset - distance)
        elif kind == REF_DELTA:
            base = self._find(ObjectID(head[at : at + 20].hex().encode()))
            at += 20
        else:
            return kind, size, None
        delta = zlib.decompressobj().decompress(head[at:], 32)
        _, read = _varint(delta, 0)
        result, _ = _varint(delta, read)
        return kind, max(size, result), base

    def read(self, name: ObjectID, limit: int) -> bytes:
        """The content of an object whose reading takes at most ``limit`` bytes. Raises NotFound, Invalid."""
        whole = self._stored_whole(name, limit)
        if whole is not None:
            return whole
        size = self.size(name)
        if size is None:
            raise NotFound(f"There is no object {name[:12].decode()} here.")
        if size > limit:
            raise Invalid(f"This is larger than {limit:,} bytes.", code="too_large")
        return self._content(name)

    def _content(self, name: ObjectID) -> bytes:
        place = self._find(name)
        try:
            if place is not None:
                return self._packs[place[0]].get_raw(name)[1]
            for store in self._stores:
                found = store._get_loose_object(name)  # past the packs, which have been looked at
                if found is not None:
                    return found.as_raw_string()
        except (zlib.error, ValueError, AssertionError, KeyError) as error:
            raise Damaged(f"The object {name[:12].decode()} is damaged.") from error
        raise Damaged(f"The object {name[:12].decode()} is damaged.")

    def fits(self, name: ObjectID, limit: int) -> bool:
        """Return whether a file has at most ``limit`` bytes, by headers alone. A small delta of a larger file fits."""
        size = self.size(name)
        if size is None:
            raise NotFound(f"There is no file {name[:12].decode()} here.")
        if size <= limit:
            return True
        place = self._find(name)
        return size <= MAX_INFLATED_BYTES and place is not None and self._header(*place)[1] <= limit

    def blob(self, name: ObjectID, limit: int = MAX_BLOB_BYTES) -> bytes | None:
        """The content of a file, or None when it is over the limit."""
        whole = self._stored_whole(name, limit)
        if whole is not None:
            return whole
        if not self.fits(name, limit):
            return None
        content = self._content(name)
        return content if len(content) <= limit else None

    def _stored_whole(self, name: ObjectID, limit: int) -> bytes | None:
        """Return what a pack holds as no delta, as most files and folders of documentation are: in one step, since a
        search reads thousands. None for everything else, and for what is over the limit or damaged.
        """
        place = self._find(name)
        if place is None:
            return None
        data, offset = self._packs[place[0]].data._buffer(), place[1]
        inflated = zlib.decompressobj()
        try:
            size, shift, at = data[offset] & 15, 4, offset + 1
            while data[at - 1] & 0x80:
                size |= (data[at] & 0x7F) << shift
                shift, at = shift + 7, at + 1
            if (data[offset] >> 4) & 7 in (OFS_DELTA, REF_DELTA) or size > limit:
                return None
            # What follows in the pack is copied: no more of it than deflate may need for the size.
            content = inflated.decompress(data[at : at + size + size // 1000 + 64], size + 1)
        except (IndexError, zlib.error):
            return None
        return content if len(content) == size and inflated.eof else None

    def entries(self, tree: ObjectID) -> Iterator[Entry]:
        """Raise Damaged for a tree that is not here: what names it is."""
        try:
            for name, mode, sha in parse_tree(self.read(tree, MAX_TREE_BYTES), 20):
                yield Entry(name, mode, ObjectID(sha))
        except NotFound as error:
            raise Damaged(str(error)) from error
        except ValueError as error:
            raise Damaged(f"The tree {tree[:12].decode()} is damaged.") from error

    def files(
        self, tree: ObjectID, *, folder: bytes = b"", leave: Callable[[LeftOut], None] | None = None
    ) -> Iterator[tuple[bytes, int, ObjectID]]:
        """Every plain file under the tree with a name that is safe to show: path, mode, id. Raises Invalid beyond the
        limits; what hides behind unsafe names is not walked, yet symbolic links and submodules count as entries.

        ``leave`` is called with each entry that is left out.
        """
        count = 0
        todo = [(tree, folder + b"/" if folder else b"", folder.count(b"/") + 1 if folder else 0)]
        while todo:
            current, prefix, depth = todo.pop()
            if depth > MAX_DEPTH:
                raise Invalid(f"Folders are nested deeper than {MAX_DEPTH}.", code="too_large")
            for entry in self.entries(current):
                count += 1
                if count > MAX_ENTRIES:
                    raise Invalid(f"The repository has more than {MAX_ENTRIES:,} files and folders.", code="too_large")
                left = left_out(prefix, entry)
                if left is not None:
                    if leave is not None:
                        leave(left)
                elif stat.S_ISDIR(entry.mode):
                    todo.append((entry.id, prefix + entry.name + b"/", depth + 1))
                else:
                    yield prefix + entry.name, entry.mode, entry.id

    def entry(self, tree: ObjectID, path: Sequence[bytes]) -> Entry | None:
        """Return the entry at the path, through folders only."""
        found: Entry | None = Entry(b"", stat.S_IFDIR, tree)
        for part in path:
            if found is None or not stat.S_ISDIR(found.mode):
                return None
            found = next((entry for entry in self.entries(found.id) if entry.name == part), None)
        return found

    def in_the_way(self, tree: ObjectID, paths: Iterable[str]) -> dict[str, LeftOut]:
        """Return the entries that keep plain files from being at the paths, as ``DocsSource.left_out`` says."""
        folders: dict[ObjectID, dict[str, list[Entry]]] = {}
        found = ((path, self._in_the_way(tree, path, folders)) for path in paths)
        return {path: left for path, left in found if left is not None}

    def _in_the_way(self, tree: ObjectID, path: str, folders: dict[ObjectID, dict[str, list[Entry]]]) -> LeftOut | None:
        """``folders``: the entries of those that were read, by their folded names; those of a path are added."""
        prefix = b""
        for part in path.split("/"):
            if tree not in folders:
                folders[tree] = {}
                for entry in self.entries(tree):
                    folders[tree].setdefault(folded(entry.name.decode("utf-8", "replace")), []).append(entry)
            inner: Entry | None = None
            for entry in folders[tree].get(folded(part), ()):
                left = left_out(prefix, entry)
                if left is not None:
                    return left
                if stat.S_ISDIR(entry.mode) and entry.name == part.encode("utf-8", "replace"):
                    inner = entry
            if inner is None:
                return None
            tree, prefix = inner.id, prefix + inner.name + b"/"
        return None


def left_out(prefix: bytes, entry: Entry) -> LeftOut | None:
    """Return why an entry of a folder is neither a plain file nor a folder to look into; None when it is."""
    name, mode, _ = entry
    reason = unusable(name)
    if reason is None and len(prefix) + len(name) > MAX_PATH_BYTES:
        reason = f"Its path is longer than {MAX_PATH_BYTES:,} bytes."
    if reason is None and S_ISGITLINK(mode):
        reason = "It is a submodule: its files are in another repository."
    if reason is None and stat.S_ISLNK(mode):
        reason = "It is a symbolic link, which is not followed. Put the file itself there."
    if reason is None and not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
        reason = "It is neither a file nor a folder."
    if reason is None:
        return None
    may_hold_pages = not stat.S_ISREG(mode) and (not stat.S_ISLNK(mode) or not FILE_NAME.search(name))
    return LeftOut(shown(prefix + name), reason, may_hold_pages)


def _peek(pack: Pack, offset: int, size: int) -> bytes:
    return bytes(pack.data._buffer()[offset : offset + size])  # the mapping that dulwich reads from


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if not byte & 0x80:
            return value, at


def list_files(repository: Repo, commit: Commit) -> list[TreeFile]:
    files = [
        TreeFile(path.decode(), sha.decode(), executable=bool(mode & 0o100))
        for path, mode, sha in Objects(repository).files(commit.tree)
    ]
    files.sort(key=lambda file: file.path)
    return files


def read_blobs(repository: Repo, blobs: Iterable[str]) -> dict[str, bytes]:
    objects = Objects(repository)
    found = {}
    for blob in blobs:
        content = objects.blob(checked_id(blob))
        if content is not None:
            found[blob] = content
    return found


def checked_id(name: str) -> ObjectID:
    if not re.fullmatch(r"[0-9a-f]{40}", name):
        raise NotFound("That is not the name of an object.")
    return ObjectID(name.encode())


def write_commit(
    repository: Repo, new: NewCommit, parent: Commit, *, merged: tuple[ObjectID, ObjectID] | None = None
) -> WrittenCommit:
    """``merged``: the tree that the changes are made in, instead of the parent's, and the second parent."""
    if not IDENTITY.fullmatch(new.author):
        raise Invalid("The author of a commit is 'Name <mail>'.", code="bad_author")
    if "\0" in new.message or not new.message.strip():
        raise Invalid("A commit message is text.", code="bad_message")
    if new.at.tzinfo is None:
        raise Invalid("The time of a commit has a time zone.", code="bad_time")
    writer = _Writer(repository)
    tree = writer.changed(parent.tree if merged is None else merged[0], _by_folder(new.changes), "")
    commit = Commit()
    commit.tree = tree if tree is not None else writer.add(Tree())
    commit.parents = [parent.id] if merged is None else [parent.id, merged[1]]
    commit.author = commit.committer = _encoded(new.author)
    commit.author_time = commit.commit_time = int(new.at.timestamp())
    commit.author_timezone = commit.commit_timezone = 0
    commit.message = _encoded(new.message)
    return WrittenCommit(writer.add(commit).decode(), commit.tree.decode())


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise Invalid("This text has characters that UTF-8 cannot hold.", code="bad_text") from None


def _by_folder(changes: Mapping[str, str | None]) -> dict[str, object]:
    root: dict[str, object] = {}
    for path, text in changes.items():
        *folders, name = checked_path(path)
        place = root
        for folder in folders:
            inner = place.setdefault(folder, {})
            if not isinstance(inner, dict):
                raise Invalid(f"{path!r} lies below a file that is changed too.", code="bad_path")
            place = inner
        if name in place:
            raise Invalid(f"{path!r} is changed as a file and as a folder.", code="bad_path")
        place[name] = None if text is None else _encoded(text)
    return root


class _Writer:
    """Rebuilds the trees above changed files; whatever is not on the way to one keeps its id."""

    def __init__(self, repository: Repo) -> None:
        self._store = repository.object_store
        self._objects = Objects(repository)

    def add(self, thing: Blob | Tree | Commit) -> ObjectID:
        if thing.id not in self._objects:
            self._store.add_object(thing)
        return ObjectID(thing.id)

    def changed(self, base: ObjectID | None, changes: Mapping[str, object], folder: str) -> ObjectID | None:
        """The tree with the changes made, or None when nothing is left in it."""
        entries = {} if base is None else {entry.name: entry for entry in self._objects.entries(base)}
        before = dict(entries)
        for name, change in changes.items():
            key, path = name.encode(), folder + name
            existing = entries.get(key)
            if isinstance(change, dict):
                if existing is not None and not stat.S_ISDIR(existing.mode):
                    raise Invalid(f"{path!r} is not a folder.", code="bad_path")
                inner = self.changed(None if existing is None else existing.id, change, f"{path}/")
                if inner is None:
                    entries.pop(key, None)
                else:
                    entries[key] = Entry(key, stat.S_IFDIR, inner)
                continue
            if existing is not None and not stat.S_ISREG(existing.mode):
                raise Invalid(f"{path!r} is a folder, a symbolic link or a submodule.", code="bad_path")
            if existing is not None:
                self._refuse_pointer(existing, path)
            if change is None:
                if existing is None:
                    raise Invalid(f"There is no file {path!r} to delete.", code="no_such_file")
                del entries[key]
            else:
                assert isinstance(change, bytes)
                mode = stat.S_IFREG | 0o644 if existing is None else existing.mode
                entries[key] = Entry(key, mode, self.add(Blob.from_string(change)))
        _refuse_lookalikes(before, entries, folder)
        if not entries:
            return None
        tree = Tree()
        for entry in entries.values():
            tree.add(entry.name, entry.mode, entry.id)
        return self.add(tree)

    def _refuse_pointer(self, existing: Entry, path: str) -> None:
        """A file kept in Git LFS is a pointer here; its text would replace the real file."""
        size = self._objects.size(existing.id)
        if size is not None and size < 1024 and self._objects.read(existing.id, 1024).startswith(LFS_POINTER):
            raise Invalid(f"{path!r} is kept in Git LFS and cannot be edited.", code="bad_path")


def _refuse_lookalikes(before: Mapping[bytes, Entry], after: Mapping[bytes, Entry], folder: str) -> None:
    """A new name must not be another's on a file system that folds case or normalises; what was there may stay."""
    new = [name for name in after if name not in before]
    if not new:
        return
    names: dict[str, bytes] = {}
    for name in [*(name for name in after if name in before), *new]:
        text = name.decode("utf-8", "surrogateescape")
        other = names.setdefault(folded(text), name)
        if other != name and name not in before:
            alike = other.decode("utf-8", "surrogateescape")
            raise Invalid(
                f"{folder}{shown(name)!r} differs from {shown(other)!r} {difference(text, alike)} only: use that name.",
                code="bad_path",
            )
