"""Changes of commits: the files of one, and the last commits of a file; as far as the clone has the history."""

import heapq
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from dulwich.objects import Commit, ObjectID

from service.adapters.git.history import History, is_folder
from service.adapters.git.names import MAX_DEPTH
from service.adapters.git.objects import Entry, Objects, checked_id
from service.adapters.git.repositories import BareRepository, commit_of, opened
from service.domain.errors import Invalid, NotFound
from service.ports.docs_source import ChangedFile, CommitChanges, Past, PastCommit

MAX_WALKED = 10_000
"""Commits that are looked at for one question."""
MAX_FILES = 300
MAX_SUBJECT, MAX_AUTHOR = 200, 100
FOLDER = 0o040000
LEAST_ID = 6
"""Digits of a commit's id."""


class Change(NamedTuple):
    path: bytes
    old: ObjectID | None
    new: ObjectID | None
    old_mode: int
    new_mode: int
    old_path: bytes


class TooDeep(Exception):
    """Folders nested deeper than any documentation's."""


def changes(objects: Objects, old: ObjectID | None, new: ObjectID | None, prefix: bytes = b"") -> Iterator[Change]:
    """Files that differ, trees that are the same not entered, in the order of their paths. Raises TooDeep."""
    if old == new:
        return
    if prefix.count(b"/") > MAX_DEPTH:
        raise TooDeep
    there = set(objects.entries(old)) if old else set()
    here = set(objects.entries(new)) if new else set()
    before = {entry.name: entry for entry in there - here}
    after = {entry.name: entry for entry in here - there}
    for name in sorted(before.keys() | after.keys()):
        path = prefix + name
        old_tree, (old_file, old_mode) = _tree_or_file(before.get(name))
        new_tree, (new_file, new_mode) = _tree_or_file(after.get(name))
        if old_file or new_file:
            yield Change(path, old_file, new_file, old_mode, new_mode, path)
        if old_tree or new_tree:
            yield from changes(objects, old_tree, new_tree, path + b"/")


def _tree_or_file(entry: Entry | None) -> tuple[ObjectID | None, tuple[ObjectID | None, int]]:
    """Return the id of a folder's tree, and the id and mode of a file; the other one is empty."""
    if entry is None:
        return None, (None, 0)
    return (entry.id, (None, 0)) if is_folder(entry) else (None, (entry.id, entry.mode))


def last_commits(clone: Path, commit: str, path: str, limit: int) -> Past:
    """Return the last commits that changed a file or folder, newest first; every commit for an empty path.

    A side branch that a merge took over unchanged is not followed, as in ``git log``.
    """
    with opened(clone) as repository:
        commit_of(repository, commit)
        walk = _Walk(repository, path)
        found = list(islice(walk.commits(checked_id(commit)), limit))
        return Past(tuple(found), is_whole=not walk.is_cut)


def changed_by(clone: Path, commit: str, name: str, paths: Sequence[str]) -> CommitChanges:
    """Return the files that an ancestor of a commit changed, by the beginning of its id. Raise NotFound."""
    with opened(clone) as repository:
        commit_of(repository, commit)
        objects, history = Objects(repository), History(repository)
        found = _ancestor(history, checked_id(commit), name.lower().encode())
        one = history.commit(found)
        assert one is not None
        if one.parents and not history.parents(found):
            raise NotFound(f"The commit before {name} is not here: only the last commits are.")
        before = [parent for parent in map(history.commit, history.parents(found)[:1]) if parent is not None]
        return _changes(objects, before[0].tree if before else None, found, one, paths)


def compared(clone: Path, before: str, after: str, paths: Sequence[str]) -> CommitChanges:
    """Return the files that differ between two commits that are here."""
    with opened(clone) as repository:
        old, new = commit_of(repository, before), commit_of(repository, after)
        return _changes(Objects(repository), old.tree, checked_id(after), new, paths)


