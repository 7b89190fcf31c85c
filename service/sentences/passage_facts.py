"""The facts of a passage, for all replies: its segments, and where in them each word, name and number stands."""

import re
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain, pairwise

from msgspec import Struct
from msgspec.structs import replace

from service.domain.texts.unicode_forms import normalized
from service.markup.streaming.code import MIN_FENCE, run_of
from service.markup.streaming.lines import MARKERS
from service.sentences.code import Token, statements_in, tokens_in
from service.sentences.defaults import claimed_in
from service.sentences.numbers import Number, numbers_in, units_named_in
from service.sentences.words import VALUES, WORD, stems_in, stems_of

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
_GLUED = re.compile(r"(?<=[a-z]{2})(?=\d{1,6}(?:\.\d{1,4})?\b)")
"""Between a name and its version: ``firefox114``."""
_ORDINAL = re.compile(r"\A[ \t>]*\d{1,3}[.)](?=\s)")
"""The number of a list's item says nothing."""
_SPAN = re.compile(r"`([^`\n]{1,300})`")
_LINK = re.compile(r"\]\([^()\s]{0,1000}\)")
_HEADING = re.compile(r"#{1,6}\s")
_TERM = re.compile(r"\.\. [\w:-]{1,40}:: +(?P<term>\S.{0,100})")
"""The name that a directive documents."""
INDENT = "    "
END = "\n"
"""Stands behind the last token of a line."""


class Segment(Struct, gc=False):
    """A sentence, a line of code, a row of a table. Its lines count from 0."""

    line: int
    end_line: int
    above: tuple[str, ...]
    """Words of the headings that it stands under."""
    text: str
    _numbers: tuple[Number, ...] | None = None
    _defaults: tuple[str, ...] | None = None

    @property
    def numbers(self) -> tuple[Number, ...]:
        if self._numbers is None:
            units = units_named_in(self.text)
            text = self.text.replace("`", "") if "`" in self.text else self.text
            text = _GLUED.sub(" ", text) if _GLUED.search(text) else text
            found = tuple(numbers_in(_ORDINAL.sub("", text, count=1)))
            self._numbers = tuple(replace(one, implied=units) for one in found) if units else found
        return self._numbers

    @property
    def values(self) -> tuple[str, ...]:
        words = map(str.casefold, WORD.findall(self.text))
        return tuple({word for word in words if word in VALUES})

    @property
    def defaults(self) -> tuple[str, ...]:
        """Return the values that it says are defaults."""
        if self._defaults is None:
            found = claimed_in(self.text) if "efault" in self.text else ()
            self._defaults = tuple(dict.fromkeys(value for _, value in found))
        return self._defaults


class Fillers:
    """Tokens by the two that stand before them, or around them."""

    def __init__(self) -> None:
        self._of: dict[str, str] = {}

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


class Words:
    """The words of a passage. Numbers are the places of its segments."""

    def __init__(self, segments: Sequence[Segment]) -> None:
        self.vocabulary: dict[str, None] = {}
        """All words as they are, in lower case."""
        self.of_stem: dict[str, array[int]] = {}
        self.of_value: dict[str, array[int]] = {}
        for at, segment in enumerate(segments):
            found = WORD.findall(segment.text)
            words = dict.fromkeys(map(str.casefold, found))
            self.vocabulary.update(words)
            for one in dict.fromkeys(stems_of(found)):
                _add(self.of_stem, one, at)
            for word in words.keys() & VALUES.keys():
                _add(self.of_value, word, at)


class Names:
    """The tokens of a passage, and its code."""

    def __init__(self, steps: Sequence[tuple[int, str, bool]], under: str) -> None:
        """``steps``: of each text with tokens its segment, and whether it is code. ``under``: headings, which may name
        what code names.
        """
        self.of_token: dict[str, array[int]] = {}
        self.of_code: dict[str, None] = {}
        """Names that stand in code."""
        self.alone: set[str] = set()
        """Names that stand in code by themselves."""
        self.keys: set[str] = set()
        """Names in code that a value follows."""
        self.lines: dict[str, int] = {}
        """Whole lines of code, without their blanks, and their segments."""
        self.of_code.update(dict.fromkeys(match[0].casefold() for match in _TOKEN.finditer(under)))
        for at, text, is_code in steps:
            if is_code:
                self._add_code(text, at)
            else:
                self._add_tokens(text, at)

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
            if keys[place] in ("=", ":"):
                self.keys.add(keys[place - 1])
        for token in tokens:
            if token.kind != "mark":
                self.of_code[token.key] = None
            if token.kind == "string":
                self.of_code.update(dict.fromkeys(match[0].casefold() for match in _TOKEN.finditer(token.text)))
                if " " in token.key:
                    self._add_code(token.text[1:-1], at)
                self._add_tokens(token.text, at)
                _add(self.of_token, token.key, at)


class Frames:
    """The order of the tokens in a passage's code."""

    def __init__(self, blocks: Sequence[Sequence[str]]) -> None:
        """``blocks``: the lines of each block of code, and code within sentences."""
        self.behind = Fillers()
        """Two tokens of code, and those that follow them."""
        self.between = Fillers()
        """The tokens of code on both sides, and those that stand between them."""
        texts: list[str] = []
        for lines in blocks:
            statements = statements_in(lines)
            for tokens in statements:
                self._add(tokens)
            texts.append(stream_of(chain.from_iterable(statements)))
        self.stream = "\n".join(texts)
        """The tokens of all code, those of a block in one line."""

    def _add(self, tokens: list[Token]) -> None:
        keys = keys_of(tokens)
        for place in range(2, len(keys)):
            self.behind.add(keys[place - 2], keys[place - 1], keys[place])
            if place < len(keys) - 1:
                self.between.add(keys[place - 1], keys[place + 1], keys[place])
        for token in tokens:
            if token.kind == "string" and " " in token.key:
                self._add(tokens_in(token.text[1:-1]))


