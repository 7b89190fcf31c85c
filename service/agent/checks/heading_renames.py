"""Anchors of headings that were put into other words: a link to the old anchor means the new one."""

from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher

from service.domain.sites import Skipped
from service.markup.dialects import Dialect
from service.retrieval.readers.markdown import PageSection, parse_page

MAX_RENAMED = 200
"""Limit for the headings of a page."""
MAX_COMPARED = 1_000
"""Characters of a section that are compared."""
ALIKE = 0.5
"""The least likeness, by ``difflib``, of a section's heading or text to what it was."""


def renamed_anchors(path: str, old: str, new: str, dialect: Dialect) -> Mapping[str, str]:
    """Return the anchors that went, each with the one in its place; none where a section came, went or is another."""
    before, after = _sections(path, old, dialect), _sections(path, new, dialect)
    matcher = SequenceMatcher(None, [each.anchor for each in before], [each.anchor for each in after], autojunk=False)
    renamed: dict[str, str] = {}
    for kind, start, end, other_start, other_end in matcher.get_opcodes():
        if kind != "replace" or end - start != other_end - other_start:
            continue
        for was, now in zip(before[start:end], after[other_start:other_end], strict=True):
            if len(renamed) < MAX_RENAMED and _is_same_section(was, now):
                renamed[was.anchor] = now.anchor
    return renamed


def _sections(path: str, text: str, dialect: Dialect) -> Sequence[PageSection]:
    """Return the first part of each section that has an anchor."""
    page = parse_page(text.encode(errors="replace"), path, dialect)
    if isinstance(page, Skipped):
        return ()
    first: dict[str, PageSection] = {}
    for section in page.sections:
        if section.anchor:
            first.setdefault(section.anchor, section)
    return list(first.values())


def _is_same_section(was: PageSection, now: PageSection) -> bool:
    return len(was.heading_path) == len(now.heading_path) and (
        _alike(was.heading, now.heading) or _alike(was.text, now.text)
    )


def _alike(one: str, other: str) -> bool:
    return SequenceMatcher(None, one[:MAX_COMPARED], other[:MAX_COMPARED], autojunk=False).ratio() >= ALIKE
