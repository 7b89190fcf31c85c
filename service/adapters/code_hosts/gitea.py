"""The API of Gitea and Forgejo (version 1), without any I/O: what is sent, and what its answers mean.

Facts, seen with Gitea 1.22: a branch that is not there is a 404, as a repository is. Draft is the prefix ``WIP:`` of
the title; later versions have it in ``draft``, too. There is no search by branches (``/pulls/{base}/{head}`` knows no
slash), so the open ones are listed, newest change first. Labels are given as ids. A renamed repository redirects.
"""

import re
from collections.abc import Sequence
from urllib.parse import quote

from msgspec import Struct

from service.adapters.code_hosts.gitea_comments import GiteaComments
from service.adapters.code_hosts.protocol import (
    AlreadyThere,
    ApiCalls,
    DraftTitles,
    Edited,
    Place,
    Steps,
    asked_reviewers,
    checked_url,
    later,
    no_branch,
    no_pull_request,
    owner_and_name,
    parts_of,
    require_current,
)
from service.domain.errors import Conflict, Forbidden
from service.ports.code_host import (
    PULL_REQUEST_REFUSED,
    RIGHTS_MISSING,
    CheckedRepository,
    NewPullRequest,
    PullRequest,
)

PAGE = 50
"""The most that a server gives by default."""
MAX_PAGES = 40

TITLES = DraftTitles("WIP: ", re.compile(r"(?:(?:wip:|\[wip\])\s*)+", re.IGNORECASE))


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
    admin: bool = False


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
        self.place = place
        headers = {"accept": "application/json", "authorization": f"token {token}", "user-agent": "docsmith"}
        self._calls = ApiCalls("Gitea", place, headers)
        self.comments = GiteaComments(self._calls)

    def find(self, head: str, base: str, *, after_seconds: float) -> Steps[PullRequest | None]:
        for page in range(1, MAX_PAGES + 1):
            url = f"{self._repository}/pulls?state=open&sort=recentupdate&limit={PAGE}&page={page}"
            answer = yield later(self._calls.get(url), after_seconds if page == 1 else 0.0)
            pulls = self._calls.read(answer, list[_Pull])
            for pull in pulls:
                ours = pull.head.repo_id == pull.base.repo_id
                if (pull.head.ref, pull.base.ref, pull.state) == (head, base, "open") and ours:
                    return self._public(pull)
            if not pulls or 'rel="next"' not in answer.headers.get("link", ""):
                return None
        return None

    def create(self, new: NewPullRequest) -> Steps[PullRequest]:
        fields = {
            "title": TITLES.written(new.title, draft=new.draft), "body": new.body, "head": new.head, "base": new.base,
        }  # fmt: skip
        answer = yield self._calls.send("POST", f"{self._repository}/pulls", fields)
        if answer.status == 409:
            raise AlreadyThere(str(self._calls.refusal(answer)))
        if answer.status == 404:
            yield from self._checked_repository()
            raise no_branch(self.place, new)
        return self._public(self._calls.read(answer, _Pull))

    def decorate(self, pull_request: PullRequest, labels: Sequence[str], reviewers: Sequence[str]) -> Steps[list[str]]:
        trouble: list[str] = []
        ids: dict[str, int] = {}
        for where in (self._repository, f"{self.place.api}/orgs/{quote(self.place.owner)}") if labels else ():
            for page in range(1, MAX_PAGES + 1):
                answer = yield self._calls.get(f"{where}/labels?limit={PAGE}&page={page}")
                is_found = answer.status == 200  # an owner may be a person
                found = self._calls.read(answer, list[_Label]) if is_found else []
                ids = {label.name: label.id for label in found} | ids
                if 'rel="next"' not in answer.headers.get("link", ""):
                    break
        trouble += [f"There is no label {label}." for label in labels if label not in ids]
        if wanted := [ids[label] for label in labels if label in ids]:
            answer = yield self._calls.send(
                "POST", f"{self._repository}/issues/{pull_request.number}/labels", {"labels": wanted}
            )
            if answer.status >= 300:
                trouble.append(str(self._calls.refusal(answer)))
        url = f"{self._repository}/pulls/{pull_request.number}/requested_reviewers"
        return trouble + (yield from asked_reviewers(self._calls, url, reviewers))

    def get(self, number: int) -> Steps[PullRequest]:
        answer = yield self._calls.get(f"{self._repository}/pulls/{number}")
        if answer.status == 404:
            yield from self._checked_repository()
            raise no_pull_request(self.place, number)
        return self._public(self._calls.read(answer, _Pull))

    def edit(self, known: PullRequest, wanted: Edited) -> Steps[PullRequest]:
        fields = {"title": TITLES.written(wanted.title, draft=wanted.is_draft(known)), "body": wanted.body}
        answer = yield self._calls.send("PATCH", f"{self._repository}/pulls/{known.number}", fields)
        return self._public(self._calls.read(answer, _Pull))

    def check(self) -> Steps[CheckedRepository]:
        repository = yield from self._checked_repository()
        require_current(self.place, repository.full_name, is_archived=repository.archived)
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
        if not repository.permissions.admin:
            warning = (
                "The token's account is not an administrator of the repository, so it cannot ask who may write there, "
                "and comments on pull requests are not read."
            )
            return CheckedRepository((warning,))
        return CheckedRepository()

    @property
    def _repository(self) -> str:
        return f"{self.place.api}/repos/{self.place.quoted}"

    def _checked_repository(self) -> Steps[_Repository]:
        answer = yield self._calls.get(self._repository)
        return self._calls.read(answer, _Repository)

    def _public(self, pull: _Pull) -> PullRequest:
        title, draft = TITLES.read(pull.title, pull.draft)
        return PullRequest(
            number=pull.number,
            url=checked_url(pull.html_url, self.place),
            head=pull.head.ref,
            base=pull.base.ref,
            title=title,
            state="open" if pull.state == "open" else "merged" if pull.merged else "closed",
            draft=draft,
            body=pull.body or "",
        )
