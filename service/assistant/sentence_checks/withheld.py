"""Code of an answer that names what no passage has, left out while the answer flows.

Fed with the text as readers get it, in pieces however they are cut. A block is held until it ends, a span of code until
its last backtick; everything else goes on at once. What is left out is decided later (``CodeWithholder.shown``), in a
thread; where the text stands does not depend on it, so the same words fed again leave the same block open.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import islice

from msgspec import Struct

from service.assistant.notes import withheld_code_note, withheld_inline_code_note
from service.assistant.sentence_checks.thread import in_turn
from service.markup.streaming.code import MAX_SPAN, MIN_FENCE, Fence, fence_line, place_of_fence, run_of, span_of
from service.markup.streaming.lines import LINE_CHARACTERS, MARKERS, START, place_of
from service.sentences.code_lines import CodeJudge
from service.sentences.passages import GivenPassage, Passages

NO_CODE = ("suggestions", "text output", "mermaid")
"""Beginnings of the first line of blocks that are no code of the documentation's."""
MAX_LINES = 1_000
"""Lines of a block that are looked at."""
PIECE_CHARACTERS = 1_000
_SPECIAL = re.compile(r"[`\\\n]")
_ADDRESS = re.compile(r"\S+://\S+|www\.\S+|[\w.+-]+@[\w-]+\.[\w.-]+")


class CodePart(Struct, frozen=True):
    """A span of code, or a whole block."""

    text: str
    code: str
    is_block: bool = False
    info: str = ""
    head: str = ""
    """The marks of quotes and lists that the block begins behind."""


Part = str | CodePart


class CodeReader:
    """Parts an answer into code and the rest."""

    def __init__(self) -> None:
        self._buffer = ""
        self._line = ""
        """The line so far that went on already."""
        self._before = START
        self._fence: Fence | None = None
        self._block: list[str] = []
        """The lines of the open block, its first one included."""
        self._pieces: list[str] = []
        """The line of the block that is not yet whole."""
        self._given = 0
        """Characters of the open block that readers have already."""

    @property
    def held(self) -> str:
        """Return the text that waits."""
        return "".join([*self._block, *self._pieces, self._buffer])

    def feed(self, text: str) -> list[Part]:
        parts: list[Part] = []
        for at in range(0, len(text), PIECE_CHARACTERS):  # what waits behind a step is copied by it
            self._feed(text[at : at + PIECE_CHARACTERS], parts)
        return parts

    def pass_over(self, text: str) -> None:
        """Let the text that waits go where readers have it already: it was written before code was withheld."""
        if not self.held or not text.endswith(self.held):
            return
        if self._fence is not None:
            self._given = len(self.held)
        else:
            self._line, self._buffer = self._buffer, ""

    def _feed(self, piece: str, parts: list[Part]) -> None:
        if self._fence is not None:
            if "\n" not in piece:
                self._pieces.append(piece)
                return
            piece = "".join([*self._pieces, piece])
            self._pieces.clear()
        self._buffer += piece
        self._read(parts, final=False)

    def finish(self) -> list[Part]:
        """Return the rest. Afterwards a paragraph begins."""
        parts: list[Part] = []
        self._buffer = "".join([*self._pieces, self._buffer])
        self._pieces.clear()
        self._read(parts, final=True)
        if self._fence is not None:
            self._end_block(parts)
        self._line, self._before = "", START
        return parts

    def _read(self, parts: list[Part], *, final: bool) -> None:
        while self._buffer:
            step = self._prose if self._fence is None else self._code
            if not step(parts, final=final):
                break
        if self._fence is not None and self._buffer:
            self._pieces, self._buffer = [self._buffer], ""

    def _code(self, parts: list[Part], *, final: bool) -> bool:
        assert self._fence is not None
        line, newline, rest = self._buffer.partition("\n")
        if not newline and not final:
            return False
        found = fence_line(self._fence, line + "\n", final=True)
        kind = "code" if found is None else found.kind
        if kind in ("code", "closing"):
            self._block.append(line + newline)
            self._buffer = rest
        if kind != "code":
            self._before = self._fence.place
            self._end_block(parts, is_closed=kind == "closing")
        return True

    def _end_block(self, parts: list[Part], *, is_closed: bool = False) -> None:
        first, *lines = self._block
        content = first.lstrip(MARKERS)
        run = run_of(content)
        if self._given:
            parts.append("".join(self._block)[self._given :])
            self._fence, self._block, self._given = None, [], 0
            return
        parts.append(
            CodePart(
                "".join(self._block),
                "".join(lines[:-1] if is_closed else lines),
                is_block=True,
                info=content[run:].strip().lower()[:60],
                head=first[: len(first) - len(content)],
            )
        )
        self._fence, self._block = None, []

    def _prose(self, parts: list[Part], *, final: bool) -> bool:
        if not self._line and (found := self._begin_line(final=final)) is not None:
            return found
        match = _SPECIAL.search(self._buffer)
        at = len(self._buffer) if match is None else match.start()
        if at:
            self._give(parts, at)
            return True
        match self._buffer[0]:
            case "\n":
                self._before = place_of(self._line, self._before)
                self._give(parts, 1)
                self._line = ""
            case "\\":
                if len(self._buffer) < 2 and not final:
                    return False
                self._give(parts, 2 if self._buffer[1:2] == "`" else 1)
            case _:
                return self._span(parts, final=final)
        return True

    def _begin_line(self, *, final: bool) -> bool | None:
        """Read what may be the first line of a block; return None where it is none, else whether to go on."""
        content = self._buffer.lstrip(MARKERS)
        if len(self._buffer) - len(content) > LINE_CHARACTERS or (final and not content):
            return None
        if not content:
            return False
        if content[0] not in "`~":
            return None
        run = run_of(content)
        if run >= MAX_SPAN:
            return None
        if run == len(content) and not final:
            return False
        line, newline, rest = self._buffer.partition("\n")
        head = line[: len(self._buffer) - len(content)]
        if run < MIN_FENCE or (content[0] == "`" and "`" in line[len(head) + run :]):
            return None
        place = place_of_fence(content[:run], head, self._before)
        if place is None or not place.is_certain:
            return None
        if not newline and not final:
            return False
        self._fence, self._block, self._buffer = Fence(content[:run], place), [line + newline], rest
        return True

    def _span(self, parts: list[Part], *, final: bool) -> bool:
        run = run_of(self._buffer)
        length = 0 if run >= MAX_SPAN else span_of(self._buffer, run, final=final)
        if length is None:
            return False
        if length:
            code = self._buffer[run : length - run]
            self._line = (self._line + self._buffer[:length])[:LINE_CHARACTERS]
            parts.append(CodePart(self._buffer[:length], code.strip()))
            self._buffer = self._buffer[length:]
        else:
            self._give(parts, run)
        return True

    def _give(self, parts: list[Part], count: int) -> None:
        text, self._buffer = self._buffer[:count], self._buffer[count:]
        self._line = (self._line + text)[:LINE_CHARACTERS]
        parts.append(text)


