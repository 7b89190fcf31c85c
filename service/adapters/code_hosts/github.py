"""GitHub's REST API, without any I/O: what is sent, and what its answers mean.

Facts: the API of github.com is at https://api.github.com, that of a GitHub Enterprise server at https://HOST/api/v3. A
renamed repository answers 301. 422 has a message for each field: "A pull request already exists for O:B.", "No commits
between A and B", ``head`` or ``base`` invalid for a branch that is not there. Drafts do not exist in private
repositories of free accounts: 422, too. REST cannot change whether a pull request is a draft; GraphQL can, at
https://api.github.com/graphql or https://HOST/api/graphql, and answers 200 with ``errors`` when it refuses. A
fine-grained token's own rights are not reported, only those of its account. A classic token's are in
``X-OAuth-Scopes``; when a token expires is in ``GitHub-Authentication-Token-Expiration``.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, TypeVar
from urllib.parse import quote

from gidgethub.sansio import create_headers
from msgspec import Struct
from msgspec.structs import replace

from service.adapters.code_hosts.github_comments import GitHubComments
from service.adapters.code_hosts.protocol import (
    AlreadyThere,
    ApiAnswer,
    ApiCalls,
    ApiRequest,
    Edited,
    Place,
    Steps,
    asked_reviewers,
    checked_url,
    decoded,
    encoded,
    later,
    no_branch,
    no_commits,
    no_pull_request,
    owner_and_name,
    parts_of,
    refusal,
    require_current,
    words,
)
from service.domain.errors import Forbidden, NotFound, ServiceError
from service.ports.code_host import (
    NO_SUCH_REPOSITORY,
    RIGHTS_MISSING,
    TOKEN_REFUSED,
    CheckedRepository,
    NewPullRequest,
    PullRequest,
)

T = TypeVar("T")

USER_AGENT = "docsmith"
VERSION = "2022-11-28"
"""Version of the API; GitHub keeps each for at least two years after the next."""

APP_PERMISSIONS = {"contents": "write", "pull_requests": "write"}
"""All that we ask for; reading a repository's metadata is always included."""

CLASSIC_SCOPES = {"repo", "public_repo"}

ACCEPT = "application/vnd.github+json"


class _Repository(Struct, frozen=True):
    full_name: str


class _Branch(Struct, frozen=True):
    ref: str
    repo: _Repository | None = None
    """None for a fork that is gone."""


class _Pull(Struct, frozen=True):
    number: int
    html_url: str
    title: str
    state: str
    head: _Branch
    base: _Branch
    body: str | None = None
    draft: bool = False
    merged_at: str | None = None
    node_id: str = ""
    """Its id in the GraphQL API."""


class _GraphqlAnswer(Struct, frozen=True):
    errors: tuple[dict[str, Any], ...] | None = None


class _Rights(Struct, frozen=True):
    push: bool = False


class _CheckedRepository(Struct, frozen=True):
    full_name: str
    archived: bool = False
    permissions: _Rights | None = None


class _Installation(Struct, frozen=True):
    """The installation of an App in the account that owns the repository."""

    id: int
    permissions: dict[str, str] = {}
    suspended_at: str | None = None


class InstallationToken(Struct, frozen=True):
    token: str
    expires_at: datetime


def repository_address(repository: str, api_url: str) -> Place:
    origin, parts = parts_of(repository)
    default = "https://api.github.com" if origin.lower() == "https://github.com" else f"{origin}/api/v3"
    return Place(api_url or default, owner_and_name(repository, parts), repository)


