"""The tools that read a site: search its sections, fetch a page.

Their shapes are those that ChatGPT asks of data sources (developers.openai.com, "Building MCP servers"): ``search``
takes a query and returns ids, titles and addresses; ``fetch`` takes an id and returns the text.
"""

from typing import Annotated

import structlog
from msgspec import Meta, Struct

from eventstore import StoreUnavailable
from service.commands.threads import record_empty_search
from service.domain.errors import Invalid, NotFound, RateLimited
from service.domain.search import SearchFilter
from service.domain.texts.unicode_forms import require_bounded
from service.domain.threads.threads import MAX_QUESTION_CHARACTERS
from service.ports.search_index import Page, Section
from service.views.fields import described
from service.views.projects import ProjectView
from service.web.http.access.access import CALLER
from service.web.http.app_keys import INDEX
from service.web.http.connections.limits import attach_question_quota, count_search, metered_store
from service.web.http.problems import metadata_of
from service.web.http.site_addresses import reading_address
from service.web.mcp.ask import question_of
from service.web.mcp.tools import Call, Tools

log = structlog.get_logger()

RESULTS = 10
MAX_ID_CHARACTERS = 2_000
MAX_TEXT_CHARACTERS = 100_000
"""Characters of a page that one answer holds: more than a model reads at once."""

tools: Tools[ProjectView] = Tools()


class SearchArguments(Struct, forbid_unknown_fields=True):
    query: Annotated[str, Meta(min_length=1, max_length=MAX_QUESTION_CHARACTERS, description="Words, or a question.")]


class FoundSection(Struct, frozen=True):
    id: Annotated[str, described("The id to give to `fetch`.")]
    title: Annotated[str, described("The page's title, and the section's heading.")]
    url: Annotated[str, described("The address to cite.")]


class SearchAnswer(Struct, frozen=True):
    results: Annotated[list[FoundSection], described("Best first; empty when no word of the query is on the site.")]


class FetchArguments(Struct, forbid_unknown_fields=True):
    id: Annotated[
        str,
        Meta(min_length=1, max_length=MAX_ID_CHARACTERS, description="The `id` of a search result, or a page's path."),
    ]


class FetchedMetadata(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Where a text is from, so that a citation of it can be checked later."""

    file: Annotated[str, described("The path of its file in the repository.")]
    commit: Annotated[str, described("The commit that it was read from.")]
    start_line: Annotated[int, described("The first line of the section that the id names, or of the page.")]
    end_line: Annotated[int, described("Its last line.")]
    heading: Annotated[str, described("The heading of that section.")] = ""
    cut: Annotated[bool, described("The page is longer than its text here.")] = False


class FetchedPage(Struct, frozen=True):
    id: Annotated[str, described("The id that was asked for.")]
    title: Annotated[str, described("The page's title.")]
    text: Annotated[str, described("The page as Markdown.")]
    url: Annotated[str, described("The address to cite.")]
    metadata: FetchedMetadata


@tools.tool("search", "Search the documentation", reads=True)
async def search(call: Call[ProjectView], arguments: SearchArguments) -> SearchAnswer:
    """Search this documentation by words or a question. Returns the sections that match best, each with an id for
    `fetch`.
    """
    if not arguments.query.strip():
        raise Invalid("The query is blank. Send words, or a question.")
    require_bounded(arguments.query, "query")
    await count_search(call.request, call.request.get(CALLER), call.scope)
    found = await call.request.app[INDEX].search(
        call.scope.domain, arguments.query, limit=RESULTS, filter=SearchFilter()
    )
    if not found.sections:
        await _record_gap(call, arguments.query)
    return SearchAnswer([_found(call, section) for section in found.sections])


@tools.tool("fetch", "Read a page", reads=True)
async def fetch(call: Call[ProjectView], arguments: FetchArguments) -> FetchedPage:
    """Read a page of this documentation as Markdown, by the id of a search result or by the page's path."""
    await count_search(call.request, call.request.get(CALLER), call.scope)
    page = await call.request.app[INDEX].read_page(call.scope.domain, arguments.id, readers=())
    if page is None:
        raise NotFound(f"Page not found: {arguments.id[:200]}. Take the id of a search result.")
    return _fetched(call, page, arguments.id)


async def _record_gap(call: Call[ProjectView], query: str) -> None:
    """Record an empty search as a question without an answer, which it then counts as, too: authors look there for what
    the documentation lacks. One that cannot be counted or recorded is still a search.
    """
    request = call.request
    try:
        attach_question_quota(request, request.get(CALLER), call.scope)
        await record_empty_search(metered_store(request), call.scope, question_of(call, query), metadata_of(request))
    except (RateLimited, StoreUnavailable) as error:
        log.info("search not recorded", reason=type(error).__name__)


def _found(call: Call[ProjectView], section: Section) -> FoundSection:
    names = dict.fromkeys(name for name in (section.title, section.heading) if name)
    address = reading_address(call.request, call.scope, section.url)
    return FoundSection(section.url, ": ".join(names) or section.url, address)


def _fetched(call: Call[ProjectView], page: Page, asked: str) -> FetchedPage:
    anchor = asked.partition("#")[2]
    named = next((one for one in page.sections if anchor and one.url.partition("#")[2] == anchor), None)
    sections = [one for one in page.sections if one.path == page.path] if named is None else [named]
    metadata = FetchedMetadata(
        page.path if named is None else named.path,
        page.commit,
        sections[0].start_line if sections else 1,
        sections[-1].end_line if sections else 1,
        "" if named is None else named.heading,
        len(page.content) > MAX_TEXT_CHARACTERS,
    )
    address = reading_address(call.request, call.scope, page.url if named is None else named.url)
    return FetchedPage(asked, page.title, _part(page, named), address, metadata)


def _part(page: Page, named: Section | None) -> str:
    """Return the page, or as much as one answer holds: from the section that was asked for, where that comes later."""
    begin = 0
    if named is not None and len(page.content) > MAX_TEXT_CHARACTERS:
        begin = max(page.content.find(named.text), 0)
        begin = begin if begin + len(named.text) > MAX_TEXT_CHARACTERS else 0
    return page.content[begin : begin + MAX_TEXT_CHARACTERS]
