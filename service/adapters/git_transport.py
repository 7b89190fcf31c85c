"""Bringing commits from and to a remote repository: over HTTP(S), or on this machine. Plain functions: whoever calls
them decides in which process.

What dulwich 1.2.21 does, measured: a ref that the server refuses raises nothing and is told in ``ref_status``; with
``username`` and ``password`` the credentials go to the origin of the URL only, whatever redirects say, while
``http.extraHeader`` follows them; credentials inside a URL would be written to the configuration of the clone.
"""

import os
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Self
from urllib.parse import unquote, urljoin, urlsplit

from dulwich.client import (
    GitClient,
    HTTPProxyUnauthorized,
    HTTPUnauthorized,
    InvalidWants,
    LocalGitClient,
    Urllib3HttpGitClient,
    default_urllib3_manager,
)
from dulwich.errors import (
    ChecksumMismatch,
    GitProtocolError,
    HangupException,
    NotGitRepository,
    ObjectFormatException,
    RefFormatError,
    SendPackError,
)
from dulwich.file import FileLocked
from dulwich.object_store import ObjectStoreGraphWalker, PackInputTooLarge
from dulwich.objects import ObjectID
from dulwich.pack import UnpackedObject, full_unpacked_object
from dulwich.refs import Ref
from dulwich.repo import Repo, UnsupportedExtension, UnsupportedVersion
from msgspec import Struct
from msgspec.structs import replace
from urllib3.util import Retry

from service.adapters.git_history import History, new_objects
from service.adapters.git_repositories import FETCHED, HEADS, BareRepository, commit_of, move_ref, opened
from service.domain.errors import Conflict, Forbidden, Invalid, RateLimited, ServiceError, Unavailable
from service.domain.projects import CodeHostKind
from service.ports.code_host import (
    CODE_HOST_UNAVAILABLE,
    NO_SUCH_REPOSITORY,
    REPOSITORY_ARCHIVED,
    REPOSITORY_MOVED,
    RIGHTS_MISSING,
    TOKEN_MISSING,
    TOKEN_REFUSED,
)

MAX_PACK_BYTES = 1024 * 1024 * 1024
"""The largest documentation repository measured (MDN) has 0.1 GB at depth 1, 0.45 GB with its whole history."""

UNREACHABLE = re.compile(r"(?:NewConnectionError|NameResolutionError)\(.*\[Errno -?\d+\] ([^\"'()]+)")
"""urllib3's words for a server that is not there; the reason is the system's."""

MAX_LINES_TOLD = 50
"""Of what a server says to people during a push."""

SOCKET_SECONDS = 120.0
"""Without a byte. A server that packs a large repository may think for a minute."""


class OwnOrigin(Retry):
    """Follows redirects within an origin, and to its https. The address of a repository is the operator's own word;
    where a redirect leads is somebody else's, perhaps into the operator's own network.
    """

    def increment(
        self, method: str | None = None, url: str | None = None, response: Any = None, *rest: Any, **named: Any
    ) -> Self:
        location = response.get_redirect_location() if response is not None else None
        if url and location:
            here, there = urlsplit(url), location
            with suppress(ValueError):  # what is no address is nowhere to go
                there = urljoin(url, location)
            allowed = [f"{here.scheme}://{here.netloc}/", f"https://{here.netloc.removesuffix(':80')}/"]
            if not there.lower().startswith(tuple(origin.lower() for origin in allowed)):
                raise Conflict(
                    f"{here.scheme}://{here.netloc} sends us on to {_plain(there.partition('?')[0])}."
                    " If the repository is there now, set its new address.",
                    code=REPOSITORY_MOVED,
                )
        return super().increment(method, url, response, *rest, **named)


class Remote(Struct, frozen=True):
    """Where a repository is, and how to be let in."""

    url: str
    """``http(s)://…``, or ``""``."""
    path: str
    """Of a repository on this machine, or ``""``."""
    username: str = ""
    token: str = ""
    ours: bool = False
    """A bare repository that this service keeps."""

    def __repr__(self) -> str:
        return f"Remote({self.url or self.path!r})"  # no token in a log, a traceback or an assertion


def remote_of(repository: str) -> Remote:
    """Raises Invalid for an address that cannot be used."""
    scheme = re.match(r"([a-z][a-z0-9+.-]*)://", repository, re.IGNORECASE)
    if scheme is None:
        if not Path(repository).exists() and re.match(r"[^/]+@[^/:]+:|[^/]{2,}:", repository):
            raise Invalid(
                f"{repository!r} looks like an SSH address. Give its https:// URL, and a token if it is private.",
                code="bad_repository",
            )
        return Remote("", os.fspath(Path(repository).expanduser()))
    match scheme[1].lower():
        case "file":
            return Remote("", unquote(urlsplit(repository).path))
        case "http" | "https":
            if "@" in urlsplit(repository).netloc:
                raise Invalid("Put no credentials into the URL of a repository.", code="bad_repository")
        case other:
            raise Invalid(
                f"{other}:// is not supported; give the https:// URL of {repository!r}.", code="bad_repository"
            )
    return Remote(repository, "")


