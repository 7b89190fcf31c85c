"""English words that readers use for one another: they ask what a package weighs, and the page says parcel.

``kindred_words.json``: ``groups`` of words that may stand for each other, separated by blanks; ``phrases`` that stand
for one word; ``abbreviations``, each with the words that it is short for; ``common`` words, which say little about what
a question is about. A word of any of them is spelt correctly, whether or not a site has it.
"""

import re
from collections.abc import Collection, Mapping
from functools import cache
from importlib import resources
from itertools import pairwise

import msgspec
from msgspec import Struct

_WORD = re.compile(r"\w+")


class _Lists(Struct, frozen=True):
    groups: tuple[str, ...]
    abbreviations: tuple[str, ...]
    phrases: dict[str, str]
    common: str


@cache
def _lists() -> _Lists:
    return msgspec.json.decode(resources.files(__package__).joinpath("kindred_words.json").read_bytes(), type=_Lists)


@cache
def _kindred() -> Mapping[str, tuple[str, ...]]:
    found: dict[str, dict[str, None]] = {}
    for group in _lists().groups:
        words = group.split()
        for word in words:
            found.setdefault(word, {}).update(dict.fromkeys(other for other in words if other != word))
    return {word: tuple(others) for word, others in found.items()}


@cache
def _phrase() -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(map(re.escape, _lists().phrases))})\b", re.IGNORECASE)


@cache
def _beginnings() -> frozenset[tuple[str, str]]:
    """Return the first two words of phrases: most texts have none, and are not looked through for each phrase."""
    return frozenset(next(pairwise(_WORD.findall(phrase))) for phrase in _lists().phrases)


def kindred_words(word: str) -> tuple[str, ...]:
    """Return the words that may stand for a word, given in lower case; none for most."""
    known = _kindred()
    for form in (
        word,
        word.removesuffix("s"),
        word.removesuffix("es"),
        word.removesuffix("ed"),
        word.removesuffix("ing"),
    ):
        if form in known:
            return known[form]
    return ()


@cache
def _spelled_out() -> Mapping[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for short, *words in map(str.split, _lists().abbreviations):
        found[short] = tuple(words)
        for word in words:
            found[word] = (*found.get(word, ()), short)
    return found


def spelled_out(word: str) -> tuple[str, ...]:
    """Return the words that an abbreviation is short for, or the abbreviations of a word, given in lower case."""
    return _spelled_out().get(word, ())


def phrase_words(text: str) -> tuple[str, ...]:
    """Return the words that phrases of a text stand for: cancel, for "call off"."""
    phrases = _lists().phrases
    if _beginnings().isdisjoint(pairwise(_WORD.findall(text.lower()))):
        return ()
    return tuple(dict.fromkeys(phrases[" ".join(match[0].lower().split())] for match in _phrase().finditer(text)))


def without_phrases(text: str, unless: Collection[str] = ()) -> str:
    """Return a text with its phrases replaced by the words that they stand for, other than those of ``unless``."""
    phrases = _lists().phrases

    def word(match: re.Match[str]) -> str:
        found = phrases[" ".join(match[0].lower().split())]
        return match[0] if found in unless else found

    return _phrase().sub(word, text)


@cache
def common_words() -> frozenset[str]:
    """Return words, in lower case, that people talk with: they say little about what a question is about."""
    return frozenset(_lists().common.split())


def is_english_word(word: str) -> bool:
    """Return whether a word, given in lower case, is known to be spelt correctly."""
    return word in common_words() or bool(kindred_words(word)) or bool(spelled_out(word))
