"""No generator that is known: a page is where its file is, README and index are their folder's page, and a ``slug`` or
``permalink`` from ``/`` rules.
"""

from service.markup.dialects.dialect import Dialect
from service.markup.pages import INDEXED_SUFFIXES
from service.retrieval.site.layout import Layout, join_path, within

_CONTENT_ROOTS = ("src/content/docs", "content/docs", "content", "docs", "doc", "documentation", "src/pages", "pages")


def plain(files: frozenset[str], docs_folder: str) -> Layout:
    pages = [name for name in files if name.lower().endswith(INDEXED_SUFFIXES) and within(name, docs_folder)]
    root = docs_folder
    if not docs_folder:
        for folder in _CONTENT_ROOTS:
            if pages and sum(within(name, folder) for name in pages) > 0.8 * len(pages):
                root = folder
                break
    else:
        root = next(
            (r for f in _CONTENT_ROOTS[:2] if any(within(n, r := join_path(docs_folder, f)) for n in pages)), root
        )
    name = "/" + root.rpartition("/")[2]
    bases = ("", name) if root else ("",)
    # A README beside the pages' folder belongs to the repository, not to the site; without that folder it is the front
    # page.
    return Layout("plain", docs_folder, root, Dialect(), bases)
