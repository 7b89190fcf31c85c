"""Files that are no pages of their own, and whose text readers see on a page: the page gets their sections, each with
the path and the lines of its own file, so that a citation leads to the file to edit.
"""

from collections.abc import Iterable

from msgspec.structs import replace

from service.markup.front_matter import text_field
from service.markup.slugs import Anchors, SlugStyle
from service.retrieval.readers.markdown import ParsedPage

MAX_SHOWN_FILES, MAX_SHOWN_CHARACTERS = 1_000, 4_000_000
"""Limits for the files that one page shows, and for their characters."""


def with_files(page: ParsedPage, files: Iterable[ParsedPage], slugs: SlugStyle) -> ParsedPage:
    """Return a page with the text of the files that it shows, in the order of their titles.

    A file whose text the page has already, by an include, is not added.
    """
    anchors, taken = Anchors(slugs), set(page.anchors)
    for anchor in taken:
        anchors.take(anchor)
    sections, content, links = list(page.sections), [page.content], list(page.links)
    for file in sorted(files, key=lambda each: (each.title.casefold(), each.path)):
        if not any(section.text for section in file.sections) or all(one.text in page.content for one in file.sections):
            continue
        title = file.title or file.path.rpartition("/")[2].rpartition(".")[0]
        anchor = _own_anchor(page, file) or anchors.of(title)
        for one in file.sections:
            heading_path = (title, *(heading for heading in one.heading_path if heading != title))
            placed = replace(one, heading_path=heading_path, anchor=one.anchor or anchor, path=file.path)
            sections.append(placed if one.heading else replace(placed, heading=title))
        taken |= {anchor, *file.anchors}
        content += [f"## {title}", file.content]
        links += file.links
    first = sections[0] if len(sections) > len(page.sections) else None
    if first is not None and not first.text and not first.anchor:  # there only for a page without text
        del sections[0]
    return replace(
        page, sections=tuple(sections), anchors=frozenset(taken), links=tuple(links),
        content="\n\n".join(filter(None, content)),
    )  # fmt: skip


def _own_anchor(page: ParsedPage, file: ParsedPage) -> str:
    """Return the anchor of a term where it is known: Kubernetes' layout ``glossary`` makes it of the term's id."""
    name = text_field(file.front_matter, "id")
    return f"term-{name}" if name and text_field(page.front_matter, "layout") == "glossary" else ""
