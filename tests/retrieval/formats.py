"""Reads pages of any format as an index does."""

from collections.abc import Mapping

from service.domain.sites import Skipped
from service.retrieval.readers.markdown import ParsedPage
from service.retrieval.site.navigation import detect_layout
from service.retrieval.site.pages import PAGE_SECONDS, PageReader


def read(files: Mapping[str, str | bytes], path: str, *, seconds: float = PAGE_SECONDS) -> ParsedPage | Skipped:
    data = {name: text.encode() if isinstance(text, str) else text for name, text in files.items()}
    layout = detect_layout(data, data.get)
    reader = PageReader(layout, lambda name, limit: data[name][:limit] if name in data else None, page_seconds=seconds)
    return reader.page(path)


def page_of(files: Mapping[str, str | bytes] | str, path: str) -> ParsedPage:
    page = read({path: files} if isinstance(files, str) else files, path)
    assert isinstance(page, ParsedPage), page
    return page


def reason(files: Mapping[str, str | bytes] | str | bytes, path: str, *, seconds: float = PAGE_SECONDS) -> str:
    page = read({path: files} if isinstance(files, str | bytes) else files, path, seconds=seconds)
    assert isinstance(page, Skipped)
    assert page.path == path
    return page.reason


def places(page: ParsedPage) -> list[tuple[str, str, int, int]]:
    return [(one.heading, one.anchor, one.start_line, one.end_line) for one in page.sections]
