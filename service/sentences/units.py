"""An answer's text in sentences, list items, table rows and blocks of code, while it is still being written.

A citation behind a sentence's end is the sentence's, so a sentence is finished when something else follows it. A unit
of more than ``MAX_UNIT_CHARACTERS`` is cut there; each character is looked at a bounded number of times.
"""

import re
from typing import Literal

from msgspec import Struct

from service.markup.streaming.code import MIN_FENCE, Fence, fence_line, place_of_fence, run_of
from service.markup.streaming.lines import MARKERS, START, place_of, without_quotes

MAX_UNIT_CHARACTERS = 5_000
MAX_HEAD = 100
"""Limit for the markers that a line begins with, in characters; a line with more is read when it is whole."""
_LOOK_AT = re.compile("[.!?。！？ ]")  # noqa: RUF001
Kind = Literal["sentence", "item", "row", "heading", "code"]

_END = re.compile(r"(?:[.!?][\"'”’»)\]*_`]{0,5}(?=\s)|[。！？])")  # noqa: RUF001
_ABBREVIATION = re.compile(
    r"(?:\b(?:e\.g|i\.e|etc|vs|cf|approx|no|resp|incl|z\.B|d\.h|bzw|ca|usw|u\.a|p\.ex|ex|Nr|Dr|Mr|St|max|min)|\b[A-Z]|(?:^|\s)\d{1,3})\.$",
    re.IGNORECASE,
)
_CITATIONS = re.compile(r"(?:\s?\[\d{1,3}\]\([^()\s]{0,2000}\)[.,;]?)*")
_MAY_CITE = re.compile(r"\s*(?:\[(?:\d{0,3}(?:\](?:\([^()\s]{0,2000})?)?)?)?\Z")
_ITEM = re.compile(r"[ \t>]*(?:[-*+]|\d{1,4}[.)])[ \t]+")
_HEADING = re.compile(r"[ \t>]*#{1,6}[ \t]")
_RULE = re.compile(r"[ \t>|:=-]*\Z")


class Unit(Struct, frozen=True):
    kind: Kind
    text: str
    start: int
    """Where it begins in the answer, in characters."""
    paragraph: int
    """Units of one paragraph or list item share it, and the parts of a code block."""
    info: str = ""
    """The language of a code block."""
    starts: tuple[int, ...] = ()
    """Where each line of a code block begins in the answer; empty lines are left out."""


