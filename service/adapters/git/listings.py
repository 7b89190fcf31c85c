"""The files of the trees that were listed last: each job that begins at a commit asks for them."""

from collections.abc import Sequence
from pathlib import Path
from threading import Lock

from dulwich.objects import ObjectID

from service.adapters.git.objects import list_files
from service.adapters.git.repositories import commit_of, opened
from service.ports.docs_source import TreeFile

MAX_FILES = 100_000
"""Files that are kept in all, of about 250 bytes each."""


class Listings:
    """By clone and the id of their tree: a commit can name a tree that only another project's clone has."""

    def __init__(self, most: int = MAX_FILES) -> None:
        self._most = most
        self._kept: dict[tuple[Path, ObjectID], tuple[TreeFile, ...]] = {}
        self._commits: dict[tuple[Path, ObjectID], str] = {}
        """A commit with each tree."""
        self._changing = Lock()

    def of_commit(self, clone: Path, commit: str) -> tuple[TreeFile, ...]:
        """Return every plain file of a commit, sorted by path. Raise NotFound when the clone does not have it."""
        with opened(clone) as repository:
            found = commit_of(repository, commit)
            key = clone, found.tree
            files = self._kept.get(key)
            if files is None:
                files = tuple(list_files(repository, found))
        with self._changing:
            self._kept.pop(key, None)
            self._kept[key], self._commits[key] = files, commit
            while sum(map(len, self._kept.values())) > self._most:
                oldest = next(iter(self._kept))
                del self._kept[oldest], self._commits[oldest]
        return files

    def commit_with(self, clone: Path, blobs: Sequence[str]) -> str | None:
        """Return a commit, of those that were listed last of a clone, that has all of these files."""
        with self._changing:
            kept = [(key, files) for key, files in self._kept.items() if key[0] == clone]
        for key, files in reversed(kept):
            if {file.blob for file in files}.issuperset(blobs):
                return self._commits.get(key)
        return None
