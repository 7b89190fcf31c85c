"""The common part of the code hosts' APIs, without any I/O: requests out, answers in.

A flow is a generator: it yields a request, is sent the answer (or has ``NoAnswer`` thrown in) and returns its result.
So the whole of it, order and decisions included, can be read in one place and tested without a network; ``api_client``
sends and receives, and decides only when to send a request again.

Facts that hold for all three hosts: a caller who may not see a repository is answered that it does not exist (404); a
second pull request for the same two branches is refused (GitHub 422, GitLab and Gitea 409), so a caller who may have
created one looks again.
"""

import json
import re
from collections.abc import Generator, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias, TypeVar
from urllib.parse import quote, unquote, urlsplit

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from service.domain.errors import (
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    ServiceError,
    Unavailable,
    is_temporary,
)
from service.ports.code_host import (
    CODE_HOST_UNAVAILABLE,
    NO_SUCH_REPOSITORY,
    PULL_REQUEST_NOT_FOUND,
    PULL_REQUEST_REFUSED,
    REPOSITORY_ARCHIVED,
    REPOSITORY_MOVED,
    RIGHTS_MISSING,
    TOKEN_REFUSED,
    CheckedRepository,
    NewPullRequest,
    PullRequest,
)

T = TypeVar("T")
Method: TypeAlias = Literal["GET", "POST", "PUT", "PATCH"]

ROUNDS = 3
"""Rounds of looking and creating, when an answer was lost or another caller was faster."""

MAX_QUOTED_CHARACTERS = 300
MAX_REFUSAL_BYTES = 64 * 1024
"""What is longer is no host's reason, and not worth the event loop's time."""


class ApiRequest(Struct, frozen=True):
    method: Method
    url: str
    """Whole, with its parts quoted already."""
    headers: Mapping[str, str]
    body: bytes = b""
    after_seconds: float = 0.0
    """To wait before it is sent."""

    def __repr__(self) -> str:
        return f"ApiRequest({self.method} {self.url})"  # no token in a log, a traceback or an assertion


class ApiAnswer(Struct, frozen=True):
    status: int
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes = b""


class NoAnswer(Unavailable):
    """It is not known whether the host did what it was asked: no answer came, or one that cannot be read."""

    code = CODE_HOST_UNAVAILABLE


class AlreadyThere(Conflict):
    """A pull request for these branches exists."""

    code = PULL_REQUEST_REFUSED


Steps: TypeAlias = Generator[ApiRequest, ApiAnswer, T]


class Place(Struct, frozen=True):
    """Where a repository is on a code host."""

    api: str
    """Without a slash at its end."""
    path: str
    """``owner/name``, on GitLab ``group/subgroup/name``; not quoted."""
    repository: str
    """Its URL, for messages."""

    @property
    def owner(self) -> str:
        return self.path.partition("/")[0]

    @property
    def quoted(self) -> str:
        """With its slashes."""
        return quote(self.path)


class Edited(Struct, frozen=True):
    """A pull request's title and text as they are to be."""

    title: str
    body: str
    draft: bool | None
    """None leaves it as it is."""

    def is_draft(self, known: PullRequest) -> bool:
        return known.draft if self.draft is None else self.draft


class CodeHostApi(Protocol):
    """One repository on one code host, as one token sees it."""

    @property
    def place(self) -> Place: ...

    def find(self, head: str, base: str, *, after_seconds: float) -> Steps[PullRequest | None]:
        """The open one of the repository's own two branches; those of forks do not count."""

    def create(self, new: NewPullRequest) -> Steps[PullRequest]:
        """Raises AlreadyThere, and what ``refusal`` makes."""

    def decorate(self, pull_request: PullRequest, labels: Sequence[str], reviewers: Sequence[str]) -> Steps[list[str]]:
        """Add labels, ask reviewers; safe to repeat. What the host would not do is returned in words."""

    def get(self, number: int) -> Steps[PullRequest]:
        """Raises NotFound."""

    def edit(self, known: PullRequest, wanted: Edited) -> Steps[PullRequest]:
        """``known`` is open."""

    def check(self) -> Steps[CheckedRepository]:
        """As ``CodeHost.check_repository``."""


