"""Facts that the builtin editor reads from pages and their paths."""

import re
from collections.abc import Sequence

from msgspec import Struct

from service.markup.markdown import Markdown
from service.markup.pages import INDEX_NAMES, PAGE_SUFFIXES

NAMED_SUFFIXES = (*PAGE_SUFFIXES, ".txt")
"""Files that an instruction may name: pages, and plain text beside them."""

# Pages


class Section(Struct, frozen=True):
    """By line numbers from 1: of its heading, and of its own text's last line that is not blank."""

    heading: int
    end: int


def section_of(lines: Sequence[str], heading: str) -> Section | None:
    """The first section under a heading of these words."""
    wanted = _heading_words(heading)
    page = Markdown("\n".join(lines))
    headings = page.headings
    at = next((at for at, block in enumerate(headings) if _heading_words(block.text) == wanted), None)
    if at is None:
        return None
    end = page.first_line + headings[at + 1].first if at + 1 < len(headings) else len(lines)
    least = page.first_line + headings[at].after
    while end > least and not lines[end - 1].strip():
        end -= 1
    return Section(page.first_line + headings[at].first + 1, max(end, least))


def top_of(lines: Sequence[str]) -> int:
    """The line after which a page's text begins: its front matter, imports and title."""
    page = Markdown("\n".join(lines), path="a.mdx")
    after = 0
    for block in page.blocks:
        if block.kind == "unseen" or (block.level == 1 and not block.depth):
            after = block.after
        if block.kind != "unseen":
            break
    return page.first_line + after


def _heading_words(text: str) -> str:
    return re.sub(r"\{#[^{}]*\}|[#*_`]", "", text).strip().casefold()


# Paths


def stem_of(path: str) -> str:
    return next((path[: -len(suffix)] for suffix in NAMED_SUFFIXES if path.lower().endswith(suffix)), path)


def is_page(path: str) -> bool:
    return path.lower().endswith(NAMED_SUFFIXES)


def is_index(path: str) -> bool:
    return stem_of(path).rpartition("/")[2].lower() in INDEX_NAMES


def is_meant(path: str, wanted: str) -> bool:
    """``guides/start`` means guides/start.md, and guides/start/index.md."""
    stem = stem_of(path)
    if stem == path:
        return False
    return ends_with(stem, wanted) or (is_index(path) and ends_with(stem.rpartition("/")[0], wanted))


def ends_with(path: str, end: str) -> bool:
    return path == end or path.endswith(f"/{end}")
