"""Numbers as people and programs write them, comparable: ``1,000``, ``1000`` and ``1k``; ``10 seconds`` and ``10s``."""

import re
from collections.abc import Iterator

from msgspec import Struct

_TIME = {
    0.001: "ms msec millisecond milliseconds millisekunden milliseconde millisecondes milisegundos ミリ秒 毫秒",
    1.0: "s sec secs second seconds sekunde sekunden seconde secondes segundo segundos secondi 秒 秒間",
    60.0: "min mins minute minutes minuten minuto minutos minuti 分 分間 分钟",
    3600.0: "h hr hrs hour hours stunde stunden heure heures hora horas ore 時間 小时",
    86400.0: "d day days tag tage tagen jour jours día días giorni 日 日間 天",
    604800.0: "w week weeks woche wochen semaine semaines semana semanas 週間 周",
}
_SIZE = {
    1: "b byte bytes octet octets バイト",
    1 << 10: "kb kib ki kilobyte kilobytes ko キロバイト",
    1 << 20: "mb mib mi megabyte megabytes mo メガバイト",
    1 << 30: "gb gib gi gigabyte gigabytes go ギガバイト",
    1 << 40: "tb tib ti terabyte terabytes to",
}
_UNITS: dict[str, tuple[str, float]] = {
    **{word: ("time", factor) for factor, words in _TIME.items() for word in words.split()},
    **{word: ("size", float(factor)) for factor, words in _SIZE.items() for word in words.split()},
    **dict.fromkeys(("%", "percent", "prozent", "パーセント", "percentage"), ("percent", 1.0)),
}
_WORDS = {
    word: str(value)
    for value, words in {
        2: "two zwei deux dos due", 3: "three drei trois tres tre", 4: "four vier quatre cuatro quattro",
        5: "five fünf cinq cinco cinque", 6: "six sechs seis", 7: "seven sieben sept siete", 8: "eight acht huit ocho",
        9: "nine neun neuf nueve", 10: "ten zehn dix diez", 11: "eleven elf onze", 12: "twelve zwölf douze doce",
        15: "fifteen fünfzehn quinze", 20: "twenty zwanzig vingt veinte", 30: "thirty dreißig trente treinta",
        40: "forty vierzig quarante", 50: "fifty fünfzig cinquante", 60: "sixty sechzig soixante",
        90: "ninety neunzig", 100: "hundred hundert cent cien",
    }.items()
    for word in words.split()
}  # fmt: skip
_NUMBER = re.compile(
    r"(?<![A-Za-zÀ-ÿ0-9_])(?<!\d[.,])[vV]?"
    r"(?P<digits>\d{1,3}(?:[,\u00a0\u202f' ]\d{3})+(?![\d,])(?:\.\d{1,6})?|\d{1,20}(?:[.,]\d{1,20}){0,5})"
    r"(?P<many>[kK](?![A-Za-z]))?(?P<plus>\+|x(?!\w))?"
    r"(?:[ \u00a0\u202f-]?(?P<unit>%|[A-Za-zäöüéèí]{1,14}|[\u3040-\u30ff\u4e00-\u9fff]{1,6}))?"
)
_NAMED_UNIT = re.compile(
    rf"(?:\bin |\(|\bnumber of )(?P<unit>{'|'.join(word for word in _UNITS if word[-1] == 's' and len(word) > 3)})\b",
    re.IGNORECASE,
)
_PERIODS = ("second", "minute", "hour", "day", "week")
_ONE = re.compile(rf"\b(?:one|an?|per|each|every|once a)\s+(?P<unit>{'|'.join(_PERIODS)})\b", re.IGNORECASE)
_SPELLED = re.compile(rf"(?<![\w-])(?P<word>{'|'.join(_WORDS)})(?![\w])(?:[ -](?P<unit>\w{{1,14}}))?", re.IGNORECASE)
_DIGIT = re.compile(r"\d")
_LETTERS = re.compile(r"\w+")
"""Whole words: a text without a word of a pattern is not searched for it, which costs ten times as much."""
_SPELLING = frozenset((*_WORDS, *_PERIODS))


