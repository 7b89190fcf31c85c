"""Fetch commits from a remote repository and push to it: over HTTP(S), or on this machine. These are plain functions:
the caller decides in which process they run.

What dulwich 1.2.21 does, measured: a ref that the server refuses raises nothing and is reported in ``ref_status``; with
``username`` and ``password`` the credentials go to the origin of the URL only, whatever redirects say, while
``http.extraHeader`` follows them; credentials inside a URL would be written to the configuration of the clone.
"""

import re
import tempfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dulwich.errors import ApplyDeltaError, ChecksumMismatch, ObjectFormatException, SendPackError
from dulwich.object_store import ObjectStoreGraphWalker, PackInputTooLarge
from dulwich.objects import ObjectID
from dulwich.pack import UnpackedObject, UnresolvedDeltas, full_unpacked_object
from dulwich.refs import Ref

from service.adapters.git.history import History, new_objects
from service.adapters.git.remote.remotes import MAX_PACK_BYTES, Remote, printable
from service.adapters.git.repositories import FETCHED, HEADS, BareRepository, commit_of, has_moved, move_ref, opened
from service.domain.errors import Conflict, Forbidden, Invalid, ServiceError, Unavailable
from service.ports.code_host import REPOSITORY_ARCHIVED, RIGHTS_MISSING

if TYPE_CHECKING:
    from dulwich.client import GitClient

MAX_FETCHED = 100
"""Branches of which a clone knows what they were on the remote. All are read each time, and a job makes one."""
_OF_DAMAGED_PACKS = (
    AssertionError, ValueError, KeyError, zlib.error,
    ApplyDeltaError, ChecksumMismatch, ObjectFormatException, UnresolvedDeltas,
)  # fmt: skip
MAX_LINES_TOLD = 50
"""Limit for the lines of a server's messages to people during a push."""


def connected(remote: Remote, scratch: Path | None = None) -> "AbstractContextManager[tuple[GitClient, bytes]]":
    """A client and the path to give it."""
    from service.adapters.git.remote.clients import connected  # late: see there

    return connected(remote, scratch)


def heads(remote: Remote, *prefixes: str) -> dict[str, str]:
    """The branches of the remote, by name; a server may leave out those without one of the prefixes."""
    with connected(remote) as (client, path):
        refs = client.get_refs(path, ref_prefix=[HEADS + prefix.encode() for prefix in prefixes or ("",)]).refs
    return {
        name[len(HEADS) :].decode("utf-8", "replace"): commit.decode()
        for name, commit in refs.items()
        if name.startswith(HEADS) and commit is not None and not name.endswith(b"^{}")
    }


def default_branch(remote: Remote) -> str:
    """Return the branch that its HEAD names; if none, a branch with a usual name, or the only one."""
    with connected(remote) as (client, path):
        head = client.get_refs(path, ref_prefix=[b"HEAD"]).symrefs.get(Ref(b"HEAD"), b"")
    branches = sorted(heads(remote))
    where = remote.url or remote.path
    if not branches:
        raise Invalid(f"{where} has no commits yet; make one first.", code="no_such_branch")
    named = head.removeprefix(HEADS).decode("utf-8", "replace")
    for name in (named, "main", "master"):
        if name in branches:
            return name
    if len(branches) > 1:
        raise Invalid(
            f"{where} shows no branch of its own; name one: {', '.join(branches[:20])}", code="no_such_branch"
        )
    return branches[0]


def fetch(
    clone: Path, remote: Remote, branches: Sequence[str], depth: int | None, *, durable: bool = False
) -> dict[str, str]:
    """Bring what the clone lacks of the branches and return those that exist, with their commits.
    ``refs/remotes/origin`` follows. ``durable``: it is no clone, but a hosted repository.
    """
    found: dict[str, str] = {}

    def wanted(refs: Mapping[Ref, ObjectID], depth: int | None = None) -> list[ObjectID]:  # noqa: ARG001 - dulwich's
        for branch in branches:
            commit = refs.get(Ref(HEADS + branch.encode()))
            if commit is not None:
                found[branch] = commit.decode()
        return [ObjectID(name) for name in {name.encode() for name in found.values()} if not repository_has(name)]

    with opened(clone, durable=durable) as repository:

        def repository_has(name: bytes) -> bool:
            return ObjectID(name) in repository.object_store

        receive(repository, remote, [HEADS + branch.encode() for branch in branches], wanted, depth)
        for branch, commit in found.items():
            commit_of(repository, commit)
            move_ref(repository, FETCHED + branch.encode(), None, ObjectID(commit.encode()))
        known = repository.refs.subkeys(Ref(FETCHED))
        if len(known) > MAX_FETCHED:
            for name in known - {branch.encode() for branch in found}:
                repository.refs.remove_if_equals(Ref(FETCHED + name), None)
    return found


def deepen(clone: Path, remote: Remote, branches: Sequence[str], depth: int) -> None:
    """Bring the branches' newest commits with that much of the history behind them."""

    def wanted(refs: Mapping[Ref, ObjectID], depth: int | None = None) -> list[ObjectID]:  # noqa: ARG001 - dulwich's
        names = (refs.get(Ref(HEADS + branch.encode())) for branch in branches)
        return list({name for name in names if name is not None})

    with opened(clone) as repository:
        receive(repository, remote, [HEADS + branch.encode() for branch in branches], wanted, depth)


