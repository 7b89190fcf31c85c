"""What a model thinks aloud, ``<think>…</think>`` or ``<thinking>…</thinking>``, taken out of its text while it flows.

Models on a server of one's own write it into their answer, where the server does not separate it. It is no part of the
answer: no reader sees it, and a number in brackets in it is no citation. It is handed over apart, to be recorded.

- A tag counts wherever it stands outside of code, whatever its case; blanks may stand before its ``>``. What is opened
  and never closed goes on to the end of the call. Tags within it nest. An end without a beginning is left out alone.
- In code of the answer a tag is text: in a fenced block, and in a code span that ends on its line. In what is thought,
  only a span is code: a block in it that was never closed must not hide its end.

What is held back: a tag that has begun, a run of backticks, and what follows a tag behind an open backtick, to the end
of the span or of the line, at most ``MAX_SPAN`` characters. The result does not depend on where the chunks were cut.
"""

import re

from service.assistant.code import MAX_SPAN

PIECE_CHARACTERS = 1_000
"""Of a chunk that is looked at in one go: what remains of it is copied at each step."""

_LINE_CHARACTERS = 100
_LINE_START = re.compile(r"[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*")
_SPECIAL = re.compile(r"[`~<]")
_TAG = re.compile(r"<(/?)think(?:ing)?[ \t]{0,8}>", re.IGNORECASE)
_TAG_BEGUN = re.compile(r"</?(?:t(?:h(?:i(?:nk?)?)?)?|think(?:i(?:ng?)?)?|think(?:ing)?[ \t]{0,8})?\Z", re.IGNORECASE)


