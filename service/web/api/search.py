"""The site without the assistant: its search, and its pages as text."""

from typing import Annotated

from aiohttp import web
from msgspec import Meta, Struct

from service.domain.errors import Invalid, NotFound
from service.domain.threads import MAX_PAGE_SIZE, MAX_QUESTION_CHARACTERS, SearchFilter
from service.ports.search_index import Section
from service.web.api.threads import FilterBody
from service.web.http.access import site_for
from service.web.http.app_keys import INDEX
from service.web.http.limits import count_search
from service.web.http.problems import json_response, read_body
from service.web.http.schemas import NOT_BLANK, WHOLE, Reference, described

routes = web.RouteTableDef()

DEFAULT_RESULTS = 10
MAX_RESULT_CHARACTERS = 20_000


class SearchBody(Struct, rename="camel"):
    """What to look for."""

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


class PageBody(Struct):
    """Which page to read."""

    path: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=2_000,
            description="Its path in the repository, as search tells it, or on the site.",
        ),
    ]
    groups: Annotated[
        Annotated[list[Annotated[str, Meta(max_length=200)]], Meta(max_length=100)] | None,
        described("The reader's groups: a page for others is not found."),
    ] = None


class ResultMetadata(Struct, frozen=True, rename="camel"):
    """Where a section is from."""

    title: Annotated[str, described("The page's title.")]
    url: Annotated[Reference, described("Where the section is on the site, anchor included.")]
    score: Annotated[float, described("0 to 1, the best result being 1; to be compared within one answer only.")]
    heading: Annotated[str, described("The section's heading; empty above a page's first one.")]
    heading_path: Annotated[tuple[str, ...], described("The headings that it stands under, the outermost first.")]
    start_line: Annotated[int, described("Where it begins in the file, from 1.")]
    end_line: Annotated[int, described("Where it ends in the file.")]
    commit: Annotated[str, described("The commit of the repository that it was read from.")]


class SearchResult(Struct, frozen=True):
    """A section of a page."""

    content: Annotated[str, described("Its text as Markdown.")]
    path: Annotated[str, described("The page's path in the repository.")]
    metadata: ResultMetadata


class PageMetadata(Struct, frozen=True):
    """Where a page is from."""

    title: Annotated[str, described("The page's title.")]
    url: Annotated[Reference, described("Where it is on the site.")]
    path: Annotated[str, described("Its path in the repository.")]


class PageView(Struct, frozen=True):
    """A page."""

    path: Annotated[str, described("As it was asked for.")]
    content: Annotated[str, described("Its text as Markdown.")]
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
    count_search(request)
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
