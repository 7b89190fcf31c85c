"""Citations: ``[2]`` as the model writes it, ``[2](/deploy#anchor)`` as the reader gets it, while the text flows.

Models that were trained on other marks write ``【2】``, ``【2†source】``, ``[^2^]``, ``[^2]``, ``[source: 2]`` or
``(passage 2)``, whatever the prompt asks for: these are citations, too. So is ``(2)`` behind a word where a sentence
ends, as long as the answer has no citation in brackets; elsewhere it counts, or is a value. ``[^2]`` and ``(2)`` stay
as they are where they name no passage.

What the filter promises:

- A number that names no passage is never sent, nor the blank before it.
- Code blocks, code spans and escaped brackets are left as they are, and so are images of the site (``![1](/a.png)``).
- Outside of code no other image is sent as one: a client would fetch it by itself, and its address could carry away
  what was read. ``![a](https://…)`` becomes a link, which somebody has to follow. In a code span, which may be none
  if its end never comes, a blank before the address does the same. What a reference stands for is nowhere defined: a
  blank goes before the colon of ``[a]: https://…``.
- It holds back only what may still become a citation, an image, the marker or a block of suggestions: words pass at
  once.
- The result does not depend on where the chunks were cut.

``[0]`` is the marker that the prompt asks a model to write when the documentation does not answer the question. It is
removed from the text and noted. Directly after a word (``argv[0]``), it is text.

A ``suggestions`` block that the model writes is removed as well, and kept, since its links must be checked first.

What is code is decided as ``markup`` decides it (``service.markup.streaming``), by the text as the model wrote it.
Indented code is known where it is code for every reader (``lines.Indents``); elsewhere a citation in it is linked.
"""

import re
from collections.abc import Callable
from enum import Enum, auto

from service.markup.streaming.code import KEPT_OF_LINE, CodeLexer
from service.markup.streaming.lines import Indents

MAX_HELD_CHARACTERS = 60
"""Limit for a bracket; a longer one is no citation."""

MAX_TARGET_CHARACTERS = 500
"""Limit for a link target that the model wrote after a number; ours replaces it."""

MAX_RANGE = 20

MAX_SUGGESTION_CHARACTERS = 1_000
"""Limit for a line in the model's block of suggestions; the rest is not read."""

_ENDS = {"[": "]", "【": "】", "［": "］", "(": ")", "（": "）"}  # noqa: RUF001
"""Beginnings of a citation, each with its end."""
_ROUND = "(（"  # noqa: RUF001
_SPECIAL = "[]`~:【［(（"  # noqa: RUF001
"""Characters with a meaning in text, and none in code."""
_HAS_SPECIAL = re.compile(r"[\[\]`~【［(（]")  # noqa: RUF001
_LIST = r"\s{0,8}+\d{1,3}+(?:\s{0,8}+[,;–-]\s{0,8}+\d{1,3}+){0,20}+\s{0,8}+"  # noqa: RUF001  (ranges with an en dash)
_NUMBERS = re.compile(_LIST)
_WORDS = ("source", "sources", "passage", "passages", "ref", "refs", "reference", "references", "citation", "quelle",
          "quellen", "fuente", "fuentes", "fonte", "fontes", "fonti", "bron", "来源", "出典", "출처")  # fmt: skip
"""Words that models put before a number."""
_NAMED = re.compile(rf"\s{{0,8}}(?:{'|'.join(_WORDS)})\s{{0,8}}[:：#]?({_LIST})", re.IGNORECASE)  # noqa: RUF001
_NOTED = re.compile(rf"\^({_LIST})\^?")
_DAGGERED = re.compile(r"(\d{1,3})(?::\d{1,3})?†[^\n]{0,50}")
_MAY_BE = re.compile(
    r"\^?+[\d\s,;–-]*+\^?+|\d{1,3}+(?::\d{0,3}+)?+(?:†[^\n]*+)?+"  # noqa: RUF001
    r"|\s*+(?P<word>[^\W\d_]++)\s*+[:：#]?+[\d\s,;–-]*+"  # noqa: RUF001
)
_SENTENCE_ENDS = ".,;:!?\n。、！？：；"  # noqa: RUF001
_PART = re.compile(r"(\d+)(?:\s*[-–]\s*(\d+))?")  # noqa: RUF001
_IMAGE = re.compile(r"\[[^\[\]\\`<\n]{0,300}\]\((?!//)[\w./#?=&%~-]{0,300}\)")
_IMAGE_SO_FAR = re.compile(r"\[[^\[\]\\`<\n]{0,300}(?:\](?:\((?!//)[\w./#?=&%~-]{0,300})?)?")
"""The beginning of an image of the site itself, in the plainest form: no scheme, no other host, nothing ambiguous."""
_TARGET_BEGUN = re.compile(r"\((?:[ <]{0,200}\n?[ <]{0,200}(?:[A-Za-z][A-Za-z0-9+.-]{0,30}|/)?)?")
_SUGGESTIONS = "suggestions"


