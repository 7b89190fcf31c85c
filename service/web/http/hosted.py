"""The embedded code host's pull requests, as the API, the dashboard and their own pages act on them."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from functools import partial
from typing import NamedTuple

from aiohttp import web

from eventstore import Metadata
from service.commands.jobs.pull_requests import Verb, require_hosted, require_still
from service.ports.bounds import CountBound
from service.ports.code_host import HostedPullRequests, PullRequestPage
from service.queries.jobs.jobs import ReadJob
from service.runtime.shares import Shares
from service.runtime.system import now
from service.views.projects import ProjectView

HOSTED: web.AppKey[HostedPullRequests] = web.AppKey("HOSTED")
PULL_REQUEST_CLOSED: web.AppKey[Callable[[str, PullRequestPage, datetime, Metadata], Awaitable[None]]] = web.AppKey(
    "PULL_REQUEST_CLOSED"
)
"""Called with the project, the page, the time and the actor after every merge and close, repeated ones included."""
PULL_REQUEST_CHANGING: web.AppKey[Callable[[str, int], Awaitable[str | None]]] = web.AppKey("PULL_REQUEST_CHANGING")
"""Returns the id of a job that is under way on a project's pull request, by its number; None while there is none."""
MAKING_SECONDS, MAKING_BYTES = 60.0, 1024 * 1024 * 1024
"""For a page's HTML, on a machine that has much else to do: it takes less than a second."""


class PullRequestAddress(NamedTuple):
    project_id: str
    number: int
    token: str


async def _itself(project_id: str) -> str:
    return project_id


class PageTurns:
    """Shares of the projects whose pull requests and files are looked at: processes at once, one for each project and
    half of all for each organization. Most pages take a tenth of a second.
    """

    def __init__(self, count_bound: CountBound, organization_of: Callable[[str], Awaitable[str]] = _itself) -> None:
        self._shares = Shares(8, (4, 1), waiting=30, seconds=30, on_refused=partial(count_bound, "page_turns"))
        self._organization_of = organization_of

    @asynccontextmanager
    async def slot(self, project_id: str) -> AsyncIterator[None]:
        """Hold a slot. Raises Unavailable, as ``Shares.slot``."""
        async with self._shares.slot(await self._organization_of(project_id), project_id):
            yield


PAGE_TURNS: web.AppKey[PageTurns] = web.AppKey("PAGE_TURNS")


async def act_on_pull_request(
    request: web.Request, address: PullRequestAddress, verb: Verb, metadata: Metadata, *, version: str = ""
) -> PullRequestPage:
    """Merge or close a pull request, and record it for its job; call it in the project's turn.

    ``version`` is that of the page from which it is merged; empty merges what is there.

    Raises: as ``HostedPullRequests`` does, and for a merge as ``require_still`` does.
    """
    hosted, at = request.app[HOSTED], now()
    if verb == "merge":
        require_still(await request.app[PULL_REQUEST_CHANGING](address.project_id, address.number))
        page = await hosted.merge(*address, now=at, version=version)
    else:
        page = await hosted.close(*address, now=at)
    await request.app[PULL_REQUEST_CLOSED](address.project_id, page, at, metadata)
    return page


async def address_of_job(request: web.Request, project: ProjectView, job: ReadJob) -> PullRequestAddress:
    """Return the pull request of a job. Raises Conflict ``no_pull_request``, ``another_code_host``."""
    number = require_hosted(project, job.pull_request_number)
    token = await request.app[HOSTED].token(project.id, number)
    return PullRequestAddress(project.id, number, token)


async def act_on_job(request: web.Request, project: ProjectView, job: ReadJob, verb: Verb, metadata: Metadata) -> None:
    """Merge or close the pull request of a job. Raises as ``address_of_job`` and ``act_on_pull_request`` do."""
    address = await address_of_job(request, project, job)
    async with request.app[PAGE_TURNS].slot(project.id):
        await act_on_pull_request(request, address, verb, metadata)
