"""Pages as the checks read them. Each check asks for the same few, before and after a change: they are read once."""

from functools import lru_cache

from service.domain.sites import Skipped
from service.markup.dialects.dialect import PLAIN, Dialect
from service.markup.markdown import Markdown
from service.markup.pages import is_markdown
from service.retrieval.readers.markdown import ParsedPage, parse_page

KEPT = 128
"""Pages that are kept: a job changes some twenty, and asks for the anchors of those that they link to."""
MAX_KEPT_CHARACTERS = 50_000
"""A longer page is read again for each check, so that what is kept stays small."""


def markdown_of(text: str, path: str, dialect: Dialect = PLAIN) -> Markdown:
    """Return a page's blocks, links and prose. It is shared, and must not be changed."""
    if len(text) > MAX_KEPT_CHARACTERS:
        return Markdown(text, path=path, dialect=dialect)
    return _kept_markdown(text, path, dialect)


def parsed(text: str, path: str, dialect: Dialect) -> ParsedPage | Skipped:
    """Return a page's sections and anchors."""
    if len(text) > MAX_KEPT_CHARACTERS:
        return parse_page(text.encode(errors="replace"), path, dialect)
    return _kept_page(text, path, dialect)


def title_of(text: str, path: str, dialect: Dialect) -> str | None:
    """Return the title that the index has of a page; None where none of its readers fits."""
    if is_markdown(path):
        page = parsed(text, path, dialect)
    elif path.lower().endswith(".rst"):
        from service.retrieval.readers.sphinx.rst import parse_rst  # late: docutils takes 8 MB

        page = parse_rst(text.encode(errors="replace"), path)
    else:
        return None
    return None if isinstance(page, Skipped) else page.title


@lru_cache(KEPT)
def _kept_markdown(text: str, path: str, dialect: Dialect) -> Markdown:
    return Markdown(text, path=path, dialect=dialect)


@lru_cache(KEPT)
def _kept_page(text: str, path: str, dialect: Dialect) -> ParsedPage | Skipped:
    return parse_page(text.encode(errors="replace"), path, dialect)
