"""Search over the pages of a documentation site."""

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from service.domain.threads import SearchFilter

NO_FILTER = SearchFilter()


class Section(Struct, frozen=True):
    """A stretch of a page under one heading."""

    path: str
    """Of its page's file, from the root of the repository."""
    url: str
    """Where the site shows it, beginning with ``/``, with ``#anchor`` except for the top of the page."""
    title: str
    """Of the page."""
    heading: str
    """Its own; empty for what stands before the first one."""
    heading_path: tuple[str, ...]
    """The headings above and its own, from the top."""
    text: str
    """Markdown, without front matter, MDX imports and component tags."""
    start_line: int
    end_line: int
    """From 1, inclusive, in the page's file."""
    score: float = 0.0
    """0 .. 1 within one result, the best being 1; comparable only there."""


class Page(Struct, frozen=True):
    path: str
    url: str
    title: str
    content: str
    """Markdown, as ``Section.text``."""


class SearchResult(Struct, frozen=True):
    commit: str
    sections: Sequence[Section]
    """Best first; at most a few of one page."""
    instructions: str = ""
    """What the site's owner tells the assistant (``.docsmith/assistant.md``), as of that commit; bounded."""


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
    ) -> SearchResult:
        """Up to ``limit`` sections; none when no word of the query is on the site."""

    async def read_page(self, domain: str, path: str, *, readers: Sequence[str] | None = None) -> Page | None:
        """By path in the repository, with or without its suffix, or by URL path of the site.

        ``readers``: the groups of whoever will see it; a page for other groups is none. None: it is for ourselves.
        """
