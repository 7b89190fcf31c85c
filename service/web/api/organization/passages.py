"""A source of an answer: the lines of the repository as they were at the commit that the answer was made from."""

import asyncio

from aiohttp import web

from service.domain.errors import Forbidden, Invalid, NotFound, Unavailable
from service.ports.docs_source import DocsSource
from service.queries.projects import source_of
from service.queries.readers.questions import catch_up_questions
from service.views.projects import ProjectView
from service.views.readers.questions import PassageLineView, PassageView, SourceView, TranscriptMessage, TranscriptView
from service.web.api.assistant.analytics import SOURCE_EXAMPLE
from service.web.api.description.operations import Answer, Routes
from service.web.api.organization.questions import conversation_of
from service.web.http.access.access import admin_key
from service.web.http.app_keys import DOCS_SOURCE, STORE, VIEWS
from service.web.http.hosted import PAGE_TURNS
from service.web.http.problems import json_response

READING_SECONDS = 20.0
"""A commit that the service's copy no longer has is fetched again."""
LINES_AROUND, MAX_LINES, MAX_CHARACTERS = 6, 400, 2_000
"""Lines shown before and after a passage; lines in all; characters of one."""
PASSAGE_EXAMPLE = {
    "source": SOURCE_EXAMPLE,
    "lines": [{"number": 9, "text": "Set `retryDelaySecs` to the number of seconds.", "isCited": True}],
}

routes = Routes()


@routes.operation(
    "GET",
    "/v2/threads/{threadId}/sources/{messageId}/{number}",
    "getSource",
    "Readers",
    "Read a source of an answer",
    {200: Answer("The cited lines and some around them.", PassageView, example=PASSAGE_EXAMPLE)},
    description="As they were at the commit that the answer was made from.",
    errors={404: ("thread_not_found", "source_not_found", "not_found")},
)
async def show_source(request: web.Request) -> web.Response:
    organization_id = (await admin_key(request)).state.organization_id
    await catch_up_questions(request.app[STORE], request.app[VIEWS])
    project, thread = await conversation_of(request, organization_id)
    _, source = named_source(request, thread)
    return json_response(PassageView(source, await read_lines(request, project, source)))


def named_source(request: web.Request, thread: TranscriptView) -> tuple[TranscriptMessage, SourceView]:
    """Return the source of a conversation that the path names, and its message. Raise NotFound."""
    message_id, number = request.match_info["messageId"], request.match_info["number"]
    for message in thread.messages:
        for source in message.sources:
            if (message.id, str(source.number)) == (message_id, number):
                return message, source
    raise NotFound("Source not found. Open it from the conversation.", code="source_not_found")


async def read_lines(request: web.Request, project: ProjectView, source: SourceView) -> tuple[PassageLineView, ...]:
    """Return the cited lines and some around them. Raise Unavailable where the repository cannot be read."""
    try:
        async with asyncio.timeout(READING_SECONDS), request.app[PAGE_TURNS].slot(project.id):
            return await _lines(request.app[DOCS_SOURCE], project, source)
    except (NotFound, Invalid, Forbidden, Unavailable, TimeoutError):
        raise Unavailable(
            "The repository cannot be read at this commit now: it may be out of reach, or the commit was removed."
        ) from None


async def _lines(docs: DocsSource, project: ProjectView, source: SourceView) -> tuple[PassageLineView, ...]:
    """Raise NotFound where the file is not in the commit, and as ``DocsSource`` does."""
    place = source_of(project)
    files = await docs.list_files(place, source.commit)
    blob = next((file.blob for file in files if file.path == source.path), None)
    if blob is None:
        raise NotFound(f"File not found: {source.path}. It may be left out of the index by now.")
    content = await docs.read_file(place, blob)
    return await asyncio.to_thread(_around, content, source)  # of a file of any size


def _around(content: bytes, source: SourceView) -> tuple[PassageLineView, ...]:
    first = max(1, source.start_line - LINES_AROUND)
    last = min(source.end_line + LINES_AROUND, first + MAX_LINES - 1)
    lines = content.decode("utf-8", "replace").splitlines()[first - 1 : last]
    return tuple(
        PassageLineView(number, line[:MAX_CHARACTERS], source.start_line <= number <= source.end_line)
        for number, line in enumerate(lines, start=first)
    )
