"""Where a repository is, and how to be let in."""

import os
import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

from msgspec import Struct
from msgspec.structs import replace

from service.domain.errors import Invalid
from service.domain.projects.hosts import HostKind
from service.domain.projects.settings import CodeHostKind

MAX_PACK_BYTES = 1024 * 1024 * 1024
"""The largest documentation repository measured (MDN) has 0.1 GB at depth 1, 0.45 GB with its whole history."""


class Remote(Struct, frozen=True):
    """Where a repository is, and how to be let in."""

    url: str
    """``http(s)://…``, or ``""``."""
    path: str
    """Path of a repository on this machine, or ``""``."""
    username: str = ""
    token: str = ""
    guarded: bool = False
    """Only connections to public addresses are allowed."""
    is_plain: bool = False
    """Its files are a stranger's: what looks like git's own is not used as a repository."""
    root: str = ""
    """The folder of this machine that an operator allows and that ``path`` is below: it is read as ``opened_folder``
    says. Empty for what the operator named at the terminal, where git's own files may be elsewhere.
    """

    @property
    def name(self) -> Path | None:
        """The name of a folder in messages, where its path is of the service itself."""
        return Path("the archive") if self.is_plain else None

    def __repr__(self) -> str:
        return f"Remote({self.url or self.path!r})"  # no token in a log, a traceback or an assertion


def remote_of(repository: str) -> Remote:
    """Raises Invalid for an address that cannot be used."""
    scheme = re.match(r"([a-z][a-z0-9+.-]*)://", repository, re.IGNORECASE)
    if scheme is None:
        if not Path(repository).exists() and re.match(r"[^/]{2,}:", repository):
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


TOKEN_USERS = {"gitlab": "oauth2", "bitbucket": "x-token-auth"}
"""The user's name that goes with a token; other hosts take any."""


def with_token(remote: Remote, host: CodeHostKind | HostKind | None, token: str) -> Remote:
    return replace(remote, username=TOKEN_USERS.get(host or "", "x-access-token"), token=token)


def printable(text: str) -> str:
    return "".join(character if character.isprintable() else " " for character in text)[:300]
