"""The site without the assistant: its search, and its pages as text."""

from typing import Annotated

from aiohttp import web
from msgspec import Meta, Struct

from service.domain.errors import Invalid, NotFound
from service.domain.search import SearchFilter, path_on_site
from service.domain.texts.unicode_forms import require_bounded
from service.domain.threads.threads import MAX_PAGE_SIZE, MAX_QUESTION_CHARACTERS
from service.views.fields import described
from service.views.projects import ProjectView
from service.views.search import PageMetadata, PageView, SearchResult, search_result
from service.web.api.assistant.threads import FilterBody
from service.web.api.description.operations import Answer, Routes
from service.web.http.access.access import site_for, trusted_groups
from service.web.http.app_keys import INDEX
from service.web.http.connections.limits import count_briefly
from service.web.http.problems import json_response, read_body
from service.web.http.schemas import NOT_BLANK, WHOLE

SEARCH_EXAMPLE = [
    {
        "content": "Set `retryDelaySecs` to the number of seconds between two tries.",
        "path": "guides/retries",
        "metadata": {
            "title": "Retries",
            "url": "/guides/retries#delay",
            "score": 1.0,
            "heading": "Delay",
            "headingPath": ["Retries", "Delay"],
            "startLine": 9,
            "endLine": 12,
            "file": "guides/retries.md",
            "commit": "9fceb02d0ae598e95dc970b74767f19372d61af8",
        },
    }
]
PAGE_EXAMPLE = {
    "path": "guides/retries",
    "content": "# Retries\n\nA failed job is tried again.\n",
    "metadata": {"title": "Retries", "url": "/guides/retries", "path": "guides/retries", "file": "guides/retries.md"},
}

routes = Routes()

DEFAULT_RESULTS = 10


class SearchBody(Struct, rename="camel"):
    """The words to search for."""

    query: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=MAX_QUESTION_CHARACTERS,
            description="Words, or a question.",
            extra_json_schema=NOT_BLANK,
        ),
    ]
    page_size: Annotated[
        Annotated[float, Meta(ge=1, le=MAX_PAGE_SIZE, extra_json_schema=WHOLE)] | None,
        described(f"How many sections at most; {DEFAULT_RESULTS} when left out."),
    ] = None
    score_threshold: Annotated[
        Annotated[float, Meta(ge=0, le=1)] | None, described("Leaves out sections with a lower `metadata.score`.")
    ] = None
    filter: Annotated[FilterBody | None, described("Only pages that match all of it.")] = None
    prefix: Annotated[
        bool,
        described(
            "For a search as you type: the last word may be the beginning of one, unless a space follows. Meanings are"
            " not compared."
        ),
    ] = False
    highlights: Annotated[bool, described("Adds `metadata.highlights`: where the words that were found stand.")] = False


class PageBody(Struct):
    """Which page to read."""

    path: Annotated[
        str,
        Meta(
            max_length=2_000,
            description="Its path on the site, as search returns it, or in the repository.",
        ),
    ]
    groups: Annotated[
        Annotated[list[Annotated[str, Meta(max_length=200)]], Meta(max_length=100)] | None,
        described("The reader's groups: a page for others is not found."),
    ] = None


@routes.operation(
    "POST",
    "/discovery/v1/search/{domain}",
    "search",
    "Assistant",
    "Search a site",
    {
        200: Answer(
            "Sections, best first; none when no word of the query is on the site.",
            list[SearchResult],
            example=SEARCH_EXAMPLE,
        )
    },
    body=SearchBody,
    body_examples={
        "question": {"query": "How do I retry a failed job?", "pageSize": 5},
        "as you type": {"query": "retry a fai", "prefix": True, "highlights": True},
    },
    errors={404: ("not_indexed",)},
    limited=True,
)
async def search(request: web.Request) -> web.Response:
    """Sections, best first; an empty list when no word of the query is on the site."""
    return await send_results(request, await site_for(request))


async def send_results(request: web.Request, project: ProjectView) -> web.Response:
    """Answer the search of a request that may ask this site."""
    body = await read_body(request, SearchBody, mends_text=True)
    if not body.query.strip():
        raise Invalid("$.query: is blank", problems=(("$.query", "is blank"),))
    require_bounded(body.query, "$.query")
    size = DEFAULT_RESULTS if body.page_size is None else body.page_size
    if size != int(size):
        raise Invalid("$.pageSize: is a whole number", problems=(("$.pageSize", "is a whole number"),))
    wanted = body.filter or FilterBody()
    allowed = SearchFilter(wanted.version, wanted.language, wanted.tag, trusted_groups(request, wanted.groups))
    await count_briefly(request)
    found = await request.app[INDEX].search(
        project.domain, body.query, limit=int(size), filter=allowed, prefix=body.prefix, highlight=body.highlights
    )
    least = body.score_threshold or 0.0
    return json_response([search_result(each, found.commit) for each in found.sections if each.score >= least])


@routes.operation(
    "POST",
    "/discovery/v1/page/{domain}",
    "readPage",
    "Assistant",
    "Read a page of a site",
    {200: Answer("The page as Markdown.", PageView, example=PAGE_EXAMPLE)},
    body=PageBody,
    body_examples={"page": {"path": "guides/retries"}},
    errors={404: ("page_not_found", "not_indexed")},
)
async def read_page(request: web.Request) -> web.Response:
    project = await site_for(request)
    body = await read_body(request, PageBody, mends_text=True)
    await count_briefly(request)
    groups = trusted_groups(request, body.groups)
    page = await request.app[INDEX].read_page(project.domain, body.path or "/", readers=groups)
    if page is None:
        raise NotFound("Page not found. Take the path of a search result.", code="page_not_found")
    metadata = PageMetadata(page.title, page.url, path_on_site(page.url), page.path)
    return json_response(PageView(body.path, page.content, metadata))