class CodeWithholder:
    """Decides which code readers see, by the passages and by their own words."""

    def __init__(self, said: Iterable[str], passages: Callable[[], Sequence[GivenPassage]], question: str) -> None:
        """``passages``: those found so far; ``question``: its language is that of the notes."""
        self.reader = CodeReader()
        """Parts the text that the decisions are about."""
        self._given, self._question = passages, question
        self._passages, self._said = Passages(), Passages(is_of_site=False)
        self._to_read = list(said)
        self._judge = CodeJudge(self._passages, self._said)

    async def shown(self, parts: Iterable[Part]) -> str:
        """Return the text for readers. Passages that are new are read first."""
        for passage in self._given():
            if self._passages.is_new(passage):
                await in_turn(partial(self._passages.add, passage))
        return await in_turn(partial(self._joined, tuple(parts)))

    def _joined(self, parts: Iterable[Part]) -> str:
        for number, text in enumerate(self._to_read):
            self._said.add(GivenPassage(number, text))
        self._to_read.clear()
        return "".join(part if isinstance(part, str) else self._shown(part) for part in parts)

    def _shown(self, part: CodePart) -> str:
        if not part.is_block:
            is_known = _ADDRESS.fullmatch(part.code) or not self._judge.unknown([part.code], "")
            return part.text if is_known else withheld_inline_code_note(self._question)
        if part.info.startswith(NO_CODE):
            return part.text
        if not self._judge.unknown(list(islice(part.code.splitlines(), MAX_LINES)), part.info):
            return part.text
        blank = "" if part.head.strip("> ") else part.head.rstrip()
        before = "" if part.head.strip("> ") else f"{blank}\n"  # no part of a paragraph, as the block was none
        return f"{before}{part.head}{withheld_code_note(self._question)}\n{blank}\n"
