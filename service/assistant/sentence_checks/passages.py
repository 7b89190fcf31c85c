"""Passages, read once: where in them each word, name, number and piece of code stands."""

import re
from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise

from msgspec import Struct
from msgspec.structs import replace

from service.assistant.sentence_checks.code import Token, tokens_in
from service.assistant.sentence_checks.defaults import defaults_in
from service.assistant.sentence_checks.numbers import Number, numbers_in
from service.assistant.sentence_checks.words import VALUES, WORD, stem, stems_in
from service.domain.unicode_forms import normalized
from service.markup.streaming.code import MIN_FENCE, run_of
from service.markup.streaming.lines import MARKERS

MAX_PASSAGE_CHARACTERS = 60_000
MAX_TEXT_CHARACTERS = 600_000
"""Limit for all passages of a reply together; what is beyond is not read."""
MAX_KEPT_CHARACTERS = 300_000
"""Limit for all passages that stay read for the next replies; in memory that is some 15 MB. To read a reply's
passages took 12 ms of the processor, to copy what is kept of them takes 0.4 ms.
"""
MAX_KEPT = 500
MAX_SEGMENT_CHARACTERS = 2_000
SEGMENT_CHARACTERS = 320
MAX_FILLERS = 6
"""Tokens in one place of the passages' code; where more are seen, anything may stand."""

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[\"'`(\[*_]*[A-Z])|(?<=[。！？])")  # noqa: RUF001
_TOKEN = re.compile(
    r"[A-Za-zÀ-ÿ0-9_][A-Za-zÀ-ÿ0-9_$]{0,100}(?:[-.][A-Za-zÀ-ÿ0-9_$]{1,100}){0,12}|--[A-Za-z][\w-]{0,100}|(?<![\w-])-[A-Za-z](?![\w-])"
)
_BEGINS = re.compile(r"[ \t>]*(?:[-*+]\s|\d{1,3}[.)]\s|\||#{1,6}\s|<|\{\{|:::|!!!|///|\.\. |:\w)")
"""A line that is no continuation of the one before."""
_SPAN = re.compile(r"`([^`\n]{1,300})`")
_LINK = re.compile(r"\]\([^()\s]{0,1000}\)")
_HEADING = re.compile(r"#{1,6}\s")
INDENT = "    "
END = "\n"
"""Stands behind the last token of a line."""


class GivenPassage(Struct, frozen=True):
    """A passage as the model got it."""

    number: int
    text: str
    start_line: int = 1
    """Where it begins in its page's file."""
    heading: str = ""
    """The page's title and the headings that it stands under."""
    end_line: int = 0
    """Where it ends there; 0 where that is not known."""


class Segment(Struct, frozen=True, gc=False):
    """A sentence, a line of code, a row of a table."""

    passage: int
    line: int
    end_line: int
    above: tuple[str, ...]
    """Words of the headings that it stands under."""
    values: tuple[str, ...]
    numbers: tuple[Number, ...]
    text: str
    defaults: tuple[str, ...]
    """Values that it says are defaults."""


class Fillers:
    """Tokens by the two that stand before them, or around them."""

    def __init__(self) -> None:
        self._of: dict[str, str] = {}

    def update(self, other: "Fillers") -> None:
        """Note the tokens of another, as if they came one by one."""
        for frame, tokens in other._of.items():
            known = self._of.setdefault(frame, tokens)
            if known is not tokens and known != tokens:
                both = dict.fromkeys([*known.split("\0"), *tokens.split("\0")])
                self._of[frame] = "\0".join(list(both)[: MAX_FILLERS + 1])

    def add(self, one: str, other: str, token: str) -> None:
        """Note a token: of those in one place, up to ``MAX_FILLERS`` and one more."""
        frame = f"{one}\0{other}"
        known = self._of.get(frame)
        if known is None:
            self._of[frame] = token
        elif token not in (tokens := known.split("\0")) and len(tokens) <= MAX_FILLERS:
            self._of[frame] = f"{known}\0{token}"

    def of(self, one: str, other: str) -> Sequence[str]:
        known = self._of.get(f"{one}\0{other}")
        return () if known is None else known.split("\0")


