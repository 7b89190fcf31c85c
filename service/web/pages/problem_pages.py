"""Errors as pages, for people whose browser opened the address, and as parts of pages, for htmx."""

from aiohttp import web

from service.web.http.problems import REQUEST_ID, TITLES
from service.web.pages.html import html_response, way_up
from service.web.pages.manual import explained_errors
from service.web.pages.rendering import rendered


def error_page(request: web.Request, status: int, code: str, detail: str) -> web.Response:
    """Return the page of an error. htmx swaps errors, too, so it is sent one paragraph."""
    html = rendered(
        "problem_part.html" if "HX-Request" in request.headers else "problem.html",
        root=way_up(request),
        title=TITLES.get(status, "Error"),
        status=status,
        code=code,
        detail=detail,
        has_explanation=code in explained_errors(),
        request_id=request.get(REQUEST_ID, ""),
    )
    return html_response(html, status=status)
