"""Sites in memory, searched by counting the words of a question: small, and told when to fail."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence

from service.domain.errors import NotFound, ServiceError
from service.domain.search import SearchFilter, Source
from service.domain.sites import Skipped
from service.ports.search_index import (
    NO_FILTER,
    Explanation,
    ListedPage,
    Material,
    MaterialRequest,
    OtherPages,
    Page,
    PageList,
    PageName,
    SearchResult,
    Section,
    SiteLinks,
)
from service.retrieval.material.filling import MAX_SECTIONS_A_PAGE, Piece, fill
from service.retrieval.material.gathering import same_section
from service.retrieval.readers.markdown import PageSection, ParsedPage, parse_page
from service.retrieval.site.navigation import Site, SitePage
from service.retrieval.site.page_addresses import AddressedPage, PageAddresses
from tests.fakes.sites import read_site


class FakeSearchIndex:
    """``put`` a site, then ask."""

    def __init__(self) -> None:
        self.errors: list[ServiceError] = []  # raised by the next calls, first to last
        self.queries: list[str] = []
        self.instructions = ""  # of every site's owner
        self._sites: dict[str, tuple[str, Site, dict[str, ParsedPage]]] = {}

    def put(self, domain: str, pages: Mapping[str, str], *, commit: str = "0" * 40) -> None:
        """``pages`` by path in the repository, as Markdown."""
        files = {path: text.encode() for path, text in pages.items()}
        site = read_site(files)
        parsed = {path: page for path in site.pages if not isinstance(page := parse_page(files[path], path), Skipped)}
        self._sites[domain] = commit, site, parsed

    async def search(
        self,
        domain: str,
        query: str,
        *,
        limit: int = 10,
        filter: SearchFilter = NO_FILTER,  # noqa: A002
        current_path: str = "",
        explain: bool = False,
    ) -> SearchResult:
        commit, _, _ = self._site(domain)
        self.queries.append(query)
        found = self._scored(domain, query, filter)
        best = found[0][0] if found else 1
        sections = tuple(_section(place, each, score / best, explain) for score, place, each in found[:limit])
        return SearchResult(commit, sections, self.instructions)

    async def find_material(self, domain: str, request: MaterialRequest) -> Material:
        commit, site, parsed = self._site(domain)
        self.queries.extend(request.queries)
        scores: dict[tuple[str, int], float] = {}
        for query in request.queries:
            found = self._scored(domain, query, request.filter)
            for score, place, section in found:
                key = (place.path, section.start_line)
                scores[key] = max(scores.get(key, 0.0), score / found[0][0])
        whole = self._readable(domain, request.whole_page, request.filter.groups) if request.whole_page else None
        expected = {
            path for path in parsed if {path, site.pages[path].title} & {*request.pages}
            and self._readable(domain, path, request.filter.groups)
        }  # fmt: skip
        matched = {path for path, _ in scores} | ({whole} - {None}) | expected
        pages = [path for path in parsed if path in matched]
        pieces = [
            Piece(
                number << 16 | at, number, _section(site.pages[path], section, 0.0, False),
                max((score for (one, _), score in scores.items() if one == path), default=0.9),
                (scores.get((path, section.start_line), 0.0),), (path, section.start_line) in request.known,
                is_expected=path in expected,
            )
            for number, path in enumerate(pages)
            for at, section in enumerate(parsed[path].sections)
        ]  # fmt: skip
        sections = fill(
            pieces, request.budget_tokens, most=MAX_SECTIONS_A_PAGE * request.page_size,
            first_page=pages.index(whole) if whole is not None else -1, few=request.page_size,
        )  # fmt: skip
        return Material(commit, sections, self.instructions, coverage=1.0 if scores else 0.0)

    async def sections_at(
        self, domain: str, sources: Sequence[Source], *, readers: Sequence[str] | None = None
    ) -> tuple[Section | None, ...]:
        commit, site, parsed = self._site(domain)
        found: list[Section | None] = []
        for source in sources:
            path = self._readable(domain, source.path, readers)
            sections = [] if path is None else [_section(site.pages[path], one, 0.0, False)
                                                for one in parsed[path].sections]  # fmt: skip
            found.append(same_section(sections, source, commit))
        return tuple(found)

    def _readable(self, domain: str, path: str, readers: Sequence[str] | None) -> str | None:
        _, site, _ = self._sites[domain]
        found = path if path in site.pages else site.path_of(path)
        groups = site.pages[found].groups if found is not None else ()
        return None if found is None or (readers is not None and groups and not set(groups) & set(readers)) else found

    def _scored(
        self,
        domain: str,
        query: str,
        filter: SearchFilter,  # noqa: A002
    ) -> list[tuple[int, SitePage, PageSection]]:
        _, site, parsed = self._sites[domain]
        words = {word for word in _words(query) if len(word) > 3} or set(_words(query))
        found = []
        for path, page in parsed.items():
            place = site.pages[path]
            for section in page.sections if _allowed(place, filter) else ():
                score = sum(word in words for word in _words(f"{place.title} {section.heading} {section.text}"))
                if score:
                    found.append((score, place, section))
        found.sort(key=lambda item: -item[0])
        return found

    async def links(self, domain: str) -> SiteLinks:
        _, site, _ = self._site(domain)
        return PageAddresses(
            AddressedPage(page.url, page.path, json.dumps(sorted(page.anchors)), frozenset(page.groups))
            for page in site.pages.values()
        )

    async def pages_besides(self, domain: str, paths: Sequence[str], *, limit: int) -> OtherPages:
        _, site, _ = self._site(domain)
        others = [page for path, page in site.pages.items() if path not in paths]
        return OtherPages(len(others), tuple(PageName(page.path, page.url, page.title) for page in others[:limit]))

    async def read_page(self, domain: str, path: str, *, readers: Sequence[str] | None = None) -> Page | None:
        commit, site, parsed = self._site(domain)
        found = self._readable(domain, path, readers)
        if found is None:
            return None
        place = site.pages[found]
        sections = tuple(_section(place, section, 0.0, False) for section in parsed[found].sections)
        return Page(found, place.url, place.title, parsed[found].content, sections, commit)

    async def reader_groups(self, domain: str) -> Sequence[str]:
        _, site, _ = self._site(domain)
        return sorted({group.casefold() for page in site.pages.values() for group in page.groups})[:100]

    async def list_pages(self, domain: str, *, readers: Sequence[str] | None = None) -> PageList:
        commit, site, parsed = self._site(domain)
        return PageList(
            commit,
            tuple(
                ListedPage(
                    path,
                    page.url,
                    page.title,
                    parsed[path].description,
                    is_main=page.is_default and page.language in ("", "en"),
                )
                for path, page in site.pages.items()
                if self._readable(domain, path, readers)
            ),
        )

    async def read_pages(
        self, domain: str, paths: Sequence[str], *, readers: Sequence[str] | None = None
    ) -> tuple[Page | None, ...]:
        return tuple([await self.read_page(domain, path, readers=readers) for path in paths])

    def _site(self, domain: str) -> tuple[str, Site, dict[str, ParsedPage]]:
        if self.errors:
            raise self.errors.pop(0)
        if domain not in self._sites:
            raise NotFound("This site has not been indexed yet.", code="not_indexed")
        return self._sites[domain]


def _words(text: str) -> Iterator[str]:
    return (match[0] for match in re.finditer(r"[^\W_]+", text.casefold()))


def _allowed(page: SitePage, wanted: SearchFilter) -> bool:
    return (
        (not wanted.version or page.version in ("", wanted.version))
        and (not wanted.language or page.language in ("", wanted.language))
        and (not wanted.tag or wanted.tag in page.tags)
        and (not page.groups or bool(set(page.groups) & set(wanted.groups)))
    )


def _section(page: SitePage, section: PageSection, score: float, explain: bool) -> Section:
    return Section(
        path=page.path,
        url=f"{page.url}#{section.anchor}" if section.anchor else page.url,
        title=page.title,
        heading=section.heading,
        heading_path=section.heading_path,
        text=section.text,
        start_line=section.start_line,
        end_line=section.end_line,
        score=score,
        explanation=Explanation(score, body=score, words=("counted",)) if explain else None,
    )
