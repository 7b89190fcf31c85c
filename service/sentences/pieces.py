"""The pieces of a sentence that can be checked: numbers, names, flags, identifiers, values, and spans of code."""

import re
from itertools import chain, islice

from msgspec import Struct

from service.domain.texts.unicode_forms import normalized
from service.sentences.code import is_placeholder
from service.sentences.numbers import Number, numbers_in
from service.sentences.words import GENERIC_NAMES, LITERALS, VALUES, WORD, names_in, stems_in

MAX_PIECES = 60
MAX_READ = 1_000
"""Numbers of a sentence that are looked at."""
_CITATION = re.compile(r"\s?\[(\d{1,3})\]\([^()\s]{0,2000}\)")
_LINK = re.compile(r"!?\[([^\[\]]{0,300})\]\([^()\s]{0,2000}(?:\([^()\s]{0,300}\))?[^()\s]{0,300}\)")
_SPAN = re.compile(r"(?P<ticks>`{1,3})(?!`)(?P<code>[^`\n]{1,500}?)(?<!`)(?P=ticks)(?!`)")
_URL = re.compile(r"\bhttps?://[^\s)>\]]{1,2000}")
_HEAD = re.compile(r"\A[ \t>]*(?:(?:[-*+]|\d{1,4}[.)])[ \t]+|#{1,6}[ \t]+)*(?:\[[ xX]\]\s+)?")
_STEP = re.compile(
    r"\b(?:step|option|method|example|figure|part|schritt|étape|methode|ステップ|手順)s?\s*\d{1,2}\b[.:]?",
    re.IGNORECASE,
)
_COUNTED = re.compile(
    r"\s*(?:(?:main|different|common|other|basic|ways?|key|possible|kinds?|separate|simple|distinct|built-in|supported)\s+){0,3}"
    r"(?:ways?|steps?|options?|things?|methods?|kinds?|types?|parts?|cases?|approaches|places|reasons|points|pieces|"
    r"differences|choices|variants|rules|levels|of|möglichkeiten|schritte|arten|wege|façons|étapes|moyens|options)\b",
    re.IGNORECASE,
)


_SWITCHED = re.compile(r"\b(?:is|are|be|turn(?:s|ed|ing)?|switch(?:es|ed|ing)?|to)\s\Z", re.IGNORECASE)


class Piece(Struct, frozen=True):
    kind: str
    """``number``, ``value``, ``flag``, ``identifier``, ``name`` or ``code``."""
    text: str
    at: int
    number: Number | None = None


class Prose(Struct, frozen=True):
    """A sentence without its marks."""

    words: str
    cited: tuple[int, ...]
    spans: tuple[tuple[int, str], ...]
    """Code spans, and where they stand."""
    pieces: tuple[Piece, ...]


def read_prose(text: str, *, checks_capitals: bool, is_lead: bool) -> Prose:
    cited = tuple(dict.fromkeys(int(number) for number in _CITATION.findall(text)))
    bare = _CITATION.sub("", _HEAD.sub("", text, count=1))
    if not bare.isascii():
        bare = normalized("NFKC", bare)
    bare = _LINK.sub(r"\1", bare)
    spans: list[tuple[int, str]] = []
    values: list[Piece] = []
    kept: list[str] = []
    end = 0
    for match in _SPAN.finditer(bare):
        code = match["code"].strip()
        if (value := _value(code, match.start())) is not None:
            values.append(value)
        else:
            spans.append((match.start(), code))
        kept += [bare[end : match.start()], " " * (match.end() - match.start())]
        end = match.end()
    words = _URL.sub(lambda match: " " * len(match[0]), "".join((*kept, bare[end:])))
    pieces = _pieces_in(words, checks_capitals=checks_capitals, is_lead=is_lead)
    return Prose(bare, cited, tuple(spans[:MAX_PIECES]), tuple([*values, *pieces][:MAX_PIECES]))


def _value(code: str, at: int) -> Piece | None:
    """Return a number or the like that is set as code."""
    bare = code.strip("\"'")
    if bare.casefold() in VALUES or bare.casefold() in LITERALS:
        return Piece("value", bare, at)
    number = next(iter(numbers_in(bare)), None) if bare[:1].isdigit() else None
    return Piece("number", bare, at, number) if number is not None and number.end == len(bare) else None


def _pieces_in(words: str, *, checks_capitals: bool, is_lead: bool) -> list[Piece]:
    words = _STEP.sub(lambda match: " " * len(match[0]), words).replace("*", " ")
    read = list(islice(numbers_in(words), MAX_READ))
    units = {at for number in read if number.dimension for at in range(number.start, number.end)}
    names, covered = _names_in(words, checks_capitals=checks_capitals)
    names = [name for name in names if name.at not in units]
    numbers = (number for number in read if number.start not in covered)
    values = (match for match in WORD.finditer(words) if _is_value(match, words))
    pieces = chain(
        names,
        (Piece("number", one.text, one.start, one) for one in numbers if _is_claimed(one, words, is_lead=is_lead)),
        (Piece("value", match[0], match.start()) for match in values),
    )
    return list(islice(pieces, MAX_PIECES))


def _is_value(match: re.Match[str], words: str) -> bool:
    """Return whether a word is a value: ``on`` and ``off`` are mostly none."""
    word = match[0].casefold()
    if word not in ("on", "off"):
        return word in VALUES
    return _SWITCHED.search(words, max(0, match.start() - 20), match.start()) is not None


def _names_in(words: str, *, checks_capitals: bool) -> tuple[list[Piece], set[int]]:
    """Return the names, and the places of their characters: no number is read there."""
    pieces: list[Piece] = []
    covered: set[int] = set()
    for name in names_in(words, checks_capitals=checks_capitals):
        text = name.text.rstrip("'’").removesuffix("'s").removesuffix("’s")  # noqa: RUF001
        folded = text.casefold()
        if name.kind == "name" and (folded in GENERIC_NAMES or (name.may_be_word and not _is_acronym(text))):
            continue
        if is_placeholder(text) or (name.kind == "flag" and len(text) == 2 and not text[1].isalpha()):
            continue
        covered.update(range(name.start, name.start + len(name.text)))
        pieces.append(Piece(name.kind, text, name.start))
    return pieces, covered


def _is_claimed(number: Number, words: str, *, is_lead: bool) -> bool:
    """Return whether a number says something of the product, and does not count what the sentence lists."""
    if number.is_spelled and (is_lead or number.keys == {"1"} or _COUNTED.match(words, number.end)):
        return False
    if not number.dimension and (number.keys == {"1"} or (number.is_spelled and number.keys == {"2"})):
        return False
    return bool(number.is_spelled or number.dimension or not is_lead or not _COUNTED.match(words, number.end))


def _is_acronym(text: str) -> bool:
    return len(text) > 1 and text.removesuffix("s").isupper()


def anchors_in(prose: Prose, limit: int = 40) -> dict[str, int]:
    """Return the words that say what the sentence is about, as stems, and where each stands first."""
    found: dict[str, int] = {}
    for match in WORD.finditer(prose.words):
        if match[0].casefold() in VALUES:
            continue
        for one in stems_in(match[0]):
            if one not in found and len(found) < limit:
                found[one] = match.start()
    return found