class ApiCalls(Struct, frozen=True):
    """The requests for one repository, and the reading of their answers."""

    host: str
    """Its name, for messages."""
    place: Place
    headers: Mapping[str, str]

    def __repr__(self) -> str:
        return f"ApiCalls({self.host}, {self.place.repository})"  # no token, as in ``ApiRequest``

    def get(self, url: str) -> ApiRequest:
        return ApiRequest("GET", url, self.headers)

    def send(self, method: Method, url: str, fields: Mapping[str, object]) -> ApiRequest:
        return ApiRequest(method, url, {**self.headers, "content-type": "application/json"}, encoded(fields))

    def read(self, answer: ApiAnswer, kind: type[T]) -> T:
        """Return what a successful answer holds. Raises what ``refusal`` makes, and Unavailable."""
        if not 200 <= answer.status < 300:
            raise self.refusal(answer)
        return decoded(answer, kind, self.place)

    def refusal(self, answer: ApiAnswer) -> ServiceError:
        return refusal(self.host, answer, self.place)


def asked_reviewers(calls: ApiCalls, url: str, reviewers: Sequence[str]) -> Steps[list[str]]:
    """Ask each reviewer at a URL of GitHub's form, which Gitea has too; return what was refused, in words.

    One by one: GitHub refuses all for one that it does not know.
    """
    trouble = []
    for reviewer in reviewers:
        organization, _, team = reviewer.rpartition("/")
        who = {"team_reviewers": [team]} if organization else {"reviewers": [reviewer]}
        answer = yield calls.send("POST", url, who)
        if answer.status >= 300:
            trouble.append(f"{reviewer}: {calls.refusal(answer)}")
    return trouble


class DraftTitles(Struct, frozen=True):
    """Titles on a host where a prefix of the title makes a pull request a draft."""

    prefix: str
    accepted: re.Pattern[str]
    """Every form that the host takes for one."""

    def written(self, title: str, *, draft: bool) -> str:
        """Return the title to send. One that happens to begin like a draft's must not make one."""
        prefix = self.accepted.match(title)
        if draft:
            return title if prefix else self.prefix + title
        return title[prefix.end() :] if prefix else title

    def read(self, title: str, is_draft: bool | None) -> tuple[str, bool]:
        """Return the title without the prefix, and whether it is a draft; None: only the title says so."""
        prefix = self.accepted.match(title)
        draft = prefix is not None if is_draft is None else is_draft
        return title[prefix.end() :] if prefix and draft else title, draft


def opened(api: CodeHostApi, new: NewPullRequest) -> Steps[PullRequest]:
    """The open pull request of the two branches, made when there is none."""
    trouble: ServiceError | None = None
    for attempt in range(ROUNDS):
        found = yield from api.find(new.head, new.base, after_seconds=float(2**attempt) if attempt else 0.0)
        if found is not None:
            return found
        try:
            return (yield from api.create(new))
        except (NoAnswer, AlreadyThere) as error:
            if isinstance(error, NoAnswer) and error.retry_after_seconds:
                raise  # a job comes back then, and looks first
            trouble = error
    assert trouble is not None
    raise trouble


def updated(api: CodeHostApi, number: int, wanted: Edited) -> Steps[PullRequest]:
    known = yield from api.get(number)
    if known.state != "open":
        raise Conflict(f"Pull request {known.url} is {known.state}.", code=f"pull_request_{known.state}")
    if (known.title, known.body, known.draft) == (wanted.title, wanted.body, wanted.is_draft(known)):
        return known
    return (yield from api.edit(known, wanted))


# Where a repository is


def parts_of(repository: str) -> tuple[str, list[str]]:
    """The origin of a repository's URL, and the parts of its path without ``.git``.

    Raises Invalid (``bad_repository``): no http(s) URL, or a path that could mean another one.
    """
    url = urlsplit(repository)
    parts = [unquote(part) for part in url.path.split("/") if part]
    unsafe = any(part in (".", "..") or "/" in part or not part.isprintable() for part in parts)
    if url.scheme not in ("http", "https") or not url.hostname or "@" in url.netloc or url.query or unsafe or not parts:
        raise Invalid(f"{repository!r} is not the https:// URL of a repository.", code="bad_repository")
    parts[-1] = parts[-1].removesuffix(".git")
    return f"{url.scheme}://{url.netloc}", parts


def owner_and_name(repository: str, parts: Sequence[str]) -> str:
    if len(parts) < 2 or not parts[-1]:
        raise Invalid(f"{repository} is not the URL of a repository: it ends in /OWNER/NAME.", code="bad_repository")
    return f"{parts[-2]}/{parts[-1]}"


# What an answer says


