"""A three-way merge of trees by whole files: a file that both sides changed differently is a conflict, unless the
caller merges it by lines.
"""

import stat
from collections.abc import Callable, Container, Mapping

from dulwich.objects import Blob, ObjectID, Tree

from service.adapters.git.history import is_folder
from service.adapters.git.names import MAX_DEPTH
from service.adapters.git.objects import Entry, Objects


class Unmergeable(Exception):
    """Both sides changed this path."""

    def __init__(self, path: bytes) -> None:
        super().__init__(path.decode("utf-8", "replace"))


FileMerge = Callable[[Entry, Entry, Entry], tuple[int, bytes] | None]
"""A merge of a file from the entries of the base and of both sides: mode and content, or None for a conflict."""
Add = Callable[[Tree | Blob], object]


def _conflict(_base: Entry, _ours: Entry, _theirs: Entry) -> None:
    """Merge no file."""


def merged_tree(
    objects: Objects,
    add: Add,
    trees: tuple[ObjectID | None, ObjectID, ObjectID],
    *,
    settled: Container[bytes] = (),
    merge_file: FileMerge = _conflict,
) -> ObjectID:
    """Return the tree with the changes of both since the base; ``add`` is given what is new. Raise Unmergeable.

    ``trees``: the base's, and those of both sides. ``settled``: paths of files that the caller writes itself; such a
    file of both sides is no conflict.
    """
    merged = _Merging(objects, add, settled, merge_file).folder(*trees, b"")
    if merged is None:
        empty = Tree()
        add(empty)
        return ObjectID(empty.id)
    return merged


def is_mergeable(
    objects: Objects,
    base: ObjectID | None,
    ours: ObjectID | None,
    theirs: ObjectID | None,
    merge_file: FileMerge = _conflict,
    prefix: bytes = b"",
) -> bool:
    """Return whether ``merged_tree`` would succeed, without the trees that it makes: only what differs is looked at."""
    if ours in (theirs, base) or theirs == base:
        return True
    if prefix.count(b"/") > MAX_DEPTH:
        return False
    before, one, other = (set(objects.entries(tree)) if tree is not None else set() for tree in (base, ours, theirs))
    by_name = [{entry.name: entry for entry in side} for side in (before - (one & other), one - other, other - one)]
    for name in by_name[1].keys() | by_name[2].keys():
        was, mine, yours = (side.get(name) for side in by_name)
        if was in (mine, yours):
            continue
        if was is not None and mine is not None and yours is not None and merge_file(was, mine, yours) is not None:
            continue
        if not all(entry is None or is_folder(entry) for entry in (mine, yours)):
            return False
        folders = _folder_id(was), _folder_id(mine), _folder_id(yours)
        if not is_mergeable(objects, *folders, merge_file, prefix + name + b"/"):
            return False
    return True


def _folder_id(entry: Entry | None) -> ObjectID | None:
    return entry.id if entry is not None and is_folder(entry) else None


def _name(path: bytes) -> bytes:
    return path.rsplit(b"/", 1)[-1]


class _Merging:
    def __init__(self, objects: Objects, add: Add, settled: Container[bytes], merge_file: FileMerge) -> None:
        self._objects, self._add, self._settled, self._merge_file = objects, add, settled, merge_file

    def folder(
        self, base: ObjectID | None, ours: ObjectID | None, theirs: ObjectID | None, prefix: bytes
    ) -> ObjectID | None:
        if ours == theirs or theirs == base:
            return ours
        if ours == base:
            return theirs
        if prefix.count(b"/") > MAX_DEPTH:
            raise Unmergeable(prefix)
        before, one, other = self._entries(base), self._entries(ours), self._entries(theirs)
        tree = Tree()
        for name in sorted(before.keys() | one.keys() | other.keys()):
            kept = self._entry(before.get(name), one.get(name), other.get(name), prefix + name)
            if kept is not None:
                tree.add(name, kept.mode, kept.id)
        if not len(tree):
            return None
        self._add(tree)
        return ObjectID(tree.id)

    def _entry(self, before: Entry | None, one: Entry | None, other: Entry | None, path: bytes) -> Entry | None:
        if one == other or other == before:
            return one
        if one == before:
            return other
        there = [entry for entry in (one, other) if entry is not None]
        if path in self._settled and all(stat.S_ISREG(entry.mode) for entry in there):
            return other if before is None or other is None or other.mode != before.mode else one or other
        if (file := self._file(before, one, other, path)) is not None:
            return file
        if not all(is_folder(entry) for entry in there):
            raise Unmergeable(path)
        tree = self.folder(_folder_id(before), _folder_id(one), _folder_id(other), path + b"/")
        return None if tree is None else Entry(_name(path), there[0].mode, tree)

    def _file(self, before: Entry | None, one: Entry | None, other: Entry | None, path: bytes) -> Entry | None:
        """Return a file of all three that was merged by lines; None for a conflict, or another change."""
        if before is None or one is None or other is None:
            return None
        found = self._merge_file(before, one, other)
        if found is None:
            return None
        mode, content = found
        blob = Blob.from_string(content)
        self._add(blob)
        return Entry(_name(path), mode, ObjectID(blob.id))

    def _entries(self, tree: ObjectID | None) -> Mapping[bytes, Entry]:
        return {} if tree is None else {entry.name: entry for entry in self._objects.entries(tree)}