class Passages:
    """The passages of a reply, as its sentences are held against them.

    All that grows with them is in containers with nothing for the garbage collector to follow: dicts of texts and
    arrays, structs without ``gc``. As sets and lists, those of 24 replies at a time cost each full collection
    100 ms.
    """

    def __init__(self, *, is_of_site: bool = True) -> None:
        """``is_of_site``: they are of pages, so they may be kept for other replies; a reader's words are not."""
        self._is_of_site = is_of_site
        self.clear()

    def clear(self) -> None:
        """Begin with no passages."""
        self.segments: list[Segment] = []
        self.vocabulary: dict[str, None] = {}
        """All words as they are, in lower case."""
        self.numbers: dict[str, list[tuple[int, Number]]] = {}
        """By their values: the segment and the number."""
        self.amounts: dict[str, list[tuple[int, Number]]] = {}
        """By their dimension: those with a unit."""
        self.of_stem: dict[str, array[int]] = {}
        self.of_token: dict[str, array[int]] = {}
        self.of_value: dict[str, array[int]] = {}
        self.of_code: dict[str, None] = {}
        """Names that stand in code."""
        self.alone: set[str] = set()
        """Names that stand in code by themselves."""
        self.keys: set[str] = set()
        """Names in code that a value follows."""
        self.pairs: dict[str, None] = {}
        """Words that stand side by side, with a blank between them."""
        self.frames = Fillers()
        """Two tokens of code, and those that follow them."""
        self.between = Fillers()
        """The tokens of code on both sides, and those that stand between them."""
        self.lines: dict[str, int] = {}
        """Whole lines of code, without their blanks, and their segments."""
        self._known: dict[int, int] = {}
        self._left = MAX_TEXT_CHARACTERS

    def add(self, passage: GivenPassage) -> None:
        """Read a passage; a longer text of a number that is known is read as well."""
        if not self.is_new(passage):
            return
        self._known[passage.number] = len(passage.text)
        text = passage.text[: min(MAX_PASSAGE_CHARACTERS, self._left)]
        self._left -= len(text)
        read = _KEPT.read if self._is_of_site else _read
        self._update(read(text, passage.heading), passage)

    def _update(self, one: "Passages", passage: GivenPassage) -> None:
        """Add what was read of a passage. It is copied: others read the same page."""
        first, last = len(self.segments), passage.end_line
        for segment in one.segments:
            begin, end = segment.line + passage.start_line, segment.end_line + passage.start_line
            begin, end = min(begin, last or begin), min(end, last or end)
            self.segments.append(replace(segment, passage=passage.number, line=begin, end_line=end))
        for known, new in ((self.of_stem, one.of_stem), (self.of_token, one.of_token), (self.of_value, one.of_value)):
            for key, places in new.items():
                known.setdefault(key, array("L")).extend([at + first for at in places])
        for found, more in ((self.numbers, one.numbers), (self.amounts, one.amounts)):
            for key, pairs in more.items():
                found.setdefault(key, []).extend([(at + first, number) for at, number in pairs])
        for line_of_code, at in one.lines.items():
            self.lines.setdefault(line_of_code, at + first)
        self.vocabulary.update(one.vocabulary)
        self.pairs.update(one.pairs)
        self.of_code.update(one.of_code)
        self.alone |= one.alone
        self.keys |= one.keys
        self.frames.update(one.frames)
        self.between.update(one.between)

    def read(self, text: str, under: str) -> None:
        """Read the text of a passage that stands under these headings; its lines count from 0."""
        heading = tuple(dict.fromkeys(stems_in(under)))
        self._add_tokens(under, len(self.segments))
        in_code = _begins_in_code(text)
        above = heading
        prose: list[str] = []
        began = 0
        for number, whole in enumerate([*text.splitlines(), ""]):
            line = whole[:MAX_SEGMENT_CHARACTERS]
            mark = _fence_of(line)
            is_fence = mark != ""
            if prose and (in_code or is_fence or not line.strip() or _BEGINS.match(line)):
                self._add_prose(began, prose, above)
                prose.clear()
            if is_fence:
                in_code = not in_code or mark.strip(" \t`~") != ""  # only the first line says what it is
                self._add_tokens(line, len(self.segments))
            elif not line.strip():
                continue
            elif in_code:
                self._add_segment((number, number), line, above, is_code=True)
            else:
                if _HEADING.match(line):
                    above = tuple(dict.fromkeys([*heading, *stems_in(line)]))
                began = began if prose else number
                prose.append(line)
                if line.startswith(INDENT):  # perhaps code
                    self._add_code(line, len(self.segments))

    def _add_prose(self, began: int, lines: Sequence[str], above: tuple[str, ...]) -> None:
        """Add a paragraph or a list item; its lines may be cut anywhere."""
        at = 0
        ends: list[int] = []
        for line in lines:
            at += len(line.strip()) + 1
            ends.append(at)
        at = 0
        for part in _parts(" ".join(line.strip() for line in lines)):
            first, last = bisect_right(ends, at), bisect_right(ends, at + len(part) - 1)
            self._add_segment((began + first, began + last), part, above, is_code=False)
            at += len(part) + 1

    def is_new(self, passage: GivenPassage) -> bool:
        return self._known.get(passage.number, -1) < len(passage.text)

    def known_stem(self, word: str) -> bool:
        return stem(word) in self.of_stem or word.casefold() in self.vocabulary

    def has_token(self, token: str) -> bool:
        return token.casefold() in self.of_token

    def number_places(self, number: Number) -> list[tuple[int, Number]]:
        """Return where the quantity stands, with the same unit, another of the same dimension, or none."""
        found = [
            (at, other) for key in number.keys for at, other in self.numbers.get(key, ()) if number.agrees_with(other)
        ]
        if number.dimension and number.amount:
            found += [pair for pair in self.amounts.get(number.dimension, ()) if number.agrees_with(pair[1])]
        return found

    def _add_segment(self, lines: tuple[int, int], raw: str, above: tuple[str, ...], *, is_code: bool) -> None:
        text = _LINK.sub("]", raw) if "](" in raw else raw
        if not text.isascii():
            text = normalized("NFKC", text)
        at = len(self.segments)
        words = [word.casefold() for word in WORD.findall(text)]
        self.vocabulary.update(dict.fromkeys(words))
        self.pairs.update(dict.fromkeys(map(" ".join, pairwise(words))))
        for one in dict.fromkeys(stems_in(text)):
            _add(self.of_stem, one, at)
        values = tuple({word for word in words if word in VALUES})
        for word in values:
            _add(self.of_value, word, at)
        self._add_tokens(text, at)
        numbers = tuple(numbers_in(text))
        for number in numbers:
            for key in number.keys:
                self.numbers.setdefault(key, []).append((at, number))
            if number.dimension:
                self.amounts.setdefault(number.dimension, []).append((at, number))
        self.segments.append(Segment(0, *lines, above, values, numbers, text, _defaults(text)))
        if is_code:
            self._add_code(text, at)
        elif "`" in text:
            for span in _SPAN.finditer(text):
                self._add_code(span[1], at)

    def _add_tokens(self, text: str, at: int) -> None:
        for whole in dict.fromkeys(map(str.casefold, _TOKEN.findall(text))):
            _add(self.of_token, whole, at)
            if whole[-1] == "-":
                _add(self.of_token, whole.rstrip("-"), at)
            if "." in whole:
                for form in whole.split("."):
                    _add(self.of_token, form, at)

    def _add_code(self, line: str, at: int) -> None:
        tokens = tokens_in(line)
        self.lines.setdefault("".join(line.split()), at)
        keys = keys_of(tokens)
        if len(tokens) == 1:
            self.alone.add(tokens[0].key)
        for place in range(2, len(keys)):
            self.frames.add(keys[place - 2], keys[place - 1], keys[place])
            if keys[place] in ("=", ":"):
                self.keys.add(keys[place - 1])
            if place < len(keys) - 1:
                self.between.add(keys[place - 1], keys[place + 1], keys[place])
        for token in tokens:
            if token.kind != "mark":
                self.of_code[token.key] = None
            if token.kind == "string":
                self.of_code.update(dict.fromkeys(match[0].casefold() for match in _TOKEN.finditer(token.text)))
                if " " in token.key:
                    self._add_code(token.text[1:-1], at)
                self._add_tokens(token.text, at)
                _add(self.of_token, token.key, at)


