"""Where texts contain a string, or match a regular expression."""

import re
import warnings
from collections.abc import Mapping

from msgspec import Struct

from service.agent.tools.excerpts import around

LINES_OF_A_FILE = 5
LINES_OF_THE_FILE = 1_000
"""Lines that are shown where nothing but one file is searched."""
MAX_COUNTED = 10_000
"""Matches of a regular expression in one file; more are not counted."""


class Line(Struct, frozen=True):
    number: int
    text: str
    matches: int
    """Number of the file's matches up to the end of this line."""


class Matches(Struct, frozen=True):
    path: str
    count: int
    lines: tuple[Line, ...]
    """The first few that match."""


def find_text(
    texts: Mapping[str, str], query: str, lowered: Mapping[str, str] | None = None, most: int = LINES_OF_A_FILE
) -> list[Matches]:
    """Return where the query is, with at most ``most`` lines of a file. ``lowered``: the same texts in lower case, in
    which case plays no part.
    """
    wanted = query if lowered is None else query.lower()
    found = []
    for path, text in texts.items():
        searched = text if lowered is None else lowered[path]
        count = searched.count(wanted)
        if not count:
            continue
        shown = text if len(searched) == len(text) else searched  # lower-casing lengthens a few letters
        lines: list[Line] = []
        at, line, done, seen = searched.find(wanted), 1, 0, 0
        while at >= 0 and len(lines) < most:
            line += searched.count("\n", done, at)
            done = at
            end = searched.find("\n", at + len(wanted))  # a file may be one long line
            after = end + 1 if end >= 0 else len(searched)
            seen += searched.count(wanted, at, after + len(wanted) - 1)
            lines.append(Line(line, _excerpt(shown, at, at + len(wanted)), seen))
            at = searched.find(wanted, after)
        found.append(Matches(path, count, tuple(lines)))
    return found


def find_pattern(texts: Mapping[str, str], pattern: str, most: int = LINES_OF_A_FILE) -> list[Matches] | str:
    """Return the matches, empty ones left out; or why the pattern is none. It may take for ever: call it in a child."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compiled = re.compile(pattern, re.MULTILINE)
    except (re.error, RecursionError, OverflowError) as error:
        return str(error) or "It is nested too deeply."
    found = []
    for path, text in texts.items():
        count, line, done = 0, 1, 0
        lines: list[Line] = []
        for match in compiled.finditer(text):
            if not match[0]:
                continue
            count += 1
            if count >= MAX_COUNTED:
                break
            if len(lines) <= most:
                line += text.count("\n", done, match.start())
                done = match.start()
                if lines and lines[-1].number == line:
                    lines[-1] = Line(line, lines[-1].text, count)
                else:
                    lines.append(Line(line, _excerpt(text, match.start(), match.end()), count))
        if count:
            found.append(Matches(path, count, tuple(lines[:most])))
    return found


def _excerpt(text: str, start: int, end: int) -> str:
    """Return the line on which a match begins, or of a long one the part around it."""
    begin = max(text.rfind("\n", 0, start) + 1, start - 1_000)
    stop = text.find("\n", start, start + 2_000)
    line = text[begin : stop if stop >= 0 else start + 2_000]
    at = start - begin
    return around(line, at, min(len(line), at + min(end - start, 400)))