def decoded(answer: ApiAnswer, kind: type[T], place: Place) -> T:
    """Raises NoAnswer: it is not what such a host says (a proxy's page, another program)."""
    try:
        return msgspec.json.decode(answer.body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise NoAnswer(
            f"{place.api} did not answer as the API of a code host does; is it the right address (--api-url)?"
        ) from None


def encoded(body: Mapping[str, Any]) -> bytes:
    return json.dumps(body, ensure_ascii=False).encode()


def checked_url(url: str, place: Place) -> str:
    """Return the address that people will click on. Raise NoAnswer when it is not a web address."""
    if not url.startswith(("https://", "http://")) or not url.isprintable():
        raise NoAnswer(f"{place.api} named no address of the pull request.")
    return url


def refusal(host: str, answer: ApiAnswer, place: Place) -> ServiceError:
    """Return the error for a status other than success, with what to do about it."""
    where, said = place.repository, words(answer.body)
    quoted = f" {host} says: {said}" if said else ""
    match answer.status:
        case 301 | 302 | 303 | 307 | 308:
            return Conflict(
                f"{where} has another address by now: it was renamed or moved. Find out which, and set it: "
                "docsmith project update PROJECT --repository URL.",
                code=REPOSITORY_MOVED,
            )
        case 401:
            return Forbidden(
                f"{host} refuses the token for {where}: it is wrong, has expired or was revoked. Make a new one and "
                f"put it where the project's variable is set.{quoted}",
                code=TOKEN_REFUSED,
            )
        case 403 if "archived" in said.lower():
            return archived(place)
        case 403 | 451:
            return Forbidden(
                f"The token may not do this in {where}. It needs the right to write contents and pull requests there."
                f"{quoted}",
                code=RIGHTS_MISSING,
            )
        case 404:
            return NotFound(
                f"{host} shows no repository {where} to this token: it does not exist, was renamed or deleted, or is "
                "private and the token's account may not see it.",
                code=NO_SUCH_REPOSITORY,
            )
        case status if is_temporary(status):
            return Unavailable(
                f"{place.api} has a problem of its own (status {status}); try again later.{quoted}",
                code=CODE_HOST_UNAVAILABLE,
            )
        case status if "archived" in said.lower():
            return archived(place)
        case status:
            return Conflict(
                f"{host} refuses this for {where} (status {status}).{quoted or ' It gives no reason.'}",
                code=PULL_REQUEST_REFUSED,
            )


def require_current(place: Place, path: str, *, is_archived: bool) -> None:
    """Raise Conflict for a repository that has another path by now, or can no longer be changed."""
    if path.lower() != place.path.lower():
        raise Conflict(f"{place.repository} was renamed to {path}. Use that address.", code=REPOSITORY_MOVED)
    if is_archived:
        raise archived(place)


def archived(place: Place) -> Conflict:
    return Conflict(
        f"{place.repository} is archived and cannot be changed. Unarchive it on its code host, or work on another.",
        code=REPOSITORY_ARCHIVED,
    )


def no_commits(new: NewPullRequest) -> Conflict:
    return Conflict(f"{new.head} has nothing that {new.base} lacks.", code="no_commits")


def no_branch(place: Place, new: NewPullRequest) -> Conflict:
    return Conflict(
        f"{place.repository} has no branch {new.head!r} or no branch {new.base!r} to open a pull request for.",
        code="no_such_branch",
    )


def no_pull_request(place: Place, number: int) -> NotFound:
    return NotFound(f"{place.repository} has no pull request {number}.", code=PULL_REQUEST_NOT_FOUND)


def words(body: bytes) -> str:
    """The host's own reason, from whichever fields it has; one line, shortened."""
    if len(body) > MAX_REFUSAL_BYTES:
        return ""
    try:
        said = list(_texts(msgspec.json.decode(body)))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""
    line = " ".join("; ".join(dict.fromkeys(said)).split())
    return "".join(c if c.isprintable() else " " for c in line)[:MAX_QUOTED_CHARACTERS]


def _texts(value: Any, depth: int = 0) -> Generator[str, None, None]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list) and depth < 4:
        for one in value[:10]:
            yield from _texts(one, depth + 1)
    elif isinstance(value, dict) and depth < 4:
        if depth and "field" in value and "message" not in value:  # GitHub's
            yield f"{value['field']}: {value.get('code', 'invalid')}"
        for name in ("message", "error", "errors", "error_description", *(() if depth == 0 else value)):
            if name in value and name not in ("resource", "field", "code", "value", "documentation_url", "url"):
                yield from _texts(value[name], depth + 1)


def later(request: ApiRequest, seconds: float) -> ApiRequest:
    return replace(request, after_seconds=seconds) if seconds else request
