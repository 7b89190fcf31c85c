"""Pages to go on with, as a fenced block at the end of the text: existing clients parse it there.

One ``(Label)[/path]`` per line. They are related pages that were found but not cited. A block that the model wrote is
kept as far as its links lead to pages of the site.
"""

import re
from collections.abc import Iterable, Sequence

from msgspec import Struct

from service.markup.fences import fenced

INFO = "suggestions"
"""The word behind the fence."""
BEGIN, _, END = fenced("", INFO).split("\n")
"""The lines of the fence."""
MAX_SUGGESTIONS = 3
MAX_LABEL_CHARACTERS = 80

_LINE = re.compile(r"[-*\s]*\((?P<label>.+)\)\[(?P<path>[^\[\]\s]+)\]")


class Suggestion(Struct, frozen=True):
    label: str
    path: str
    """A URL of the site, beginning with ``/``."""


def parsed(lines: Iterable[str]) -> list[Suggestion]:
    """Return the suggestions of a block that a model wrote; lines of another form are left out."""
    found = (_LINE.fullmatch(line) for line in lines)
    return [Suggestion(match["label"], match["path"]) for match in found if match and match["path"].startswith("/")]


def block(suggestions: Sequence[Suggestion], *, after: str) -> str:
    """The text to append to the text ``after``; empty for none."""
    unique = {suggestion.path: suggestion for suggestion in reversed(suggestions)}
    lines = [f"({label})[{one.path}]" for one in reversed(unique.values()) if (label := _label(one.label))]
    if not lines:
        return ""
    missing = 2 - (len(after) - len(after.rstrip("\n"))) if after else 0
    return "\n" * max(missing, 0) + fenced("\n".join(lines[:MAX_SUGGESTIONS]), INFO) + "\n"


def parted(text: str) -> tuple[str, list[Suggestion]]:
    """Return an answer without the block at its end, and the suggestions of the block, for a reader of plain text."""
    before, begin, behind = text.rpartition(f"{BEGIN}\n")
    lines, end, rest = behind.rpartition(f"{END}")
    if not begin or not end or rest.strip() or (before and not before.endswith("\n")):
        return text, []
    return before.rstrip("\n"), parsed(lines.split("\n"))


def page_of(url: str) -> str:
    return url.partition("#")[0] or "/"


def _label(text: str) -> str:
    """Return the text on one line, without characters that would end the label or the block."""
    words = " ".join(re.sub(r"[()\[\]`]", " ", text).split())
    return words if len(words) <= MAX_LABEL_CHARACTERS else words[: MAX_LABEL_CHARACTERS - 1].rstrip() + "…"
