"""Questions about commits, answered from their parents and times alone, also in shallow clones."""

import heapq
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from dulwich.objects import Commit, ObjectID
from dulwich.repo import Repo

from service.adapters.git.objects import Entry, Objects
from service.domain.errors import Invalid

OURS: Final = 1
THEIRS: Final = 2
STALE: Final = 4

MAX_COMMITS = 1_000_000


class History:
    """Commits are read once. Parents that the repository does not have (a shallow clone's) are as good as none."""

    def __init__(self, repository: Repo) -> None:
        self._store = repository.object_store
        self._shallow = repository.get_shallow()
        self._commits: dict[ObjectID, Commit | None] = {}

    def commit(self, name: ObjectID) -> Commit | None:
        if name not in self._commits:
            if len(self._commits) >= MAX_COMMITS:
                raise Invalid("The history is too long.", code="too_large")
            try:
                found = self._store[name]
            except KeyError:
                found = None
            self._commits[name] = found if isinstance(found, Commit) else None
        return self._commits[name]

    def parents(self, name: ObjectID) -> Sequence[ObjectID]:
        commit = self.commit(name)
        if commit is None or name in self._shallow:
            return ()
        return [parent for parent in commit.parents if self.commit(parent) is not None]

    def _paint(self, ours: ObjectID, theirs: ObjectID) -> dict[ObjectID, int]:
        """From which of the two each commit is reached, newest first, until what is left is common and too old to lead
        to anything that is not: git's ``paint_down_to_common`` (commit-reach.c), with its dates not trusted. A commit
        that is older than its parent makes this walk everything.
        """
        flags = {ours: OURS}
        flags[theirs] = flags.get(theirs, 0) | THEIRS
        queue = [(-self._time(name), name) for name in flags]
        heapq.heapify(queue)
        queued = set(flags)
        open_ones, oldest, skewed = len(flags), min(self._time(name) for name in flags), False
        while queue and (skewed or open_ones or -queue[0][0] >= oldest):
            _, name = heapq.heappop(queue)
            queued.discard(name)
            flag = flags[name]
            open_ones -= not flag & STALE
            down = flag | STALE if flag & (OURS | THEIRS) == OURS | THEIRS else flag
            for parent in self.parents(name):
                before = flags.get(parent, 0)
                if before | down == before:
                    continue
                flags[parent] = before | down
                time = self._time(parent)
                skewed = skewed or time > self._time(name)
                if not flags[parent] & STALE:
                    oldest = min(oldest, time)
                if parent not in queued:
                    heapq.heappush(queue, (-time, parent))
                    queued.add(parent)
                    open_ones += not flags[parent] & STALE
                elif flags[parent] & STALE and not before & STALE:
                    open_ones -= 1
        return flags

    def _time(self, name: ObjectID) -> int:
        commit = self.commit(name)
        return 0 if commit is None else commit.commit_time

    def merge_base(self, ours: ObjectID, theirs: ObjectID) -> ObjectID | None:
        """The newest best common ancestor, as ``git merge-base`` prints."""
        common = [
            name
            for name, flag in self._paint(ours, theirs).items()
            if flag & (OURS | THEIRS) == OURS | THEIRS and not flag & STALE
        ]
        return max(common, key=lambda name: (self._time(name), name), default=None)

    def is_ancestor(self, old: ObjectID, new: ObjectID) -> bool:
        seen, todo = {new}, deque([new])
        while todo:
            name = todo.popleft()
            if name == old:
                return True
            for parent in self.parents(name):
                if parent not in seen:
                    seen.add(parent)
                    todo.append(parent)
        return False

    def between(self, base: ObjectID, head: ObjectID) -> list[tuple[ObjectID, Commit]]:
        """The commits of the head that the base has not, newest first: ``git log base..head``."""
        flags = self._paint(base, head)
        only = [name for name, flag in flags.items() if flag & (OURS | THEIRS) == THEIRS]
        found = [(name, commit) for name in only if (commit := self.commit(name)) is not None]
        found.sort(key=lambda pair: pair[1].commit_time, reverse=True)
        return found


def new_objects(repository: Repo, want: ObjectID, has: Callable[[ObjectID], bool]) -> list[ObjectID]:
    """Return the objects of ``want`` that a repository lacks; of a commit that it ``has``, it has all objects.

    Each new commit's tree is compared with its parents' trees, so the cost depends on the changes, not on the size of
    the repository (dulwich walks every tree).
    """
    history, objects = History(repository), Objects(repository)
    commits: list[Commit] = []
    seen: set[ObjectID] = set()
    todo = [want]
    while todo:
        name = todo.pop()
        if name in seen or has(name):
            continue
        seen.add(name)
        commit = history.commit(name)
        if commit is not None:
            commits.append(commit)
            todo.extend(history.parents(name))
    found: dict[ObjectID, None] = {}
    for commit in reversed(commits):
        parents = [history.commit(parent) for parent in commit.parents]
        for name in _new_in_tree(objects, commit.tree, [parent.tree for parent in parents if parent is not None]):
            found.setdefault(name)
        found.setdefault(ObjectID(commit.id))
    return list(found)


def _new_in_tree(objects: Objects, tree: ObjectID, old_trees: Sequence[ObjectID]) -> Iterator[ObjectID]:
    """Files and folders before the folder that holds them."""
    if tree in old_trees:
        return
    old = [{entry.name: entry for entry in objects.entries(name)} for name in old_trees]
    for entry in objects.entries(tree):
        before = [entries[entry.name] for entries in old if entry.name in entries]
        if entry.mode == 0o160000 or any(other.id == entry.id for other in before):
            continue
        if is_folder(entry):
            yield from _new_in_tree(objects, entry.id, [other.id for other in before if is_folder(other)])
        else:
            yield entry.id
    yield tree


def is_folder(entry: Entry) -> bool:
    return entry.mode & 0o170000 == 0o040000
