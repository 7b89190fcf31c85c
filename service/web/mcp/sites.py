"""``POST /mcp/{domain}``: a site's documentation, for any agent that speaks the Model Context Protocol.

Who may call it is who may search: callers with an assistant key of the site, and everyone where it is public. A page
that calls it from a browser must be of a listed website, which also stops pages whose name was made to point here.
Pages that are restricted to groups of readers are in no answer: what a model claims to be is no proof.
"""

from aiohttp import web

from service.views.projects import ProjectView
from service.web.http.access.access import CALLER, is_keyless, site_for
from service.web.http.connections.limits import count_search
from service.web.mcp import ask, search
from service.web.mcp.dispatch import Server, answer
from service.web.mcp.resources import SitePages
from service.web.mcp.tools import Tools

INSTRUCTIONS = (
    "The documentation of {name}. Search it before you answer a question about {name}, fetch the pages that you use,"
    " and cite their addresses."
)

routes = web.RouteTableDef()
TOOLS: Tools[ProjectView] = Tools()
PAGES = SitePages()
for _module in (search, ask):
    TOOLS.include(_module.tools)


@routes.post("/mcp/{domain}")
async def serve(request: web.Request) -> web.StreamResponse:
    project = await site_for(request)
    name = project.name or project.domain
    server = Server(f"{name} documentation", INSTRUCTIONS.format(name=name), TOOLS, PAGES, _may_cancel)
    return await answer(request, server, project, cache_scope="public" if is_keyless(request) else "private")


async def _may_cancel(request: web.Request, project: ProjectView) -> bool:
    """Return whether a caller may cancel a call by a message, which counts as a search: each other instance is asked.

    Callers without a key share an address and a client's name, so a call that fits could be another's. Their calls end
    with their connections.
    """
    if is_keyless(request):
        return False
    await count_search(request, request.get(CALLER), project)
    return True