class Number(Struct, frozen=True, gc=False):
    text: str
    """As it is written, with its unit."""
    keys: frozenset[str]
    """Its value, as digits; several where it can be read in several ways."""
    start: int
    end: int
    dimension: str = ""
    """``time``, ``size`` or ``percent``; empty without a unit."""
    amount: float = 0.0
    """In seconds or bytes."""
    is_spelled: bool = False
    implied: tuple[tuple[str, float], ...] = ()
    """The units that its surroundings name for numbers without one, as in ``timeout in seconds``."""

    def agrees_with(self, other: "Number") -> bool:
        """Return whether both may be the same quantity. ``other`` is of a passage, and may have implied units."""
        if self.dimension and not other.dimension and other.implied:
            units = [factor for dimension, factor in other.implied if dimension == self.dimension]
            if units:
                value = next((float(key) for key in other.keys if key.count(".") < 2), 0.0)
                amounts = [value * factor for factor in units]
                return any(_is_near(self.amount, amount, self.dimension) for amount in amounts)
        if self.dimension and other.is_spelled and not other.dimension:
            return False
        if self.dimension and other.dimension:
            if self.dimension != other.dimension:
                return False
            return (self.keys & other.keys != frozenset() and self._same_unit(other)) or self._same_amount(other)
        return bool(self.keys & other.keys)

    def _same_unit(self, other: "Number") -> bool:
        return self._factor() == other._factor()

    def _factor(self) -> float:
        value = next((float(key) for key in self.keys if key.count(".") < 2), 0.0)
        return round(self.amount / value, 6) if value else 0.0

    def _same_amount(self, other: "Number") -> bool:
        if not self.amount or not other.amount:
            return False
        return _is_near(self.amount, other.amount, self.dimension)


def _is_near(one: float, other: float, dimension: str) -> bool:
    return abs(one - other) <= (0.08 if dimension == "size" else 1e-9) * max(abs(one), abs(other))


def units_named_in(text: str) -> tuple[tuple[str, float], ...]:
    """Return the units that a text names for its numbers: ``in seconds``, ``(bytes)``, ``number of days``."""
    return tuple({_UNITS[word.lower()] for word in _NAMED_UNIT.findall(text)})


def numbers_in(text: str) -> Iterator[Number]:
    """Yield the numbers in digits, then those in words."""
    for match in _NUMBER.finditer(text) if _DIGIT.search(text) else ():
        digits = match["digits"]
        keys = _keys(digits)
        if match["many"]:
            keys = frozenset(str(int(float(key) * 1000)) for key in keys if key.count(".") < 2)
        end = match.end("plus") if match["plus"] else match.end("digits")
        yield _number(match, keys, match["unit"] or "", end)
    found = _LETTERS.findall(text.lower())
    if _SPELLING.isdisjoint(found):  # nearly always
        return
    words = set(found)
    for match in () if words.isdisjoint(_WORDS) else _SPELLED.finditer(text):
        if (digits := _WORDS.get(match["word"].lower())) is None:
            continue  # a Turkish i: only to the expression is it the same letter
        yield _number(match, frozenset((digits,)), match["unit"] or "", match.end("word"), is_spelled=True)
    for match in () if words.isdisjoint(_PERIODS) else _ONE.finditer(text):
        yield _number(match, frozenset("1"), match["unit"], match.end(), is_spelled=True)


def _number(match: re.Match[str], keys: frozenset[str], unit: str, end: int, *, is_spelled: bool = False) -> Number:
    if unit in ("to", "go"):  # a word; French writes Go and To for its bytes
        unit = ""
    known = _UNITS.get(unit.lower()) or _UNITS.get(unit[:2]) if not unit.isascii() else _UNITS.get(unit.lower())
    if known is None:
        return Number(match[0][: end - match.start()].strip(), keys, match.start(), end, is_spelled=is_spelled)
    dimension, factor = known
    value = next((float(key) for key in sorted(keys, key=len) if key.count(".") < 2), 0.0)
    return Number(match[0].strip(), keys, match.start(), match.end(), dimension, value * factor, is_spelled)


def _keys(digits: str) -> frozenset[str]:
    if digits.isdigit():
        return frozenset((digits.lstrip("0") or "0",))
    plain = re.sub(r"[,\u00a0\u202f' ]", "", digits)
    keys = {_trimmed(plain)}
    if re.fullmatch(r"\d{1,3}(?:\.\d{3})+", digits):
        keys.add(_trimmed(digits.replace(".", "")))  # as German writes thousands
    if "," in digits:
        keys.add(_trimmed(digits.replace(",", ".")))
    return frozenset(keys)


def _trimmed(digits: str) -> str:
    whole = digits.lstrip("0") or "0"
    if whole.startswith("."):
        whole = "0" + whole
    while whole.endswith(".0"):
        whole = whole[:-2]
    return whole
