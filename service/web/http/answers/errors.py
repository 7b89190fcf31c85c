"""A page for every error code, at the address that a problem's ``type`` names: its section of the manual."""

from aiohttp import web

from service.web.pages.html import html_page
from service.web.pages.manual import explained_errors

routes = web.RouteTableDef()


@routes.get("/docs/errors/{code}")
async def explain(request: web.Request) -> web.Response:
    code = request.match_info["code"]
    explained = explained_errors().get(code)
    if explained is None:
        raise web.HTTPNotFound
    return html_page(request, "error.html", title=explained.title, html=explained.html, code=code)
