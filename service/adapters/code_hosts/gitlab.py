"""GitLab's REST API (version 4), without any I/O: what is sent, and what its answers mean.

Facts: a pull request is called a merge request. A project is named by its whole path with ``%2F`` between the parts. A
moved project redirects GET and answers 405 to everything else. Draft is a prefix of the title. Labels that do not exist
are made; reviewers are ids of accounts, and free editions keep only the first. A second merge request of the same
branches is a 409. The level of access is a number, 30 (Developer) may push; it is null for a user who is no member.
Personal, project and group tokens go into ``PRIVATE-TOKEN`` and can be asked what they may do and until when.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias, TypeVar
from urllib.parse import quote, urlsplit

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
    words,
)
from service.domain.errors import Conflict, Forbidden
from service.ports.code_host import (
    PULL_REQUEST_REFUSED,
    REPOSITORY_MOVED,
    RIGHTS_MISSING,
    CheckedRepository,
    NewPullRequest,
    PullRequest,
    PullRequestState,
)

T = TypeVar("T")
Method: TypeAlias = Literal["GET", "POST", "PUT"]

DEVELOPER = 30
DRAFT = "Draft: "
DRAFTS = re.compile(r"(?:(?:\[draft\]|\(draft\)|draft:|\[wip\]|wip:)\s*)+", re.IGNORECASE)


class _MergeRequest(Struct, frozen=True):
    iid: int
    web_url: str
    title: str
    state: str
    source_branch: str
    target_branch: str
    source_project_id: int | None = None
    """None for a fork that is gone."""
    target_project_id: int | None = None
    description: str | None = None
    draft: bool | None = None
    work_in_progress: bool | None = None
    """The field of older versions in its place."""


class _Access(Struct, frozen=True):
    access_level: int = 0


class _Permissions(Struct, frozen=True):
    project_access: _Access | None = None
    group_access: _Access | None = None


class _Project(Struct, frozen=True):
    path_with_namespace: str
    archived: bool = False
    permissions: _Permissions | None = None
    merge_requests_enabled: bool = True


class _Token(Struct, frozen=True):
    scopes: list[str] = []
    expires_at: str | None = None


class _User(Struct, frozen=True):
    id: int
    username: str


def repository_address(repository: str, api_url: str) -> Place:
    """A GitLab under a path of its host is known by the API's address: what that has before ``/api/v4`` is no group."""
    origin, parts = parts_of(repository)
    api = api_url or f"{origin}/api/v4"
    url = urlsplit(api)
    if f"{url.scheme}://{url.netloc}".lower() == origin.lower():
        prefix = [part for part in url.path.partition("/api/")[0].split("/") if part]
        if parts[: len(prefix)] == prefix:
            parts = parts[len(prefix) :]
    owner_and_name(repository, parts)
    return Place(api, "/".join(parts), repository)


