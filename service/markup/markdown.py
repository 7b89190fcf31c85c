"""A page of Markdown or MDX, read once for all who ask: its front matter, blocks, links, and what of it is prose."""

import re
from bisect import bisect_right
from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate

from service.markup.blocks import Block, blocks_of, is_loose, unclosed_fence
from service.markup.dialects.dialect import PLAIN, Dialect
from service.markup.dialects.mdx import hidden_braces
from service.markup.front_matter import split_front_matter
from service.markup.inline import InlineReader, Place
from service.markup.links import Link, links_of

_COMPONENT = re.compile(r"[ \t>]*+</?[A-Z]")
"""Sites that know components read Markdown in them, also where CommonMark takes it all for HTML."""
_NOT_LINE_END = re.compile(r"[^\n]")


class Markdown:
    """Places are offsets in the text that was given, in which only line ends may have become LF; lines count from 0."""

    def __init__(self, text: str, *, path: str = "", dialect: Dialect = PLAIN) -> None:
        text = " " + text[1:] if text.startswith("\ufeff") else text
        self.text = text.replace("\r\n", " \n").replace("\r", "\n") if "\r" in text else text
        self.mdx = dialect.is_mdx(path)
        self.front_matter, self.start = split_front_matter(self.text)
        """And where the page's own text begins."""
        self.first_line = self.text.count("\n", 0, self.start)
        self._counted = hidden_braces(self.text) if self.mdx else self.text
        """The text for those who count braces."""
        body = self._counted[self.start :]
        self.is_loose = is_loose(body, dialect, mdx=self.mdx)
        self.blocks: Sequence[Block] = blocks_of(body, mdx=self.mdx, loose=self.is_loose)
        """Their lines count from that place."""

    @property
    def headings(self) -> list[Block]:
        """Return the headings that divide the page; not those in lists and quotes."""
        return [block for block in self.blocks if block.level and not block.depth]

    @cached_property
    def links(self) -> Sequence[Link]:
        return links_of(self.text, self._inline)

    def line_of(self, place: int) -> int:
        """Return the line in the file, from 1, that a place of the page's own text is on."""
        return self.first_line + bisect_right(self._starts, place)

    @cached_property
    def unseen(self) -> Sequence[Place]:
        """Comments, and what MDX imports and exports."""
        blocks = [self.place_of(block) for block in self.blocks if block.kind == "unseen"]
        return sorted([*blocks, *self._inline.comments])

    @cached_property
    def code(self) -> Sequence[Place]:
        """Whole lines of blocks, and spans with their marks."""
        blocks = [self.place_of(block) for block in self.blocks if block.kind in ("fence", "code")]
        return sorted([*blocks, *self.code_spans])

    @property
    def code_spans(self) -> Sequence[Place]:
        return self._inline.code

    @cached_property
    def prose(self) -> str:
        """The text with blanks in place of front matter, code and what no reader sees."""
        kept: list[str] = []
        at = 0
        for start, end in sorted([(0, self.start), *self.unseen, *self.code]):
            if end > at:
                kept += [self.text[at:start], _NOT_LINE_END.sub(" ", self.text[max(at, start) : end])]
                at = end
        return "".join([*kept, self.text[at:]])

    @cached_property
    def seen(self) -> str:
        """The page's own text without what no reader sees, with every line kept."""
        kept: list[str] = []
        at = self.start
        for start, end in self.unseen:
            kept += [self.text[at:start], "\n" * self.text.count("\n", start, end)]
            at = end
        return "".join([*kept, self.text[at:]])

    @property
    def unclosed_fence(self) -> int | None:
        """The line in the file, from 1, of a fence that swallows the rest of the page."""
        found = unclosed_fence(self.text[self.start :], self.blocks)
        return None if found is None else self.first_line + found.first + 1

    @cached_property
    def _starts(self) -> Sequence[int]:
        """Return where each line of the page's own text begins, and its end."""
        lines = self.text[self.start :].split("\n")
        return list(accumulate((len(line) + 1 for line in lines), initial=self.start))

    def place_of(self, block: Block) -> Place:
        """Return where its lines begin and end."""
        return self._starts[block.first], min(self._starts[block.after], len(self.text))

    @cached_property
    def _inline(self) -> InlineReader:
        reader = InlineReader(self._counted)
        prose = [(block, *self.place_of(block)) for block in self.blocks if block.kind in ("text", "heading", "html")]
        behind: dict[int, int] = {}
        if "]:" in self.text:
            for block, start, end in prose:
                if block.kind == "text" and block.text.startswith("["):
                    behind[start] = reader.define(start, end)
        for block, start, end in prose:
            if block.kind == "html" and not _COMPONENT.match(self.text, start, end):
                reader.read_html(start, end)
            else:
                reader.read(behind.get(start, start), end)
        return reader


def without_comments(text: str) -> str:
    """Return a block's text without the comments in it."""
    if "<!--" not in text and "{/*" not in text:
        return text
    reader = InlineReader(text)
    reader.read(0, len(text))
    kept, at = [], 0
    for start, end in reader.comments:
        kept.append(text[at:start])
        at = end
    return "".join([*kept, text[at:]])
