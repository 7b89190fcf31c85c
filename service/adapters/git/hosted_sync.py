"""Between a clone and the hosted repository whose objects it borrows: nothing needs to be fetched, and a push adds what
the repository lacks. The cost depends on the changes, not on the number of branches and commits. Several callers may
do it at once: objects are only added, and a branch moves from the commit that was seen. These are plain functions: the
caller decides in which thread they run.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from dulwich.objects import ZERO_SHA, ObjectID
from dulwich.pack import full_unpacked_object

from service.adapters.git.history import History, new_objects
from service.adapters.git.repositories import (
    HEADS,
    BareRepository,
    branch_commit,
    commit_of,
    damaged,
    has_moved,
    move_ref,
    opened,
)
from service.domain.errors import Forbidden, ServiceError, Unavailable

GONE = "its folder is gone"


def heads(hosted: Path, branches: Sequence[str]) -> dict[str, str]:
    """The commits of those branches that exist. Raises Damaged, for a repository that is gone too."""
    with _opened(hosted) as repository:
        found = {branch: branch_commit(repository, branch) for branch in branches}
        for branch, commit in found.items():
            if commit is not None and commit not in repository.object_store:
                raise damaged(hosted, f"the commit of {branch} is missing")
    return {branch: commit.decode() for branch, commit in found.items() if commit is not None}


def push(clone: Path, hosted: Path, branch: str, commit: str) -> None:
    """Fast-forward the branch to the commit, or create it. Raise Conflict when it has other commits by now."""
    wanted = ObjectID(commit.encode())
    with _opened(hosted) as theirs, opened(clone) as ours:
        commit_of(ours, commit)
        current = branch_commit(theirs, branch)
        if current == wanted:
            return
        if current is not None and not History(ours).is_ancestor(current, wanted):
            raise has_moved(branch)
        there = theirs.object_store
        objects = [ours.object_store[name] for name in new_objects(ours, wanted, there.__contains__)]
        if objects:
            there.add_pack_data(len(objects), (full_unpacked_object(one) for one in objects))
        if not move_ref(theirs, HEADS + branch.encode(), current or ZERO_SHA, wanted):
            raise has_moved(branch)


@contextmanager
def _opened(hosted: Path) -> Iterator[BareRepository]:
    if not hosted.is_dir():
        raise damaged(hosted, GONE)
    try:
        with opened(hosted, durable=True) as repository:
            yield repository
    except ServiceError:
        raise
    except PermissionError:
        raise Forbidden("The hosted repository may not be used by the user that runs this service.") from None
    except OSError as error:
        raise Unavailable(f"The hosted repository: {error.strerror or error}") from None
