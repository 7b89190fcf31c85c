"""The differences between two commits: only folders that differ are walked, so that a change of a few files costs the
same in a repository of any size.
"""

import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from dulwich.objects import ObjectID
from msgspec import Struct

from service.adapters.git.export import above, over_limit
from service.adapters.git.names import MAX_DEPTH
from service.adapters.git.objects import MAX_ENTRIES, Entry, Objects, checked_id, left_out
from service.adapters.git.repositories import commit_of, opened
from service.domain.errors import Invalid, NotFound
from service.ports.docs_source import LeftOut, size_limit

MAX_CHANGES = 5_000
"""Beyond which everything is read anyway."""
MAX_TREES_KEPT = 2_000


class GitChanges(Struct, frozen=True):
    """``service.ports.docs_source.Changes`` in a clone."""

    clone: str
    commit: str
    blobs: Mapping[str, str | None]
    left_out: tuple[LeftOut, ...]

    @contextmanager
    def open(self) -> Iterator[Callable[[str, int], bytes | None]]:
        with opened(Path(self.clone)) as repository:
            objects = Objects(repository)
            root = commit_of(repository, self.commit).tree
            trees: dict[ObjectID, dict[bytes, Entry]] = {}

            def read(path: str, limit: int) -> bytes | None:
                blob = self.blobs.get(path)
                name = checked_id(blob) if blob is not None else _found(objects, root, path, trees)
                content = objects.blob(name, size_limit(path)) if name is not None else None
                return content[:limit] if content is not None else None

            yield read


def _found(objects: Objects, root: ObjectID, path: str, trees: dict[ObjectID, dict[bytes, Entry]]) -> ObjectID | None:
    """The blob of a plain file. Pages lie beside each other, so the folders on the way are kept."""
    mode, name = stat.S_IFDIR, root
    for part in path.encode().split(b"/"):
        if not stat.S_ISDIR(mode):
            return None
        if name not in trees:
            if len(trees) >= MAX_TREES_KEPT:
                trees.clear()
            trees[name] = {entry.name: entry for entry in objects.entries(name)}
        entry = trees[name].get(part)
        if entry is None:
            return None
        mode, name = entry.mode, entry.id
    return name if stat.S_ISREG(mode) else None


def changes_between(clone: Path, old: str, new: str, docs_folder: str) -> GitChanges | None:
    """Return the changes of the files that ``export`` would write. None when that costs as much as reading everything,
    or when the older commit is not here. Raise NotFound (``commit_not_found``) for the newer one.
    """
    with opened(clone) as repository:
        now = commit_of(repository, new)
        objects = Objects(repository)
        try:
            before = commit_of(repository, old)
            walk = _Walk(objects)
            blobs: dict[str, str | None] = {}
            for path, name in walk.changes(before.tree, now.tree, docs_folder):
                fits = name is not None and objects.fits(name, size_limit(path))
                blobs[path] = name.decode() if name is not None and fits else None
                if name is not None and not fits:
                    walk.left_out.append(over_limit(path))
        except _TooMany:
            return None
        except (NotFound, Invalid):
            return None  # the older one, or parts of it: a full reading reports what is wrong with the newer
    return GitChanges(str(clone), new, blobs, tuple(walk.left_out))


class _TooMany(Exception):
    pass


class _Walk:
    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._entries = 0
        self._changes = 0
        self.left_out: list[LeftOut] = []
        """Changed files and folders that are not read."""

    def changes(self, before: ObjectID, now: ObjectID, docs_folder: str) -> Iterator[tuple[str, ObjectID | None]]:
        parts = [part.encode() for part in docs_folder.split("/") if part]
        left_before: list[LeftOut] = []
        left: list[LeftOut] = []
        old = {path: name for path, _, name in above(self._objects, before, parts, left_before.append)}
        new = {path: name for path, _, name in above(self._objects, now, parts, left.append)}
        for path in old.keys() | new.keys():
            if old.get(path) != new.get(path):
                yield path.decode(), new.get(path)
        for each in left_before:
            if each not in left and each.path.encode() not in new:
                yield each.path, None
        self.left_out += [each for each in left if each not in left_before]
        folder, folder_now = (self._objects.entry(tree, parts) for tree in (before, now))
        if parts:
            yield from self._differing(folder, folder_now, b"".join(part + b"/" for part in parts[:-1]), len(parts))
        else:
            yield from self._below(folder, folder_now, b"", 0)

    def _below(
        self, old: Entry | None, new: Entry | None, prefix: bytes, depth: int
    ) -> Iterator[tuple[str, ObjectID | None]]:
        """Files under two folders of the same name, either of which may be missing, or none."""
        if depth > MAX_DEPTH:
            raise _TooMany
        before, now = self._listed(old), self._listed(new)
        for name in before.keys() | now.keys():
            yield from self._differing(before.get(name), now.get(name), prefix, depth + 1)

    def _differing(
        self, old: Entry | None, new: Entry | None, prefix: bytes, depth: int
    ) -> Iterator[tuple[str, ObjectID | None]]:
        """Files at, or under, a name in a folder."""
        if old is not None and new is not None and (old.id, old.mode) == (new.id, new.mode):
            return
        (old, left_before), (new, left) = _read_or_left_out(prefix, old), _read_or_left_out(prefix, new)
        either = new or old
        if either is not None:
            yield from self._below(old, new, prefix + either.name + b"/", depth)
        file, file_before = _file(new), _file(old)
        if left is not None:
            self.left_out.append(left)
        if file == file_before and left == left_before:
            return
        self._changes += 1
        if self._changes > MAX_CHANGES:
            raise _TooMany
        if either is not None:
            yield (prefix + either.name).decode(), file
        elif known := left or left_before:
            yield known.path, None

    def _listed(self, folder: Entry | None) -> dict[bytes, Entry]:
        if folder is None or not stat.S_ISDIR(folder.mode):
            return {}
        listed = {entry.name: entry for entry in self._objects.entries(folder.id)}
        self._entries += len(listed)
        if self._entries > MAX_ENTRIES:
            raise _TooMany
        return listed


def _read_or_left_out(prefix: bytes, entry: Entry | None) -> tuple[Entry | None, LeftOut | None]:
    left = left_out(prefix, entry) if entry is not None else None
    return (entry, None) if left is None else (None, left)


def _file(entry: Entry | None) -> ObjectID | None:
    return entry.id if entry is not None and stat.S_ISREG(entry.mode) else None
