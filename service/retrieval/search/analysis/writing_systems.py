"""Writing systems: one spelling for each, and pairs of characters where no blanks part the words.

Scripts without blanks between words (Han, kana, Thai, Lao, Khmer, Burmese) become overlapping pairs, so do the words of
Korean, which carry their particles with them. A dictionary would cut them better, but takes 20 to 70 MB, and pairs come
near to it in what is found. Letters of other scripts lose the marks that are often left out in writing.
"""

import re
import unicodedata
from functools import cache
from importlib import resources
from itertools import pairwise

import msgspec
from msgspec import Struct

from service.domain.texts.unicode_forms import normalized
from service.markup.languages.stop_words import stop_words

_HANGUL = "\uac00-\ud7a3"
_UNSPACED = (
    r"\u3040-\u30fa\u30fc-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002fa1f"  # kana, Han
    r"\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ece\u0edc-\u0edf"  # Thai, Lao
    r"\u1000-\u103f\u104e-\u108f\u109a-\u109f\u1780-\u17d3\u17d7\u17dc\u17dd"  # Burmese, Khmer
)
_RUN = re.compile(f"[{_UNSPACED}]+|[{_HANGUL}]+")
_KANA = re.compile(r"[\u3040-\u309f\u30fc]+")
_SIGNS = (
    r"\u0e31\u0e34-\u0e3a\u0eb1\u0eb4-\u0ebc\u0ecd\u102b-\u103e\u1056-\u1059\u105e-\u1060\u1071-\u1074\u17b6-\u17c8"
)
"""Vowels and marks that belong to the letter before them."""
_UNIT = re.compile(f"[^{_SIGNS}][{_SIGNS}]*|[{_SIGNS}]+")
_DROPPED = re.compile(
    # Signs that an analyzer takes for the end of a word: tones, and those that join or silence letters.
    r"[\u0e47-\u0e4c\u0e4e\u0eba\u0ec8-\u0ecc\u0ece\u1037\u1039\u103a\u17b4\u17b5\u17c9-\u17d3\u17dd"
    r"\u0300-\u036f\u200b-\u200d\u2060\ufeff]"
)
_FOREIGN = re.compile(r"[\u0300-\u1dff\u200b-\u200d\u2060\u2e80-\ud7ff\uf900-\ufdff\ufeff\U00010000-\U0010ffff]")
_MARKED = re.compile(r"[\u0300-\u109f\u1780-\u17ff\u200b-\u200d\u2060\ufb1d-\ufdff\ufeff]")
"""Characters of scripts that are folded here; Latin letters are folded by the analyzer."""
_APOSTROPHE = re.compile(r"(?<=[\u0400-\u052f])['\u2019\u02bc](?=[\u0400-\u052f])")


class _Alphabets(Struct, frozen=True):
    """``alphabets.json``; words separated by blanks."""

    latin: dict[str, str]
    """Letters that Unicode does not decompose, in those of ASCII."""
    alike: dict[str, str]
    """Letters that people type for each other, and forms that a letter has at the end of a word."""
    kept: str
    """Letters with a mark that are letters of their own."""
    never_in_words: str
    """Characters of Chinese and Japanese that are words by themselves."""
    particles: str
    """Particles of Korean, at the end of a word."""
    endings: dict[str, str]
    """Endings of the forms of a word; ``suffixes`` stand before them, in words made of others."""
    suffixes: dict[str, str]
    prefixes: dict[str, str]


@cache
def alphabets() -> _Alphabets:
    return msgspec.json.decode(resources.files(__package__).joinpath("alphabets.json").read_bytes(), type=_Alphabets)


class _Tables:
    def __init__(self) -> None:
        found = alphabets()
        self.latin, self.alike = str.maketrans(found.latin), str.maketrans(found.alike)
        self.kept, self.never_in_words = frozenset(found.kept), frozenset(found.never_in_words)
        self.particles = frozenset(found.particles.split())


@cache
def _tables() -> _Tables:
    return _Tables()


