"""A three-way merge of trees by whole files: a file that both sides changed differently is a conflict."""

from collections.abc import Callable, Mapping

from dulwich.objects import ObjectID, Tree

from service.adapters.git.history import is_folder
from service.adapters.git.names import MAX_DEPTH
from service.adapters.git.objects import Entry, Objects


class Unmergeable(Exception):
    """Both sides changed this path."""

    def __init__(self, path: bytes) -> None:
        super().__init__(path.decode("utf-8", "replace"))


def merged_tree(
    objects: Objects, add: Callable[[Tree], object], base: ObjectID | None, ours: ObjectID, theirs: ObjectID
) -> ObjectID:
    """The tree with the changes of both since the base; ``add`` is given the new trees. Raises Unmergeable."""
    merged = _merged(objects, add, base, ours, theirs, b"")
    if merged is None:
        empty = Tree()
        add(empty)
        return ObjectID(empty.id)
    return merged


def is_mergeable(
    objects: Objects, base: ObjectID | None, ours: ObjectID | None, theirs: ObjectID | None, prefix: bytes = b""
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
        if not all(entry is None or is_folder(entry) for entry in (mine, yours)):
            return False
        folder = was.id if was is not None and is_folder(was) else None
        left, right = (None if entry is None else entry.id for entry in (mine, yours))
        if not is_mergeable(objects, folder, left, right, prefix + name + b"/"):
            return False
    return True


def _merged(
    objects: Objects,
    add: Callable[[Tree], object],
    base: ObjectID | None,
    ours: ObjectID | None,
    theirs: ObjectID | None,
    prefix: bytes,
) -> ObjectID | None:
    if ours == theirs or theirs == base:
        return ours
    if ours == base:
        return theirs
    if prefix.count(b"/") > MAX_DEPTH:
        raise Unmergeable(prefix)
    before, one, other = _entries(objects, base), _entries(objects, ours), _entries(objects, theirs)
    tree = Tree()
    for name in sorted(before.keys() | one.keys() | other.keys()):
        kept = _merged_entry(objects, add, before.get(name), one.get(name), other.get(name), prefix + name)
        if kept is not None:
            tree.add(name, kept.mode, kept.id)
    if not len(tree):
        return None
    add(tree)
    return ObjectID(tree.id)


def _merged_entry(
    objects: Objects,
    add: Callable[[Tree], object],
    before: Entry | None,
    one: Entry | None,
    other: Entry | None,
    path: bytes,
) -> Entry | None:
    if one == other or other == before:
        return one
    if one == before:
        return other
    folders = [entry for entry in (one, other) if entry is not None]
    if not all(is_folder(entry) for entry in folders):
        raise Unmergeable(path)
    tree = _merged(
        objects,
        add,
        before.id if before is not None and is_folder(before) else None,
        None if one is None else one.id,
        None if other is None else other.id,
        path + b"/",
    )
    return None if tree is None else Entry(path.rsplit(b"/", 1)[-1], folders[0].mode, tree)


def _entries(objects: Objects, tree: ObjectID | None) -> Mapping[bytes, Entry]:
    return {} if tree is None else {entry.name: entry for entry in objects.entries(tree)}