def fetch_commit(clone: Path, remote: Remote, commit: str) -> None:
    """Bring one commit by its id, of any branch, as far as the server allows that. Raises NotFound."""
    wanted = ObjectID(commit.encode())
    with opened(clone) as repository:
        with suppress(Unavailable, KeyError):
            receive(repository, remote, (), lambda _refs, depth=None: [wanted], 1)  # noqa: ARG005
        commit_of(repository, commit)


def receive(
    repository: BareRepository,
    remote: Remote,
    prefixes: Sequence[bytes],
    wanted: Callable[..., list[ObjectID]],
    depth: int | None,
) -> None:
    """Bring the objects that ``wanted`` chooses of the remote's refs, and what they need. A server may leave out refs
    without one of the prefixes.
    """
    history = History(repository)
    walker = ObjectStoreGraphWalker(
        [commit for commit in repository.refs.as_dict(Ref(FETCHED)).values() if history.commit(commit) is not None],
        lambda name: list(history.parents(name)),
        shallow=repository.get_shallow(),
        update_shallow=repository.update_shallow,
    )
    store = repository.object_store
    asked = False

    def determine(refs: Mapping[Ref, ObjectID], depth: int | None = None) -> list[ObjectID]:
        nonlocal asked
        names = wanted(refs, depth=depth)
        asked = bool(names)
        return names

    received = 0
    with tempfile.TemporaryFile(dir=store.path) as pack:

        def write(data: bytes) -> int:
            nonlocal received
            received += len(data)
            if received > MAX_PACK_BYTES:
                raise PackInputTooLarge
            return pack.write(data)

        with connected(remote, Path(store.path)) as (client, path):
            if remote.path and not determine(_present(client.get_refs(path).refs)):
                return  # dulwich would look at every object first
            result = client.fetch_pack(
                path,
                determine,
                walker,
                write,
                depth=depth,
                ref_prefix=list(prefixes) or None,
            )
            if not asked:
                return
            pack.seek(0)
            try:
                store.receive(pack.read, MAX_PACK_BYTES)
            except _OF_DAMAGED_PACKS as error:
                raise Unavailable(f"{remote.url or remote.path} sent a damaged pack.") from error
            repository.update_shallow(result.new_shallow, result.new_unshallow)


def _present(refs: Mapping[Ref, ObjectID | None]) -> dict[Ref, ObjectID]:
    return {name: commit for name, commit in refs.items() if commit is not None}


def push(clone: Path, remote: Remote, branch: str, commit: str) -> None:
    """Fast-forward the branch of the remote to the commit, or make it."""
    name, wanted = Ref(HEADS + branch.encode()), ObjectID(commit.encode())
    with opened(clone) as repository:
        commit_of(repository, commit)
        known = repository.get_shallow() | set(repository.refs.as_dict(Ref(FETCHED)).values())
        refused = _send(repository, remote, name, wanted, known)
        if refused is not None and re.search("missing|unpack", refused):
            # The remote may have forgotten what we once fetched from it: send all that it does not show.
            refused = _send(repository, remote, name, wanted, frozenset())
        if refused is not None:
            raise _refusal(branch, refused)
        move_ref(repository, FETCHED + branch.encode(), None, wanted)


def _send(repository: BareRepository, remote: Remote, name: Ref, wanted: ObjectID, known: Set[ObjectID]) -> str | None:
    """Return why the remote refused the ref, None when it did not."""

    def update(refs: Mapping[Ref, ObjectID]) -> dict[Ref, ObjectID]:
        current = refs.get(name)
        if current is not None and not History(repository).is_ancestor(current, wanted):
            raise has_moved(name[len(HEADS) :].decode())
        return {name: wanted}

    def pack(have: Set[ObjectID], want: Set[ObjectID], **_: Any) -> tuple[int, Iterator[UnpackedObject]]:
        objects: dict[ObjectID, None] = {}
        for commit in want:
            there = {*have, *known} - {commit}
            objects.update(dict.fromkeys(new_objects(repository, commit, there.__contains__)))
        return len(objects), (full_unpacked_object(repository.object_store[one]) for one in objects)

    messages: list[bytes] = []

    def tell(line: bytes) -> None:
        if len(messages) < MAX_LINES_TOLD:
            messages.append(line)

    with connected(remote) as (client, path):
        try:
            result = client.send_pack(path, update, pack, progress=tell)
        except SendPackError as error:
            return printable(str(error))
    refused = (result.ref_status or {}).get(name)
    if refused is None or "declined" not in refused:
        return refused
    # Only the text for people says why a server's own rules decline a push.
    reason = " ".join(b"".join(messages).decode("utf-8", "replace").replace("\r", "\n").split())
    return f"{refused} ({reason})" if reason else refused


def _refusal(branch: str, reason: str) -> ServiceError:
    plain = printable(reason)
    if re.search(
        r"non-fast-forward|fetch first|stale|unable to set|incorrect old|failed to (write|update|lock)", plain
    ):
        return Conflict(f"{branch} has other commits by now: {plain}", code="branch_moved")
    if re.search(r"missing|unpack", plain):
        return Unavailable(f"The remote could not take the pack for {branch}: {plain}")
    if re.search(r"archived", plain, re.IGNORECASE):
        return Conflict(f"The repository is archived, so {branch} cannot be pushed: {plain}", code=REPOSITORY_ARCHIVED)
    if not re.search(r"protected branch|hook declined", plain, re.IGNORECASE) and re.search(
        r"refusing to allow|permission|not allowed|denied|scope", plain, re.IGNORECASE
    ):
        return Forbidden(f"The token may not push {branch}: {plain}", code=RIGHTS_MISSING)
    return Conflict(f"{branch} refuses pushes: {plain}", code="branch_protected")