class ThinkingFilter:
    """Feed it the model's text, line ends as LF, then ``finish``; what they return belongs to the answer."""

    def __init__(self) -> None:
        self._buffer = ""
        self._unread: list[str] = []
        """Text without a tag, which was let through: where there is code in it matters only once a tag comes."""
        self._ahead = 0
        """Characters that were let through, and are yet to come out of the steps."""
        self._out: list[str] = []
        self._thoughts: list[str] = []
        self._depth = 0
        """Of tags that are open."""
        self._has_thought = False
        self._line = ""
        """The answer's line so far, its beginning at least."""
        self._fence = ""
        """The run that began the block of code."""
        self._in_info = False
        """On the first line of the block."""
        self._ticks = 0
        """Backticks that opened a span, or may have."""
        self._in_span = 0
        """Characters since then."""

    def feed(self, text: str) -> str:
        if "<" not in text and not self._depth and not self._buffer:  # nearly always: no tag, so it is the answer's
            self._unread.append(text)
            self._ahead += len(text)
            if self._ahead > PIECE_CHARACTERS:
                self._read("")
            return text
        return self._read(text)

    def _read(self, text: str) -> str:
        """Look at what was let through unread, then at the text."""
        if self._unread:
            text = "".join([*self._unread, text])
            self._unread.clear()
        for at in range(0, len(text), PIECE_CHARACTERS):
            self._buffer += text[at : at + PIECE_CHARACTERS]
            self._run(final=False)
        return self._take()

    def finish(self) -> str:
        """What is still held back. Afterwards an answer begins."""
        self._buffer += "".join(self._unread)
        self._unread.clear()
        self._run(final=True)
        self._depth, self._line, self._fence, self._in_info, self._ticks = 0, "", "", False, 0
        return self._take()

    def take_thoughts(self) -> str:
        """What was thought since the last time."""
        if not self._thoughts:
            return ""
        text = "".join(self._thoughts)
        self._thoughts.clear()
        return text

    def _take(self) -> str:
        text = "".join(self._out)
        self._out.clear()
        if self._ahead:
            text, self._ahead = text[self._ahead :], max(0, self._ahead - len(text))
        return text

    def _run(self, *, final: bool) -> None:
        while self._buffer and self._step(final):
            pass

    def _step(self, final: bool) -> bool:
        """One step; False: more of the text is needed for it."""
        buffer = self._buffer
        found = _SPECIAL.search(buffer)
        at = len(buffer) if found is None else found.start()
        if at:
            self._pass(at)
            return True
        match buffer[0]:
            case "<":
                return self._angle(final)
            case mark:
                run = min(len(buffer) - len(buffer.lstrip(mark)), MAX_SPAN)
                if run == len(buffer) < MAX_SPAN and not final:
                    return False
                self._mark(mark, run)
                return True

    def _pass(self, count: int) -> None:
        """Let so many characters through, to where they belong."""
        text, self._buffer = self._buffer[:count], self._buffer[count:]
        if self._depth:
            self._thoughts.append(text)
            self._count(text)
        else:
            self._out.append(text)
            self._note(text)

    def _note(self, text: str) -> None:
        """Text of the answer without marks of code, which is let through."""
        _, newline, last = text.rpartition("\n")
        if newline:
            line = (self._line + text.partition("\n")[0])[:_LINE_CHARACTERS]
            if self._fence and not self._in_info and _closes(line, self._fence):
                self._fence = ""
            self._line, self._in_info = last[:_LINE_CHARACTERS], False
        elif len(self._line) < _LINE_CHARACTERS:
            self._line = (self._line + text)[:_LINE_CHARACTERS]
        self._count(text)

    def _count(self, text: str) -> None:
        self._in_span += len(text)
        if self._in_span > MAX_SPAN or "\n" in text:
            self._ticks = 0  # the span has no end: its backticks are text

    def _mark(self, mark: str, run: int) -> None:
        """A run of backticks or tildes."""
        begins_line = not self._depth and _LINE_START.fullmatch(self._line) is not None
        self._pass(run)
        if self._fence and not self._depth:
            if not self._in_info or mark == "~" or self._fence[0] == "~":
                return
            self._ticks, self._fence, self._in_info = len(self._fence), "", False  # a span that began with its run
        if begins_line and run >= 3:
            self._fence, self._in_info, self._ticks, self._in_span = mark * run, True, 0, 0
        elif mark == "`" and not self._ticks:
            self._ticks, self._in_span = run, 0
        elif mark == "`" and self._ticks == run:
            self._ticks = 0

    def _angle(self, final: bool) -> bool:
        """At ``<``: a tag, or a sign."""
        buffer = self._buffer
        found = _TAG.match(buffer)
        if found is None:
            if not final and _TAG_BEGUN.match(buffer):
                return False
            self._pass(1)
            return True
        if self._fence and not self._depth:
            self._pass(found.end())
            return True
        if self._ticks:
            ends = self._ends_span(found.end(), final)
            if ends is None:
                return False
            if ends:
                self._pass(found.end())
                return True
            self._ticks = 0
        self._tag(found)
        return True

    def _ends_span(self, at: int, final: bool) -> bool | None:
        """Whether the span that is open ends behind this place; None: that is yet to be seen."""
        buffer = self._buffer
        limit = max(0, MAX_SPAN - self._in_span)
        newline = buffer.find("\n")
        end = min(limit, len(buffer) if newline < 0 else newline)
        while (at := buffer.find("`", at, end)) >= 0:
            run = 1
            while buffer[at + run : at + run + 1] == "`":
                run += 1
            if at + run == len(buffer) and not final:
                return None
            if run == self._ticks:
                return True
            at += run
        is_cut = newline < 0 and len(buffer) < limit and not final
        return None if is_cut else False

    def _tag(self, found: re.Match[str]) -> None:
        self._buffer = self._buffer[found.end() :]
        is_outermost = self._depth <= (1 if found[1] else 0)
        self._depth = max(0, self._depth + (-1 if found[1] else 1))
        if not is_outermost:
            self._thoughts.append(found[0])
        elif self._depth and self._has_thought:
            self._thoughts.append("\n\n")
        self._has_thought |= self._depth > 0


def _closes(line: str, fence: str) -> bool:
    """Whether a line ends a block. One that is as long as what is kept of a line may go on, and does not."""
    if len(line) >= _LINE_CHARACTERS:
        return False
    line = line.lstrip("> \t").rstrip(" \t")
    return len(line) >= len(fence) and not line.strip(fence[0])
