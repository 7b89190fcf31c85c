"""The passages of a reply, as its sentences are held against them."""

from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from operator import itemgetter

from msgspec import Struct

from service.sentences.numbers import Number
from service.sentences.passage_facts import MAX_FILLERS, PassageFacts, Segment
from service.sentences.words import stem

MAX_PASSAGE_CHARACTERS = 60_000
MAX_TEXT_CHARACTERS = 600_000
"""Limit for all passages of a reply together; what is beyond is not read."""
MAX_KEPT_CHARACTERS = 300_000
"""Limit for all passages that stay read for the next replies; in memory that is some 15 MB. To read those of a reply
(48,000 characters of reference pages) took 6 ms of the processor for segments, 14 ms for words and names and 3 ms for
numbers, measured on a busy machine; each is read when a sentence needs it. Replies use what is kept where it is.
"""
MAX_KEPT = 500


MAX_TOGETHER = 150
"""Segments that are looked at for what stands beside a token."""


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


class _Index:
    """Segments by a key, of all passages together."""

    __slots__ = ("_known", "_of", "_parts")

    def __init__(
        self, parts: Sequence[tuple[int, PassageFacts]], of: Callable[[PassageFacts], dict[str, "array[int]"]]
    ) -> None:
        self._parts, self._of = parts, of
        self._known: dict[str, array[int]] = {}
        """Those that were asked for and found: some keys are asked for at each piece of a sentence."""

    def clear(self) -> None:
        self._known.clear()

    def places(self, key: str) -> Sequence[int]:
        """Return the segments in order; none where no passage has the key."""
        known = self._known.get(key)
        if known is not None:
            return known
        found = array("L")
        for first, part in self._parts:
            if (places := self._of(part).get(key)) is not None:
                found.extend([at + first for at in places] if first else places)
        if found:
            self._known[key] = found
        return found


def _stems_of(part: PassageFacts) -> dict[str, "array[int]"]:
    return part.words.of_stem


def _values_of(part: PassageFacts) -> dict[str, "array[int]"]:
    return part.words.of_value


def _tokens_of(part: PassageFacts) -> dict[str, "array[int]"]:
    return part.names.of_token


