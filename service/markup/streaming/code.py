"""Code as Markdown marks it, read while it is still being written: fenced blocks line by line, and spans.

What begins and ends code is decided here for all who read an answer as it flows (CommonMark 0.31, sections 4.5, 6.1).
``CodeLexer`` says at once what the next character is in: that is for those who look for what means nothing in code.
``fence_line`` and ``span_of`` wait for whatever may still change what a text is, and decide nothing that a renderer may
see otherwise: that is for those who let code through untouched.
"""

import re
from typing import Literal

from msgspec import Struct

from service.markup.streaming.lines import (
    BLANKS,
    CODE_INDENT,
    LINE_CHARACTERS,
    MARKERS,
    START,
    Place,
    narrowed,
    place_of,
    without_quotes,
)

MAX_SPAN = 500
"""Characters between the backticks of a code span; a longer one is text."""

MIN_FENCE = 3
"""Backticks or tildes that begin a block."""
KEPT_OF_LINE = 100
"""Characters of a line that readers of ``CodeLexer`` keep."""


class Fence(Struct, frozen=True):
    mark: str
    """Its run of backticks or tildes."""
    place: Place
    """Place of its first line."""

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


class CodeLexer:
    """Where a text stands that is read once, from left to right: in prose, in a code span, or in a fenced block.

    The lines, without their ends, are the reader's to keep, the first ``KEPT_OF_LINE`` characters of each. Where a
    block has ended without a line that closes it is known at the end of the next line.
    """

    def __init__(self) -> None:
        self.is_info = False
        """On the first line of a block."""
        self.ticks = 0
        """Backticks that opened a span, or may have."""
        self.in_span = 0
        """Characters since then."""
        self._fence: Fence | None = None
        self._before = START

    @property
    def fence(self) -> str:
        """The run that began the block; empty outside of one."""
        return self._fence.mark if self._fence is not None else ""

    def text(self, count: int) -> None:
        """Note that ``count`` characters were read that are neither backticks, tildes nor ends of lines."""
        if self.ticks:
            self.in_span += count
            if self.in_span > MAX_SPAN:
                self.ticks = 0

    def run(self, run: str, line: str, *, may_be_fence: bool = True) -> None:
        """A run of backticks or tildes has been read, behind ``line``."""
        if self._fence is not None:
            if not self.is_info or run[0] == "~" or self._fence.mark[0] == "~":
                return
            self.ticks, self.in_span = len(self._fence.mark), 0  # a span after all
            self._fence, self.is_info = None, False
        place = place_of_fence(run, line, self._before) if may_be_fence and len(run) >= MIN_FENCE else None
        if place is not None and not place.is_certain:  # as it will be sent
            place = place_of_fence(run, narrowed(line, self._before), self._before)
        if place is not None and place.is_certain:
            self._fence, self.is_info, self.ticks = Fence(run, place), True, 0
        elif run[0] == "~" or (self.ticks and self.ticks != len(run)):
            self.text(len(run))
        else:
            self.ticks, self.in_span = 0 if self.ticks else len(run), 0

    def end_span(self) -> None:
        self.ticks = 0

    def end_line(self, line: str) -> None:
        """The line has ended: with it a span, and a block if the line closes it or stands outside of it."""
        self.ticks = 0
        if self._fence is None:
            self._before = place_of(line, self._before)
        elif self.is_info:
            self.is_info = False
        elif len(line) < KEPT_OF_LINE and (kind := _kind_of(self._fence, line)) != "code":
            self._before, self._fence = self._fence.place, None
            if kind != "closing":
                self._reread(line)

    def _reread(self, line: str) -> None:
        """The line stands behind the block: it may begin another."""
        content = line.lstrip(MARKERS)
        run = content[: run_of(content)] if content[:1] in ("`", "~") else ""
        if run and not (run[0] == "`" and "`" in content[len(run) :]):
            self.run(run, line[: len(line) - len(content)])
        self.end_line(line)


def _kind_of(fence: Fence, line: str) -> str:
    if not fence.place.quotes and not fence.place.column and fence.mark[0] not in line:
        return "code"  # as nearly all of them are
    found = fence_line(fence, f"{line}\n", final=True)
    return found.kind if found is not None else "code"


def place_of_fence(run: str, line: str, before: Place) -> Place | None:
    """Return the place of a run behind ``line`` that may begin a block: nothing but markers is before it, or what may
    be some. None when the run is too short, or stands behind text.
    """
    if len(run) < MIN_FENCE or line.strip(MARKERS):
        return None
    place = place_of(line + run[0], before)
    return place if not place.is_certain or place.column == len(without_quotes(line)) else None


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
