"""Where texts contain a string, or match a regular expression."""

import re
import warnings
from collections.abc import Mapping

from msgspec import Struct

MAX_LINES_SHOWN_OF_A_FILE = 5
MAX_COUNTED = 10_000
"""Matches of a regular expression in one file; more are not counted."""


class Matches(Struct, frozen=True):
    path: str
    count: int
    lines: tuple[tuple[int, str], ...]
    """Number and text of the first few."""


def find_text(texts: Mapping[str, str], query: str, lowered: Mapping[str, str] | None = None) -> list[Matches]:
    """Return where the query is. ``lowered``: the same texts in lower case, in which case plays no part."""
    wanted = query if lowered is None else query.lower()
    found = []
    for path, text in texts.items():
        searched = text if lowered is None else lowered[path]
        count = searched.count(wanted)
        if not count:
            continue
        lines: list[tuple[int, str]] = []
        at, line, done = searched.find(wanted), 1, 0
        while at >= 0 and len(lines) < MAX_LINES_SHOWN_OF_A_FILE:
            line += searched.count("\n", done, at)
            begin, done = max(searched.rfind("\n", 0, at) + 1, at - 80), at
            excerpt = searched[begin : at + len(wanted) + 80].partition("\n")[0]
            same_length = len(searched) == len(text)  # lower-casing lengthens a few letters
            lines.append((line, text[begin : begin + len(excerpt)].strip() if same_length else excerpt.strip()))
            end = searched.find("\n", at)  # a file may be one long line
            at = searched.find(wanted, max(end + 1, at + len(wanted))) if end >= 0 else -1
        found.append(Matches(path, count, tuple(lines)))
    return found


def find_pattern(texts: Mapping[str, str], pattern: str) -> list[Matches] | str:
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
        lines: list[tuple[int, str]] = []
        for match in compiled.finditer(text):
            if not match[0]:
                continue
            count += 1
            if count >= MAX_COUNTED:
                break
            if len(lines) < MAX_LINES_SHOWN_OF_A_FILE:
                line += text.count("\n", done, match.start())
                done = match.start()
                if not lines or lines[-1][0] != line:
                    lines.append((line, _excerpt(text, match.start(), match.end())))
        if count:
            found.append(Matches(path, count, tuple(lines)))
    return found


def _excerpt(text: str, start: int, end: int) -> str:
    begin = max(text.rfind("\n", 0, start) + 1, start - 80)
    return text[begin : min(end, start + 400) + 80].partition("\n")[0].strip()
