"""Which code host keeps a repository, as far as its address says, and where that host shows a file's lines."""

from typing import Literal
from urllib.parse import quote, urlsplit

HostKind = Literal["github", "gitlab", "gitea", "bitbucket"]

_SERVERS: dict[str, HostKind] = {"github.com": "github", "codeberg.org": "gitea", "bitbucket.org": "bitbucket"}
_WORDS: dict[str, HostKind] = {"github": "github", "gitlab": "gitlab", "gitea": "gitea", "forgejo": "gitea"}


def host_kind(repository: str) -> HostKind | None:
    """Return the kind of code host that a repository's address shows; None when it shows none."""
    parts = urlsplit(repository)
    host = (parts.hostname or "").lower()
    if parts.scheme.lower() not in ("http", "https"):
        return None
    return _SERVERS.get(host) or next((kind for word, kind in _WORDS.items() if word in host.split(".")), None)


def lines_url(repository: str, kind: str | None, commit: str, path: str, lines: tuple[int, int]) -> str:
    """Return the address where a code host of this kind shows a file's lines at a commit; empty when none is known."""
    parts = urlsplit(repository)
    if parts.scheme.lower() not in ("http", "https"):
        return ""
    base = repository.rstrip("/").removesuffix(".git")
    file, (first, last) = quote(path), lines
    one = first == last
    match kind:
        case "github":
            return f"{base}/blob/{commit}/{file}#L{first}" + ("" if one else f"-L{last}")
        case "gitlab":
            return f"{base}/-/blob/{commit}/{file}#L{first}" + ("" if one else f"-{last}")
        case "gitea":
            return f"{base}/src/commit/{commit}/{file}#L{first}" + ("" if one else f"-L{last}")
        case "bitbucket":
            return f"{base}/src/{commit}/{file}#lines-{first}" + ("" if one else f":{last}")
        case _:
            return ""
