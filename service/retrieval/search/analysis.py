"""From text to the terms by which it is found: the same steps for the text of pages and for that of questions.

``searchable`` and ``with_parts`` prepare a text, ``analyzer`` makes terms of it.
"""

import re
import unicodedata
from itertools import pairwise

import tantivy

MAX_WORD = 64
"""Characters; longer runs are no words."""
MAX_NAMES = 400
"""Names of one section that are also indexed by their parts."""

_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002fa1f]+")
_NAME = re.compile(
    # From the beginning of a word of at most MAX_WORD characters: a run without humps is looked through once.
    rf"(?<![A-Za-z0-9])(?=[A-Za-z0-9]{{2,{MAX_WORD}}}(?![A-Za-z0-9]))"
    r"(?:[A-Za-z0-9]*[a-z0-9][A-Z]|[A-Z]{2,}[a-z])[A-Za-z0-9]*"
)
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def searchable(text: str) -> str:
    """Scripts that write no spaces become overlapping pairs of characters; all else is left to the analyzer."""
    return text if text.isascii() else _UNSPACED.sub(_pairs, unicodedata.normalize("NFKC", text))


def unspaced(text: str) -> list[tuple[int, int]]:
    """Return the first and last character + 1 of each run of a script that writes no spaces."""
    return [] if text.isascii() else [match.span() for match in _UNSPACED.finditer(text)]


def _pairs(match: re.Match[str]) -> str:
    run = match[0]
    return " " + (" ".join(map("".join, pairwise(run))) or run) + " "


def parts_of(name: str) -> list[str]:
    """``retryDelaySecs`` → retry, Delay, Secs; a word without humps is itself."""
    return _HUMP.split(name)


def with_parts(text: str) -> str:
    """The text, and once each the parts of the names in it: so that "animation frame" finds requestAnimationFrame."""
    names = dict.fromkeys(_NAME.findall(text))
    if not names:
        return text
    return text + "\n\n" + "\n".join(" ".join(parts_of(name)) for name in list(names)[:MAX_NAMES])


def analyzer() -> tantivy.TextAnalyzer:
    """Letters and digits, folded and stemmed."""
    return _folding().filter(tantivy.Filter.stemmer("english")).build()


def folder() -> tantivy.TextAnalyzer:
    """Letters and digits, folded."""
    return _folding().build()


def _folding() -> tantivy.TextAnalyzerBuilder:
    builder = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple()).filter(tantivy.Filter.remove_long(MAX_WORD + 1))
    return builder.filter(tantivy.Filter.lowercase()).filter(tantivy.Filter.ascii_fold())
