"""Reactions to a push to the embedded code host, and to a pull request that is closed there."""

from datetime import datetime

from aiohttp import web

from eventstore import Metadata
from service.cli.runtime import Runtime
from service.commands.jobs import close_pull_request
from service.commands.sites import request_index
from service.domain.jobs.decider import ClosePullRequest, PullRequestOutcome
from service.ports.code_host import PullRequestPage
from service.queries.projects import get_project
from service.web.http.problems import metadata_of


class HostedEvents:
    def __init__(self, runtime: Runtime) -> None:
        self._store, self._views = runtime.store, runtime.views

    async def on_pull_request_closed(
        self, project_id: str, page: PullRequestPage, at: datetime, metadata: Metadata
    ) -> None:
        """Record that a person merged or closed it, and index what was merged."""
        pull_request = page.pull_request
        outcome: PullRequestOutcome = "merged" if pull_request.state == "merged" else "closed"
        close = ClosePullRequest(outcome, at, page.merge_commit)
        await close_pull_request(self._store, self._views, project_id, pull_request.number, close, metadata)
        if outcome == "merged":
            await self._reindex(project_id, f"pull request {pull_request.number} was merged", metadata)

    async def on_push(self, request: web.Request, project_id: str) -> None:
        """Index again: it was perhaps to the branch that the site shows."""
        await self._reindex(project_id, "a push", metadata_of(request))

    async def _reindex(self, project_id: str, reason: str, metadata: Metadata) -> None:
        project = await get_project(self._views, project_id)
        if project is not None:
            await request_index(self._store, project.domain, reason, metadata)
