"""The code hosts that are not ours: GitHub, GitLab, Gitea and Forgejo, each by its own protocol."""

from collections.abc import Callable
from datetime import datetime
from typing import TypeVar

import structlog

from service.adapters.code_hosts.api_client import ApiClient
from service.adapters.code_hosts.comments import ReviewApi, answered
from service.adapters.code_hosts.gitea import GiteaApi
from service.adapters.code_hosts.gitea import repository_address as gitea_place
from service.adapters.code_hosts.github import GitHubApi
from service.adapters.code_hosts.github import repository_address as github_place
from service.adapters.code_hosts.gitlab import GitLabApi
from service.adapters.code_hosts.gitlab import repository_address as gitlab_place
from service.adapters.code_hosts.protocol import Edited, Steps, opened, updated
from service.adapters.code_hosts.tokens import Tokens
from service.domain.errors import Forbidden
from service.domain.projects.settings import CodeHostKind
from service.ports.code_host import (
    TOKEN_MISSING,
    TOKEN_REFUSED,
    CheckedRepository,
    NewPullRequest,
    PullRequest,
)
from service.ports.docs_source import Source
from service.ports.review_host import Comments, NewAnswer, ReviewHost

log = structlog.get_logger()

T = TypeVar("T")

ApiOf = Callable[[Source, str], ReviewApi]
"""For a source and a token."""


def github(source: Source, token: str) -> ReviewApi:
    return GitHubApi(github_place(source.repository, source.api_url), token, app=bool(source.github_app_id))


def gitlab(source: Source, token: str) -> ReviewApi:
    return GitLabApi(gitlab_place(source.repository, source.api_url), token)


def gitea(source: Source, token: str) -> ReviewApi:
    return GiteaApi(gitea_place(source.repository, source.api_url), token)


def remote_code_hosts(client: ApiClient, tokens: Tokens) -> dict[CodeHostKind, ReviewHost]:
    return {
        "github": RemoteCodeHost(github, client, tokens),
        "gitlab": RemoteCodeHost(gitlab, client, tokens),
        "gitea": RemoteCodeHost(gitea, client, tokens),
    }


class RemoteCodeHost:
    """ReviewHost over a host's HTTP API."""

    def __init__(self, api_of: ApiOf, client: ApiClient, tokens: Tokens) -> None:
        self._api_of, self._client, self._tokens = api_of, client, tokens

    async def check_repository(self, source: Source) -> CheckedRepository:
        return await self._run(source, lambda api: api.check())

    async def open_pull_request(self, source: Source, new: NewPullRequest) -> PullRequest:
        pull_request = await self._run(source, lambda api: opened(api, new))
        if source.labels or source.reviewers:
            await self._decorate(source, pull_request)
        return pull_request

    async def get_pull_request(self, source: Source, number: int) -> PullRequest:
        return await self._run(source, lambda api: api.get(number))

    async def update_pull_request(
        self, source: Source, number: int, *, title: str, body: str, draft: bool | None = None
    ) -> PullRequest:
        return await self._run(source, lambda api: updated(api, number, Edited(title, body, draft)))

    async def list_comments(
        self, source: Source, number: int, *, since: datetime | None = None, tag: str = ""
    ) -> Comments | None:
        return await self._run(source, lambda api: api.comments.read(number, since, tag))

    async def may_write(self, source: Source, account: str) -> bool:
        return await self._run(source, lambda api: api.comments.may_write(account))

    async def post_answer(self, source: Source, number: int, answer: NewAnswer) -> str:
        return await self._run(source, lambda api: answered(api.comments, number, answer))

    async def _decorate(self, source: Source, pull_request: PullRequest) -> None:
        trouble = await self._run(source, lambda api: api.decorate(pull_request, source.labels, source.reviewers))
        for words in trouble:
            log.warning("label or reviewer not added", number=pull_request.number, reason=words)

    async def _run(self, source: Source, flow: Callable[[ReviewApi], Steps[T]]) -> T:
        token = await self._tokens.token(source)
        if not token:
            raise Forbidden(
                f"There is no token for {source.repository}. Enter one, or name its variable.", code=TOKEN_MISSING
            )
        try:
            return await self._client.run(flow(self._api_of(source, token)), guarded=source.guarded)
        except Forbidden as error:
            if error.code == TOKEN_REFUSED:
                self._tokens.forget(source)
            raise
