"""The places of pages in the navigation, where the front matter of all pages decides them."""

from collections.abc import Callable, Mapping

from msgspec import Struct

from service.markup.front_matter import FrontMatter
from service.retrieval.site.generators.docusaurus.sidebars import arranged_documents
from service.retrieval.site.generators.starlight import arranged_by_starlight
from service.retrieval.site.layout import Kind, Layout, NavEntry


class Arrangement(Struct, frozen=True):
    entries: Mapping[str, NavEntry]
    """By path of the page."""
    missing: tuple[str, ...] = ()
    """Pages that the navigation names and that are not there, as it names them."""


_BY_PAGES: Mapping[Kind, Callable[[Layout, Mapping[str, FrontMatter]], tuple[dict[str, NavEntry], list[str]]]] = {
    "docusaurus": arranged_documents,
    "starlight": arranged_by_starlight,
}


def depends_on_pages(layout: Layout) -> bool:
    """Return whether the front matter of one page can move another in the navigation."""
    return layout.kind in _BY_PAGES


def arrange(layout: Layout, pages: Mapping[str, FrontMatter]) -> Arrangement:
    """Return the places of the pages, given by path with their front matter."""
    if layout.kind not in _BY_PAGES:
        return Arrangement(layout.entries, layout.missing_entries)
    entries, missing = _BY_PAGES[layout.kind](layout, pages)
    return Arrangement(entries, tuple(missing))