class Quantities:
    """The numbers of a passage, each with its segment."""

    def __init__(self, segments: Sequence[Segment]) -> None:
        self.by_value: dict[str, list[tuple[int, Number]]] = {}
        self.by_dimension: dict[str, list[tuple[int, Number]]] = {}
        """Those with a unit."""
        for at, segment in enumerate(segments):
            for number in segment.numbers:
                for key in number.keys:
                    self.by_value.setdefault(key, []).append((at, number))
                if number.dimension:
                    self.by_dimension.setdefault(number.dimension, []).append((at, number))


class PassageFacts:
    """A passage's segments at once, and each other kind of fact when it is first asked for.

    All that grows with the text is in containers with little for the garbage collector to follow: dicts of texts and
    arrays, structs without ``gc``. As sets and lists, those of 24 replies at a time cost each full collection 100 ms.
    """

    def __init__(self, text: str, under: str) -> None:
        """``under``: the headings that the passage stands under."""
        self.segments: list[Segment] = []
        self._steps: list[tuple[int, str, bool]] = []
        self._blocks: list[list[str]] = []
        self._under = under
        self._read(text, under)

    @cached_property
    def words(self) -> Words:
        return Words(self.segments)

    @cached_property
    def names(self) -> Names:
        return Names(self._steps, self._under)

    @cached_property
    def frames(self) -> Frames:
        return Frames(self._blocks)

    @cached_property
    def numbers(self) -> Quantities:
        return Quantities(self.segments)

    @cached_property
    def pairs(self) -> dict[str, None]:
        """Return the words that stand side by side, with a blank between them."""
        found: dict[str, None] = {}
        for segment in self.segments:
            words = [word.casefold() for word in WORD.findall(segment.text)]
            found.update(dict.fromkeys(map(" ".join, pairwise(words))))
        return found

    def _read(self, text: str, under: str) -> None:
        """Split the text into segments, and note what has tokens. The headings above it are the first segment."""
        heading = tuple(dict.fromkeys(stems_in(under)))
        if under.strip():
            self._add_segment((0, 0), under[:MAX_SEGMENT_CHARACTERS], (), is_code=False)
        block: list[str] = []
        in_code = _begins_in_code(text)
        above = titled = heading
        prose: list[str] = []
        began = 0
        for number, whole in enumerate([*text.splitlines(), ""]):
            line = whole[:MAX_SEGMENT_CHARACTERS]
            mark = _fence_of(line)
            is_fence = mark != ""
            if block and (is_fence or not (in_code or line.startswith(INDENT) or not line.strip())):
                self._blocks.append(block)
                block = []
            if prose and (in_code or is_fence or not line.strip() or _BEGINS.match(line)):
                self._add_prose(began, prose, above)
                prose.clear()
            if is_fence:
                in_code = not in_code or mark.strip(" \t`~") != ""  # only the first line says what it is
                if mark.lstrip("`~:").startswith("{"):  # a directive with its text
                    self._add_segment((number, number), mark, above, is_code=False)
                self._steps.append((len(self.segments), line, False))
            elif not line.strip():
                continue
            elif in_code:
                block.append(line)
                self._add_segment((number, number), line, above, is_code=True)
            else:
                if _HEADING.match(line):
                    above = titled = tuple(dict.fromkeys([*heading, *stems_in(line)]))
                elif (term := _TERM.match(line)) is not None:
                    above = tuple(dict.fromkeys([*titled, *stems_in(term["term"])]))
                began = began if prose else number
                prose.append(line)
                if line.startswith(INDENT):  # perhaps code
                    self._steps.append((len(self.segments), line, True))
                    block.append(line)
        self._blocks += [block] if block else []
        last = len(self.segments) - 1  # a fence may stand behind it
        self._steps = [(min(at, last), text, is_code) for at, text, is_code in self._steps] if self.segments else []

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

    def _add_segment(self, lines: tuple[int, int], raw: str, above: tuple[str, ...], *, is_code: bool) -> None:
        text = _LINK.sub("]", raw) if "](" in raw else raw
        if not text.isascii():
            text = normalized("NFKC", text)
        at = len(self.segments)
        self._steps.append((at, text, False))
        self.segments.append(Segment(*lines, above, text))
        if is_code:
            self._steps.append((at, text, True))
        elif "`" in text:
            spans = [span[1] for span in _SPAN.finditer(text)]
            self._steps += [(at, span, True) for span in spans]
            self._blocks += [[span] for span in spans]


def _add(places: dict[str, "array[int]"], key: str, at: int) -> None:
    known = places.get(key)
    if known is None:
        places[key] = array("L", (at,))
    elif known[-1] != at:
        known.append(at)


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


def stream_of(tokens: Iterable[Token]) -> str:
    """Return code as one line of tokens, each with a blank on both sides; the blanks within a string are others."""
    return f" {' '.join(token.key.replace(' ', '_') for token in tokens)} "


START = "\t"
"""Stands before the first token of a line."""


def keys_of(tokens: Sequence[Token]) -> list[str]:
    """Return the tokens as frames have them, with what stands before the line and behind it."""
    return [START, START, *(token.key for token in tokens), END]
