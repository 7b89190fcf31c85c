"""Pages of every format, read one by one: what is in the repository decides, and no page stops the others.

A page has ``PAGE_SECONDS`` to be read in, and again to be indexed in (``index``). The alarm reaches Python code and
regular expressions wherever they are; the parsers in C are linear, and what they are given is bounded. It needs the
main thread, which an index is built on.
"""

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import TypeVar

from msgspec.structs import replace

from service.domain.sites import Skipped
from service.markup.front_matter import split_front_matter, text_field
from service.retrieval.readers.includes.files import MAX_INCLUDED, cut_name
from service.retrieval.readers.includes.shown_files import MAX_SHOWN_CHARACTERS, MAX_SHOWN_FILES, with_files
from service.retrieval.readers.markdown import MAX_PAGE_BYTES, PageSection, ParsedPage, parse_page
from service.retrieval.readers.notebook import MAX_NOTEBOOK_BYTES, parse_notebook
from service.retrieval.readers.openapi_pages import (
    MAX_DESCRIPTION_BYTES,
    Description,
    Operation,
    as_page,
    operation_named,
    read_description,
)
from service.retrieval.readers.sphinx.myst import SphinxPage
from service.retrieval.site.navigation import Layout

PAGE_SECONDS = 20.0
ALARM_SECONDS = 0.05
"""Pause between two rings of an alarm that was not heard."""
MAX_MISSING, MAX_TARGET = 100, 300
"""Limits for the files of one page that were not found, and for the characters of each name that are kept."""
MAX_BYTES = max(MAX_PAGE_BYTES, MAX_NOTEBOOK_BYTES, MAX_DESCRIPTION_BYTES)

ReadUpTo = Callable[[str, int], bytes | None]
"""A function of a path and a limit: at most that number of bytes of the file; None when it does not exist."""


_T = TypeVar("_T")


class OutOfTime(BaseException):
    """No ``except Exception`` of a parser stops it."""


