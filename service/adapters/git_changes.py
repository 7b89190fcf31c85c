"""What one commit has that another had not: only folders that differ are walked, so that a change of a few files costs
the same on a repository of any size.
"""

import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from dulwich.objects import ObjectID
from msgspec import Struct

from service.adapters.git_names import MAX_DEPTH, is_plain
from service.adapters.git_objects import MAX_ENTRIES, Entry, Objects, above, checked_id
from service.adapters.git_repositories import commit_of, opened
from service.domain.errors import Invalid, NotFound

MAX_CHANGES = 5_000
"""Beyond which everything is read anyway."""
MAX_TREES_KEPT = 2_000


class GitChanges(Struct, frozen=True):
    """``service.ports.docs_source.Changes`` in a clone."""

    clone: str
    commit: str
    blobs: Mapping[str, str | None]

    @contextmanager
    def open(self) -> Iterator[Callable[[str, int], bytes | None]]:
        with opened(Path(self.clone)) as repository:
            objects = Objects(repository)
            root = commit_of(repository, self.commit).tree
            trees: dict[ObjectID, dict[bytes, Entry]] = {}

            def read(path: str, limit: int) -> bytes | None:
                blob = self.blobs.get(path)
                name = checked_id(blob) if blob is not None else _found(objects, root, path, trees)
                content = objects.blob(name) if name is not None else None
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
    """Of the files that ``export`` would write. None when that costs as much as reading everything, or when the older
    commit is not here. Raises NotFound (``commit_not_found``) for the newer one.
    """
    with opened(clone) as repository:
        now = commit_of(repository, new)
        objects = Objects(repository)
        try:
            before = commit_of(repository, old)
            found = dict(_Walk(objects).changes(before.tree, now.tree, docs_folder))
            blobs: dict[str, str | None] = {}
            for path, name in found.items():
                readable = name is not None and objects.blob(name) is not None
                blobs[path.decode()] = name.decode() if name is not None and readable else None
        except _TooMany:
            return None
        except (NotFound, Invalid):
            return None  # the older one, or parts of it: a full reading tells what is wrong with the newer
    return GitChanges(str(clone), new, blobs)


class _TooMany(Exception):
    pass


class _Walk:
    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._entries = 0
        self._changes = 0

    def changes(self, before: ObjectID, now: ObjectID, docs_folder: str) -> Iterator[tuple[bytes, ObjectID | None]]:
        parts = [part.encode() for part in docs_folder.split("/") if part]
        old, new = ({path: name for path, _, name in above(self._objects, tree, parts)} for tree in (before, now))
        for path in old.keys() | new.keys():
            if old.get(path) != new.get(path):
                yield path, new.get(path)
        folder, folder_now = (self._objects.entry(tree, parts) for tree in (before, now))
        yield from self._below(folder, folder_now, b"/".join(parts), len(parts))

    def _below(
        self, old: Entry | None, new: Entry | None, folder: bytes, depth: int
    ) -> Iterator[tuple[bytes, ObjectID | None]]:
        """Files under two folders of the same name, either of which may be missing, or none."""
        if depth > MAX_DEPTH:
            raise _TooMany
        before, now = self._listed(old), self._listed(new)
        for name in before.keys() | now.keys():
            one, other = before.get(name), now.get(name)
            if one is not None and other is not None and (one.id, one.mode) == (other.id, other.mode):
                continue
            if not is_plain(name):
                continue
            path = folder + b"/" + name if folder else name
            yield from self._below(one, other, path, depth + 1)
            file, file_before = _file(other), _file(one)
            if file != file_before:
                self._changes += 1
                if self._changes > MAX_CHANGES:
                    raise _TooMany
                yield path, file

    def _listed(self, folder: Entry | None) -> dict[bytes, Entry]:
        if folder is None or not stat.S_ISDIR(folder.mode):
            return {}
        listed = {entry.name: entry for entry in self._objects.entries(folder.id)}
        self._entries += len(listed)
        if self._entries > MAX_ENTRIES:
            raise _TooMany
        return listed


def _file(entry: Entry | None) -> ObjectID | None:
    return entry.id if entry is not None and stat.S_ISREG(entry.mode) else None
