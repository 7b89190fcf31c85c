"""Reactions to a push to the embedded code host, and to a pull request that is closed there."""

from datetime import datetime

from aiohttp import web

from eventstore import Metadata
from service.cli.runtime import Runtime
from service.commands.jobs.pull_requests import record_closed
from service.commands.sites import request_index
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
        await record_closed(self._store, self._views, project_id, page, at, metadata)

    async def on_push(self, request: web.Request, project_id: str) -> None:
        """Index again: it was perhaps to the branch that the site shows."""
        project = await get_project(self._views, project_id)
        if project is not None:
            await request_index(self._store, project.domain, "a push", metadata_of(request))