class _Mode(Enum):
    TEXT = auto()
    BRACKET = auto()
    """After ``[`` or another beginning, with nothing but what a citation may hold."""
    CITED = auto()
    """After the end of a citation: a target may follow."""
    ROUND = auto()
    """After ``(2)``, until it is known whether the sentence ends there."""
    TARGET = auto()
    IMAGE = auto()
    """After ``![``, until it is known where it would be fetched from."""
    RUN = auto()
    """In a run of backticks or tildes."""
    INFO = auto()
    """After the fence, where ``suggestions`` may follow."""
    CODE = auto()
    SPAN = auto()
    SUGGESTIONS = auto()


class CitationFilter:
    """Feed it the model's text, then ``finish``; send what they return."""

    def __init__(self, url_of: Callable[[int], str | None]) -> None:
        """``url_of``: where a passage stands; None for a number that names none."""
        self._url_of = url_of
        self.cited: list[int] = []
        """Passages in the order in which they were first cited."""
        self.says_unanswered = False
        """The marker was there."""
        self.suggestions: list[str] = []
        """Lines of the model's own block of suggestions."""
        self._mode = _Mode.TEXT
        self._out: list[str] = []
        self._held = ""
        self._spaces = ""
        """Before what is held: they go if it goes."""
        self._previous = ""
        self._is_glued = False
        """The bracket stands right behind a word: ``argv[0]``."""
        self._is_behind_citation = False
        """So ``[2][0]`` is a citation and the marker."""
        self._has_cited = False
        """There was a citation in brackets: a number in parentheses is none then."""
        self._line = ""
        """The line so far, its beginning at least."""
        self._run_length = 0
        self._before_run = ""
        """Its line, up to it."""
        self._has_image = False
        """In the code span: what a stray backtick begins may turn out to be none."""
        self._lexer = CodeLexer()
        self._indents = Indents()
        self._bracket_at = 0
        """Where in the line the bracket stands that is held."""
        self._is_dropped = False
        """The character that was read last is the end of a citation that went."""

    def feed(self, text: str) -> str:
        is_special = _HAS_SPECIAL.search(text) is not None
        if self._mode is _Mode.TEXT and not is_special and not (text[:1] == ":" and self._previous == "]"):
            self._plain(text)
        else:
            if self._mode is _Mode.CODE and not self._lexer.is_info:
                text = self._lines_of_code(text)
            for character in text:
                self._step(character)
        return self._take()

    def finish(self) -> str:
        """What is still held back. Afterwards the filter is at the start of a paragraph."""
        match self._mode:
            case _Mode.TEXT:
                self._out.append(self._spaces)
            case _Mode.BRACKET:
                if not any(character.isdigit() for character in self._held):
                    self._out.append(self._spaces + self._held)
            case _Mode.CITED | _Mode.TARGET:
                self._cite()
            case _Mode.ROUND:
                self._end_round(ends_sentence=True)
            case _Mode.IMAGE:
                self._end_image()
            case _Mode.RUN:
                self._out.append(self._held * self._run_length)
            case _Mode.INFO | _Mode.SPAN:
                self._out.append(self._held)
            case _Mode.SUGGESTIONS:
                self._lexer.end_line(self._line)
                self._suggested()
            case _:
                pass
        self._mode, self._held, self._spaces, self._previous, self._line = _Mode.TEXT, "", "", "", ""
        self._indents, self._lexer = Indents(), CodeLexer()
        return self._take()

    def _take(self) -> str:
        text = "".join(self._out)
        self._out.clear()
        return text

    def _lines_of_code(self, text: str) -> str:
        """Let code through, and return what is behind its block."""
        while text and self._mode is _Mode.CODE:
            line, newline, text = text.partition("\n")
            self._out.append(line + newline)
            self._line = (self._line + line)[:KEPT_OF_LINE]
            self._previous = newline or line[-1]
            if newline:
                self._end_line()
        return text

    def _plain(self, text: str) -> None:
        """Text without anything special in it: the same as ``_step`` of each character, in one go."""
        if not text:
            return
        self._previous = text[-1]
        begun, newline, last = text.rpartition("\n")
        if newline:
            for line in (self._line + begun).split("\n"):
                self._indents.end(line)
                self._lexer.end_line(line[:KEPT_OF_LINE])
        self._line = (last if newline else self._line + last)[:KEPT_OF_LINE]
        words = text.rstrip(" ")
        if words:
            self._emit(words)
        self._spaces += text[len(words) :]

    def _step(self, character: str) -> None:
        self._take_in(character)
        self._previous = character
        if character == "\n":
            self._end_line()
        elif self._is_dropped:
            self._is_dropped = False
        elif len(self._line) < KEPT_OF_LINE:
            self._line += character

    def _end_line(self) -> None:
        self._indents.end(self._line)
        self._lexer.end_line(self._line)
        self._line = ""
        if self._mode is _Mode.TEXT:
            return
        if self._mode is _Mode.SUGGESTIONS:
            self._suggested()
        elif (self._mode is _Mode.CODE and not self._lexer.fence) or (self._mode is _Mode.SPAN and not self._held):
            self._mode = _Mode.TEXT

    def _take_in(self, character: str) -> None:
        match self._mode:
            case _Mode.TEXT:
                self._text(character)
            case _Mode.BRACKET:
                self._bracket(character)
            case _Mode.CITED:
                self._cited(character)
            case _Mode.ROUND:
                self._round(character)
            case _Mode.TARGET:
                self._target(character)
            case _Mode.IMAGE:
                self._image(character)
            case _Mode.RUN:
                self._run(character)
            case _Mode.INFO:
                self._info(character)
            case _Mode.CODE:
                self._code(character)
            case _Mode.SPAN:
                self._span(character)
            case _Mode.SUGGESTIONS:
                if character != "\n" and len(self._held) < MAX_SUGGESTION_CHARACTERS:
                    self._held += character

    def _text(self, character: str) -> None:
        if character == " ":
            self._spaces += character
        elif character in _SPECIAL and self._indents.is_code(self._line + character):
            self._emit(character)
        elif character == "[" and self._previous == "!":
            self._mode, self._held = _Mode.IMAGE, character
        elif (
            character in _ENDS and self._previous != "\\" and (character not in _ROUND or self._may_be_round(character))
        ):
            self._mode, self._held, self._bracket_at = _Mode.BRACKET, character, len(self._line)
            is_behind_word = self._previous.isalnum() or self._previous in ("_", ")", "]")
            self._is_glued = is_behind_word and not self._is_behind_citation
        elif character in "`~":
            self._begin_run(character)
        elif character == ":" and self._previous == "]" and not self._is_behind_citation:
            self._emit(" :")
        else:
            self._emit(character)

    def _may_be_round(self, character: str) -> bool:
        """Return whether a parenthesis may begin a citation: behind a word, not at the beginning of a line."""
        is_apart = bool(self._spaces) or self._is_behind_citation or character != "("
        return is_apart and bool(self._line.strip())

    def _bracket(self, character: str) -> None:
        begin, inside = self._held[0], self._held[1:]
        if character == _ENDS[begin]:
            self._held += character
            is_bare = _NUMBERS.fullmatch(inside) is not None
            if not _inside_of(self._held) or (self._is_glued and inside.strip() == "0"):
                self._release()
            elif begin in _ROUND and is_bare:
                self._mode = _Mode.ROUND
            elif (begin in _ROUND or inside[:1] == "^") and not self._names_passages():
                self._release()
            else:
                self._mode = _Mode.CITED
        elif character != "\n" and len(self._held) < MAX_HELD_CHARACTERS and _may_be_inside(begin, inside + character):
            self._held += character
        else:
            self._release()
            self._text(character)

    def _round(self, character: str) -> None:
        self._end_round(ends_sentence=character in _SENTENCE_ENDS or character in _ENDS)
        self._text(character)

    def _end_round(self, *, ends_sentence: bool) -> None:
        if ends_sentence and not self._has_cited and self._names_passages():
            self._cite()
        else:
            self._release()

    def _names_passages(self) -> bool:
        """Return whether what is held has numbers of passages alone."""
        numbers = _numbers(_inside_of(self._held))
        return bool(numbers) and all(self._url_of(number) is not None for number in numbers)

    def _cited(self, character: str) -> None:
        if character == "(":
            self._mode, self._held = _Mode.TARGET, self._held + character
        else:
            self._cite()
            self._text(character)

    def _target(self, character: str) -> None:
        if character == ")":
            self._cite()
            self._is_dropped = len(self._line) == self._bracket_at
        elif character == "[" or character.isspace() or len(self._held) > MAX_TARGET_CHARACTERS:
            words = self._held[self._held.index("(", self._held.index(_ENDS[self._held[0]])) :]
            self._cite()
            self._emit(words)
            self._text(character)
        else:
            self._held += character

    def _image(self, character: str) -> None:
        held = self._held + character
        if _IMAGE.fullmatch(held):
            self._emit(held)
            self._mode, self._held = _Mode.TEXT, ""
        elif _IMAGE_SO_FAR.fullmatch(held):
            self._held = held
        else:
            self._end_image()
            self._take_in(character)

    def _end_image(self) -> None:
        """It is none of ours, or is yet to be seen: a blank between ``!`` and the bracket makes it no image at all."""
        self._emit((" " if len(self._held) > 1 else "") + self._held)
        self._previous = self._held[-1]
        self._mode, self._held = _Mode.TEXT, ""

    def _begin_run(self, character: str) -> None:
        self._emit("")
        self._mode, self._held, self._run_length, self._before_run = _Mode.RUN, character, 1, self._line

    def _run(self, character: str) -> None:
        if character == self._held:
            self._run_length += 1
            return
        self._held = run = self._held * self._run_length
        is_in_span = self._lexer.ticks > 0
        self._lexer.run(run, self._before_run)
        if self._lexer.is_info:
            self._mode = _Mode.INFO
            self._info(character)
            return
        self._release()
        if self._lexer.ticks:
            self._mode, self._has_image = _Mode.SPAN, self._has_image and is_in_span
        self._take_in(character)

    def _info(self, character: str) -> None:
        if character == "`" == self._lexer.fence[0]:
            self._release()
            self._begin_run(character)
            return
        self._held += character
        info = self._held[len(self._lexer.fence) :]
        if character == "\n" and info.strip() == _SUGGESTIONS:
            self._mode, self._held = _Mode.SUGGESTIONS, ""
        elif character == "\n" or not _SUGGESTIONS.startswith(info.strip()):
            self._release()
            self._mode = _Mode.CODE

    def _code(self, character: str) -> None:
        if self._lexer.is_info and character == "`" == self._lexer.fence[0]:
            self._begin_run(character)
            return
        self._out.append(character)

    def _span(self, character: str) -> None:
        if character not in "`\n":
            self._lexer.text(1)
        if self._held and _TARGET_BEGUN.fullmatch(self._held + character):
            self._held += character
            return
        if self._held:  # ``](`` and what may be a scheme
            is_elsewhere = character in ":\\" or (self._held + character).endswith("//")
            self._out.append((" " if is_elsewhere and self._has_image else "") + self._held)
            self._held = ""
        if character == "(" and self._previous == "]":
            self._held = character
            return
        if character == "`":
            self._begin_run(character)
            return
        if character == "[" and self._previous == "!":
            self._has_image = True
        self._out.append(character)
        if not self._lexer.ticks and character != "\n":
            self._mode = _Mode.TEXT

    def _suggested(self) -> None:
        line, self._held = self._held.strip(), ""
        if not self._lexer.fence:
            self._mode = _Mode.TEXT
        elif line:
            self.suggestions.append(line)

    def _release(self) -> None:
        """Emit what was held as text."""
        self._emit(self._held)
        self._mode, self._held = _Mode.TEXT, ""

    def _emit(self, text: str) -> None:
        self._out.append(self._spaces + text)
        self._spaces = ""
        self._is_behind_citation = False

    def _cite(self) -> None:
        links: list[str] = []
        begin = self._held[0]
        self._has_cited |= begin not in _ROUND
        for number in _numbers(_inside_of(self._held)):
            if number == 0:
                self.says_unanswered = True
            elif (url := self._url_of(number)) is not None:
                links.append(f"[{number}]({_target_of(url)})")
                if number not in self.cited:
                    self.cited.append(number)
        if links:
            self._emit(" ".join(links))
        else:
            self._line = self._line[: self._bracket_at]  # what follows may begin the line now
        self._mode, self._held, self._spaces = _Mode.TEXT, "", ""
        self._is_behind_citation = not self._is_glued


