"""Clients of git servers and of repositories on this machine.

dulwich's client and urllib3 take 3 MB, which a process without remotes can do without: ``git_transport`` imports this
when it talks to one.
"""

import os
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self
from urllib.parse import urljoin, urlsplit

from dulwich.client import (
    GitClient,
    HTTPProxyUnauthorized,
    HTTPUnauthorized,
    InvalidWants,
    LocalGitClient,
    Urllib3HttpGitClient,
    default_urllib3_manager,
    default_user_agent_string,
)
from dulwich.errors import GitProtocolError, HangupException, NotGitRepository, RefFormatError
from dulwich.file import FileLocked
from dulwich.object_store import PackInputTooLarge
from dulwich.repo import UnsupportedExtension, UnsupportedVersion
from urllib3.exceptions import HTTPError
from urllib3.util import Retry

from service.adapters.git.opened_folder import copy_repository
from service.adapters.git.remote.guarded import guarded_pool
from service.adapters.git.remote.remotes import MAX_PACK_BYTES, Remote, printable
from service.adapters.retry_after import retry_after_seconds
from service.domain.errors import (
    Conflict,
    Forbidden,
    Invalid,
    RateLimited,
    ServiceError,
    Unavailable,
    is_temporary,
    needs_room,
)
from service.ports.code_host import (
    CODE_HOST_UNAVAILABLE,
    NO_SUCH_REPOSITORY,
    REPOSITORY_MOVED,
    RIGHTS_MISSING,
    TOKEN_MISSING,
    TOKEN_REFUSED,
)

UNREACHABLE = re.compile(r"(?:NewConnectionError|NameResolutionError)\(.*\[Errno -?\d+\] ([^\"'()]+)")
"""urllib3's words for a server that is not there; the reason is the system's."""

HTTP_STATUS = re.compile(r"http resp (\d{3})")
"""dulwich's words for the status of an answer."""

UNFINISHED = "tmp_objdir-incoming-"
"""The beginning of a name that ``forget_killed_work`` removes."""

MAX_REDIRECTS = 3
MAX_QUOTED_CHARACTERS = 300

SOCKET_SECONDS = 120.0
"""Without a byte. A server that packs a large repository may think for a minute."""


class OwnOrigin(Retry):
    """Follows redirects within an origin, and to its https. The address of a repository is the operator's own word;
    a redirect may lead to another host, perhaps into the operator's own network.
    """

    def is_retry(self, method: str, status_code: int, has_retry_after: bool = False) -> bool:
        return (has_retry_after and is_temporary(status_code)) or super().is_retry(method, status_code, has_retry_after)

    def increment(
        self, method: str | None = None, url: str | None = None, response: Any = None, *rest: Any, **named: Any
    ) -> Self:
        location = response.get_redirect_location() if response is not None else None
        if response is not None and not location and is_temporary(response.status):
            raise RateLimited(
                f"The git server asks to come back later (status {response.status}).",
                retry_after_seconds=retry_after_seconds(response.headers),
            )
        if url and location:
            here, there = urlsplit(url), location
            with suppress(ValueError):  # what is no address is nowhere to go
                there = urljoin(url, location)
            allowed = [f"{here.scheme}://{here.netloc}/", f"https://{here.netloc.removesuffix(':80')}/"]
            if not there.lower().startswith(tuple(origin.lower() for origin in allowed)):
                raise Conflict(
                    f"{here.scheme}://{here.netloc} sends us on to {printable(there.partition('?')[0])}."
                    " If the repository is there now, set its new address.",
                    code=REPOSITORY_MOVED,
                )
        return super().increment(method, url, response, *rest, **named)


class CopyingClient(LocalGitClient):
    """Reads a repository of others from a copy of it, below ``scratch`` where that is given; writes to none."""

    def __init__(self, remote: Remote, scratch: Path | None) -> None:
        super().__init__()
        self._remote, self._scratch = remote, scratch

    def get_refs(self, path: str | bytes, *rest: Any, **named: Any) -> Any:  # noqa: ARG002 - dulwich's
        with self._copied(objects=False) as copy:
            return super().get_refs(copy, *rest, **named)

    def fetch_pack(self, path: str | bytes, *rest: Any, **named: Any) -> Any:  # noqa: ARG002 - dulwich's
        with self._copied(objects=True) as copy:
            return super().fetch_pack(copy, *rest, **named)

    def send_pack(self, *_: Any, **__: Any) -> Any:
        raise Forbidden(f"{self._remote.path} is only read.", code=RIGHTS_MISSING)

    @contextmanager
    def _copied(self, *, objects: bool) -> Iterator[str]:
        with tempfile.TemporaryDirectory(prefix=UNFINISHED, dir=self._scratch) as folder:
            copy = Path(folder, "copy.git")
            copy_repository(Path(self._remote.path), self._remote.root, copy, objects=objects)
            yield os.fspath(copy)


