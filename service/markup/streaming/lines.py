"""Where in Markdown a line stands: which of its lists and quotes are open, and whether a code fence may begin there.

A filter that leaves code untouched must be sure that it is code for every reader, so this has three answers: a fence
begins here, none does, and "that depends". The last one is for nested markers, tabs and the like, where CommonMark
(0.31, section 5) decides by what stood many lines before. A list or quote that is open here is open by CommonMark; one
that is open by CommonMark may be unknown here.
"""

import re

from msgspec import Struct

_QUOTES = re.compile(r"(?: {0,3}+> ?+)*+")
_MARKER = re.compile(r"(?P<sign>[-*+]|(?P<number>[0-9]{1,9})[.)])(?P<blanks> {1,4})(?=\S)")
_ANY_MARKER = re.compile(r">|(?:[-*+]|[0-9]{1,9}[.)])(?:[ \t\n]|\Z)")
_HEAD = re.compile(r"(?:[ \t]+|>|(?:[-*+]|[0-9]{1,9}[.)])(?=[ \t]))*+")
_MARKER_BEGUN = re.compile(r"(?:[-*+]|[0-9]{1,9}[.)]?)?\Z")
_WIDE = re.compile(r" {4}|\t")
_TOO_WIDE = re.compile(r" *\t[ \t]*| {5,}")

MARKERS = " \t>-*+0123456789.)"
"""Characters of the marks of quotes and lists, and of the blanks around them."""
BLANKS = " \t"
"""The only characters that CommonMark (0.31, section 2.1) accepts as indentation and as the whole of a blank line."""
LINE_CHARACTERS = 1_000
"""The part of a line that is looked at, in characters; nothing depends on the rest of a longer head."""
CODE_INDENT = 4
"""Columns of blanks, beyond what the open containers need, that make code of what follows."""


class Place(Struct, frozen=True):
    """Behind the quote and list markers that a line begins with."""

    quotes: int = 0
    items: tuple[int, ...] = ()
    """Columns, within the quotes, at which the content of the open list items begins; outermost first."""
    column: int = 0
    """Within the quotes: blanks and list markers before the first character of the content."""
    is_blank: bool = True
    """There is no content."""
    is_certain: bool = True
    """A fence that stood here would be one for every reader; else it might be text."""


START = Place()
"""Before the first line."""
_PROSE = Place(is_blank=False)
"""Place of a line that begins with a letter: it ends what is open, or continues its prose."""


def place_of(line: str, before: Place) -> Place:
    """Return the place of a line, or of its beginning up to the content; ``before`` is that of the line before."""
    if line[:1].isalpha():
        return _PROSE
    if not line and not before.items:
        return START
    found = _QUOTES.match(line)
    assert found is not None
    quotes, rest = found[0].count(">"), line[found.end() :]
    items = before.items if quotes == before.quotes else ()
    content = rest.lstrip(BLANKS)
    if not content:
        return Place(quotes, items, len(rest))
    column = len(rest) - len(content)
    is_certain = "\t" not in rest[:column]
    outer = line[: found.end()]
    if quotes and before.items and len(outer) - len(outer.lstrip(" ")) >= before.items[0]:
        is_certain = False  # perhaps a quote within the item
    kept = tuple(start for start in items if start <= column)
    has_ended = len(kept) < len(items)
    if column - (kept[-1] if kept else 0) >= CODE_INDENT:
        is_certain = False  # indented code, or a paragraph that goes on
    marker = _MARKER.match(content)
    if marker is not None and is_certain:
        behind = content[marker.end() :]
        number = marker["number"]
        begins = number is None or int(number) == 1 or before.is_blank or has_ended
        if begins and not _ANY_MARKER.match(behind):
            column += marker.end()
            kept = (*kept, column)
        else:
            is_certain = False
    elif _ANY_MARKER.match(content):
        is_certain = False
    return Place(quotes, kept, column, is_blank=False, is_certain=is_certain)


def without_quotes(line: str) -> str:
    return _QUOTES.sub("", line, count=1)


def head_of(text: str, *, final: bool) -> str | None:
    """Return the blanks and markers that a line begins with; None while more of the line may belong to them."""
    found = _HEAD.match(text)
    assert found is not None
    if not final and _MARKER_BEGUN.match(text, found.end()):
        return None
    return found[0]


def is_wide(head: str) -> bool:
    """Return whether what follows may be code by its indentation."""
    return _WIDE.search(head) is not None


def narrowed(head: str, before: Place) -> str:
    """Return the head of a line with fewer blanks, so that by no reading of it what follows is indented code."""
    found = _QUOTES.match(head)
    assert found is not None
    outer, rest = found[0], head[found.end() :]
    items = before.items if outer.count(">") == before.quotes else ()
    markers = rest.lstrip(BLANKS)
    width = len(rest[: len(rest) - len(markers)].expandtabs(CODE_INDENT))
    least = (items[-1] if items else 0) + CODE_INDENT - 1
    return outer + " " * min(width, least) + _TOO_WIDE.sub(" ", markers)


class Indents:
    """Knows the lines that are code by their indentation for every reader: those of blocks outside of all containers.

    Feed it each line at its ``end``. Outside is what an unindented line without a marker begins that follows a blank
    one: nothing can go on through that, not even a paragraph. The text begins outside.
    """

    def __init__(self) -> None:
        self._is_outside = True
        self._is_behind_blank = True
        """The line before is blank, or code of this kind."""

    def is_code(self, line: str) -> bool:
        """Return whether the line is code; its beginning, with one character of its content, is enough."""
        if not (self._is_outside and self._is_behind_blank and line[:1] in BLANKS):
            return False
        content = line.lstrip(BLANKS)
        return len(line[: len(line) - len(content)].expandtabs(CODE_INDENT)) >= CODE_INDENT

    def end(self, line: str) -> None:
        content = line.lstrip(BLANKS)
        if not content:
            self._is_behind_blank = True
        elif not self.is_code(line):
            if _ANY_MARKER.match(content):
                self._is_outside = False
            elif self._is_behind_blank and len(content) == len(line):
                self._is_outside = True
            self._is_behind_blank = False
