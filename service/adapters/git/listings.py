"""The files of the trees that were listed last: each job that begins at a commit asks for them."""

from pathlib import Path
from threading import Lock

from dulwich.objects import ObjectID

from service.adapters.git.objects import list_files
from service.adapters.git.repositories import commit_of, opened
from service.ports.docs_source import TreeFile

MAX_FILES = 100_000
"""Files that are kept in all, of about 250 bytes each."""


class Listings:
    """By the id of their tree, which says all that is in them."""

    def __init__(self, most: int = MAX_FILES) -> None:
        self._most = most
        self._kept: dict[ObjectID, tuple[TreeFile, ...]] = {}
        self._changing = Lock()

    def of_commit(self, clone: Path, commit: str) -> tuple[TreeFile, ...]:
        """Return every plain file of a commit, sorted by path. Raise NotFound when the clone does not have it."""
        with opened(clone) as repository:
            found = commit_of(repository, commit)
            files = self._kept.get(found.tree)
            if files is None:
                files = tuple(list_files(repository, found))
        with self._changing:
            self._kept.pop(found.tree, None)
            self._kept[found.tree] = files
            while sum(map(len, self._kept.values())) > self._most:
                del self._kept[next(iter(self._kept))]
        return files