@contextmanager
def connected(remote: Remote, scratch: Path | None = None) -> Iterator[tuple[GitClient, bytes]]:
    """A client and the path to give it. Turns what goes wrong into ours. ``scratch``: the folder of objects of a
    repository of ours, on whose disk there is room.
    """
    client, path = _client(remote, scratch)
    try:
        with needs_room():
            yield client, path
    except tuple(kind for kinds, _ in _FAILURES for kind in kinds) as error:
        raise next(failure(remote, error) for kinds, failure in _FAILURES if isinstance(error, kinds)) from None
    finally:
        client.close()


def _client(remote: Remote, scratch: Path | None) -> tuple[GitClient, bytes]:
    if not remote.url:
        return CopyingClient(remote, scratch) if remote.root else LocalGitClient(), os.fsencode(remote.path)
    pool: Any
    if remote.guarded:
        pool = guarded_pool(timeout=SOCKET_SECONDS, headers={"User-agent": default_user_agent_string()})
    else:
        pool = default_urllib3_manager(None, base_url=remote.url, timeout=SOCKET_SECONDS)  # the environment's proxies
    pool.connection_pool_kw["retries"] = OwnOrigin(2, redirect=MAX_REDIRECTS, respect_retry_after_header=False)
    named, token = remote.username or None, remote.token or None
    return Urllib3HttpGitClient(remote.url, pool_manager=pool, username=named, password=token), b""


def _where(remote: Remote) -> str:
    return remote.url or remote.path


def _protocol_failure(remote: Remote, error: Exception) -> ServiceError:
    text, where = str(error), _where(remote)
    status = int(found[1]) if (found := HTTP_STATUS.search(text)) else 0
    if status == 403:
        return _no_access(remote, known=True)
    if status == 429:
        return RateLimited(f"{where} asks for fewer requests.")
    if 400 <= status < 500 and not is_temporary(status):
        sentence = f"{where} refuses to be read or written (status {status}). Check the repository's address."
        return Invalid(sentence, code="bad_repository")
    if "too many redirects" in text:
        return _circle(remote)
    if unreachable := UNREACHABLE.search(text):
        return Unavailable(f"{where} cannot be reached: {unreachable[1]}.", code=CODE_HOST_UNAVAILABLE)
    return _no_git_server(remote, text)


def _no_git_server(remote: Remote, text: str) -> ServiceError:
    if not remote.url:  # the text may quote a file
        return Invalid(f"The repository at {remote.path} is damaged, or of an unknown kind.", code="bad_repository")
    said = printable(text)[:MAX_QUOTED_CHARACTERS]
    return Unavailable(f"{_where(remote)} did not answer as a git server does: {said}", code=CODE_HOST_UNAVAILABLE)


_FAILURES: tuple[tuple[tuple[type[Exception], ...], Callable[[Remote, Any], ServiceError]], ...] = (
    ((HTTPUnauthorized, HTTPProxyUnauthorized), lambda remote, _: _no_access(remote)),
    (
        (NotGitRepository, FileNotFoundError, NotADirectoryError),
        lambda remote, _: Invalid(_nothing_there(remote), code=NO_SUCH_REPOSITORY),
    ),
    (
        (UnsupportedVersion, UnsupportedExtension),
        lambda remote, _: Invalid(
            f"The repository at {_where(remote)} is of a kind that cannot be read here.", code="bad_repository"
        ),
    ),
    (
        (PackInputTooLarge,),
        lambda remote, _: Invalid(
            f"The repository at {_where(remote)} is larger than {MAX_PACK_BYTES:,} bytes.", code="too_large"
        ),
    ),
    ((InvalidWants,), lambda remote, _: Unavailable(f"{_where(remote)} does not give what it was asked for.")),
    (
        (FileLocked,),
        lambda remote, _: Unavailable(
            f"Another process is changing a branch of {_where(remote)}; try again.", code="busy"
        ),
    ),
    ((RefFormatError,), lambda *_: Invalid("That is not the name of a branch.", code="bad_path")),
    ((HangupException,), lambda remote, _: Unavailable(f"{_where(remote)} hung up.")),
    ((GitProtocolError,), _protocol_failure),
    (
        (PermissionError,),
        lambda remote, _: Forbidden(f"{_where(remote)} may not be read by the user that runs this service."),
    ),
    ((OSError,), lambda remote, error: Unavailable(f"{_where(remote)}: {error.strerror or error}")),
    ((ValueError, AssertionError), lambda remote, error: _no_git_server(remote, str(error))),  # dulwich's, of rubbish
    ((HTTPError,), lambda remote, error: _no_git_server(remote, str(error))),  # a body that breaks off, or is damaged
)
"""Errors of git, and our own error for each; the first that fits counts."""


def _circle(remote: Remote) -> Conflict:
    return Conflict(
        f"{remote.url} redirects in a circle, or more than {MAX_REDIRECTS} times."
        " Set the address where the repository is.",
        code=REPOSITORY_MOVED,
    )


def _no_access(remote: Remote, *, known: bool = False) -> Forbidden:
    """``known``: the server knows the user of the credentials, if there are any."""
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