class GitHubApi:
    """``app``: the token is that of an App's installation, which has no rights of an account."""

    def __init__(self, place: Place, token: str, *, app: bool = False) -> None:
        self.place, self._app = place, app
        self._calls = ApiCalls("GitHub", place, _headers(oauth_token=token))
        self.comments = GitHubComments(self._calls)

    def find(self, head: str, base: str, *, after_seconds: float) -> Steps[PullRequest | None]:
        query = f"state=open&head={_quoted(f'{self.place.owner}:{head}')}&base={_quoted(base)}&per_page=10"
        answer = yield later(self._calls.get(f"{self._repository}/pulls?{query}"), after_seconds)
        for pull in self._calls.read(answer, list[_Pull]):
            ours = pull.head.repo is not None and pull.head.repo == pull.base.repo
            if (pull.head.ref, pull.base.ref, pull.state) == (head, base, "open") and ours:
                return self._public(pull)
        return None

    def create(self, new: NewPullRequest) -> Steps[PullRequest]:
        fields = {"title": new.title, "body": new.body, "head": new.head, "base": new.base, "draft": new.draft}
        answer = yield self._calls.send("POST", f"{self._repository}/pulls", fields)
        said = words(answer.body).lower()
        if answer.status == 422 and new.draft and "draft pull requests are not supported" in said:
            return (yield from self.create(replace(new, draft=False)))
        if answer.status == 422:
            if "already exists" in said:
                raise AlreadyThere(str(self._calls.refusal(answer)))
            if "no commits between" in said:
                raise no_commits(new)
            if "head: invalid" in said or "base: invalid" in said:
                raise no_branch(self.place, new)
        return self._public(self._calls.read(answer, _Pull))

    def decorate(self, pull_request: PullRequest, labels: Sequence[str], reviewers: Sequence[str]) -> Steps[list[str]]:
        trouble: list[str] = []
        if labels:
            answer = yield self._calls.send(
                "POST", f"{self._repository}/issues/{pull_request.number}/labels", {"labels": list(labels)}
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
        answer = yield self._calls.send(
            "PATCH", f"{self._repository}/pulls/{known.number}", {"title": wanted.title, "body": wanted.body}
        )
        pull = self._calls.read(answer, _Pull)
        if pull.draft != wanted.is_draft(known) and pull.node_id:
            pull = replace(pull, draft=(yield from self._set_draft(pull)))
        return self._public(pull)

    def _set_draft(self, pull: _Pull) -> Steps[bool]:
        """Make a draft ready, or the other way round; return what it is then. A refusal changes nothing: where there
        are no drafts, the description still says what is wrong.
        """
        name = "markPullRequestReadyForReview" if pull.draft else "convertPullRequestToDraft"
        query = f"mutation($id: ID!) {{ {name}(input: {{pullRequestId: $id}}) {{ pullRequest {{ isDraft }} }} }}"
        answer = yield self._calls.send("POST", self._graphql, {"query": query, "variables": {"id": pull.node_id}})
        if answer.status in (403, 404):
            return pull.draft
        result = self._calls.read(answer, _GraphqlAnswer)
        return pull.draft if result.errors else not pull.draft

    @property
    def _graphql(self) -> str:
        return f"{self.place.api.removesuffix('/v3')}/graphql"

    def check(self) -> Steps[CheckedRepository]:
        answer, repository = yield from self._checked_repository()
        require_current(self.place, repository.full_name, is_archived=repository.archived)
        warnings: list[str] = []
        if not self._app:
            rights = repository.permissions
            if rights is None:
                warnings.append("GitHub does not tell whether the token may write to the repository.")
            elif not rights.push:
                raise _may_not_write(self.place)
            scopes = answer.headers.get("x-oauth-scopes")
            if scopes and not CLASSIC_SCOPES & {scope.strip() for scope in scopes.split(",")}:
                raise Forbidden(
                    f"The token for {self.place.repository} lacks the scope repo (or public_repo).", code=RIGHTS_MISSING
                )
            if expiry := answer.headers.get("github-authentication-token-expiration"):
                warnings.append(f"The token expires on {expiry}.")
        return CheckedRepository(tuple(warnings))

    @property
    def _repository(self) -> str:
        return f"{self.place.api}/repos/{self.place.quoted}"

    def _checked_repository(self) -> Steps[tuple[ApiAnswer, _CheckedRepository]]:
        answer = yield self._calls.get(self._repository)
        return answer, self._calls.read(answer, _CheckedRepository)

    def _public(self, pull: _Pull) -> PullRequest:
        return PullRequest(
            number=pull.number,
            url=checked_url(pull.html_url, self.place),
            head=pull.head.ref,
            base=pull.base.ref,
            title=pull.title,
            state="open" if pull.state == "open" else "merged" if pull.merged_at else "closed",
            draft=pull.draft,
            body=pull.body or "",
        )


def installation_token(place: Place, app_id: str, jwt: str) -> Steps[InstallationToken]:
    """A token of the App's installation, for this repository and what we do there alone. It lives for an hour.

    Raises: as every method of ``CodeHost``.
    """
    headers = _headers(jwt=jwt)
    answer = yield ApiRequest("GET", f"{place.api}/repos/{place.quoted}/installation", headers)
    if answer.status == 404:
        raise NotFound(
            f"The GitHub App {app_id} is not installed on {place.repository}, or this repository does not exist. "
            "Install it on the repository's settings page.",
            code=NO_SUCH_REPOSITORY,
        )
    installation = _read(answer, _Installation, place, refused=_app_refused(app_id))
    if installation.suspended_at:
        raise Forbidden(f"The installation of the GitHub App {app_id} is suspended.", code=TOKEN_REFUSED)
    for name, level in APP_PERMISSIONS.items():
        if installation.permissions.get(name) != level:
            raise Forbidden(
                f"The GitHub App {app_id} lacks the permission {name}: {level}. Add it in the App's settings, and "
                "accept it where the App is installed.",
                code=RIGHTS_MISSING,
            )
    wanted = {"repositories": [place.path.partition("/")[2]], "permissions": APP_PERMISSIONS}
    answer = yield ApiRequest(
        "POST", f"{place.api}/app/installations/{installation.id}/access_tokens", headers, encoded(wanted)
    )
    return _read(answer, InstallationToken, place, refused=_app_refused(app_id))


def _app_refused(app_id: str) -> Forbidden:
    return Forbidden(
        f"GitHub refuses the private key of the App {app_id}: it is another App's, was deleted, or this machine's "
        "clock is wrong.",
        code=TOKEN_REFUSED,
    )


def _headers(**credentials: str) -> dict[str, str]:
    return {
        **create_headers(USER_AGENT, accept=ACCEPT, **credentials),
        "content-type": "application/json",
        "x-github-api-version": VERSION,
    }


def _read(answer: ApiAnswer, kind: type[T], place: Place, *, refused: ServiceError | None = None) -> T:
    if answer.status == 401 and refused is not None:
        raise refused
    if not 200 <= answer.status < 300:
        raise refusal("GitHub", answer, place)
    return decoded(answer, kind, place)


def _quoted(text: str) -> str:
    return quote(text, safe="")


def _may_not_write(place: Place) -> Forbidden:
    return Forbidden(
        f"The token's account may not write to {place.repository}. Give it the role Write, or use another token.",
        code=RIGHTS_MISSING,
    )
