"""Send the dashboard's pages, and live fragments of them.

A page works without a script: forms are posted and answered with a redirect to the page that shows the result. htmx
follows a page's live region (``live``) and swaps what comes into it.
"""

import asyncio
import base64
import binascii
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, suppress
from functools import partial

from aiohttp import web
from msgspec import Struct

from service.commands.audit import record_page_read
from service.domain.access.names import is_only_here
from service.ports.bounds import CountBound
from service.runtime.shares import Seats
from service.web.dashboard.navigation import groups_of
from service.web.http.access.cookies import cookies_of, drop_cookie, set_cookie
from service.web.http.access.hosts import service_address
from service.web.http.access.people import Member, SignedIn, metadata, signed_in
from service.web.http.access.revocation import revocation_of
from service.web.http.app_keys import CLOSING, STORE
from service.web.http.live import with_keep_alives
from service.web.http.routes import VISIT
from service.web.pages.html import SCRIPTED_HEADERS, html_response, way_up
from service.web.pages.rendering import rendered

NOTICE_COOKIE = "docsmith-notice"
NOTICE_SECONDS, MAX_NOTICE = 60, 300
"""A notice that no page has shown by then is dropped; characters of it."""
LIVE_HEADERS = {
    **SCRIPTED_HEADERS,
    "Content-Type": "text/event-stream; charset=utf-8",
    "Cache-Control": "no-store, no-transform",
    "X-Accel-Buffering": "no",
}
ENDED = b"event: done\ndata:\n\n"
"""The last event of a live region that has come to its end: ``hx-sse:close="done"`` then stops connecting."""


LIVE_OF_SESSION, LIVE_OF_ORGANIZATION = 32, 256
"""Live regions that are open at once."""
LIVE_SEATS: web.AppKey[Seats] = web.AppKey("LIVE_SEATS")


def live_seats(count_bound: CountBound) -> Seats:
    return Seats((LIVE_OF_ORGANIZATION, LIVE_OF_SESSION), on_refused=partial(count_bound, "live_pages"))


class Live(Struct, frozen=True):
    """A fragment that is swapped into its live region."""

    html: str
    id: str = ""
    """Sent back as ``Last-Event-ID`` when the connection is made again; empty keeps the last one."""


def dashboard_page(
    request: web.Request, viewer: Member | SignedIn, template: str, *, status: int = 200, **values: object
) -> web.Response:
    """Return a page in the frame; the template extends ``dashboard.html``. A notice that waits is shown once."""
    notice = "" if "notice" in values else notice_of(request)
    html = rendered(template, **{"notice": notice, **frame_values(request, viewer), **values})
    response = html_response(html, status=status, headers=SCRIPTED_HEADERS)
    drop_cookie(request, response, NOTICE_COOKIE)
    return response


def frame_values(request: web.Request, viewer: Member | SignedIn) -> dict[str, object]:
    """Return what ``dashboard.html`` shows around a page: navigation, person, organization, the way to the root."""
    person, member = _person_and_member(viewer)
    groups = groups_of(request.app, request.path, person, member)
    return {
        "root": way_up(request),
        "is_only_here": is_only_here(service_address(request)),
        "path": request.path,
        "person": person,
        "member": member,
        "groups": groups,
        "section": next((link for group in groups for link in group.links if link.is_here), None),
    }


async def record_read(request: web.Request, viewer: Member, page: str, chosen: Mapping[str, str]) -> None:
    """Record that a member reads what others typed, before it is shown."""
    filters = {"organization": viewer.organization_id, **chosen}
    await record_page_read(request.app[STORE], viewer.person.session_id, page, filters, metadata(request))


def fragment_html(request: web.Request, template: str, **values: object) -> str:
    """Return the text of a fragment, such as for ``Live``; addresses in it are relative to the request's path."""
    return rendered(template, root=way_up(request), **values)


def root_of_page(request: web.Request) -> str:
    """Return the way to the root from the page whose live region asks: its address is a level above."""
    return way_up(request).removeprefix("../") or "./"


def see_other(request: web.Request, path: str, *, notice: str = "") -> web.Response:
    """Return the redirect after a form was posted, to a path from the root of the service.

    ``notice`` is shown once, on the next page, and must not be secret.
    """
    location = way_up(request) + path.lstrip("/")
    response = web.Response(status=303, headers={"Location": location, "Cache-Control": "no-store"})
    if notice:
        value = base64.urlsafe_b64encode(notice[:MAX_NOTICE].encode()).decode()
        set_cookie(request, response, NOTICE_COOKIE, value, NOTICE_SECONDS)
    return response


async def live(request: web.Request, fragments: AsyncIterator[Live]) -> web.StreamResponse:
    """Send fragments to a live region as they come, until they end, the session ends or the server goes down.

    The region: ``<div hx-sse:connect="ADDRESS" hx-sse:close="done" hx-swap="innerMorph">``. Begin with a fragment of
    the whole region, or go on after the ``Last-Event-ID``, so that nothing is missed between page and connection.

    Where the session or its organization has too many open, the answer is 204, which leaves the page as it is: it is
    then as without a script.
    """
    person = await signed_in(request)
    owners = (request.match_info.get("organizationId", ""), person.session_id)
    with request.app[LIVE_SEATS].seat(*owners, is_used=partial(_is_connected, request)) as has_seat:
        if not has_seat:
            return web.Response(status=204, headers={"Cache-Control": "no-store"})
        return await _sent_live(request, fragments)


def _is_connected(request: web.Request) -> bool:
    """Return whether the page is still there; one that was closed ends with its next keep-alive."""
    return request.transport is not None and not request.transport.is_closing()


async def _sent_live(request: web.Request, fragments: AsyncIterator[Live]) -> web.StreamResponse:
    request[VISIT].is_stream = True
    response = web.StreamResponse(headers=LIVE_HEADERS)
    await response.prepare(request)
    ended = False

    async def watched() -> AsyncGenerator[Live, None]:
        nonlocal ended
        async for one in fragments:
            yield one
        ended = True

    closing: asyncio.Event = request.app[CLOSING]
    with suppress(ConnectionError):  # the page was closed
        async with aclosing(with_keep_alives(watched(), closing, revocation=revocation_of(request))) as heard:
            async for one in heard:
                await response.write(b":\n\n" if one is None else _encoded(one))
        if ended:
            await response.write(ENDED)
        await response.write_eof()
    return response


def _encoded(one: Live) -> bytes:
    lines = [f"id: {one.id}"] if one.id else []
    lines += [f"data: {line}" for line in one.html.splitlines()]
    return ("\n".join(lines) + "\n\n").encode()


def _person_and_member(viewer: Member | SignedIn) -> tuple[SignedIn, Member | None]:
    """Return the person, and the membership where the page is an organization's."""
    if isinstance(viewer, Member):
        return viewer.person, viewer
    return viewer, None


def notice_of(request: web.Request) -> str:
    """Return the notice that the last form left for the next page; empty when there is none."""
    try:
        return base64.urlsafe_b64decode(next(iter(cookies_of(request, NOTICE_COOKIE)), "")).decode()[:MAX_NOTICE]
    except (binascii.Error, ValueError):
        return ""