MAX_BYTES = 64
"""Bytes of a word as the analyzer counts them; only the beginning of a longer word is looked up."""
_LONG = re.compile(r"[^\W_]{17,}")


def spaced(text: str) -> str:
    """Return a text in which a word stands between blanks or signs, and each is spelled one way."""
    if text.isascii():
        return text
    text = normalized("NFKC", text)
    if not _FOREIGN.search(text):
        return text  # an English text with dashes and quotation marks
    if _MARKED.search(text):
        text = _LONG.sub(_cut, _folded(text))
    return _RUN.sub(lambda run: f" {' '.join(pairs_of(run[0]))} ", text)


def pairs_of(run: str) -> list[str]:
    """Return the pairs of neighbouring characters of a run; a single one is itself."""
    units = _UNIT.findall(run)
    pairs = ["".join(pair) for pair in pairwise(units)] or units
    if len(units) in (2, 3) and run[1:] in _tables().particles:
        pairs.append(units[0])
    return pairs


def without_phrases(query: str) -> str:
    """Return a question without what only makes it one, in scripts where that is no word between blanks."""
    return _RUN.sub(lambda run: _without_particle(_phrases().sub(" ", run[0])), normalized("NFKC", query))


@cache
def _phrases() -> re.Pattern[str]:
    words = {word for language in ("zh", "ja", "th") for word in stop_words(language)}
    kept = sorted(
        (word for word in words if len(word) > 1 or word in _tables().never_in_words),
        key=lambda word: (-len(word), word),
    )
    return re.compile("|".join(map(re.escape, kept)))


def _without_particle(word: str) -> str:
    """Return a Korean word without its particle, if two syllables are left of it."""
    for length in (2, 1):
        if len(word) - length >= 2 and word[-length:] in _tables().particles:
            return word[:-length]
    return word


def runs_of(text: str) -> list[str]:
    """Return the runs of characters that are written without blanks."""
    return [] if text.isascii() else _RUN.findall(text)


def unspaced(text: str) -> list[tuple[int, int]]:
    """Return the first and last character + 1 of each run of characters that are looked up as pairs."""
    return [] if text.isascii() else [match.span() for match in _RUN.finditer(text)]


def binds(pair: str) -> bool:
    """Return whether a pair is of the kana that mostly bind the words of a Japanese sentence."""
    return _KANA.fullmatch(pair) is not None


def folded(word: str) -> str:
    """Return a word in Latin letters without accents."""
    if word.isascii():
        return word
    decomposed = normalized("NFD", word.translate(_tables().latin))
    if max(decomposed, default="") >= "\u0300" and not _is_latin(decomposed):
        return word
    return "".join(each for each in decomposed if not unicodedata.combining(each))


def _is_latin(decomposed: str) -> bool:
    return all(each < "\u0370" for each in decomposed)


def _folded(text: str) -> str:
    text = text.replace("\u0e4d\u0e32", "\u0e33").replace("\u0ecd\u0eb2", "\u0eb3")
    text = _APOSTROPHE.sub("", _DROPPED.sub("", text.translate(_tables().alike)))
    return text.translate(_FOLDED)


class _Folding(dict[int, str | None]):
    """Characters of the scripts of ``_MARKED`` without their marks, found when they are first asked for."""

    def __missing__(self, code: int) -> str | None:
        character = chr(code)
        found: str | None = character
        if _MARKED.match(character):
            if 0 < unicodedata.combining(character) not in _VOWELS:
                found = None
            elif character.lower() not in _tables().kept and "\u0370" <= character < "\u0530":
                found = unicodedata.normalize("NFD", character)[0]
        self[code] = found
        return found


_VOWELS = (103, 118, 129, 130, 132)
"""Combining classes of vowels, in Thai, Lao and Tibetan; other classes are of marks."""
_FOLDED = _Folding()


def _cut(match: re.Match[str]) -> str:
    word = match[0]
    return (
        word
        if len(word.encode("utf-8", "replace")) <= MAX_BYTES
        else word.encode("utf-8", "replace")[:MAX_BYTES].decode("utf-8", "ignore")
    )
