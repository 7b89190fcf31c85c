"""The embedded code host's pages: a pull request to read, merge or close, without an account and without a script.

Whoever has the address may act: its token is the capability, and nothing else is asked for. A form posted from another
site is refused all the same.
"""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Protocol
from urllib.parse import urlsplit

from aiohttp import web
from msgspec import Struct

from service.domain.errors import Conflict, NotFound
from service.ports.code_host import Diffed, HostedPullRequests, PullRequestPage
from service.web.diffs import Hunk, read_patch
from service.web.pages import asset, html_page, message_page

HOSTED: web.AppKey[HostedPullRequests] = web.AppKey("HOSTED")
PULL_REQUEST_CLOSED: web.AppKey[Callable[[str, PullRequestPage, datetime], Awaitable[None]]] = web.AppKey(
    "PULL_REQUEST_CLOSED"
)
"""Told the project, the page and the time after every merge and close, repeated ones included."""

OPEN_AT_MOST = 400
"""A file with more changed lines than this is folded at first."""

PATH = r"/hosted/{project_id}/pulls/{number:\d{1,9}}-{token}"

routes = web.RouteTableDef()
routes.get("/assets/{name}")(asset)


class FileView(Struct, frozen=True):
    """A file of the diff as the template shows it."""

    anchor: str
    diffed: Diffed
    hunks: list[Hunk]
    folded: bool


@routes.get(PATH)
async def show(request: web.Request) -> web.Response:
    try:
        page = await request.app[HOSTED].page(*_address(request))
    except NotFound:
        return _nothing_here(request)
    return _shown(request, page)


@routes.post(PATH + "/merge")
async def merge(request: web.Request) -> web.Response:
    return await _act(request, request.app[HOSTED].merge)


@routes.post(PATH + "/close")
async def close(request: web.Request) -> web.Response:
    return await _act(request, request.app[HOSTED].close)


class Act(Protocol):
    """``merge`` or ``close`` of the port."""

    async def __call__(self, project_id: str, number: int, token: str, *, now: datetime) -> PullRequestPage: ...


async def _act(request: web.Request, act: Act) -> web.Response:
    if not _from_our_own_page(request):
        return message_page(
            request,
            status=403,
            title="Not from here",
            text="This was asked for by another site. Open the pull request itself and press the button there.",
        )
    project_id, number, token = _address(request)
    now = datetime.now(UTC)
    try:
        page = await act(project_id, number, token, now=now)
    except NotFound:
        return _nothing_here(request)
    except Conflict as refusal:
        page = await request.app[HOSTED].page(project_id, number, token)
        return _shown(request, page, status=409, refusal=str(refusal))
    await request.app[PULL_REQUEST_CLOSED](project_id, page, now)
    raise web.HTTPSeeOther(f"../{number}-{token}", headers={"Cache-Control": "no-store"})


def _address(request: web.Request) -> tuple[str, int, str]:
    """Project, number and token."""
    parts = request.match_info
    return parts["project_id"], int(parts["number"]), parts["token"]


def _from_our_own_page(request: web.Request) -> bool:
    """Browsers say where a form came from: in Sec-Fetch-Site over HTTPS and on localhost, else in Origin.

    The scheme is not compared: behind a proxy we do not know the outer one. A caller that sends neither is no browser,
    and has the token.
    """
    site = request.headers.get("Sec-Fetch-Site")
    if site is not None:
        return site in ("same-origin", "none")
    origin = request.headers.get("Origin")
    return origin is None or urlsplit(origin).netloc == request.host


def _nothing_here(request: web.Request) -> web.Response:
    return message_page(
        request,
        status=404,
        title="Nothing here",
        text="There is no pull request at this address. Check that the link is whole, down to its last character.",
    )


def _shown(request: web.Request, page: PullRequestPage, *, status: int = 200, refusal: str = "") -> web.Response:
    files = [
        FileView(f"file-{place}", file, read_patch(file.patch), folded=file.added + file.removed > OPEN_AT_MOST)
        for place, file in enumerate(page.files, start=1)
    ]
    return html_page(
        request,
        "pull_request.html",
        status=status,
        page=page,
        pull_request=page.pull_request,
        files=files,
        added=sum(file.added for file in page.files),
        removed=sum(file.removed for file in page.files),
        refusal=refusal,
        actions="" if request.method in ("GET", "HEAD") else "../",
        name=f"{page.pull_request.number}-{request.match_info['token']}",
    )
