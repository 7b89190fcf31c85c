"""A source of an answer: the lines of the repository as they were at the commit that the answer was made from."""

from collections.abc import Sequence

from aiohttp import web

from service.domain.errors import Unavailable
from service.queries.readers.questions import catch_up_questions
from service.views.readers.questions import PassageLineView
from service.web.api.organization.passages import named_source, read_lines
from service.web.api.organization.questions import conversation_of
from service.web.dashboard.page import dashboard_page, record_read
from service.web.dashboard.readers.questions import CONVERSATION_PATH
from service.web.http.access.people import member
from service.web.http.app_keys import STORE, VIEWS

routes = web.RouteTableDef()


@routes.get(CONVERSATION_PATH + "/sources/{messageId}/{number}")
async def show_source(request: web.Request) -> web.Response:
    """Show the cited lines and some around them."""
    viewer = await member(request)
    await catch_up_questions(request.app[STORE], request.app[VIEWS])
    project, thread = await conversation_of(request, viewer.organization_id)
    message, source = named_source(request, thread)
    await record_read(request, viewer, "conversation", {"thread": thread.thread_id})
    lines: Sequence[PassageLineView] = ()
    trouble = ""
    try:
        lines = await read_lines(request, project, source)
    except Unavailable as error:
        trouble = str(error)
    return dashboard_page(
        request,
        viewer,
        "readers/passage.html",
        source=source,
        lines=lines,
        trouble=trouble,
        thread=thread,
        message=message,
    )
