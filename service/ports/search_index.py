"""Search over the pages of a documentation site."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from service.domain.search import QueryWord, SearchFilter, Source

NO_FILTER = SearchFilter()


Range = tuple[int, int]
"""The first character of a stretch of text and the one after its last, in UTF-16 units, as browsers count."""


class Highlights(Struct, frozen=True):
    """Where the words of a query stand in a section, in order and apart from each other; at most 50 for each."""

    title: tuple[Range, ...]
    heading: tuple[Range, ...]
    text: tuple[Range, ...]


class Explanation(Struct, frozen=True, rename="camel"):
    """Where a section's place in a result comes from. Points of the page's title, the names that other pages have for
    it, its whole text, this section's heading and body, the page's further sections, and neighbours of the question
    that stand side by side; together they are ``points``, once ``place`` has multiplied them.
    """

    points: float
    title: float = 0.0
    links: float = 0.0
    text: float = 0.0
    """The whole page as one text."""
    heading: float = 0.0
    body: float = 0.0
    further_sections: float = 0.0
    pairs: float = 0.0
    place: float = 1.0
    """Over 1 for a page that others link to, for the page in view and its neighbours; under 1 for older versions,
    change logs, and other languages than the reader's.
    """
    word_rank: int = 0
    """The page's place by its words, from 1."""
    meaning_rank: int = 0
    """By its meaning; 0 when meanings are not compared, or it was not among the first."""
    language: str = ""
    """The language of its text."""
    site_language: str = ""
    """The language that the site says its page is in; empty where it says nothing. An untranslated page in a language's
    folder has two.
    """
    reader_language: str = ""
    """The language that pages were ranked for; empty on a site in one language."""
    copies: int = 0
    """Translations and other versions of its page, which the page stands for."""
    words: tuple[str, ...] = ()
    """As they were looked up."""
    corrected: Mapping[str, str] = {}
    """Words that were typed and are not on the site → the words that were looked up instead."""


class Section(Struct, frozen=True):
    """A stretch of a page under one heading."""

    path: str
    """Path of its file, from the root of the repository: its page's, or one that the page shows, as a glossary does."""
    url: str
    """Where the site shows it, beginning with ``/``, with ``#anchor`` except for the top of the page."""
    title: str
    """Title of the page."""
    heading: str
    """Its own; empty for what stands before the first one."""
    heading_path: tuple[str, ...]
    """The headings above and its own, from the top."""
    text: str
    """Markdown, without front matter, MDX imports and component tags."""
    start_line: int
    end_line: int
    """From 1, inclusive, in its file."""
    score: float = 0.0
    """0 .. 1 within one result, the best being 1; comparable only there."""
    explanation: Explanation | None = None
    """When it was asked for."""
    language: str = ""
    """The language of its text, such as ``de``."""
    highlights: Highlights | None = None
    """When they were asked for."""


class Page(Struct, frozen=True):
    path: str
    url: str
    title: str
    content: str
    """Markdown, as ``Section.text``."""
    sections: tuple[Section, ...] = ()
    """The whole page by its headings, in its order."""
    commit: str = ""


class SearchResult(Struct, frozen=True):
    commit: str
    sections: Sequence[Section]
    """Best first; at most a few of one page."""
    instructions: str = ""
    """The site owner's instructions to the assistant (``.docsmith/assistant.md``) at that commit; bounded."""


class MaterialRequest(Struct, frozen=True):
    """A request for the material of a prompt."""

    queries: tuple[str, ...]
    """The reader's question first; then what a plan adds: one for each side of a comparison, or the question in the
    language of the documentation. Each gets its part of the budget.
    """
    budget_tokens: int
    """For all sections together, with the tags and headings around them, as ``service.domain.texts.tokens`` counts."""
    pages: tuple[str, ...] = ()
    """Pages that the answer is expected on, by title, path or URL; those that the site does not have are ignored."""
    page_size: int = 5
    """The number of pages that would do; further ones follow only where these leave some of the budget."""
    filter: SearchFilter = NO_FILTER
    current_path: str = ""
    whole_page: str = ""
    """A page that goes before all others, by path or URL, whether or not it matches: the question is about it."""
    known: frozenset[tuple[str, int]] = frozenset()
    """Sections that the prompt has already, by path and first line. They cost nothing, and are in the result only where
    they are among the best.
    """


