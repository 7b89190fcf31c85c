"""A title as a page's own markup writes it, so that its readers see these words."""

import re
import unicodedata

from service.markup.prose import plain

_MARKS = re.compile(r"([\\`*_\[\]<>{}])")
_REST_MARKS = re.compile(r"([\\`*|])|(?<=\w)(_)(?!\w)")


def markdown_words(title: str, *, mdx: bool = False) -> str:
    """Return a title as a heading of Markdown has it: as it is where that reads so, else with its marks escaped. Words
    in backticks stay code.
    """
    if plain(title) == " ".join(title.replace("`", "").split()) and not (mdx and re.search(r"[<{]", title)):
        return title
    parts = re.split(r"(`[^`]+`)", title)
    return "".join(part if at % 2 else _MARKS.sub(r"\\\1", part) for at, part in enumerate(parts))


def rest_heading(title: str, sign: str = "=") -> list[str]:
    """Return the lines of a heading of reStructuredText; the line below is as long as the words are wide."""
    words = _REST_MARKS.sub(lambda found: f"\\{found[0]}", title)
    return [words, sign * max(rest_width(words), 3)]


def rest_width(text: str) -> int:
    """Return the columns that a text takes: two for each wide letter of East Asia, none for a combining mark."""
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)