class _Kept:
    """Passages that were read last, the newest last: replies on one subject are made from the same pages."""

    def __init__(self) -> None:
        self._read: dict[tuple[str, str], Passages] = {}
        self._characters = 0

    def read(self, text: str, heading: str) -> Passages:
        """Return what a text has under its headings; to be copied, not changed."""
        key = (text, heading)
        one = self._read.pop(key, None)
        if one is None:
            one = _read(text, heading)
            self._characters += len(text)
        self._read[key] = one
        while self._characters > MAX_KEPT_CHARACTERS or len(self._read) > MAX_KEPT:
            oldest = next(iter(self._read))
            del self._read[oldest]
            self._characters -= len(oldest[0])
        return one


_KEPT = _Kept()


def _read(text: str, heading: str) -> Passages:
    one = Passages()
    one.read(text, heading)
    return one


def _add(places: dict[str, "array[int]"], key: str, at: int) -> None:
    known = places.get(key)
    if known is None:
        places[key] = array("L", (at,))
    elif known[-1] != at:
        known.append(at)


def _defaults(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(value for _, value in defaults_in(text))) if "efault" in text else ()


def _fence_of(line: str) -> str:
    """Return the fence that the line is, with what stands behind it; empty for another line."""
    mark = line.lstrip(MARKERS)
    return mark if mark[:1] in ("`", "~") and run_of(mark) >= MIN_FENCE else ""


def _begins_in_code(text: str) -> bool:
    """Return whether a passage was cut out of a code block: its first fence is bare, and one of them has no partner."""
    fences = [mark.strip(" \t`~") for line in text.splitlines() if (mark := _fence_of(line))]
    return len(fences) % 2 == 1 and fences[0] == ""


def sentences_in(text: str) -> list[str]:
    return _SENTENCE_END.split(text)


def _parts(line: str) -> Iterator[str]:
    """Yield the sentences of a line; short ones together, as what they say belongs together."""
    if len(line) <= SEGMENT_CHARACTERS:
        yield line
        return
    part = ""
    for sentence in _SENTENCE_END.split(line):
        if part and len(part) + len(sentence) > SEGMENT_CHARACTERS:
            yield part
            part = ""
        part += f" {sentence}" if part else sentence
    if part:
        yield part


START = "\t"
"""Stands before the first token of a line."""


def keys_of(tokens: list[Token]) -> list[str]:
    """Return the tokens as frames have them, with what stands before the line and behind it."""
    return [START, START, *(token.key for token in tokens), END]
