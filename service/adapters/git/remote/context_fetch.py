"""Fetch a context repository: one branch or tag, with some of its history, to read."""

from collections.abc import Mapping
from pathlib import Path

from dulwich.objects import Commit, ObjectID, Tag
from dulwich.refs import Ref

from service.adapters.git.remote import transport
from service.adapters.git.remote.remotes import Remote
from service.adapters.git.repositories import FETCHED, HEADS, BareRepository, move_ref, opened
from service.domain.errors import Invalid, Unavailable

TAGS = b"refs/tags/"

HISTORY = 50
"""Commits of history, for questions about the last changes. Each costs what it changed, not what it holds."""

MAX_TAGS_FOLLOWED = 5


def fetch_context(clone: Path, remote: Remote, ref: str) -> tuple[str, str]:
    """Bring what the clone lacks of a branch or tag (empty: the default branch); return its name and its commit."""
    ref = ref or transport.default_branch(remote)
    names = _names(ref)
    found: list[ObjectID] = []

    with opened(clone) as repository:

        def wanted(refs: Mapping[Ref, ObjectID], depth: int | None = None) -> list[ObjectID]:  # noqa: ARG001 - dulwich's
            found[:] = [refs[name] for name in names if name in refs][:1]
            return [name for name in found if name not in repository.object_store]

        transport.receive(repository, remote, names, wanted, HISTORY)
        if not found:
            raise _no_ref(remote, ref)
        try:
            commit = _commit_behind(repository, found[0])
        except KeyError:
            raise Unavailable(f"{remote.url or remote.path} did not send what {ref} names.") from None
        move_ref(repository, FETCHED + ref.encode(), None, commit)
    return ref, commit.decode()


def named_commit(repository: Path, name: str) -> str | None:
    """Return the commit of a branch or tag of a repository that is here; None where there is neither."""
    with opened(repository) as there:
        found = next((there.refs[ref] for ref in _names(name) if ref in there.refs), None)
        try:
            return _commit_behind(there, found).decode() if found is not None else None
        except KeyError:
            return None


def require_ref(remote: Remote, ref: str) -> None:
    """Raise what ``fetch_context`` raises where the branch or tag does not exist."""
    if not ref:
        transport.default_branch(remote)
        return
    names = _names(ref)
    with transport.connected(remote) as (client, path):
        refs = client.get_refs(path, ref_prefix=list(names)).refs
    if not any(name in refs for name in names):
        raise _no_ref(remote, ref)


def _names(ref: str) -> list[Ref]:
    return [Ref(HEADS + ref.encode()), Ref(TAGS + ref.encode())]


def _no_ref(remote: Remote, ref: str) -> Invalid:
    return Invalid(f"{remote.url or remote.path} has no branch or tag {ref!r}.", code="no_such_branch")


def _commit_behind(repository: BareRepository, name: ObjectID) -> ObjectID:
    for _ in range(MAX_TAGS_FOLLOWED):
        one = repository.object_store[name]
        if isinstance(one, Commit):
            return name
        if not isinstance(one, Tag):
            break
        name = one.object[1]
    raise Invalid("The tag does not name a commit. Name a branch, or another tag.", code="no_such_branch")