def ancestor(clone: Path, commit: str, name: str) -> str | None:
    """Return the commit of this id, or whose id begins so, among those that come before a commit, itself included."""
    with opened(clone) as repository:
        commit_of(repository, commit)
        try:
            return _ancestor(History(repository), checked_id(commit), name.lower().encode()).decode()
        except NotFound:
            return None


def _changes(
    objects: Objects, before: ObjectID | None, found: ObjectID, one: Commit, paths: Sequence[str]
) -> CommitChanges:
    files: list[ChangedFile] = []
    more = 0
    try:
        for change in changes(objects, before, one.tree):
            shown = change.path.decode("utf-8", "replace")
            if any(paths) and not any(shown == path or shown.startswith(f"{path}/") for path in paths):
                continue
            if len(files) >= MAX_FILES:
                more += 1
                continue
            blobs = (None if blob is None else blob.decode() for blob in (change.old, change.new))
            files.append(ChangedFile(shown, *blobs))
    except TooDeep:
        raise Invalid("Its folders are nested too deeply to be compared.", code="too_large") from None
    return CommitChanges(_past(found, one), tuple(files), more)


def _ancestor(history: History, start: ObjectID, name: bytes) -> ObjectID:
    seen, todo = {start}, [start]
    while todo and len(seen) < MAX_WALKED:
        one = todo.pop(0)
        if len(name) >= LEAST_ID and one.startswith(name):
            return one
        parents = [parent for parent in history.parents(one) if parent not in seen]
        seen.update(parents)
        todo += parents
    raise NotFound(f"Commit not found: {name.decode(errors='replace')[:40]}.")


class _Walk:
    def __init__(self, repository: BareRepository, path: str) -> None:
        self._objects, self._history = Objects(repository), History(repository)
        self._parts = [part.encode() for part in path.split("/") if part]
        self._known: dict[tuple[ObjectID, bytes], Entry | None] = {}
        """Folders on the way to the path are the same in most commits."""
        self.is_cut = False
        """The history goes on where the clone has no more of it, or nothing was looked at any more."""

    def commits(self, start: ObjectID) -> Iterator[PastCommit]:
        queue, seen = [(0, start)], {start}
        while queue:
            _, name = heapq.heappop(queue)
            commit = self._history.commit(name)
            if commit is None:
                continue
            parents = self._history.parents(name)
            if commit.parents and not parents:
                self.is_cut = True  # whether it changed the file cannot be known
                continue
            here = self._entry(commit)
            there = [(parent, self._entry(found)) for parent in parents if (found := self._history.commit(parent))]
            same = next((parent for parent, entry in there if entry == here), None)
            if same is not None and self._parts:
                parents = [same]
            elif here is not None or any(entry is not None for _, entry in there):
                yield _past(name, commit)
            for parent in parents:
                if parent not in seen:
                    seen.add(parent)
                    found = self._history.commit(parent)
                    heapq.heappush(queue, (-found.commit_time if found else 0, parent))
            if len(seen) > MAX_WALKED:
                self.is_cut = True
                return

    def _entry(self, commit: Commit) -> tuple[int, ObjectID] | None:
        entry: Entry | None = Entry(b"", FOLDER, commit.tree)
        for part in self._parts:
            if entry is None or not is_folder(entry):
                return None
            key = (entry.id, part)
            if key not in self._known:
                self._known[key] = self._objects.entry(entry.id, [part])
            entry = self._known[key]
        return None if entry is None else (entry.mode, entry.id)


def _past(name: ObjectID, commit: Commit) -> PastCommit:
    subject = commit.message.decode("utf-8", "replace").strip().partition("\n")[0]
    author = commit.author.decode("utf-8", "replace").partition("<")[0].strip()
    try:
        at = datetime.fromtimestamp(commit.author_time, UTC)
    except (OverflowError, ValueError, OSError):
        at = datetime.fromtimestamp(0, UTC)
    return PastCommit(name.decode(), author[:MAX_AUTHOR], at, subject[:MAX_SUBJECT])