def with_token(remote: Remote, code_host: CodeHostKind, token: str) -> Remote:
    return replace(remote, username="oauth2" if code_host == "gitlab" else "x-access-token", token=token)


class OwnGitClient(LocalGitClient):
    """To a repository that this service keeps: nothing of it is configurable, and what is written is flushed."""

    @classmethod
    def _open_repo(cls, path: str | bytes) -> "closing[Repo]":
        return closing(BareRepository(Path(os.fsdecode(path)), durable=True))


@contextmanager
def connected(remote: Remote) -> Iterator[tuple[GitClient, bytes]]:
    """A client and the path to give it. Turns what goes wrong into ours."""
    client: GitClient
    if remote.url:
        pool = default_urllib3_manager(
            None, base_url=remote.url, timeout=SOCKET_SECONDS
        )  # proxies are the environment's
        pool.connection_pool_kw["retries"] = OwnOrigin(2, redirect=3, respect_retry_after_header=False)
        client = Urllib3HttpGitClient(
            remote.url, pool_manager=pool, username=remote.username or None, password=remote.token or None
        )
        path = b""
    else:
        client, path = (OwnGitClient if remote.ours else LocalGitClient)(), os.fsencode(remote.path)
    where = remote.url or ("the hosted repository" if remote.ours else remote.path)  # its folder is nobody's business
    try:
        yield client, path
    except ServiceError:
        raise
    except (HTTPUnauthorized, HTTPProxyUnauthorized):
        raise _no_access(remote) from None
    except (NotGitRepository, FileNotFoundError, NotADirectoryError):
        raise Invalid(_nothing_there(remote), code=NO_SUCH_REPOSITORY) from None
    except (UnsupportedVersion, UnsupportedExtension) as error:
        raise Invalid(f"The repository at {where} cannot be read here: {error}.", code="bad_repository") from None
    except PackInputTooLarge:
        raise Invalid(f"The repository at {where} is larger than {MAX_PACK_BYTES:,} bytes.", code="too_large") from None
    except InvalidWants:
        raise
    except FileLocked:
        raise Unavailable(f"Another process is changing a branch of {where}; try again.", code="busy") from None
    except RefFormatError:
        raise Invalid("That is not the name of a branch.", code="bad_path") from None
    except HangupException:
        raise Unavailable(f"{where} hung up.") from None
    except GitProtocolError as error:
        text = str(error)
        if "http resp 403" in text:
            raise _no_access(remote, known=True) from None
        if "http resp 429" in text:
            raise RateLimited(f"{where} asks for fewer requests.") from None
        if unreachable := UNREACHABLE.search(text):
            raise Unavailable(f"{where} cannot be reached: {unreachable[1]}.", code=CODE_HOST_UNAVAILABLE) from None
        raise Unavailable(
            f"{where} did not answer as a git server does: {_plain(text)}", code=CODE_HOST_UNAVAILABLE
        ) from None
    except PermissionError:
        raise Forbidden(f"{where} may not be read by the user that runs this service.") from None
    except OSError as error:
        raise Unavailable(f"{where}: {error.strerror or error}") from None
    finally:
        client.close()


def _no_access(remote: Remote, *, known: bool = False) -> Forbidden:
    """``known``: the server takes the credentials, if there are any, for somebody's."""
    if not remote.token:
        return Forbidden(
            f"{remote.url} asks for credentials. Name the variable that holds a token for it.", code=TOKEN_MISSING
        )
    if known:
        return Forbidden(
            f"{remote.url} does not let the token in: it lacks the right to read and write contents there, or the "
            "repository is archived.",
            code=RIGHTS_MISSING,
        )
    return Forbidden(
        f"{remote.url} refused the token. It may have expired, or lack the right to read and write contents.",
        code=TOKEN_REFUSED,
    )


def _nothing_there(remote: Remote) -> str:
    if remote.url:
        return f"There is no repository at {remote.url}, or the token may not see it."
    return f"There is no git repository at {remote.path}."


def _plain(text: str) -> str:
    return "".join(character if character.isprintable() else " " for character in text)[:300]


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
    """What its HEAD names; for a HEAD that is on no branch, one that goes by a usual name, or is the only one."""
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