def _inside_of(held: str) -> str:
    """Return the numbers of a citation, with what may follow it; empty where it is none."""
    end = held.find(_ENDS[held[0]])
    inside = held[1:end]
    if _NUMBERS.fullmatch(inside):
        return inside
    found = _NAMED.fullmatch(inside)
    if found is None and held[0] not in _ROUND:
        found = _NOTED.fullmatch(inside) or _DAGGERED.fullmatch(inside)
    return found[1] if found is not None and found[1].strip() != "0" else ""


def _may_be_inside(begin: str, inside: str) -> bool:
    """Return whether what stands behind the beginning of a citation may become one."""
    found = _MAY_BE.fullmatch(inside)
    if found is None or (begin in _ROUND and ("^" in inside or "†" in inside)):
        return False
    word = found["word"]
    return word is None or any(one.startswith(word.casefold()) for one in _WORDS)


def _numbers(inside: str) -> list[int]:
    numbers: list[int] = []
    for part in _PART.finditer(inside):
        first, last = sorted((int(part[1]), int(part[2] or part[1])))
        numbers += range(first, min(last, first + MAX_RANGE) + 1)
    return list(dict.fromkeys(numbers))


def _target_of(url: str) -> str:
    """The URL as a link target: blanks and parentheses would end it."""
    return url.replace(" ", "%20").replace("(", "%28").replace(")", "%29")