class GitLabApi:
    def __init__(self, place: Place, token: str) -> None:
        self.place, self._token = place, token

    def find(self, head: str, base: str, *, after_seconds: float) -> Steps[PullRequest | None]:
        query = f"state=opened&source_branch={_quoted(head)}&target_branch={_quoted(base)}&per_page=20"
        answer = yield later(self._get(f"{self._project}/merge_requests?{query}"), after_seconds)
        for one in self._read(answer, list[_MergeRequest]):
            ours = one.source_project_id == one.target_project_id
            if (one.source_branch, one.target_branch, one.state) == (head, base, "opened") and ours:
                return self._public(one)
        return None

    def create(self, new: NewPullRequest) -> Steps[PullRequest]:
        fields = {
            "source_branch": new.head,
            "target_branch": new.base,
            "title": _title(new.title, draft=new.draft),
            "description": new.body,
        }
        answer = yield self._send("POST", f"{self._project}/merge_requests", fields)
        said = words(answer.body)
        if answer.status == 409:
            raise AlreadyThere(str(refusal("GitLab", answer, self.place)))
        if answer.status in (400, 422) and re.search(r"branch\W.{0,500}(does not|doesn't) exist", said, re.IGNORECASE):
            raise no_branch(self.place, new)
        return self._public(self._read(answer, _MergeRequest))

    def decorate(self, pull_request: PullRequest, labels: Sequence[str], reviewers: Sequence[str]) -> Steps[list[str]]:
        trouble: list[str] = []
        fields: dict[str, object] = {}
        if labels:
            fields["add_labels"] = ",".join(labels)
        ids: list[int] = []
        for reviewer in reviewers:
            answer = yield self._get(f"{self.place.api}/users?username={_quoted(reviewer)}")
            found = self._read(answer, list[_User]) if answer.status == 200 else []
            ids += [user.id for user in found if user.username.lower() == reviewer.lower()]
            if not found:
                trouble.append(f"GitLab knows no account {reviewer}.")
        if ids:
            fields["reviewer_ids"] = ids
        if fields:
            answer = yield self._send("PUT", f"{self._project}/merge_requests/{pull_request.number}", fields)
            if answer.status >= 300:
                trouble.append(str(refusal("GitLab", answer, self.place)))
        return trouble

    def get(self, number: int) -> Steps[PullRequest]:
        answer = yield self._get(f"{self._project}/merge_requests/{number}")
        if answer.status == 404:
            yield from self._checked_project()
            raise no_pull_request(self.place, number)
        return self._public(self._read(answer, _MergeRequest))

    def edit(self, known: PullRequest, title: str, body: str) -> Steps[PullRequest]:
        fields = {"title": _title(title, draft=known.draft), "description": body}
        answer = yield self._send("PUT", f"{self._project}/merge_requests/{known.number}", fields)
        return self._public(self._read(answer, _MergeRequest))

    def check(self) -> Steps[CheckedRepository]:
        project = yield from self._checked_project()
        if project.path_with_namespace.lower() != self.place.path.lower():
            raise Conflict(
                f"{self.place.repository} was renamed to {project.path_with_namespace}. Use that address.",
                code=REPOSITORY_MOVED,
            )
        if project.archived:
            raise archived(self.place)
        if not project.merge_requests_enabled:
            raise Conflict(
                f"Merge requests are switched off for {self.place.repository}; switch them on in its settings.",
                code=PULL_REQUEST_REFUSED,
            )
        warnings: list[str] = []
        rights = project.permissions
        levels = [one.access_level for one in (rights.project_access, rights.group_access) if one] if rights else []
        if not levels:
            warnings.append("GitLab does not tell whether the token may write to the project.")
        elif max(levels) < DEVELOPER:
            raise Forbidden(
                f"The token's account may not write to {self.place.repository}. Give it the role Developer, or use "
                "another token.",
                code=RIGHTS_MISSING,
            )
        answer = yield self._get(f"{self.place.api}/personal_access_tokens/self")
        if answer.status == 200:
            token = decoded(answer, _Token, self.place)
            if "api" not in token.scopes:
                raise Forbidden(
                    f"The token for {self.place.repository} lacks the scope api; it has: {', '.join(token.scopes)}.",
                    code=RIGHTS_MISSING,
                )
            if token.expires_at:
                warnings.append(f"The token expires on {token.expires_at}.")
        return CheckedRepository(tuple(warnings))

    @property
    def _project(self) -> str:
        return f"{self.place.api}/projects/{_quoted(self.place.path)}"

    def _checked_project(self) -> Steps[_Project]:
        answer = yield self._get(self._project)
        return self._read(answer, _Project)

    def _get(self, url: str) -> ApiRequest:
        return ApiRequest("GET", url, self._headers())

    def _send(self, method: Method, url: str, fields: Mapping[str, object]) -> ApiRequest:
        return ApiRequest(method, url, self._headers() | {"content-type": "application/json"}, encoded(fields))

    def _headers(self) -> dict[str, str]:
        return {"accept": "application/json", "private-token": self._token, "user-agent": "docsmith"}

    def _read(self, answer: ApiAnswer, kind: type[T]) -> T:
        if not 200 <= answer.status < 300:
            raise refusal("GitLab", answer, self.place)
        return decoded(answer, kind, self.place)

    def _public(self, one: _MergeRequest) -> PullRequest:
        states: dict[str, PullRequestState] = {"opened": "open", "locked": "open", "merged": "merged"}
        prefix = DRAFTS.match(one.title)
        draft = one.draft if one.draft is not None else one.work_in_progress
        draft = prefix is not None if draft is None else draft
        return PullRequest(
            number=one.iid,
            url=checked_url(one.web_url, self.place),
            head=one.source_branch,
            base=one.target_branch,
            title=one.title[prefix.end() :] if prefix and draft else one.title,
            state=states.get(one.state, "closed"),
            draft=draft,
            body=one.description or "",
        )


def _title(title: str, *, draft: bool) -> str:
    """A title that happens to begin like a draft's must not make one."""
    if draft:
        return title if DRAFTS.match(title) else DRAFT + title
    return DRAFTS.sub("", title, count=1) if DRAFTS.match(title) else title


def _quoted(text: str) -> str:
    return quote(text, safe="")