class Passages:
    """Passages one behind the other; what was read of each may be shared with other replies, and is not copied."""

    __slots__ = (
        "_known", "_left", "_lines", "_parts", "_read", "_stems", "_tokens", "_values", "passage_of", "segments",
    )  # fmt: skip

    def __init__(self, *, is_of_site: bool = True) -> None:
        """``is_of_site``: they are of pages, so they may be kept for other replies; a reader's words are not."""
        self._read = _KEPT.read if is_of_site else PassageFacts
        self._parts: list[tuple[int, PassageFacts]] = []
        """Each with the place of its first segment."""
        self._stems = _Index(self._parts, _stems_of)
        self._values = _Index(self._parts, _values_of)
        self._tokens = _Index(self._parts, _tokens_of)
        self.clear()

    def clear(self) -> None:
        """Begin with no passages."""
        self._parts.clear()
        self._forget_places()
        self.segments: list[Segment] = []
        self.passage_of: array[int] = array("L")
        """The number of each segment's passage."""
        self._lines: list[tuple[int, int]] = []
        """Where each passage begins and ends in its page's file."""
        self._known: dict[int, int] = {}
        self._left = MAX_TEXT_CHARACTERS

    def _forget_places(self) -> None:
        for index in (self._stems, self._values, self._tokens):
            index.clear()

    def add(self, passage: GivenPassage) -> None:
        """Split a passage into segments; a longer text of a number that is known is read as well."""
        if not self.is_new(passage):
            return
        self._known[passage.number] = len(passage.text)
        text = passage.text[: min(MAX_PASSAGE_CHARACTERS, self._left)]
        self._left -= len(text)
        facts = self._read(text, passage.heading)
        self._parts.append((len(self.segments), facts))
        self._lines.append((passage.start_line, passage.end_line))
        self._forget_places()
        self.segments += facts.segments
        self.passage_of.extend([passage.number] * len(facts.segments))

    def is_new(self, passage: GivenPassage) -> bool:
        return self._known.get(passage.number, -1) < len(passage.text)

    def read_words(self) -> None:
        """Read the words and names of the passages now; else they are read when one is first asked for."""
        for _, part in self._parts:
            _ = part.words, part.names

    def read_numbers(self) -> None:
        for _, part in self._parts:
            _ = part.numbers

    def lines_of(self, at: int) -> tuple[int, int]:
        """Return the first and the last line of a segment in its page's file."""
        number = bisect_right(self._parts, at, key=itemgetter(0)) - 1
        (start_line, end_line), segment = self._lines[number], self.segments[at]
        first, last = segment.line + start_line, segment.end_line + start_line
        return min(first, end_line or first), min(last, end_line or last)

    def of_stem(self, one: str) -> Sequence[int]:
        return self._stems.places(one)

    def of_value(self, word: str) -> Sequence[int]:
        return self._values.places(word)

    def of_token(self, token: str) -> Sequence[int]:
        return self._tokens.places(token)

    def has_word(self, word: str) -> bool:
        """Return whether a word in lower case stands in a passage as it is."""
        return any(word in part.words.vocabulary for _, part in self._parts)

    def known_stem(self, word: str) -> bool:
        return bool(self.of_stem(stem(word))) or self.has_word(word.casefold())

    def has_pair(self, one: str, other: str) -> bool:
        """Return whether two words in lower case stand side by side."""
        pair = f"{one} {other}"
        return any(pair in part.pairs for _, part in self._parts)

    def is_in_code(self, name: str) -> bool:
        return any(name in part.names.of_code for _, part in self._parts)

    def takes_value(self, name: str) -> bool:
        """Return whether a name of the code has a value behind it, or stands by itself."""
        return any(name in part.names.keys or name in part.names.alone for _, part in self._parts)

    def places_of_line(self, code: str) -> list[int]:
        """Return a segment of each passage that has a whole line of code; its blanks do not count."""
        bare = "".join(code.split())
        return [first + at for first, part in self._parts if (at := part.names.lines.get(bare)) is not None]

    def places_of_stream(self, stream: str) -> list[int]:
        """Return the first segment of each passage that has these tokens of code in this order."""
        return [first for first, part in self._parts if stream in part.frames.stream]

    def are_together(self, one: str, token: str) -> bool:
        """Return whether a token stands in a segment with another, or below a heading that has it.

        A token that is in many places is not looked at.
        """
        places, near = self.of_token(token), set(self.of_token(one))
        if len(places) > MAX_TOGETHER:
            return True
        word = stem(one)
        return any(at in near or word in self.segments[at].above for at in places)

    def tokens_behind(self, one: str, other: str) -> Sequence[str]:
        """Return the tokens of code that follow these two."""
        return _joined(part.frames.behind.of(one, other) for _, part in self._parts)

    def tokens_between(self, one: str, other: str) -> Sequence[str]:
        return _joined(part.frames.between.of(one, other) for _, part in self._parts)

    def number_places(self, number: Number) -> list[tuple[int, Number]]:
        """Return where the quantity stands, with the same unit, another of the same dimension, or none."""
        found = [
            (at + first, other)
            for key in number.keys
            for first, part in self._parts
            for at, other in part.numbers.by_value.get(key, ())
            if number.agrees_with(other)
        ]
        if number.dimension and number.amount:
            found += [
                (at + first, other)
                for first, part in self._parts
                for at, other in part.numbers.by_dimension.get(number.dimension, ())
                if number.agrees_with(other)
            ]
        return found


def _joined(fillers: Iterable[Sequence[str]]) -> Sequence[str]:
    """Return up to ``MAX_FILLERS`` tokens and one more."""
    return list(dict.fromkeys(chain.from_iterable(fillers)))[: MAX_FILLERS + 1]


class _Kept:
    """Passages that were read last, the newest last: replies on one subject are made from the same pages."""

    def __init__(self) -> None:
        self._read: dict[tuple[str, str], PassageFacts] = {}
        self._characters = 0

    def read(self, text: str, heading: str) -> PassageFacts:
        """Return the facts of a text under its headings, for all replies that have it."""
        key = (text, heading)
        one = self._read.pop(key, None)
        if one is None:
            one = PassageFacts(text, heading)
            self._characters += len(text)
        self._read[key] = one
        while self._characters > MAX_KEPT_CHARACTERS or len(self._read) > MAX_KEPT:
            oldest = next(iter(self._read))
            del self._read[oldest]
            self._characters -= len(oldest[0])
        return one


_KEPT = _Kept()