class PageReader:
    """Reads the pages of one site, by its layout."""

    def __init__(self, layout: Layout, read: ReadUpTo, *, page_seconds: float = PAGE_SECONDS) -> None:
        self._layout, self._read, self._seconds = layout, read, page_seconds
        self.used: set[str] = set()
        """Files that the last page was made from besides its own, also those that were looked for and not found."""
        self.missing: set[str] = set()
        """Files that the last page shows and that were not found, as it names them; those of which only the beginning
        is read, as ``cut_name`` has them.
        """
        self.late = 0
        """Pages that took too long."""
        self._descriptions: dict[str, Description | Skipped] = {}

    def page(self, path: str) -> ParsedPage | Skipped:
        """Never raises for what is in a page, or in what it includes."""
        self.used, self.missing = set(), set()
        try:
            return within(self._seconds, lambda: self._with_shown(path))
        except OutOfTime:
            self.late += 1
            return Skipped(path, f"Reading it took longer than {self._seconds:g} seconds.")
        except MemoryError:
            return Skipped(path, "Reading it takes too much memory.")
        except Exception as error:  # noqa: BLE001 - a page's edge: an error of ours must not cost the site its other pages
            return Skipped(path, f"It cannot be read ({type(error).__name__}).")

    def _with_shown(self, path: str) -> ParsedPage | Skipped:
        """Read a page with the files that it shows without naming them."""
        page = self._page(path)
        shown = self._layout.files_shown.get(path)
        if not shown or isinstance(page, Skipped):
            return page
        return with_files(page, self._shown(shown), self._layout.dialect.slugs)

    def _shown(self, paths: Sequence[str]) -> Iterator[ParsedPage]:
        room = MAX_SHOWN_CHARACTERS
        for number, path in enumerate(paths):
            self.used.add(path)
            page = self._page(path) if number < MAX_SHOWN_FILES and room > 0 else None
            room -= len(page.content) if isinstance(page, ParsedPage) else 0
            if isinstance(page, ParsedPage) and room > 0:
                yield page
            else:
                self._note_missing(path)

    def _page(self, path: str) -> ParsedPage | Skipped:
        suffix = path.lower().rpartition(".")[2]
        if path in self._layout.descriptions:
            described = self._description(path)
            if isinstance(described, Skipped):
                return described
            own = {key: address for address, (file, key) in self._layout.made_pages.items() if file == path}
            return as_page(described, path, without=self._layout.shown, addresses=own)
        data = self._read(path, MAX_BYTES + 1) or b""
        inside = path[len(self._layout.root) :].lstrip("/")
        match suffix:  # docutils and lxml take 8 MB, which the service, that builds indexes in children, does without
            case "rst":
                from service.retrieval.readers.sphinx.rst import parse_rst
                from service.retrieval.readers.sphinx.rst_language import MAX_INCLUDED as MAX_RST

                return parse_rst(
                    data, path, lambda target: self._included(path, target, MAX_RST), self._layout.sphinx, page=inside
                )
            case "html" | "htm":
                from service.retrieval.readers.html import parse_html

                return _with_front_matter(data, path, parse_html)
            case "ipynb":
                return parse_notebook(data, path, self._layout.dialect)
        if self._layout.hugo is not None:
            return self._page_of_hugo(data, path)
        if self._layout.appended:
            return self._with_appended(data, path)
        sphinx = SphinxPage(self._layout.sphinx, inside) if self._layout.kind == "sphinx" else None
        page = parse_page(data, path, self._layout.dialect, lambda target: self._included(path, target), sphinx)
        if self._layout.descriptions and isinstance(page, ParsedPage):
            return self._with_operation(page)
        return page

    def _page_of_hugo(self, data: bytes, path: str) -> ParsedPage | Skipped:
        """Read a page with its shortcodes as its readers see them."""
        from service.retrieval.readers.hugo.pages import parse_hugo_page
        from service.retrieval.readers.hugo.site import HugoSite

        def read(name: str) -> bytes | None:
            if name != path:
                self.used.add(name)
            return self._read(name, MAX_PAGE_BYTES)

        return parse_hugo_page(data, path, self._layout.dialect, HugoSite(self._layout, path, read, self._note_missing))

    def _note_missing(self, target: str) -> None:
        if len(self.missing) < MAX_MISSING:
            self.missing.add(target[:MAX_TARGET])

    def _with_appended(self, data: bytes, path: str) -> ParsedPage | Skipped:
        """Read a page with the files that stand at the end of each; their lines count as its last one."""
        names = "\n\n".join(self._layout.appended)
        whole = data + f"\n\n--8<--\n{names}\n--8<--\n".encode()
        page = parse_page(whole, path, self._layout.dialect, lambda target: self._included(path, target))
        if isinstance(page, Skipped):
            return page
        last = max(1, data.count(b"\n") + (not data.endswith(b"\n")))
        sections = (
            replace(one, start_line=min(one.start_line, last), end_line=min(one.end_line, last))
            for one in page.sections
        )
        return replace(page, sections=tuple(sections))

    def _included(self, path: str, target: str, limit: int = MAX_INCLUDED) -> bytes | None:
        """Return a file that a page shows. ``limit``: the characters of it that its reader shows."""
        for name in self._layout.included(path, target):
            if name == path:
                continue
            self.used.add(name)
            data = self._read(name, MAX_PAGE_BYTES)
            if data is not None:
                if len(data) > limit and len(data.decode("utf-8", "replace")) > limit:
                    self._note_missing(cut_name(target, limit))
                return data
        self._note_missing(target)
        return None

    def _description(self, path: str) -> Description | Skipped:
        if path not in self._descriptions:
            data = self._read(path, MAX_DESCRIPTION_BYTES + 1) or b""
            self._descriptions[path] = read_description(data, path)
        return self._descriptions[path]

    def _with_operation(self, page: ParsedPage) -> ParsedPage:
        """A page whose front matter names an operation shows it."""
        named = operation_named(text_field(page.front_matter, "openapi", "openapi-schema"))
        if named is None:
            return page
        file, key = named
        found = self._operation(page.path, file, key)
        if found is None:
            return page
        title = page.title or found.title
        section = PageSection("" if page.title else found.title, (), "", found.text, 1, _first_line(page))
        sections = page.sections
        if sections and not sections[0].anchor and not sections[0].text:
            sections = sections[1:]
        content = "\n\n".join(filter(None, (found.text, page.content)))
        return replace(page, title=title, sections=(section, *sections), content=content)

    def _operation(self, path: str, file: str, key: str) -> Operation | None:
        names = self._layout.included(path, file if "/" in file else f"/{file}") if file else self._layout.descriptions
        for name in sorted(names):
            if name in self._layout.descriptions:
                self.used.add(name)
                described = self._description(name)
                found = described.operation(key) if isinstance(described, Description) else None
                if found is not None:
                    return found
        return None


def _with_front_matter(
    data: bytes, path: str, parse: Callable[[bytes, str], ParsedPage | Skipped]
) -> ParsedPage | Skipped:
    """Read a page of HTML that may begin with front matter, with its lines kept."""
    if not data.lstrip().startswith((b"---", b"+++", b"{")):
        return parse(data, path)
    source = data.decode("utf-8", "replace")
    front_matter, start = split_front_matter(source.replace("\r\n", "\n"))
    if not front_matter:
        return parse(data, path)
    rest = source.replace("\r\n", "\n")
    page = parse(("\n" * rest.count("\n", 0, start) + rest[start:]).encode(), path)
    if isinstance(page, Skipped):
        return page
    return replace(page, front_matter=front_matter, title=text_field(front_matter, "title") or page.title)


def _first_line(page: ParsedPage) -> int:
    return max(1, page.sections[0].start_line if page.sections else 1)


def within(seconds: float, work: Callable[[], _T]) -> _T:
    """Return what ``work`` returns. Raise OutOfTime after so long, in the main thread; in others there is no deadline.

    The alarm goes on ringing: Python drops an exception that is raised in a finalizer or in a callback of its garbage
    collector, and the work would have no deadline left.
    """
    if threading.current_thread() is not threading.main_thread():
        return work()
    over = False

    def ring(_signal: int, _frame: FrameType | None) -> None:
        if not over:
            raise OutOfTime

    before = signal.signal(signal.SIGALRM, ring)
    try:
        try:
            signal.setitimer(signal.ITIMER_REAL, seconds, ALARM_SECONDS)
            return work()
        finally:
            over = True
    finally:  # also when the alarm rang in the line above
        over = True
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
