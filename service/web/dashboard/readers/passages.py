"""A source of an answer: the lines of the repository as they were at the commit that the answer was made from."""

import asyncio

from aiohttp import web
from msgspec import Struct

from service.domain.errors import Forbidden, Invalid, NotFound, Unavailable
from service.ports.docs_source import DocsSource
from service.queries.projects import source_of
from service.queries.questions import catch_up_questions
from service.views.projects import ProjectView
from service.views.questions import SourceView
from service.web.dashboard.page import dashboard_page, record_read
from service.web.dashboard.readers.questions import CONVERSATION_PATH, find_conversation
from service.web.http.app_keys import DOCS_SOURCE, STORE, VIEWS
from service.web.http.hosted import PAGE_TURNS
from service.web.http.people import member

READING_SECONDS = 20.0
"""A commit that the service's copy no longer has is fetched again."""
LINES_AROUND, MAX_LINES, MAX_CHARACTERS = 6, 400, 2_000
"""Lines shown before and after a passage; lines in all; characters of one."""

routes = web.RouteTableDef()


class Line(Struct, frozen=True):
    number: int
    text: str
    is_cited: bool


@routes.get(CONVERSATION_PATH + "/sources/{messageId}/{number}")
async def show_source(request: web.Request) -> web.Response:
    """Show the cited lines and some around them."""
    viewer = await member(request)
    await catch_up_questions(request.app[STORE], request.app[VIEWS])
    project, thread = await find_conversation(request, viewer)
    number = request.match_info["number"]
    message = next((one for one in thread.messages if one.id == request.match_info["messageId"]), None)
    source = next((one for one in message.sources if str(one.number) == number), None) if message else None
    if source is None:
        raise NotFound("Source not found. Open it from the conversation.")
    await record_read(request, viewer, "conversation", {"thread": thread.thread_id})
    lines: list[Line] = []
    trouble = ""
    try:
        async with asyncio.timeout(READING_SECONDS), request.app[PAGE_TURNS].slot(project.id):
            lines = await _lines(request.app[DOCS_SOURCE], project, source)
    except (NotFound, Invalid, Forbidden, Unavailable, TimeoutError):
        trouble = "The repository cannot be read at this commit now: it may be out of reach, or the commit was removed."
    return dashboard_page(
        request, viewer, "passage.html", source=source, lines=lines, trouble=trouble, thread=thread, message=message
    )


async def _lines(docs: DocsSource, project: ProjectView, source: SourceView) -> list[Line]:
    """Raise NotFound where the file is not in the commit, and as ``DocsSource`` does."""
    place = source_of(project)
    files = await docs.list_files(place, source.commit)
    blob = next((file.blob for file in files if file.path == source.path), None)
    if blob is None:
        raise NotFound(f"File not found: {source.path}. It may be left out of the index by now.")
    content = await docs.read_file(place, blob)
    return await asyncio.to_thread(_around, content, source)  # of a file of any size


def _around(content: bytes, source: SourceView) -> list[Line]:
    first = max(1, source.start_line - LINES_AROUND)
    last = min(source.end_line + LINES_AROUND, first + MAX_LINES - 1)
    return [
        Line(number, line[:MAX_CHARACTERS], source.start_line <= number <= source.end_line)
        for number, line in enumerate(content.decode("utf-8", "replace").splitlines()[first - 1 : last], start=first)
    ]
