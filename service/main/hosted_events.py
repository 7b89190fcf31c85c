"""The log's events about the embedded code host's pull requests, and the record of a push or a merge there."""

from datetime import datetime

from aiohttp import web

from eventstore import Metadata
from service.cli.runtime import Runtime
from service.commands.jobs.pull_requests import record_closed
from service.commands.sites import request_index
from service.ports.code_host import PullRequestPage
from service.queries.jobs.jobs import job_changing_pull_request
from service.queries.projects import get_project
from service.queries.read_models import wait_for_head
from service.web.http.problems import metadata_of


class HostedEvents:
    def __init__(self, runtime: Runtime) -> None:
        self._store, self._views = runtime.store, runtime.views

    async def on_pull_request_closed(
        self, project_id: str, page: PullRequestPage, at: datetime, metadata: Metadata
    ) -> None:
        """Record that a person merged or closed it, and index what was merged."""
        await record_closed(self._store, self._views, project_id, page, at, metadata)

    async def changing(self, project_id: str, number: int) -> str | None:
        """Return the id of a job that is under way on a pull request."""
        await wait_for_head(self._store, self._views)
        return await job_changing_pull_request(self._views, project_id, number)

    async def on_push(self, request: web.Request, project_id: str) -> None:
        """Index again: it was perhaps to the branch that the site shows."""
        project = await get_project(self._views, project_id)
        if project is not None:
            await request_index(self._store, project.domain, "a push", metadata_of(request))
