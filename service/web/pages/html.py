"""HTML pages: the headers that every page carries, and how they are sent (how they are made: rendering.py).

Pages that show the text of others to anyone load no script, so their policy allows none: a hole in the escaping would
find nothing to run. The dashboard's pages, and those of pull requests for members, load scripts of this service and
nothing inline. No page loads anything from
elsewhere. Addresses inside a page are relative, so that it works behind a proxy that adds a path of its own.
"""

from collections.abc import Mapping

from aiohttp import web

from service.web.pages.assets import find_asset
from service.web.pages.rendering import rendered

SECURITY_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; img-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    # Tells other sites nothing of the address. Not "no-referrer": browsers then send "Origin: null" with our own forms
    # (Fetch, "append a request Origin header"), and over plain HTTP they send no Sec-Fetch-Site to go by instead.
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "X-Robots-Tag": "noindex, nofollow",
}

SCRIPTED_HEADERS = {
    **SECURITY_HEADERS,
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
}
"""For pages that scripts of ours bring to life: only files of this service run, and only this service is called."""


async def asset(request: web.Request) -> web.Response:
    """The handler of ``/assets/{name}``: a style sheet, picture or script of this service.

    Its address changes with its content, so it may be kept for good.
    """
    found = find_asset(request.match_info["name"])
    if found is None:
        raise web.HTTPNotFound
    current = request.query.get("v") == found.version
    return web.Response(
        body=found.body,
        content_type=found.content_type,
        charset="utf-8",
        headers={
            **SECURITY_HEADERS,
            "Cache-Control": "public, max-age=31536000, immutable" if current else "no-cache",
        },
    )


def html_page(request: web.Request, template: str, *, status: int = 200, **values: object) -> web.Response:
    return html_response(rendered(template, root=way_up(request), **values), status=status)


def html_response(html: str, *, status: int = 200, headers: Mapping[str, str] = SECURITY_HEADERS) -> web.Response:
    """A page that no cache keeps: what it shows is for those who know its address."""
    return web.Response(
        text=html,
        status=status,
        content_type="text/html",
        charset="utf-8",
        headers={**headers, "Cache-Control": "no-store"},
    )


def message_page(
    request: web.Request, *, status: int, title: str, text: str, headers: Mapping[str, str] = SECURITY_HEADERS
) -> web.Response:
    """A page that says one thing."""
    html = rendered("message.html", root=way_up(request), title=title, text=text)
    return html_response(html, status=status, headers=headers)


def way_up(request: web.Request) -> str:
    """Return the relative path from the page's address to the root of the service."""
    return "../" * (request.path.count("/") - 1) or "./"
