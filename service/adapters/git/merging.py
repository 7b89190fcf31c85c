"""Merges of two commits in a clone: where they part, and the commit that joins them."""

from pathlib import Path

from dulwich.objects import ObjectID
from msgspec.structs import replace

from service.adapters.git.history import History
from service.adapters.git.objects import Objects, checked_id, write_commit
from service.adapters.git.repositories import BareRepository, commit_of, opened
from service.adapters.git.tree_merge import Unmergeable, merged_tree
from service.domain.errors import Conflict
from service.ports.docs_source import MergedCommit, NewCommit, WrittenCommit


def merge_base(clone: Path, one: str, other: str) -> str | None:
    """Return the newest common ancestor of two commits, as far as the clone has their history."""
    with opened(clone) as repository:
        found = History(repository).merge_base(checked_id(one), checked_id(other))
    return None if found is None else found.decode()


def write_merge(clone: Path, new: NewCommit) -> WrittenCommit:
    """Write a commit, with two parents when it is a merge. Raise as ``DocsSource.write_commit``."""
    with opened(clone) as repository:
        parent = commit_of(repository, new.parent)
        if new.merged is None:
            return write_commit(repository, new, parent)
        tree = _tree_of_both(repository, new, new.merged)
        objects = Objects(repository)
        gone = [path for path, text in new.changes.items() if text is None]
        missing = {path for path in gone if objects.entry(tree, path.encode().split(b"/")) is None}
        left = {path: text for path, text in new.changes.items() if path not in missing}
        return write_commit(
            repository, replace(new, changes=left), parent, merged=(tree, checked_id(new.merged.commit))
        )


def _tree_of_both(repository: BareRepository, new: NewCommit, merged: MergedCommit) -> ObjectID:
    base, ours, theirs = (commit_of(repository, name).tree for name in (merged.base, new.parent, merged.commit))
    settled = {path.encode() for path in new.changes}
    try:
        add = repository.object_store.add_object
        return merged_tree(Objects(repository), add, (base, ours, theirs), settled=settled)
    except Unmergeable as error:
        raise Conflict(f"Both sides changed {error}. Choose one with git.", code="merge_conflict") from None
