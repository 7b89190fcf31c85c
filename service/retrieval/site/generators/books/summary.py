"""The list of pages in a ``SUMMARY.md``, as GitBook and mdBook have it: each link is a page, in their order."""

from collections.abc import Iterator
from posixpath import dirname, normpath
from urllib.parse import unquote

from service.markup.markdown import Markdown
from service.markup.prose import plain
from service.retrieval.site.layout import MAX_FACT, NavEntry, Read, join_path, read_text

MAX_PAGES = 50_000
NOT_NAMED = "SUMMARY.md does not name it, so the site does not show it."


class Summary:
    """The pages that one or more lists name: ``entries`` by path, ``missing`` as they are named."""

    def __init__(self, files: frozenset[str], read: Read) -> None:
        self._files, self._read = files, read
        self.entries: dict[str, NavEntry] = {}
        self.missing: list[str] = []

    def add(self, path: str, language: str = "") -> None:
        """Add the pages of a list; of a page that is named twice the first place counts."""
        for title, target in links_in(read_text(self._read, path)):
            page = normpath(join_path(dirname(path), target))
            if page.startswith(".."):
                continue
            if page not in self._files:
                self.missing.append(target)
            elif page not in self.entries and len(self.entries) < MAX_PAGES:
                self.entries[page] = NavEntry(len(self.entries), title[:MAX_FACT], language=language)

    def add_home(self, path: str, language: str = "") -> None:
        """Add a front page that no list needs to name; it is before the others."""
        if path in self._files and path not in self.entries:
            self.entries[path] = NavEntry(-1, language=language)

    def hidden(self, root: str) -> dict[str, str]:
        """Return the Markdown files below a folder that no list names, each with the reason that it is no page."""
        begin = f"{root}/" if root else ""
        return {
            name: NOT_NAMED
            for name in self._files
            if name.startswith(begin) and name.lower().endswith(".md") and name not in self.entries
        }


def links_in(text: str) -> Iterator[tuple[str, str]]:
    """Yield the label and target of each link to a file; a draft has no target."""
    for link in Markdown(text).links:
        target = unquote(link.target.partition("#")[0].partition("?")[0]).strip()
        if link.kind in ("inline", "reference") and not link.is_image and target and "://" not in target:
            yield plain(link.label), target.removeprefix("./")
