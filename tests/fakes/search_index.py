"""Sites in memory, searched by counting the words of a question: small, and told when to fail."""

import re
from collections.abc import Iterator, Mapping, Sequence

from service.domain.errors import NotFound, ServiceError
from service.domain.search import SearchFilter
from service.domain.sites import Skipped
from service.ports.search_index import NO_FILTER, Explanation, Page, SearchResult, Section
from service.retrieval.readers.markdown import PageSection, ParsedPage, parse_page
from service.retrieval.site.navigation import Site, SitePage
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
        commit, site, parsed = self._site(domain)
        self.queries.append(query)
        words = {word for word in _words(query) if len(word) > 3} or set(_words(query))
        found = []
        for path, page in parsed.items():
            place = site.pages[path]
            for section in page.sections if _allowed(place, filter) else ():
                score = sum(word in words for word in _words(f"{place.title} {section.heading} {section.text}"))
                if score:
                    found.append((score, place, section))
        found.sort(key=lambda item: -item[0])
        best = found[0][0] if found else 1
        sections = tuple(_section(place, each, score / best, explain) for score, place, each in found[:limit])
        return SearchResult(commit, sections, self.instructions)

    async def read_page(self, domain: str, path: str, *, readers: Sequence[str] | None = None) -> Page | None:
        _, site, parsed = self._site(domain)
        found = path if path in site.pages else site.path_of(path)
        groups = site.pages[found].groups if found is not None else ()
        if found is None or (readers is not None and groups and not set(groups) & set(readers)):
            return None
        return Page(found, site.pages[found].url, site.pages[found].title, parsed[found].content)

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
