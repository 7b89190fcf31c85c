"""From text to the terms by which it is found: the same steps for the text of pages and for that of questions.

``searchable`` and ``with_parts`` prepare a text, ``analyzer`` makes terms of it.
"""

import re
import unicodedata
from itertools import pairwise

import tantivy

MAX_WORD = 64
"""Characters; longer runs are no words."""
LEAST_PART = 3
"""Letters of the longest part of a name, at least, and of a name before its number."""
MAX_NAMES = 400
"""Names of one section that are also indexed by their parts."""

_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002fa1f]+")
_NAME = re.compile(
    # From the beginning of a word of at most MAX_WORD characters: a run without humps is looked through once.
    rf"(?<![A-Za-z0-9])(?=[A-Za-z0-9]{{2,{MAX_WORD}}}(?![A-Za-z0-9]))"
    r"(?:[A-Za-z0-9]*[a-z0-9][A-Z]|[A-Z]{2,}[a-z])[A-Za-z0-9]*"
)
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z](?!s(?![a-z]))[a-z])")
"""Where a part of a name begins; the ``s`` of ``IDs`` makes a plural, not a part."""
_NUMBERED = re.compile(
    rf"(?<![A-Za-z0-9])(?=[A-Za-z0-9]{{4,{MAX_WORD}}}(?![A-Za-z0-9]))[A-Za-z]{{{LEAST_PART},}}[0-9]+"
)
_SIGNS = re.compile(r"[_.-]")
_NUMBER = re.compile(r"v?[0-9]+\Z")
"""``HTTP2`` and ``HTTPv2`` are HTTP."""
_JOINED = re.compile(r"(?<![A-Za-z0-9])[A-Za-z][A-Za-z0-9]*(?:[_.-][A-Za-z0-9]+){1,8}(?![A-Za-z0-9])")
"""``retry_delay``, ``retry-delay`` or ``retry.delay``."""


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
    """Return the parts of a name: ``retryDelaySecs`` → retry, Delay, Secs; ``OAuth2`` → OAuth; none of other words.

    A single letter is no part, it belongs to its neighbour (``OAuth``, ``gRPC``, ``IPv6``), and a name of short parts
    is one word (``PyPI``).
    """
    parts: list[str] = []
    for part in _HUMP.split(name):
        if parts and len(parts[-1]) == 1:
            parts[-1] += part
        else:
            parts.append(part)
    if len(parts) > 1 and len(parts[-1]) == 1:
        parts[-2:] = ["".join(parts[-2:])]
    if len(parts) == 1 or max(map(len, parts)) < LEAST_PART:
        parts = []
    numbered = [_NUMBER.sub("", part) for part in parts or [name] if part[-1:].isdigit()]
    return parts + [part for part in numbered if len(part) >= LEAST_PART]


def with_parts(text: str) -> str:
    """The text, and once each the parts of the names in it: so that "animation frame" finds requestAnimationFrame."""
    names = dict.fromkeys([*_NAME.findall(text), *_NUMBERED.findall(text)])
    found = [" ".join(parts) for name in list(names)[:MAX_NAMES] if (parts := parts_of(name))]
    found += joined_names(text)[:MAX_NAMES]
    return "\n\n".join([text, "\n".join(found)]) if found else text


def joined_names(text: str) -> list[str]:
    """Return names written with signs as one word: ``retry_delay`` and ``retry-delay`` as ``retryDelay`` is."""
    return list(dict.fromkeys(_SIGNS.sub("", name) for name in _JOINED.findall(text)))


def analyzer() -> tantivy.TextAnalyzer:
    """Letters and digits, folded and stemmed."""
    return _folding().filter(tantivy.Filter.stemmer("english")).build()


def folder() -> tantivy.TextAnalyzer:
    """Letters and digits, folded."""
    return _folding().build()


def _folding() -> tantivy.TextAnalyzerBuilder:
    builder = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple()).filter(tantivy.Filter.remove_long(MAX_WORD + 1))
    return builder.filter(tantivy.Filter.lowercase()).filter(tantivy.Filter.ascii_fold())