class UnitReader:
    """Feed it the text as readers get it, then ``finish``."""

    def __init__(self) -> None:
        self._line: list[str] = []
        self._buffer = ""
        """The part of the paragraph that is not yet a sentence."""
        self._from = 0
        """Where in the buffer the search for an end goes on."""
        self._kind: Kind = "sentence"
        self._at = 0
        """Where in the answer the buffer begins."""
        self._end = 0
        self._paragraph = 0
        self._fence: Fence | None = None
        self._info = ""
        self._lines: list[tuple[int, str]] = []
        """The lines of the code block so far, and where each begins."""
        self._size = 0
        """Their characters."""
        self._row: Unit | None = None
        """A row of a table that may be its head: the next line says so."""
        self._rows = 0
        """Those of the table so far, with its rule."""
        self._before = START
        self._is_line_begun = False
        """The beginning of the line is in the buffer already."""
        self._is_line_held = False
        """The line is no prose: it is read when it is whole."""

    def feed(self, text: str) -> list[Unit]:
        """Return the units that this text finished."""
        units: list[Unit] = []
        *whole, rest = text.split("\n")
        for index, line in enumerate((*whole, rest)):
            if line:
                self._line.append(line)
            if index < len(whole):
                self._take_line("".join(self._line), units, is_whole=True)
                self._line.clear()
                self._is_line_held = False
            elif line and self._fence is None and not self._is_line_held and _LOOK_AT.search(line):
                self._look_ahead(units)
        return units

    def finish(self) -> list[Unit]:
        """Return what is left; afterwards a new text may begin."""
        units: list[Unit] = []
        if self._line:
            self._take_line("".join(self._line), units, is_whole=False)
            self._line.clear()
            self._is_line_held = False
        self._end_block(units)
        self._flush(units)
        self._fence, self._info, self._before = None, "", START
        self._paragraph += 1
        return units

    @property
    def in_code(self) -> bool:
        return self._fence is not None

    def _look_ahead(self, units: list[Unit]) -> None:
        """Move the part of a prose line that is here into the buffer, when it cannot be anything but prose."""
        line = "".join(self._line)
        if not self._is_line_begun:
            if len(line) < 12 and not line.lstrip(" \t>*-+0123456789.)"):
                return
            content = line.lstrip(MARKERS)
            if content[:1] in ("`", "~", "|", "#", ""):
                self._is_line_held = content[:1] != "" or len(line) > MAX_HEAD
                return
            self._begin_line(line, units)
        self._buffer += line
        self._end += len(line)
        self._line.clear()
        self._is_line_begun = True
        self._split(units, final=False)

    def _begin_line(self, line: str, units: list[Unit]) -> None:
        if _ITEM.match(line):
            self._flush(units)
            self._paragraph += 1
            self._kind = "item"

    def _take_line(self, line: str, units: list[Unit], *, is_whole: bool) -> None:
        length = len(line) + (1 if is_whole else 0)
        if self._is_line_begun:
            self._buffer += line + ("\n" if is_whole else "")
            self._end += length
            self._is_line_begun = False
            self._before = place_of("a", self._before)
            self._split(units, final=False)
            return
        if self._fence is not None and self._in_fence(line, length, units):
            return
        content = line.lstrip(MARKERS)
        run = content[: run_of(content)] if content[:1] in ("`", "~") else ""
        if len(run) >= MIN_FENCE and not (run[0] == "`" and "`" in content[len(run) :]):
            place = place_of_fence(run, line[: len(line) - len(content)], self._before)
            if place is not None:
                self._flush(units)
                self._fence, self._info = Fence(run, place), content[len(run) :].strip().lower()[:60]
                self._end += length
                self._at = self._end
                self._paragraph += 1
                return
        self._before = place_of(line[:1000], self._before)
        if not line.strip(" \t>"):
            self._flush(units)
            self._paragraph += 1
            self._kind = "sentence"
            self._end += length
            self._at = self._end
            return
        is_row = line.lstrip(" \t>").startswith("|")
        if is_row or _HEADING.match(line):
            self._take_alone(line, length, "row" if is_row else "heading", units)
            return
        self._begin_line(line, units)
        self._buffer += line + ("\n" if is_whole else "")
        self._end += length
        self._split(units, final=False)

    def _take_alone(self, line: str, length: int, kind: Kind, units: list[Unit]) -> None:
        """Read a line that is a unit by itself. The row above a table's rule is its head, and says nothing."""
        is_rule, rows = _RULE.match(line) is not None, self._rows
        if kind == "row" and is_rule and rows == 1:
            self._row = None
        self._flush(units)
        self._paragraph += 1
        unit = Unit(kind, line.strip()[:MAX_UNIT_CHARACTERS], self._end, self._paragraph)
        if kind == "row":
            self._row, self._rows = None if is_rule else unit, rows + 1
        elif not is_rule:
            units.append(unit)
        self._end += length
        self._at = self._end

    def _in_fence(self, line: str, length: int, units: list[Unit]) -> bool:
        """Read a line of the block; return False when it stands behind the block."""
        assert self._fence is not None
        found = fence_line(self._fence, line + "\n", final=True)
        if found is not None and found.kind == "outside":
            self._end_block(units)
            self._fence = None
            self._paragraph += 1
            return False
        if found is not None and found.kind == "closing":
            self._end_block(units)
            self._before, self._fence = self._fence.place, None
            self._paragraph += 1
            self._kind = "sentence"
        elif line.strip():
            quotes = len(line) - len(without_quotes(line)) if self._fence.place.quotes else 0
            code = line[quotes : quotes + MAX_UNIT_CHARACTERS]
            if self._lines and self._size + len(code) > MAX_UNIT_CHARACTERS:
                self._end_block(units)
            self._lines.append((self._end + quotes, code))
            self._size += len(code)
        self._end += length
        self._at = self._end
        return True

    def _end_block(self, units: list[Unit]) -> None:
        """Give the lines of code that wait: a block, or as much of it as a unit holds."""
        if self._lines:
            starts = tuple(at for at, _ in self._lines)
            text = "\n".join(code for _, code in self._lines)
            units.append(Unit("code", text, starts[0], self._paragraph, self._info, starts))
        self._lines, self._size = [], 0

    def _split(self, units: list[Unit], *, final: bool) -> None:
        """Take the finished sentences off the buffer, and a row that waits before them."""
        if self._row is not None:
            units.append(self._row)
        self._row, self._rows = None, 0
        begin, cut_at = 0, self._from
        buffer = self._buffer
        while (found := _END.search(buffer, cut_at)) is not None:
            end = found.end()
            if _ABBREVIATION.search(buffer, max(begin, end - 12), end):
                cut_at = end
                continue
            cited = _CITATIONS.match(buffer, end)
            behind = cited.end() if cited is not None else end
            if not final and _MAY_CITE.match(buffer, behind, behind + 2100):
                cut_at = found.start()
                break
            self._emit(buffer[begin:behind], self._at + begin, units)
            begin = cut_at = behind
        else:
            cut_at = max(cut_at, len(buffer) - 8, begin)
        while len(buffer) - begin > MAX_UNIT_CHARACTERS:
            self._emit(buffer[begin : begin + MAX_UNIT_CHARACTERS], self._at + begin, units)
            begin += MAX_UNIT_CHARACTERS
        self._buffer = buffer[begin:]
        self._at += begin
        self._from = max(0, cut_at - begin)

    def _flush(self, units: list[Unit]) -> None:
        self._split(units, final=True)
        if self._buffer.strip():
            self._emit(self._buffer, self._at, units)
        self._buffer, self._from = "", 0
        self._at = self._end
        self._is_line_begun = False

    def _emit(self, text: str, at: int, units: list[Unit]) -> None:
        words = text.strip()
        if words:
            units.append(Unit(self._kind, words, at + len(text) - len(text.lstrip()), self._paragraph))
