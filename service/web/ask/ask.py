"""``/ask/{domain}``: the assistant of a site as readers have it, and the requests that its page makes.

The requests are those of the assistant's API for who may open the page: a session opens no other address of the API.
Without a script the page searches.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence

from aiohttp import web
from markupsafe import Markup
from msgspec import Struct

from service.domain.errors import NotFound, RateLimited
from service.domain.search import SearchFilter
from service.domain.threads.threads import MAX_QUESTION_CHARACTERS
from service.queries.payments import answering
from service.views.projects import ProjectView
from service.web.api.assistant.feedback import record_feedback
from service.web.api.assistant.resumes import send_resumed, stop_answer
from service.web.api.assistant.threads import send_answer
from service.web.api.search import send_results
from service.web.ask.site_pages import page_link, pages_base, reader_groups
from service.web.ask.sites import site_to_ask
from service.web.ask.texts import preferred_language, texts_in
from service.web.http.access.access import KEYLESS, trusted_groups
from service.web.http.access.people import known_person
from service.web.http.app_keys import COST_BOUNDS, INDEX, MODELS
from service.web.http.connections.limits import count_briefly
from service.web.http.problems import ACTOR
from service.web.http.query_params import query_param
from service.web.pages.html import SCRIPTED_HEADERS, html_response, way_up
from service.web.pages.rendering import rendered, safe_markdown

MAX_RESULTS = 8
MAX_PASSAGE = 500
"""Characters of a section that the page shows without a script."""

_LINK = re.compile(r"(?<!!)\[([^\[\]\n]{0,300})\]\([^()\s]{0,500}\)")

routes = web.RouteTableDef()


class Found(Struct, frozen=True):
    """A section that a search without a script found."""

    title: str
    heading: str
    address: str
    """The address of its page, for a link."""
    html: Markup


@routes.get("/ask/{domain}")
async def show_page(request: web.Request) -> web.Response:
    query = (query_param(request, "q") or "").strip()[:MAX_QUESTION_CHARACTERS]
    project = await site_to_ask(request, counts="search" if query else "")
    language = preferred_language(request.headers.get("Accept-Language", ""))
    texts = texts_in(language)
    groups = await reader_groups(request, project)
    chosen = [group for group in groups if group in request.query.getall("group", [])]
    found, problem = await _found(request, project, query, texts, chosen) if query else (None, "")
    html = rendered(
        "ask.html",
        root=way_up(request),
        domain=project.domain,
        name=project.name,
        organization_id="" if request.get(ACTOR) == KEYLESS else project.organization_id,
        pages=pages_base(request, project),
        answered_by=await answering(
            request.app[MODELS], request.app[COST_BOUNDS](), is_public=request.get(ACTOR) == KEYLESS
        ),
        person=known_person(request),
        reader=_reader_mark(request),
        language=language,
        texts=texts,
        query=query,
        found=found,
        problem=problem,
        groups=groups,
        chosen_groups=chosen,
    )
    return html_response(html, headers=SCRIPTED_HEADERS)


def _reader_mark(request: web.Request) -> str:
    """Return a mark of the person, by which the page notices another one; empty where no one is signed in."""
    person = known_person(request)
    return hashlib.sha256(f"reader {person.person_id}".encode()).hexdigest()[:32] if person is not None else ""


async def _found(
    request: web.Request, project: ProjectView, query: str, texts: Mapping[str, str], groups: Sequence[str]
) -> tuple[list[Found] | None, str]:
    """Return the sections for a query, or None and the reason in words."""
    try:
        await count_briefly(request)
        allowed = SearchFilter(groups=trusted_groups(request, groups))
        found = await request.app[INDEX].search(project.domain, query, limit=MAX_RESULTS, filter=allowed)
    except NotFound:
        return None, texts["errorUnavailable"]
    except RateLimited:
        return None, texts["errorTooMany"]
    return [
        Found(one.title, one.heading, page_link(request, project, one.url), _beginning(one.text))
        for one in found.sections
    ], ""


def _beginning(markdown: str) -> Markup:
    """Return the beginning of a section, up to the end of a word, as HTML without links: those of a page are on it."""
    text = markdown if len(markdown) <= MAX_PASSAGE else markdown[:MAX_PASSAGE].rpartition(" ")[0] + " …"
    return safe_markdown(_LINK.sub(r"\1", text))


@routes.post("/ask/{domain}/message")
async def ask(request: web.Request) -> web.StreamResponse:
    return await send_answer(request, await site_to_ask(request, counts="question"))


@routes.get("/ask/{domain}/message/{chatId}/stream", allow_head=False)
async def resume(request: web.Request) -> web.StreamResponse:
    return await send_resumed(request, await site_to_ask(request))


@routes.post("/ask/{domain}/message/{chatId}/stop")
async def stop(request: web.Request) -> web.Response:
    return await stop_answer(request, await site_to_ask(request))


@routes.post("/ask/{domain}/search")
async def search(request: web.Request) -> web.Response:
    return await send_results(request, await site_to_ask(request, counts="search"))


@routes.post("/ask/{domain}/feedback")
async def rate(request: web.Request) -> web.Response:
    return await record_feedback(request, await site_to_ask(request))
