"""The file in which a site's navigation names pages, and the line that names a page there."""

import json
from collections.abc import Iterable
from posixpath import dirname, normpath

from msgspec import Struct

from service.markup.front_matter import FrontMatter
from service.markup.generator_files import NAVIGATION, matcher
from service.markup.pages import INDEX_NAMES, without_suffix
from service.retrieval.site.generators.books.summary import NOT_NAMED, links_in
from service.retrieval.site.layout import Layout, join_path
from service.retrieval.site.navigation import Site

_FILES = {kind: matcher(names) for kind, names in NAVIGATION.items()}


class NavigationFile(Struct, frozen=True):
    layout: Layout
    file: str

    def named(self, text: str, site: Site) -> frozenset[str]:
        """Return the pages that the navigation names; ``text``: of the file, for a generator that is not known."""
        if self.layout.kind != "plain":
            return frozenset(path for path, page in site.pages.items() if page.order >= 0)
        folder = dirname(self.file)
        return frozenset(normpath(join_path(folder, target)) for _, target in links_in(text))

    @property
    def place(self) -> str:
        """The file, and where in it."""
        return f"the toctree of {self.file}" if self.layout.kind == "sphinx" else self.file

    def line(self, path: str, title: str, front_matter: FrontMatter) -> str:
        """Return the line that names a page."""
        inside = path[len(self.layout.root) :].lstrip("/")
        name, quoted = without_suffix(inside), json.dumps(title, ensure_ascii=False)
        documents = self.layout.document_set(path)
        match self.layout.kind:
            case "mintlify":
                return json.dumps(name)
            case "docusaurus":
                return f"'{documents.id_of(inside, front_matter) if documents is not None else name}',"
            case "starlight":
                return f"{json.dumps(documents.id_of(inside, front_matter) if documents is not None else name)},"
            case "mkdocs":
                return f"- {title}: {inside}"
            case "vitepress":
                return f"{{ text: {quoted}, link: {json.dumps(_link(name))} }},"
            case "gitbook" | "mdbook" | "plain":
                return f"- [{title}]({path[len(dirname(self.file)) :].lstrip('/')})"
            case _:
                return name


def navigation_file(layout: Layout, paths: Iterable[str]) -> NavigationFile | None:
    """Return the file that names the site's pages; None where no single file does."""
    pattern = _FILES.get(layout.kind)
    files = [path for path in paths if pattern is not None and pattern.search(path)]
    if not files:
        return None
    return NavigationFile(layout, min(files, key=lambda path: (_distance(path, layout.root), path)))


def may_be_listed(layout: Layout, path: str) -> bool:
    """Return whether a file is a page, or would be one if the navigation named it."""
    return layout.why_excluded(path) in ("", NOT_NAMED)


def _distance(path: str, root: str) -> tuple[int, int]:
    """Return how far a file is from the folder of the pages: in one above it first."""
    folder = dirname(path.partition(".vitepress/")[0] + "x")
    above = not folder or root == folder or root.startswith(f"{folder}/")
    return (0 if above else 1, abs(root.count("/") - folder.count("/")))


def _link(name: str) -> str:
    """Return the address below the root: for the index of a folder that of the folder."""
    folder, _, last = name.rpartition("/")
    return f"/{folder}/" if last.lower() in INDEX_NAMES and folder else f"/{name}"
