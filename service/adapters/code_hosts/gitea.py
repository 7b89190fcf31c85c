"""The API of Gitea and Forgejo (version 1), without any I/O: what is sent, and what its answers mean.

Facts, seen with Gitea 1.22: a branch that is not there is a 404, as a repository is. Draft is the prefix ``WIP:`` of
the title; later versions have it in ``draft``, too. There is no search by branches (``/pulls/{base}/{head}`` knows no
slash), so the open ones are listed, newest change first. Labels are given as ids. A renamed repository redirects.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias, TypeVar
from urllib.parse import quote

from msgspec import Struct

from service.adapters.code_hosts.protocol import (
    AlreadyThere,
    ApiAnswer,
    ApiRequest,
    Place,
    Steps,
    archived,
    checked_url,
    decoded,
    encoded,
    later,
    no_branch,
    no_pull_request,
    owner_and_name,
    parts_of,
    refusal,
)
from service.domain.errors import Conflict, Forbidden
from service.ports.code_host import (
    PULL_REQUEST_REFUSED,
    REPOSITORY_MOVED,
    RIGHTS_MISSING,
    CheckedRepository,
    NewPullRequest,
    PullRequest,
)

T = TypeVar("T")
Method: TypeAlias = Literal["GET", "POST", "PATCH"]

PAGE = 50
"""The most that a server gives by default."""
MAX_PAGES = 40

DRAFT = "WIP: "
DRAFTS = re.compile(r"(?:(?:wip:|\[wip\])\s*)+", re.IGNORECASE)


class _Branch(Struct, frozen=True):
    ref: str
    repo_id: int = 0


class _Pull(Struct, frozen=True):
    number: int
    html_url: str
    title: str
    state: str
    head: _Branch
    base: _Branch
    body: str | None = None
    merged: bool = False
    draft: bool | None = None


class _Rights(Struct, frozen=True):
    push: bool = False


class _Repository(Struct, frozen=True):
    full_name: str
    archived: bool = False
    has_pull_requests: bool = True
    permissions: _Rights | None = None


class _Label(Struct, frozen=True):
    id: int
    name: str


def repository_address(repository: str, api_url: str) -> Place:
    """A Gitea may live under a path of its host: whatever is before the owner's name."""
    origin, parts = parts_of(repository)
    path = owner_and_name(repository, parts)
    base = "/".join([origin, *(quote(part) for part in parts[:-2])])
    return Place(api_url or f"{base}/api/v1", path, repository)


