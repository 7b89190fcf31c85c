"""Other files that a page shows: snippets that it imports, and files, or parts of them, that it names.

A file's own includes are not followed. ``OtherFiles`` has one method for each place where a page shows a file: an
import at the top (``import_snippets``), a name in prose (``has``, then ``text``), a line in code (``in_code``).
"""

import re
from collections.abc import Callable

from service.markup.dialects import Dialect

MAX_SNIPPETS, MAX_SNIPPET_BYTES, MAX_INCLUDED = 50, 64 << 10, 20_000
"""Limits for the snippets of a page, for the bytes of each that are read, and for the characters that are shown."""
MAX_SHOWN = MAX_SNIPPETS * MAX_INCLUDED
"""Characters of other files that a page shows in all: it may show the same one in each of its sections."""

Include = Callable[[str], bytes | None]
"""The content of a file as a page names it; None when there is none."""
ContentOf = Callable[[bytes, str, Dialect], str]
"""Return the clean content of a file with this name; empty where there is none."""

_SNIPPET = re.compile(r"^import[ \t]+(\w+)[ \t]+from[ \t]+['\"]([^'\"\n]{1,500}\.mdx?)['\"]", re.MULTILINE)
_SCISSORS = re.compile(r"^([ \t]*)-+8<-+[ \t]+[\"']([^\"'\n]{1,500})[\"'][ \t]*$", re.MULTILINE)
_SECTION_MARK = re.compile(r"-8<-+ \[(?:start|end):")


class OtherFiles:
    """The other files that one page shows, each read when it is first named."""

    def __init__(self, dialect: Dialect, include: Include | None, content_of: ContentOf) -> None:
        self._dialect, self._include, self._content_of = dialect, include, content_of
        self._snippets: dict[str, str] = {}
        self._room = MAX_SHOWN

    def import_snippets(self, body: str) -> frozenset[str]:
        """Keep each snippet that the page imports; return the names of their components."""
        for name, target in _SNIPPET.findall(body)[:MAX_SNIPPETS] if self._include is not None else ():
            data = self._read(target)
            text = self._content_of(data, target, self._dialect) if data is not None else ""
            if text:
                self._snippets[name] = text[:MAX_INCLUDED]
        return frozenset(self._snippets)

    def has(self, target: str) -> bool:
        """Keep the part of a file that the page shows, for the place where it is used; return whether there is one."""
        if target not in self._snippets and len(self._snippets) < MAX_SNIPPETS:
            name, start, end = (*target.split(":"), "", "")[:3]
            data = self._read(name)
            if data is None:
                return False
            part = part_of(data.decode("utf-8", "replace"), start, end)
            self._snippets[target] = self._content_of(part.encode(), name, self._dialect)[:MAX_INCLUDED]
        return bool(self._snippets.get(target))

    def text(self, name: str) -> str:
        """Return the text of a snippet that was kept, by the name of its component or as the page names its file."""
        return self._within_room(self._snippets[name])

    def in_code(self, code: str) -> str:
        """Return a block of code with the files in it that it shows."""
        if self._include is None or "8<--" not in code:
            return code

        def shown(match: re.Match[str]) -> str:
            name, start, end = (*match[2].split(":"), "", "")[:3]
            data = self._read(name) if self._room else None
            if data is None:
                return match[0]
            return self._within_room(part_of(data.decode("utf-8", "replace"), start, end)[:MAX_INCLUDED].strip("\n"))

        return _SCISSORS.sub(shown, code, MAX_SNIPPETS)

    def _read(self, name: str) -> bytes | None:
        data = self._include(name) if self._include is not None else None
        return data if data is not None and len(data) <= MAX_SNIPPET_BYTES else None

    def _within_room(self, text: str) -> str:
        text = text[: self._room]
        self._room -= len(text)
        return text


def part_of(text: str, start: str, end: str) -> str:
    """Return lines ``start`` to ``end``, or what stands between the marks of the section with that name."""
    if start.isdecimal() or end.isdecimal():
        return "\n".join(text.split("\n")[max(int(start or 1), 1) - 1 : int(end) if end.isdecimal() else None])
    if start:
        _, found, rest = text.partition(f"--8<-- [start:{start}]")
        return rest.partition("\n")[2].partition(f"--8<-- [end:{start}]")[0].rpartition("\n")[0] if found else ""
    return "\n".join("" if _is_section_mark(line) else line for line in text.split("\n")) if "8<" in text else text


def _is_section_mark(line: str) -> bool:
    found = _SECTION_MARK.search(line)
    return found is not None and line.find("]", found.end()) >= 0
