"""Where in Markdown a line stands: which of its lists and quotes are open, and whether a code fence may begin there.

Whoever lets code through untouched must be sure that it is code for every reader, so this knows three answers: a fence
begins here, none does, and "that depends". The last one is for nested markers, tabs and the like, where CommonMark
(0.31, section 5) decides by what stood many lines before. What is taken for open here is open by CommonMark; what is
open by CommonMark may be unknown here.
"""

import re

from msgspec import Struct

_QUOTES = re.compile(r"(?: {0,3}> ?)*")
_MARKER = re.compile(r"(?P<sign>[-*+]|(?P<number>\d{1,9})[.)])(?P<blanks> {1,4})(?=[^\s])")
_ANY_MARKER = re.compile(r">|(?:[-*+]|\d{1,9}[.)])(?:\s|\Z)")


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


def place_of(line: str, before: Place) -> Place:
    """Of a line, or of its beginning that ends in the content; ``before`` is the place of the line before it."""
    found = _QUOTES.match(line)
    assert found is not None
    quotes, rest = found[0].count(">"), line[found.end() :]
    items = before.items if quotes == before.quotes else ()
    content = rest.lstrip()
    if not content:
        return Place(quotes, items, len(rest))
    column = len(rest) - len(content)
    is_certain = "\t" not in rest[:column]
    outer = line[: found.end()]
    if quotes and before.items and len(outer) - len(outer.lstrip(" ")) >= before.items[0]:
        is_certain = False  # perhaps a quote within the item
    kept = tuple(start for start in items if start <= column)
    has_ended = len(kept) < len(items)
    if column - (kept[-1] if kept else 0) > 3:
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
