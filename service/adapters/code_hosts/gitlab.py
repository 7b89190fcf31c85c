"""GitLab's REST API (version 4), without any I/O: what is sent, and what its answers mean.

Facts: a pull request is called a merge request. A project is named by its whole path with ``%2F`` between the parts. A
moved project redirects GET and answers 405 to everything else. Draft is a prefix of the title. Labels that do not exist
are made; reviewers are ids of accounts, and free editions keep only the first. A second merge request of the same
branches is a 409. The level of access is a number, 30 (Developer) may push; it is null for a user who is no member.
Personal, project and group tokens go into ``PRIVATE-TOKEN`` and can be asked what they may do and until when.
"""

import re
from collections.abc import Sequence
from urllib.parse import quote, urlsplit

from msgspec import Struct

from service.adapters.code_hosts.gitlab_comments import DEVELOPER, GitLabComments
from service.adapters.code_hosts.protocol import (
    AlreadyThere,
    ApiCalls,
    DraftTitles,
    Edited,
    Place,
    Steps,
    checked_url,
    decoded,
    later,
    no_branch,
    no_pull_request,
    owner_and_name,
    parts_of,
    require_current,
    words,
)
from service.domain.errors import Conflict, Forbidden
from service.ports.code_host import (
    PULL_REQUEST_REFUSED,
    RIGHTS_MISSING,
    CheckedRepository,
    NewPullRequest,
    PullRequest,
    PullRequestState,
)

TITLES = DraftTitles("Draft: ", re.compile(r"(?:(?:\[draft\]|\(draft\)|draft:|\[wip\]|wip:)\s*)+", re.IGNORECASE))


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
        self.place = place
        headers = {"accept": "application/json", "private-token": token, "user-agent": "docsmith"}
        self._calls = ApiCalls("GitLab", place, headers)
        self.comments = GitLabComments(self._calls)

    def find(self, head: str, base: str, *, after_seconds: float) -> Steps[PullRequest | None]:
        query = f"state=opened&source_branch={_quoted(head)}&target_branch={_quoted(base)}&per_page=20"
        answer = yield later(self._calls.get(f"{self._project}/merge_requests?{query}"), after_seconds)
        for one in self._calls.read(answer, list[_MergeRequest]):
            ours = one.source_project_id == one.target_project_id
            if (one.source_branch, one.target_branch, one.state) == (head, base, "opened") and ours:
                return self._public(one)
        return None

    def create(self, new: NewPullRequest) -> Steps[PullRequest]:
        fields = {
            "source_branch": new.head,
            "target_branch": new.base,
            "title": TITLES.written(new.title, draft=new.draft),
            "description": new.body,
        }
        answer = yield self._calls.send("POST", f"{self._project}/merge_requests", fields)
        said = words(answer.body)
        if answer.status == 409:
            raise AlreadyThere(str(self._calls.refusal(answer)))
        if answer.status in (400, 422) and re.search(r"branch\W.{0,500}(does not|doesn't) exist", said, re.IGNORECASE):
            raise no_branch(self.place, new)
        return self._public(self._calls.read(answer, _MergeRequest))

    def decorate(self, pull_request: PullRequest, labels: Sequence[str], reviewers: Sequence[str]) -> Steps[list[str]]:
        trouble: list[str] = []
        fields: dict[str, object] = {}
        if labels:
            fields["add_labels"] = ",".join(labels)
        ids: list[int] = []
        for reviewer in reviewers:
            answer = yield self._calls.get(f"{self.place.api}/users?username={_quoted(reviewer)}")
            found = self._calls.read(answer, list[_User]) if answer.status == 200 else []
            ids += [user.id for user in found if user.username.lower() == reviewer.lower()]
            if not found:
                trouble.append(f"GitLab knows no account {reviewer}.")
        if ids:
            fields["reviewer_ids"] = ids
        if fields:
            answer = yield self._calls.send("PUT", f"{self._project}/merge_requests/{pull_request.number}", fields)
            if answer.status >= 300:
                trouble.append(str(self._calls.refusal(answer)))
        return trouble

    def get(self, number: int) -> Steps[PullRequest]:
        answer = yield self._calls.get(f"{self._project}/merge_requests/{number}")
        if answer.status == 404:
            yield from self._checked_project()
            raise no_pull_request(self.place, number)
        return self._public(self._calls.read(answer, _MergeRequest))

    def edit(self, known: PullRequest, wanted: Edited) -> Steps[PullRequest]:
        fields = {"title": TITLES.written(wanted.title, draft=wanted.is_draft(known)), "description": wanted.body}
        answer = yield self._calls.send("PUT", f"{self._project}/merge_requests/{known.number}", fields)
        return self._public(self._calls.read(answer, _MergeRequest))

    def check(self) -> Steps[CheckedRepository]:
        project = yield from self._checked_project()
        require_current(self.place, project.path_with_namespace, is_archived=project.archived)
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
        answer = yield self._calls.get(f"{self.place.api}/personal_access_tokens/self")
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
        answer = yield self._calls.get(self._project)
        return self._calls.read(answer, _Project)

    def _public(self, one: _MergeRequest) -> PullRequest:
        states: dict[str, PullRequestState] = {"opened": "open", "locked": "open", "merged": "merged"}
        title, draft = TITLES.read(one.title, one.draft if one.draft is not None else one.work_in_progress)
        return PullRequest(
            number=one.iid,
            url=checked_url(one.web_url, self.place),
            head=one.source_branch,
            base=one.target_branch,
            title=title,
            state=states.get(one.state, "closed"),
            draft=draft,
            body=one.description or "",
        )


def _quoted(text: str) -> str:
    return quote(text, safe="")
