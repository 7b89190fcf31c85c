"""Anchors of headings that were put into other words: a link to the old anchor means the new one."""

from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher

from msgspec.structs import replace

from service.agent.checks.pages import parsed
from service.domain.sites import Skipped
from service.domain.texts.comparison import Effort, opcodes
from service.markup.dialects.dialect import Dialect
from service.markup.pages import is_markdown
from service.retrieval.readers.markdown import PageSection, ParsedPage

MAX_RENAMED = 200
"""Limit for the headings of a page that are compared."""
STEPS = 1_000_000
"""For the order of a page's anchors: some 50 ms. Those of a page that takes more are taken for others."""
MAX_COMPARED = 1_000
"""Characters of a section that are compared."""
ALIKE = 0.5
"""The least likeness, by ``difflib``, of a section's heading or text to what it was."""


def renamed_anchors(path: str, old: str, new: str, dialect: Dialect) -> Mapping[str, str]:
    """Return the anchors that went, each with the one in its place; none where a section came, went or is another."""
    if dialect.slugs == "docutils" and is_markdown(path):  # MyST's links name headings by other slugs than their ids
        dialect = replace(dialect, slugs="github")
    was_page, now_page = (parsed(text, path, dialect) for text in (old, new))
    if isinstance(was_page, Skipped) or isinstance(now_page, Skipped):
        return {}
    before, after = _sections(was_page), _sections(now_page)
    was, now = ([each.anchor for each in sections] for sections in (before, after))
    renamed = _renamed_title(was_page, now_page)
    pairs = [
        pair
        for kind, start, end, other_start, other_end in opcodes(was, now, Effort(STEPS), most=STEPS) or ()
        if kind == "replace" and end - start == other_end - other_start
        for pair in zip(before[start:end], after[other_start:other_end], strict=True)
    ]
    return renamed | {old.anchor: new.anchor for old, new in pairs[:MAX_RENAMED] if _is_same_section(old, new)}


def _sections(page: ParsedPage) -> Sequence[PageSection]:
    """Return the first part of each section that has an anchor."""
    first: dict[str, PageSection] = {}
    for section in page.sections:
        if section.anchor:
            first.setdefault(section.anchor, section)
    return list(first.values())


def _renamed_title(was: ParsedPage, now: ParsedPage) -> dict[str, str]:
    """Return the anchor of the page's top heading, which has no section of its own, where that alone has changed."""
    gone = was.anchors - now.anchors - {section.anchor for section in was.sections}
    new = now.anchors - was.anchors - {section.anchor for section in now.sections}
    return dict(zip(gone, new, strict=True)) if len(gone) == len(new) == 1 else {}


def _is_same_section(was: PageSection, now: PageSection) -> bool:
    return len(was.heading_path) == len(now.heading_path) and (
        _alike(was.heading, now.heading) or _alike(was.text, now.text)
    )


def _alike(one: str, other: str) -> bool:
    return SequenceMatcher(None, one[:MAX_COMPARED], other[:MAX_COMPARED], autojunk=False).ratio() >= ALIKE