class Material(Struct, frozen=True):
    commit: str
    sections: Sequence[Section]
    """In the order of the prompt: page after page, the best page first, the sections of each in the order of the page.
    ``score`` says which of them matter most. A section is whole; only one that is larger than the budget is cut,
    between two blocks.
    """
    instructions: str = ""
    """As ``SearchResult.instructions``."""
    coverage: float = 1.0
    """The part of the question's words, weighed by rarity, that the best page has: 0 .. 1. Under about a half, the
    question is likely asked in other words than those of the documentation, or not answered by it.
    """
    language: str = ""
    """The reader's language, where the site is in several: a section in another one is not there in this."""
    words: tuple[QueryWord, ...] = ()
    """Words of the first query, without those that only make it a question; the first ones of a long query."""
    lacking: tuple[str, ...] = ()
    """Those of them that no page has, nor another word for."""
    is_far: bool = False
    """Whether these are most of the question: the documentation is likely about something else."""
    site_title: str = ""
    """The title of the site's start page; empty where it has none for this reader."""
    least_score: float = 0.0
    """The score below which a section is no help to a model that reads all it gets."""


class PageName(Struct, frozen=True):
    path: str
    url: str
    title: str


class OtherPages(Struct, frozen=True):
    """The pages of a site that are not among some of them."""

    count: int
    first: Sequence[PageName]


class ListedPage(Struct, frozen=True, gc=False):
    path: str
    url: str
    title: str
    description: str
    """By its front matter; empty where it says nothing."""
    is_main: bool
    """Not a page of an older version, a translation, or a change log."""


class PageList(Struct, frozen=True):
    """The pages of a site."""

    commit: str
    pages: Sequence[ListedPage]
    """Those of the navigation first, in its order."""


class SiteLinks(Protocol):
    """The addresses of a site's pages, known at once: for links in a text that is being written."""

    def resolve(self, address: str, *, readers: Sequence[str] = ()) -> str | None:
        """Return the URL of the page that a link within the site means, with its anchor where the page has it.

        ``address``: a path, absolute or relative, which may have a wrong suffix or prefix. A page whose address ends in
        the same parts is meant when no other's does. None when there is none, or none for the reader's groups.
        """


class SearchIndex(Protocol):
    """Every method answers from the newest index of the domain, and never waits for one that is being built.

    Raises NotFound (``not_indexed``) when the site has none yet.
    """

    async def search(
        self,
        domain: str,
        query: str,
        *,
        limit: int = 10,
        filter: SearchFilter = NO_FILTER,  # noqa: A002  (the API's own word)
        current_path: str = "",
        explain: bool = False,
        prefix: bool = False,
        highlight: bool = False,
    ) -> SearchResult:
        """Return up to ``limit`` sections; none when no word of the query is on the site, or is near a word of it.

        Sections that have a phrase of the query, in quotation marks or between backticks, go before all others.
        ``prefix``: the query is still being typed, and its last word may be the beginning of one.
        """

    async def find_material(self, domain: str, request: MaterialRequest) -> Material:
        """Return the sections to answer a question from, within the budget of tokens.

        Boilerplate and repeated texts are left out. No sections when no word of the queries is on the site.
        """

    async def sections_at(
        self, domain: str, sources: Sequence[Source], *, readers: Sequence[str] | None = None
    ) -> tuple[Section | None, ...]:
        """Return the sections that were recorded as sources, in the same order, each as the site has it now.

        A section is found by its page, heading and first line; where another commit is served by now, lines may have
        moved and the text may have been edited. None where the site no longer has it. ``readers``: as in ``read_page``.
        """

    async def links(self, domain: str) -> SiteLinks:
        """Return the addresses of the site's pages."""

    async def pages_besides(self, domain: str, paths: Sequence[str], *, limit: int) -> OtherPages:
        """Return the pages whose files are not among the paths: their number, and the first of them."""

    async def read_page(self, domain: str, path: str, *, readers: Sequence[str] | None = None) -> Page | None:
        """Return a page by its path in the repository, with or without the suffix, or by its URL path on the site.

        ``readers``: the groups of the reader; a page for other groups counts as missing. None: for the service's own
        use.
        """

    async def reader_groups(self, domain: str) -> Sequence[str]:
        """Return the groups of readers that pages are restricted to, sorted: the first hundred."""

    async def list_pages(self, domain: str, *, readers: Sequence[str] | None = None) -> PageList:
        """Return all pages. ``readers``: as in ``read_page``."""

    async def read_pages(
        self, domain: str, paths: Sequence[str], *, readers: Sequence[str] | None = None
    ) -> tuple[Page | None, ...]:
        """Return several pages as ``read_page`` does, all of one index. Give a few at a time: searches wait."""
