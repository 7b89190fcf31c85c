"""The parts of a site that a page of Hugo may show: other pages and files, terms of the glossary, parameters."""

from collections.abc import Callable, Iterator, Mapping
from posixpath import dirname, normpath

from service.markup.front_matter import FrontMatter, split_front_matter, text_field
from service.ports.docs_source import PAGE_BYTES
from service.retrieval.readers.includes.files import cut_name
from service.retrieval.site.layout import Layout, Read

MAX_READ, MAX_INCLUDED, MAX_PARAMETERS = PAGE_BYTES["md"], 400_000, 64 << 10
"""Bytes of each other file, characters of it that are shown, and bytes that parameters are looked for in."""
_FOLDERS = ("", "includes", "examples")
"""Folders of a language's content that files are looked for in."""


class HugoSite:
    """The pages and files around one page. ``read``: a function of a path, which keeps what was asked for."""

    def __init__(self, layout: Layout, path: str, read: Read, missing: Callable[[str], None]) -> None:
        self._layout, self.path, self._read, self._missing = layout, path, read, missing
        self._below: dict[str, list[str]] = {}

    def file(self, name: str) -> tuple[str, str] | None:
        """Return the path and the text of a file that the page shows, by its name there."""
        if not name or len(name) > 500 or "\0" in name:
            return None
        page = self._page_named(name)
        for path in dict.fromkeys((*self._beside(name), *([page] if page else []), *self._candidates(name))):
            if path == self.path or path.startswith(".."):
                continue
            data = self._read(path)
            if data is not None and len(data) <= MAX_READ:
                text = data.decode("utf-8-sig", "replace").replace("\r\n", "\n")
                if len(text) > MAX_INCLUDED:
                    self._missing(cut_name(name, MAX_INCLUDED))
                return path, text
        self._missing(name)
        return None

    def _beside(self, name: str) -> Iterator[str]:
        if not name.startswith("/"):
            yield normpath(f"{dirname(self.path)}/{name}".lstrip("/"))

    def _candidates(self, name: str) -> Iterator[str]:
        inside = normpath("/" + name).strip("/")
        rules = self._layout.hugo
        for source in rules.sources if rules is not None else ():
            yield from ("/".join(part for part in (source.folder, folder, inside) if part) for folder in _FOLDERS)
        above = dirname(self._layout.root)
        while above:
            yield f"{above}/{inside}"
            above = dirname(above)
        yield inside

    def front_matter(self, path: str) -> FrontMatter:
        data = self._read(path)
        return (
            split_front_matter(data[:MAX_PARAMETERS].decode("utf-8-sig", "replace").replace("\r\n", "\n"))[0]
            if data
            else {}
        )

    def is_page(self, path: str) -> bool:
        """Return whether a file is a page of its own."""
        return path in self._layout.entries

    def shows(self, path: str) -> bool:
        """Return whether the page shows a file without naming it (``Layout.shown_on``)."""
        return self._layout.shown_on.get(path) == self.path

    def page(self, name: str) -> str | None:
        """Return the path of a page by its logical path, or below the section of this page."""
        return self._page_named(name.partition("#")[0])

    def _page_named(self, name: str) -> str | None:
        bare = (
            normpath("/" + name.strip("/").removesuffix(".md")).lower().removesuffix("/_index").removesuffix("/index")
        )
        rules = self._layout.hugo
        own = rules.content_page(self.path) if rules is not None else None
        if own is None:
            return None
        below = "/" + "/".join(own.folders).lower()
        names = [bare or "/"] if name.startswith("/") else [f"{below}/{bare.strip('/')}".replace("//", "/"), bare]
        return next((found for one in names if (found := self._by_path.get((own.language, one)))), None)

    @property
    def _by_path(self) -> Mapping[tuple[str, str], str]:
        return self._layout.content_paths

    def pages_below(self, section: str) -> list[str]:
        """Return the pages of a section in their order, without its own."""
        rules = self._layout.hugo
        lead = section.strip("/").lower()
        if lead in self._below:
            return self._below[lead]
        found = self._below[lead] = []
        for path in self._layout.entries:
            at = rules.content_page(path) if rules is not None else None
            if at is not None and "/".join(at.folders).lower() == lead and at.name and path != self.path:
                found.append(path)
        for folder in {dirname(path) for path in found}:
            self._read(f"{folder}/")  # no file: the page is read again when one comes or goes
        return found

    def terms(self) -> list[str]:
        """Return the files of the glossary, in the order of their names."""
        rules = self._layout.hugo
        return list(rules.glossaries) if rules is not None else []

    def term(self, name: str) -> str | None:
        """Return the file of a term: by its id, or its title."""
        wanted = normalized(name)
        return next(
            (path for path in self.terms() if normalized(path.rpartition("/")[2].rpartition(".")[0]) == wanted), None
        )

    def param(self, name: str) -> str:
        """Return a field of the page's front matter, or a parameter of the site."""
        own = self.front_matter(self.path)
        params = own.get("params")
        shown = text_field(own, name) or (text_field(params, name) if isinstance(params, dict) else "")
        rules = self._layout.hugo
        return shown or (rules.params.get(name.lower(), "") if rules is not None else "")

    def site_param(self, name: str) -> str:
        rules = self._layout.hugo
        return rules.params.get(name.lower(), "") if rules is not None else ""

    def template(self, name: str) -> str | None:
        """Return the site's own template of a shortcode."""
        rules = self._layout.hugo
        path = rules.templates.get(name.lower()) if rules is not None else None
        data = self._read(path) if path is not None else None
        return data.decode("utf-8", "replace") if data is not None else None


def normalized(name: str) -> str:
    return "-".join(name.lower().replace("_", " ").replace("-", " ").split())
