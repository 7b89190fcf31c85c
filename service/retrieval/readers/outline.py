"""A page, put together from its headings, prose and code as a parser meets them: the sections of every format but
Markdown, which has a reader of its own, are made here, by the same rules.
"""

import re
from bisect import bisect_right
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from service.markup.fences import fenced
from service.markup.front_matter import FrontMatter
from service.markup.prose import MAX_HEADING, MAX_LINKS
from service.retrieval.readers.entries import Entry, entries_of
from service.retrieval.readers.markdown import MAX_SECTION, Link, PageSection, ParsedPage

MAX_HEADINGS = 10_000
MAX_BLOCKS = 100_000


class TooLong(Exception):
    """A page has more headings or blocks than people write."""


class _Block(Struct):
    text: str
    first: int
    last: int


class _Part(Struct):
    level: int
    heading: str
    anchor: str
    first: int
    blocks: list[_Block]
    is_code: bool = False


class Outline:
    """Lines count from 1."""

    def __init__(self) -> None:
        self.links: list[Link] = []
        self.anchors: set[str] = set()
        self._parts = [_Part(0, "", "", 1, [])]
        self._blocks = 0

    def heading(self, level: int, text: str, anchor: str, line: int, *, is_code: bool = False) -> None:
        """``is_code``: as ``PageSection`` has it. Raises TooLong."""
        if len(self._parts) > MAX_HEADINGS:
            raise TooLong
        if anchor:
            self.anchors.add(anchor)
        self._parts.append(_Part(level, " ".join(text.split())[:MAX_HEADING], anchor, line, [], is_code))

    def prose(self, text: str, first: int, last: int) -> None:
        """A paragraph, a list item, a table: whatever stands together. Raises TooLong."""
        text = re.sub(r"\n{3,}", "\n\n", re.sub(r"(?<![ \t])[ \t]++$", "", text, flags=re.MULTILINE)).strip("\n")
        if text.strip():
            self._add(text, first, last)

    def code(self, text: str, language: str, first: int, last: int) -> None:
        """Raises TooLong."""
        if text.strip():
            self._add(fenced(text.strip("\n"), language), first, last)

    def _add(self, text: str, first: int, last: int) -> None:
        self._blocks += 1
        if self._blocks > MAX_BLOCKS:
            raise TooLong
        self._parts[-1].blocks.append(_Block(text, first, max(first, last)))

    def link(self, href: str, text: str, line: int) -> None:
        if href and len(self.links) < MAX_LINKS:
            self.links.append(Link(href, " ".join(text.split())[:MAX_HEADING], line))

    def page(self, path: str, *, title: str, description: str, front_matter: FrontMatter, last_line: int) -> ParsedPage:
        """The first heading names a page that says no title; when it opens the page it is no section of its own."""
        parts = self._parts
        named = next((part for part in parts if part.level == 1), None)
        title = title or (named.heading if named is not None else "")
        if len(parts) > 1 and parts[1].level == 1 and not parts[0].blocks:
            opening = parts[1]
            heading = "" if opening.heading == title else opening.heading
            parts = [_Part(0, heading, "", 1, opening.blocks), *parts[2:]]
        sections: list[PageSection] = []
        content: list[str] = []
        above: list[tuple[int, str]] = []
        for index, part in enumerate(parts):
            end = max(part.first, parts[index + 1].first - 1 if index + 1 < len(parts) else last_line)
            if part.level:
                while above and above[-1][0] >= part.level:
                    above.pop()
                above.append((part.level, part.heading))
                content.append(f"{'#' * min(part.level, 6)} {part.heading}")
            content.extend(block.text for block in part.blocks)
            names = tuple(text for _, text in above) or ((part.heading,) if part.heading else ())
            is_parent = index + 1 < len(parts) and parts[index + 1].level > part.level
            if part.blocks:
                sections.extend(_sections(part, names, end))
            elif part.anchor and not is_parent:
                sections.append(
                    PageSection(part.heading, names, part.anchor, "", part.first, end, is_code=part.is_code)
                )
        if not sections and (title or description):
            sections.append(PageSection("", (), "", description, 1, max(last_line, 1)))
        return ParsedPage(
            path=path, title=title, description=description, front_matter=front_matter, sections=tuple(sections),
            anchors=frozenset(self.anchors), links=tuple(self.links), content="\n\n".join(content),
        )  # fmt: skip


def _sections(part: _Part, names: tuple[str, ...], end: int) -> list[PageSection]:
    found: list[PageSection] = []
    groups = _grouped(part.blocks)
    for index, group in enumerate(groups):
        first = part.first if index == 0 else group[0].first
        last = max(first, groups[index + 1][0].first - 1) if index + 1 < len(groups) else max(first, end)
        text = "\n\n".join(block.text for block in group)
        entries = _entries(text, group)
        found.append(PageSection(part.heading, names, part.anchor, text, first, last, entries, is_code=part.is_code))
    return found


def _entries(text: str, blocks: Sequence[_Block]) -> tuple[Entry, ...]:
    """Return the entries of a section that these blocks make, each with its lines, or with those of its block."""
    above, tops = 0, list[int]()
    for block in blocks:
        tops.append(above)
        above += block.text.count("\n") + 2
    found = []
    for entry in entries_of(text):
        at = bisect_right(tops, entry.first) - 1
        block = blocks[at]
        start, end = block.first, block.last
        if block.text.count("\n") == end - start:
            start, end = start + entry.first - tops[at], min(end, start + entry.after - 1 - tops[at])
        found.append(replace(entry, start_line=start, end_line=end))
    return tuple(found)


def _grouped(blocks: Sequence[_Block]) -> list[list[_Block]]:
    """Runs of at most ``MAX_SECTION`` characters, unless one block alone is longer."""
    groups: list[list[_Block]] = [[]]
    size = 0
    for block in blocks:
        if groups[-1] and size + len(block.text) > MAX_SECTION:
            groups.append([])
            size = 0
        groups[-1].append(block)
        size += len(block.text)
    return groups
