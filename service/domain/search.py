"""A search of a site's pages, and what it finds."""

from msgspec import Struct


class SearchFilter(Struct, frozen=True, omit_defaults=True):
    """Which pages may be found."""

    version: str | None = None
    language: str | None = None
    tag: str | None = None
    groups: tuple[str, ...] = ()


class QueryWord(Struct, frozen=True):
    """A word of a question, as a search read it."""

    typed: str
    """In lower case."""
    share: float
    """The part of the site's sections that have it, 0 .. 1; 0 for a word that is not on the site."""
    corrected: str = ""
    """The words of the site that were looked up instead, by their stems; empty for a word that is on the site."""
    kindred: tuple[str, ...] = ()
    """Words of the site that may stand for it, by their stems."""
    is_name: bool = False
    """A name as it was typed, of an option or a product, which no page has."""


def path_on_site(url: str) -> str:
    """Return the path of a page on its site, without the leading slash, for its URL with or without an anchor.

    Clients of the search link to the site's address and a slash and this.
    """
    return url.partition("#")[0].lstrip("/")


class Source(Struct, frozen=True):
    """A passage that an answer was made from."""

    number: int
    """As the model cites it, from 1, in the order found; unique in a reply."""
    path: str
    url: str
    title: str
    heading: str
    start_line: int
    end_line: int
    commit: str
