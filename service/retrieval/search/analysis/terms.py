"""From text to the terms by which it is found: the same steps for the text of pages and for that of questions.

1. ``spaced`` gives each script one spelling, and blanks between what is looked up.
2. ``forms_of`` gives a word its forms: by the stemmer of its language, and as it is written. English has one.
3. ``analyzer`` makes terms: small letters without accents, with the English stemmer. It comes last for all languages,
   so whatever a page is written in, it is also found by the words as they stand there: names, code, quotations.

The first form of each word is indexed in its place, so that neighbours are known; the other forms, the parts of names
and names as one word follow the text, once each.
"""

import re
import string
from collections.abc import Callable, Iterable
from functools import lru_cache

import tantivy

from service.retrieval.search.analysis.stems import stemmer_of, stems_ascii
from service.retrieval.search.analysis.writing_systems import folded, runs_of, spaced

MAX_WORD = 64
"""Characters; longer runs are no words."""
LEAST_PART = 3
"""Letters of the longest part of a name, at least, and of a name before its number."""
MAX_NAMES = 400
"""Names of one section that are also indexed by their parts."""
MAX_FORMS = 100_000
"""Words of which the forms are kept."""
WORD = re.compile(
    r"(?:[^\W_]|[\u0900-\u0963\u0966-\u0dff\u0e31-\u0e3a\u0e4d\u0eb1-\u0ebc\u0ecd\u102b-\u103e\u1056-\u108f\u17b6-\u17c8])+"
)
"""A word of ``spaced`` text: letters, digits, and vowel signs, which Python takes for no letters."""

_NAME = re.compile(
    # From the beginning of a word of at most MAX_WORD characters: a run without humps is looked through once.
    # Most words have no large letter or digit behind the first, and are left at once.
    rf"(?<![A-Za-z0-9])(?=[A-Z]?+[a-z]*+[A-Z0-9])(?=[A-Za-z0-9]{{2,{MAX_WORD}}}(?![A-Za-z0-9]))"
    rf"(?:[A-Za-z0-9]*[a-z0-9][A-Z]|[A-Z]{{2,}}[a-z]|[A-Za-z]{{{LEAST_PART},}}[0-9])[A-Za-z0-9]*"
)
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z](?!s(?![a-z]))[a-z])")
"""Where a part of a name begins; the ``s`` of ``IDs`` makes a plural, not a part."""
_SIGNS = re.compile(r"[_.-]")
_NUMBER = re.compile(r"(?:v|(?<![0-9]))[0-9]++\Z")
"""``HTTP2`` and ``HTTPv2`` are HTTP."""
_SEAM = re.compile(r"[_.-](?<=[A-Za-z0-9][_.-])(?=[A-Za-z0-9])")
"""A sign between the parts of ``retry_delay``, ``retry-delay`` or ``retry.delay``."""
_JOINED = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:[_.-][A-Za-z0-9]+){1,8}(?![A-Za-z0-9])")
_LETTERS = string.ascii_letters + string.digits


def parts_of(name: str) -> list[str]:
    """Return the parts of a name: ``retryDelaySecs`` → retry, Delay, Secs; ``OAuth2`` → OAuth; none of other words.

    A single letter is no part, it belongs to its neighbour (``OAuth``, ``gRPC``, ``IPv6``), and a name of short parts
    is one word (``PyPI``).
    """
    if name.islower() and not name[-1].isdigit():
        return []  # most words
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


Parts = Callable[[str, str], Iterable[str]]
"""A function of a word and its language: the stems of its parts, if it is a compound."""


def indexed(text: str, language: str, *, short: bool = False, parts: Parts = lambda _word, _language: ()) -> str:
    """Return a text as the analyzer is given it: with the forms of its words in a language, and once each the parts of
    the names in it, so that "animation frame" finds requestAnimationFrame. ``short``: a title or the like, that a
    single character may stand for.
    """
    words = spaced(text)
    found = _parts_in(words)
    if short and not text.isascii():
        found += list(dict.fromkeys("".join(run for run in runs_of(text) if len(run) > 1)))
    if language != "en" and stemmer_of(language) is not None:
        typed = _splitter().analyze(words)
        found += dict.fromkeys(form for word in dict.fromkeys(typed) for form in forms_of(word, language)[1:])
        found += dict.fromkeys(part for word in dict.fromkeys(typed) for part in parts(word, language))
        words = " ".join([forms_of(word, language)[0] for word in typed])
    return "\n\n".join([words, "\n".join(found)]) if found else words


def words_in(text: str) -> list[str]:
    """Return the words of a text as they are written, and pairs of characters as ``spaced`` makes them."""
    found = spaced(text)
    if not found.isascii():
        found = found.encode("utf-8", "replace").decode()
    return [word for word in _splitter().analyze(found) if len(word) <= MAX_WORD]


def _parts_in(text: str) -> list[str]:
    names = dict.fromkeys(_NAME.findall(text))
    found = [" ".join(parts) for name in list(names)[:MAX_NAMES] if (parts := parts_of(name))]
    return found + joined_names(text)[:MAX_NAMES]


@lru_cache(maxsize=MAX_FORMS)
def forms_of(word: str, language: str) -> tuple[str, ...]:
    """Return what is indexed of a word of ``spaced`` text: its stem, and where they are others, the stem of the word
    without accents, which many people leave out, and the word as it is.
    """
    stem = stemmer_of(language) if language != "en" else None
    if stem is None or (word.isascii() and not stems_ascii(language)) or word.isdigit():
        return (word,)
    lowered = word.replace("İ", "i").lower()
    plain = folded(lowered)
    for typed, meant in _TYPED.get(language, ()):
        lowered = lowered.replace(typed, meant)
    forms = [folded(stem(lowered)) or plain]
    if plain != lowered:
        forms.append(stem(plain) or plain)
    found: dict[str, str] = {}
    for form in (*forms, plain):
        found.setdefault("".join(_english().analyze(form)) or form, form)
    return tuple(found.values())


_TYPED = dict.fromkeys(("da", "nb"), (("aa", "å"), ("ae", "æ"), ("oe", "ø")))
"""Letters that are typed for others where a keyboard lacks these; the German stemmer knows those of German."""


@lru_cache(maxsize=1)
def _splitter() -> tantivy.TextAnalyzer:
    """Where words begin and end is for the analyzer to say, which knows the vowel signs of all scripts as letters."""
    return tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple()).build()


@lru_cache(maxsize=1)
def _english() -> tantivy.TextAnalyzer:
    return analyzer()


def joined_names(text: str) -> list[str]:
    """Return names written with signs as one word: ``retry_delay`` and ``retry-delay`` as ``retryDelay`` is."""
    found: dict[str, None] = {}
    end = 0
    for seam in _SEAM.finditer(text):  # few, where looking at each word would take four times as long
        at = seam.start()
        if at < end:
            continue
        before = text[max(end, at - MAX_WORD) : at]
        name = _JOINED.match(text, at - len(before) + len(before.rstrip(_LETTERS)))
        if name is not None:
            found[_SIGNS.sub("", name[0])] = None
            end = name.end()
    return list(found)


def analyzer() -> tantivy.TextAnalyzer:
    """Letters and digits, folded and stemmed."""
    return _folding().filter(tantivy.Filter.stemmer("english")).build()


def folder() -> tantivy.TextAnalyzer:
    """Letters and digits, folded."""
    return _folding().build()


def _folding() -> tantivy.TextAnalyzerBuilder:
    builder = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple()).filter(tantivy.Filter.remove_long(MAX_WORD + 1))
    return builder.filter(tantivy.Filter.lowercase()).filter(tantivy.Filter.ascii_fold())
