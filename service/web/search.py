"""The site without the assistant: its search, and its pages as text."""

from typing import Annotated

from aiohttp import web
from msgspec import Meta, Struct

from service.domain.errors import Invalid, NotFound
from service.domain.threads import MAX_PAGE_SIZE, MAX_QUESTION_CHARACTERS, SearchFilter
from service.ports.search_index import Section
from service.web.access import site_for
from service.web.keys import INDEX
from service.web.problems import json_response, read_body
from service.web.threads import FilterBody

routes = web.RouteTableDef()

DEFAULT_RESULTS = 10
MAX_RESULT_CHARACTERS = 20_000


class SearchBody(Struct, rename="camel"):
    query: Annotated[str, Meta(min_length=1, max_length=MAX_QUESTION_CHARACTERS)]
    page_size: Annotated[float, Meta(ge=1, le=MAX_PAGE_SIZE)] | None = None
    score_threshold: Annotated[float, Meta(ge=0, le=1)] | None = None
    filter: FilterBody | None = None


class PageBody(Struct):
    path: Annotated[str, Meta(min_length=1, max_length=2_000)]
    """In the repository, as search tells it, or on the site."""
    groups: Annotated[list[Annotated[str, Meta(max_length=200)]], Meta(max_length=100)] | None = None
    """Of the reader: a page for others is not found."""


class ResultMetadata(Struct, frozen=True, rename="camel"):
    title: str
    url: str
    """With its anchor."""
    score: float
    """0 .. 1, the best result being 1; comparable within one answer."""
    heading: str
    heading_path: tuple[str, ...]
    start_line: int
    end_line: int
    commit: str


class SearchResult(Struct, frozen=True):
    content: str
    path: str
    metadata: ResultMetadata


class PageMetadata(Struct, frozen=True):
    title: str
    url: str
    path: str
    """In the repository."""


class PageView(Struct, frozen=True):
    path: str
    """As it was asked for."""
    content: str
    metadata: PageMetadata


@routes.post("/discovery/v1/search/{domain}")
async def search(request: web.Request) -> web.Response:
    """Sections, best first; an empty list when no word of the query is on the site."""
    project = await site_for(request)
    body = await read_body(request, SearchBody)
    if not body.query.strip():
        raise Invalid("$.query: is blank", problems=(("$.query", "is blank"),))
    size = DEFAULT_RESULTS if body.page_size is None else body.page_size
    if size != int(size):
        raise Invalid("$.pageSize: is a whole number", problems=(("$.pageSize", "is a whole number"),))
    wanted = body.filter or FilterBody()
    allowed = SearchFilter(wanted.version, wanted.language, wanted.tag, tuple(wanted.groups or ()))
    found = await request.app[INDEX].search(project.domain, body.query, limit=int(size), filter=allowed)
    least = body.score_threshold or 0.0
    return json_response([_result(each, found.commit) for each in found.sections if each.score >= least])


def _result(section: Section, commit: str) -> SearchResult:
    return SearchResult(
        section.text[:MAX_RESULT_CHARACTERS],
        section.path,
        ResultMetadata(
            section.title, section.url, section.score, section.heading, section.heading_path, section.start_line,
            section.end_line, commit,
        ),
    )  # fmt: skip


@routes.post("/discovery/v1/page/{domain}")
async def read_page(request: web.Request) -> web.Response:
    project = await site_for(request)
    body = await read_body(request, PageBody)
    page = await request.app[INDEX].read_page(project.domain, body.path, readers=tuple(body.groups or ()))
    if page is None:
        raise NotFound("There is no such page.", code="page_not_found")
    return json_response(PageView(body.path, page.content, PageMetadata(page.title, page.url, page.path)))
