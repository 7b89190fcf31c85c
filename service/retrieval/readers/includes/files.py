"""Other files that a page shows: their text within limits, and the snippets that it imports.

A page names files in two ways, and each has one place: a file whose lines stand where the page names it is put there
before the page is read (``expansion``, from ``Files``); a component or a shortcode that shows a file is met while the
page is read (``OtherFiles``: ``import_snippets``, and ``has`` before ``text``).
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from service.markup.dialects.dialect import Dialect
from service.ports.docs_source import PAGE_BYTES

MAX_SNIPPETS, MAX_SNIPPET_BYTES, MAX_INCLUDED = 50, PAGE_BYTES["md"], 1_000_000
"""Limits for the snippets of a page, for the bytes of each file that are read, and for the characters that are shown. A
change log of years is a file of 500,000.
"""
MAX_FILES = 300
"""Limit for the files whose lines stand in a page, those within others counted."""
MAX_CHOSEN = 20_000
"""Characters of several parts of one file."""
MAX_RANGES, MAX_DIGITS = 200, 9
"""Ranges of lines of one file; digits of a number."""
MAX_SHOWN = MAX_INCLUDED
"""Characters of other files that a page shows in all: it may show the same one in each of its sections."""

MAX_CUT_NAME = 180
_CUT = "\n"
"""No page names a file with a line's end in it."""

Include = Callable[[str], bytes | None]
"""The content of a file as a page names it; None when there is none."""
ContentOf = Callable[[bytes, str, Dialect], str]
"""Return the clean content of a file with this name; empty where there is none."""

_SNIPPET = re.compile(r"^import[ \t]+(\w+)[ \t]+from[ \t]+['\"]([^'\"\n]{1,500}\.mdx?)['\"]", re.MULTILINE)


class Files:
    """Other files by the names that a page gives them, within the limits of one page."""

    def __init__(self, include: Include | None) -> None:
        self._include = include
        self._room, self._count = MAX_SHOWN, 0

    def data(self, name: str) -> bytes | None:
        """Return the content of a file; None where it does not exist or is too large."""
        data = self._include(name) if self._include is not None else None
        return data if data is not None and len(data) <= MAX_SNIPPET_BYTES else None

    def lines(self, name: str) -> list[str] | None:
        """Return the lines of a file; None where it does not exist or the page has shown too much."""
        data = self.data(name) if self._count < MAX_FILES and self._room else None
        if data is None:
            return None
        self._count += 1
        return self.within_room(data.decode("utf-8-sig", "replace")[:MAX_INCLUDED]).splitlines()

    def indented(self, lines: Sequence[str], indent: str) -> list[str]:
        """Return lines of a file with what stands before its name, which counts for each of them; without it where the
        page has shown too much: a file of short lines may be named far to the right.
        """
        needed = len(indent) * sum(map(bool, lines))
        if needed > self._room:
            return list(lines)
        self._room -= needed
        return [indent + line if line else line for line in lines]

    def within_room(self, text: str) -> str:
        """Return as much of a text as the page may show."""
        text = text[: self._room]
        self._room -= len(text)
        return text


def chosen_lines(parts: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of some parts of a file, one after the other, within ``MAX_CHOSEN`` characters, or those of the
    longest part: a page may name the same part again and again.
    """
    found: list[str] = []
    chosen = list(parts)
    room = max(MAX_CHOSEN, max((sum(map(len, part)) + len(part) for part in chosen), default=0))
    for line in (line for part in chosen for line in part):
        room -= len(line) + 1
        if room < 0:
            break
        found.append(line)
    return found


def separated(written: str, mark: str = ",") -> Iterator[str]:
    """Yield the ranges that a page names in one line."""
    yield from written.split(mark, MAX_RANGES)[:MAX_RANGES]


def number_in(written: str) -> int:
    """Return a number of lines or columns, of which ``MAX_DIGITS`` count: Python refuses to read thousands."""
    return int(written.strip()[:MAX_DIGITS])


def cut_name(target: str, limit: int) -> str:
    """Return the name of a file with the characters of it that are read."""
    return f"{target[:MAX_CUT_NAME]}{_CUT}{limit}"


def limit_in(name: str) -> tuple[str, int]:
    """Return the file that a reader noted as missing, and the characters of it that are read: 0 when none are."""
    target, cut, limit = name.rpartition(_CUT)
    return (target, int(limit)) if cut else (name, 0)


class OtherFiles:
    """The other files that one page shows, each read when it is first named."""

    def __init__(self, dialect: Dialect, files: Files, content_of: ContentOf) -> None:
        self._dialect, self._files, self._content_of = dialect, files, content_of
        self._snippets: dict[str, str] = {}

    def import_snippets(self, body: str) -> frozenset[str]:
        """Keep each snippet that the page imports; return the names of their components."""
        for name, target in _SNIPPET.findall(body)[:MAX_SNIPPETS]:
            data = self._files.data(target)
            text = self._content_of(data, target, self._dialect) if data is not None else ""
            if text:
                self._snippets[name] = text[:MAX_INCLUDED]
        return frozenset(self._snippets)

    def has(self, target: str) -> bool:
        """Keep a file that the page shows, for the place where it is used; return whether there is one."""
        if target not in self._snippets and len(self._snippets) < MAX_SNIPPETS:
            data = self._files.data(target)
            if data is None:
                return False
            self._snippets[target] = self._content_of(data, target, self._dialect)[:MAX_INCLUDED]
        return bool(self._snippets.get(target))

    def text(self, name: str) -> str:
        """Return the text of a snippet that was kept, by the name of its component or as the page names its file."""
        return self._files.within_room(self._snippets[name])