def fetch(clone: Path, remote: Remote, branches: Sequence[str], depth: int | None) -> dict[str, str]:
    """Bring what the clone lacks of the branches and return those that exist, with their commits.
    ``refs/remotes/origin`` follows.
    """
    found: dict[str, str] = {}

    def wanted(refs: Mapping[Ref, ObjectID], depth: int | None = None) -> list[ObjectID]:  # noqa: ARG001 - dulwich's
        for branch in branches:
            commit = refs.get(Ref(HEADS + branch.encode()))
            if commit is not None:
                found[branch] = commit.decode()
        return [ObjectID(name) for name in {name.encode() for name in found.values()} if not repository_has(name)]

    with opened(clone) as repository:

        def repository_has(name: bytes) -> bool:
            return ObjectID(name) in repository.object_store

        _receive(repository, remote, branches, wanted, depth)
        for branch, commit in found.items():
            commit_of(repository, commit)
            move_ref(repository, FETCHED + branch.encode(), None, ObjectID(commit.encode()))
    return found


def fetch_commit(clone: Path, remote: Remote, commit: str) -> None:
    """Bring one commit by its id, of any branch, as far as the server allows that. Raises NotFound."""
    wanted = ObjectID(commit.encode())
    with opened(clone) as repository:
        with suppress(InvalidWants, Unavailable, KeyError):
            _receive(repository, remote, (), lambda _refs, depth=None: [wanted], 1)  # noqa: ARG005
        commit_of(repository, commit)


def _receive(
    repository: BareRepository,
    remote: Remote,
    branches: Sequence[str],
    wanted: Callable[..., list[ObjectID]],
    depth: int | None,
) -> None:
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

        with connected(remote) as (client, path):
            if remote.path and not determine(_present(client.get_refs(path).refs)):
                return  # dulwich would look at every object first
            result = client.fetch_pack(
                path,
                determine,
                walker,
                write,
                depth=depth,
                ref_prefix=[HEADS + branch.encode() for branch in branches] or None,
            )
            if not asked:
                return
            pack.seek(0)
            try:
                store.receive(pack.read, MAX_PACK_BYTES)
            except (AssertionError, ValueError, KeyError, ChecksumMismatch, ObjectFormatException) as error:
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
    """Why the remote refused the ref, None when it did not."""

    def update(refs: Mapping[Ref, ObjectID]) -> dict[Ref, ObjectID]:
        current = refs.get(name)
        if current is not None and not History(repository).is_ancestor(current, wanted):
            raise Conflict(f"{name[len(HEADS) :].decode()} has other commits by now.", code="branch_moved")
        return {name: wanted}

    def pack(have: Set[ObjectID], want: Set[ObjectID], **_: Any) -> tuple[int, Iterator[UnpackedObject]]:
        objects: dict[ObjectID, None] = {}
        for commit in want:
            objects.update(dict.fromkeys(new_objects(repository, commit, {*have, *known} - {commit})))
        return len(objects), (full_unpacked_object(repository.object_store[one]) for one in objects)

    told: list[bytes] = []

    def tell(line: bytes) -> None:
        if len(told) < MAX_LINES_TOLD:
            told.append(line)

    with connected(remote) as (client, path):
        try:
            result = client.send_pack(path, update, pack, progress=tell)
        except SendPackError as error:
            return _plain(str(error))
    refused = (result.ref_status or {}).get(name)
    if refused is None or "declined" not in refused:
        return refused
    # Why a server's own rules decline a push is told to people only.
    reason = " ".join(b"".join(told).decode("utf-8", "replace").replace("\r", "\n").split())
    return f"{refused} ({reason})" if reason else refused


def _refusal(branch: str, reason: str) -> ServiceError:
    plain = _plain(reason)
    if re.search(
        r"non-fast-forward|fetch first|stale|unable to set|incorrect old|failed to (write|update|lock)", plain
    ):
        return Conflict(f"{branch} has other commits by now: {plain}", code="branch_moved")
    if re.search(r"missing|unpack", plain):
        return Unavailable(f"The remote could not take the pack for {branch}: {plain}")
    if re.search(r"archived", plain, re.IGNORECASE):
        return Conflict(f"The repository is archived, nobody can push {branch}: {plain}", code=REPOSITORY_ARCHIVED)
    if not re.search(r"protected branch|hook declined", plain, re.IGNORECASE) and re.search(
        r"refusing to allow|permission|not allowed|denied|scope", plain, re.IGNORECASE
    ):
        return Forbidden(f"The token may not push {branch}: {plain}", code=RIGHTS_MISSING)
    return Conflict(f"{branch} refuses pushes: {plain}", code="branch_protected")


def is_shallow(path: Path) -> bool:
    return any((path / where).is_file() for where in ("shallow", ".git/shallow"))
