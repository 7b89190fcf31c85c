"""The result of the search step as a client reads it, and the sources that go with it.

The shape is ``{"type": "search", "results": [...]}``. Readers of it in public code disagree: some take ``path`` and
``metadata.title`` of a result, as the search endpoint gives them, others ``url`` and ``title``. Each result has both.
They link to the site's address, a slash and ``path``: it is the page's path on the site, and ``metadata.file`` is the
one in the repository.
"""

from collections.abc import Iterable, Iterator

from msgspec import Struct

from service.domain.search import Source, path_on_site
from service.domain.threads.replies import SearchHit

SEARCH = "search"
"""The tool's name in both protocols."""
MAX_NEW_PAGES = 10
"""Pages of one search that a client gets as sources."""


class ResultMetadata(Struct, frozen=True):
    title: str
    url: str
    score: float
    file: str


class Result(Struct, frozen=True):
    number: int
    content: str
    path: str
    url: str
    title: str
    heading: str
    metadata: ResultMetadata


class SearchOutput(Struct, frozen=True, tag=SEARCH):
    results: tuple[Result, ...]


class SearchInput(Struct, frozen=True):
    query: str


def search_output(hits: Iterable[SearchHit]) -> SearchOutput:
    return SearchOutput(
        tuple(
            Result(
                hit.number, hit.content, path_on_site(hit.url), hit.url, hit.title, hit.heading,
                ResultMetadata(hit.title, hit.url, hit.score, hit.path),
            )
            for hit in hits
        )
    )  # fmt: skip


def new_pages(sources: Iterable[Source], told: dict[str, None]) -> Iterator[tuple[str, str]]:
    """Yield URL (without anchor) and title of the best pages that are not yet in ``told``, and add them to it."""
    left = MAX_NEW_PAGES
    for source in sources:
        url = source.url.partition("#")[0] or source.url
        if url not in told and left:
            left -= 1
            told[url] = None
            yield url, source.title
