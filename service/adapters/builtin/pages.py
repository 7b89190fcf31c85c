"""What the builtin editor reads out of pages and their paths."""

import re
from collections.abc import Iterable, Sequence

from msgspec import Struct

from service.markup import front_matter
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
    start, end = 0, len(lines)
    for number, words in headings(lines):
        if start:
            end = number - 1
            break
        if _heading_words(words) == wanted:
            start = number
    if not start:
        return None
    least = start + (1 if start < len(lines) and _UNDERLINE.fullmatch(lines[start]) else 0)
    while end > least and not lines[end - 1].strip():
        end -= 1
    return Section(start, max(end, least))


_UNDERLINE = re.compile(r"(?:=+|-+)\s*")


def headings(lines: Sequence[str]) -> Iterable[tuple[int, str]]:
    """Line numbers and words of a page's headings, ``#`` and underlined ones; not what stands in code."""
    fence = ""
    for number, line in enumerate(
        lines[front_matter.lines_of("\n".join(lines)) :], front_matter.lines_of("\n".join(lines)) + 1
    ):
        mark = re.match(r"\s*(`{3,}|~{3,})", line)
        if mark and (not fence or mark[1].startswith(fence)):
            fence = "" if fence else mark[1]
        elif fence:
            continue
        elif found := re.match(r"(#{1,6})\s+(.+)", line):
            yield number, found[2]
        elif (
            number < len(lines)
            and _UNDERLINE.fullmatch(lines[number])
            and re.match(r"[^\s>|*+-]", line)
            and (number < 2 or not lines[number - 2].strip())
        ):
            yield number, line


def top_of(lines: Sequence[str]) -> int:
    """The line after which a page's text begins: its front matter, imports and title."""
    after = at = front_matter.lines_of("\n".join(lines))
    while at < len(lines) and (not lines[at].strip() or lines[at].startswith(("import ", "export "))):
        at += 1
        if lines[at - 1].strip():
            after = at
    if at < len(lines) and re.match(r"#\s", lines[at]):
        after = at + 1
    return after


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
