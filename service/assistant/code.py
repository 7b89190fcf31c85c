"""Code as Markdown marks it, read while it is still being written: fenced blocks line by line, and spans.

Whatever may still change what a text is, is waited for; nothing is decided that a renderer may see otherwise
(CommonMark 0.31, sections 4.5 and 6.1).
"""

import re
from typing import Literal

from msgspec import Struct

from service.assistant.lines import BLANKS, CODE_INDENT, LINE_CHARACTERS, Place

MAX_SPAN = 500
"""Characters between the backticks of a code span; a longer one is text."""


class Fence(Struct, frozen=True):
    mark: str
    """Its run of backticks or tildes."""
    place: Place
    """Of its first line."""

    @property
    def closing(self) -> str:
        """A line that closes the block."""
        return "> " * self.place.quotes + " " * self.place.column + self.mark


class FenceLine(Struct, frozen=True):
    """The beginning of a line in a fenced block, or behind it.

    ``code``: it is the block's. ``closing``: it closes the block, has ``length`` characters, and is sent as ``sent``.
    ``outside``: the quote that the block is in has ended, and the block with it. ``doubtful``: it may end the list that
    the block is in, or not; or it is too long to be waited for.
    """

    kind: Literal["code", "closing", "outside", "doubtful"]
    length: int = 0
    sent: str = ""


_CODE = FenceLine("code")


def fence_line(fence: Fence, text: str, *, final: bool) -> FenceLine | None:
    """Return what a line of the block is, by its beginning; None while more of it is needed."""
    quotes, own = fence.place.quotes, fence.place.column
    may_grow = not final and len(text) < LINE_CHARACTERS
    prefix = re.match(rf"(?: {{0,3}}+> ?+){{{quotes}}}", text)
    if prefix is None:
        return None if may_grow and not text.strip(" >") else FenceLine("outside")
    rest = text[prefix.end() :]
    content = rest.lstrip(BLANKS)
    if not content:
        return None if may_grow else _CODE
    if content[0] == "\n":
        return _CODE
    blanks = rest[: len(rest) - len(content)]
    column = len(blanks.expandtabs(CODE_INDENT))
    line, newline, _ = content.partition("\n")
    begun = line[:LINE_CHARACTERS]
    run = run_of(begun) if begun[0] == fence.mark[0] else 0
    is_bare = not begun[run:].strip(BLANKS)
    if run and is_bare and len(begun) == LINE_CHARACTERS:
        return FenceLine("doubtful")
    if run and is_bare and not newline and not final:
        return None
    if run >= len(fence.mark) and is_bare and column < own + CODE_INDENT:
        is_sure = own <= column <= max(own, CODE_INDENT - 1) and "\t" not in blanks
        indent = blanks if is_sure else " " * own
        length = prefix.end() + len(blanks) + len(line) + len(newline)
        return FenceLine("closing", length, prefix[0] + indent + line + newline)
    if column < own or (own and "\t" in blanks and quotes):
        return FenceLine("doubtful")
    return _CODE


def span_of(text: str, run: int, *, final: bool) -> int | None:
    """Return the length of the code span that a run of backticks begins, marks included; None while that may change.

    0: it is none, for its end is not on its line or too far.
    """
    at = run
    while (at := text.find("`", at)) >= 0:
        length = run_of(text, at)
        if (at + length == len(text) and not final) or length == run:
            break
        at += length
    end = text.find("\n")
    until = at if at >= 0 else len(text)
    if 0 <= end < until or until - run > MAX_SPAN:
        return 0
    if not final and (at < 0 or at + run_of(text, at) == len(text)):
        return None
    return at + run if at >= 0 and run_of(text, at) == run else 0


def run_of(text: str, at: int = 0) -> int:
    """Return how often the character at a place stands there in a row."""
    end = at
    while end < len(text) and text[end] == text[at]:
        end += 1
    return end - at
