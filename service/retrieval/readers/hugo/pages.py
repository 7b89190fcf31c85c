"""A page of Hugo: shortcodes are expanded before its Markdown is read. Its lines stay those of the file."""

from collections.abc import Sequence

from msgspec.structs import replace

from service.domain.sites import Skipped
from service.markup.dialects.dialect import Dialect
from service.markup.dialects.shortcodes import unescaped
from service.markup.front_matter import split_front_matter
from service.retrieval.readers.hugo.shortcodes import expand
from service.retrieval.readers.hugo.site import HugoSite
from service.retrieval.readers.markdown import (
    MAX_LINES,
    MAX_PAGE_BYTES,
    PageSection,
    ParsedPage,
    parse_page,
    source_text,
)


def parse_hugo_page(data: bytes, path: str, dialect: Dialect, site: HugoSite) -> ParsedPage | Skipped:
    """Never raises for what is in the page, or in what it shows."""
    source = source_text(data, path)
    if isinstance(source, Skipped):
        return source
    source = source.replace("\r\n", "\n").replace("\r", "\n")
    start = split_front_matter(source)[1]
    try:
        expanded = expand(source[start:], site)
    except RecursionError:
        return Skipped(path, "It is nested too deeply.")
    if expanded is None or len(expanded.lines) > MAX_LINES:
        page = parse_page(data, path, dialect)
        lines: Sequence[int] = ()
    else:
        shown = (source[:start] + expanded.text).encode()
        page = parse_page(shown if len(shown) <= MAX_PAGE_BYTES else data, path, dialect)
        lines = expanded.lines if len(shown) <= MAX_PAGE_BYTES else ()
    if isinstance(page, Skipped):
        return page
    first = source.count("\n", 0, start)
    return replace(
        page,
        title=unescaped(page.title),
        content=unescaped(page.content),
        sections=tuple(_as_in_file(section, lines, first) for section in page.sections),
        links=tuple(replace(link, line=_line(link.line, lines, first)) for link in page.links) if lines else page.links,
    )


def _as_in_file(section: PageSection, lines: Sequence[int], first: int) -> PageSection:
    return replace(
        section,
        heading=unescaped(section.heading),
        heading_path=tuple(unescaped(heading) for heading in section.heading_path),
        text=unescaped(section.text),
        start_line=_line(section.start_line, lines, first),
        end_line=_line(section.end_line, lines, first),
    )


def _line(line: int, lines: Sequence[int], first: int) -> int:
    """Return the line of the file that a line of the expanded text is from."""
    at = line - first - 1
    return first + lines[min(at, len(lines) - 1)] if lines and at >= 0 else line