class GiteaApi:
    def __init__(self, place: Place, token: str) -> None:
        self.place, self._token = place, token

    def find(self, head: str, base: str, *, after_seconds: float) -> Steps[PullRequest | None]:
        for page in range(1, MAX_PAGES + 1):
            url = f"{self._repository}/pulls?state=open&sort=recentupdate&limit={PAGE}&page={page}"
            answer = yield later(self._get(url), after_seconds if page == 1 else 0.0)
            pulls = self._read(answer, list[_Pull])
            for pull in pulls:
                ours = pull.head.repo_id == pull.base.repo_id
                if (pull.head.ref, pull.base.ref, pull.state) == (head, base, "open") and ours:
                    return self._public(pull)
            if not pulls or 'rel="next"' not in answer.headers.get("link", ""):
                return None
        return None

    def create(self, new: NewPullRequest) -> Steps[PullRequest]:
        fields = {
            "title": _title(new.title, draft=new.draft), "body": new.body, "head": new.head, "base": new.base,
        }  # fmt: skip
        answer = yield self._send("POST", f"{self._repository}/pulls", fields)
        if answer.status == 409:
            raise AlreadyThere(str(refusal("Gitea", answer, self.place)))
        if answer.status == 404:
            yield from self._checked_repository()
            raise no_branch(self.place, new)
        return self._public(self._read(answer, _Pull))

    def decorate(self, pull_request: PullRequest, labels: Sequence[str], reviewers: Sequence[str]) -> Steps[list[str]]:
        trouble: list[str] = []
        ids: dict[str, int] = {}
        for where in (self._repository, f"{self.place.api}/orgs/{quote(self.place.owner)}") if labels else ():
            for page in range(1, MAX_PAGES + 1):
                answer = yield self._get(f"{where}/labels?limit={PAGE}&page={page}")
                found = self._read(answer, list[_Label]) if answer.status == 200 else []  # an owner may be a person
                ids = {label.name: label.id for label in found} | ids
                if 'rel="next"' not in answer.headers.get("link", ""):
                    break
        trouble += [f"There is no label {label}." for label in labels if label not in ids]
        if wanted := [ids[label] for label in labels if label in ids]:
            answer = yield self._send(
                "POST", f"{self._repository}/issues/{pull_request.number}/labels", {"labels": wanted}
            )
            if answer.status >= 300:
                trouble.append(str(refusal("Gitea", answer, self.place)))
        for reviewer in reviewers:
            organization, _, team = reviewer.rpartition("/")
            who = {"team_reviewers": [team]} if organization else {"reviewers": [reviewer]}
            answer = yield self._send(
                "POST", f"{self._repository}/pulls/{pull_request.number}/requested_reviewers", who
            )
            if answer.status >= 300:
                trouble.append(f"{reviewer}: {refusal('Gitea', answer, self.place)}")
        return trouble

    def get(self, number: int) -> Steps[PullRequest]:
        answer = yield self._get(f"{self._repository}/pulls/{number}")
        if answer.status == 404:
            yield from self._checked_repository()
            raise no_pull_request(self.place, number)
        return self._public(self._read(answer, _Pull))

    def edit(self, known: PullRequest, title: str, body: str) -> Steps[PullRequest]:
        fields = {"title": _title(title, draft=known.draft), "body": body}
        answer = yield self._send("PATCH", f"{self._repository}/pulls/{known.number}", fields)
        return self._public(self._read(answer, _Pull))

    def check(self) -> Steps[CheckedRepository]:
        repository = yield from self._checked_repository()
        if repository.full_name.lower() != self.place.path.lower():
            raise Conflict(
                f"{self.place.repository} was renamed to {repository.full_name}. Use that address.",
                code=REPOSITORY_MOVED,
            )
        if repository.archived:
            raise archived(self.place)
        if not repository.has_pull_requests:
            raise Conflict(
                f"Pull requests are switched off for {self.place.repository}; switch them on in its settings.",
                code=PULL_REQUEST_REFUSED,
            )
        if repository.permissions is None:
            return CheckedRepository(("The host does not tell whether the token may write to the repository.",))
        if not repository.permissions.push:
            raise Forbidden(
                f"The token's account may not write to {self.place.repository}. Give it write access, or use another "
                "token.",
                code=RIGHTS_MISSING,
            )
        return CheckedRepository()

    @property
    def _repository(self) -> str:
        return f"{self.place.api}/repos/{self.place.quoted}"

    def _checked_repository(self) -> Steps[_Repository]:
        answer = yield self._get(self._repository)
        return self._read(answer, _Repository)

    def _get(self, url: str) -> ApiRequest:
        return ApiRequest("GET", url, self._headers())

    def _send(self, method: Method, url: str, fields: Mapping[str, object]) -> ApiRequest:
        return ApiRequest(method, url, self._headers() | {"content-type": "application/json"}, encoded(fields))

    def _headers(self) -> dict[str, str]:
        return {"accept": "application/json", "authorization": f"token {self._token}", "user-agent": "docsmith"}

    def _read(self, answer: ApiAnswer, kind: type[T]) -> T:
        if not 200 <= answer.status < 300:
            raise refusal("Gitea", answer, self.place)
        return decoded(answer, kind, self.place)

    def _public(self, pull: _Pull) -> PullRequest:
        prefix = DRAFTS.match(pull.title)
        draft = prefix is not None if pull.draft is None else pull.draft
        return PullRequest(
            number=pull.number,
            url=checked_url(pull.html_url, self.place),
            head=pull.head.ref,
            base=pull.base.ref,
            title=pull.title[prefix.end() :] if prefix and draft else pull.title,
            state="open" if pull.state == "open" else "merged" if pull.merged else "closed",
            draft=draft,
            body=pull.body or "",
        )


def _title(title: str, *, draft: bool) -> str:
    """A title that happens to begin like a draft's must not make one."""
    if draft:
        return title if DRAFTS.match(title) else DRAFT + title
    return DRAFTS.sub("", title, count=1) if DRAFTS.match(title) else title
