"""Remove a model's reasoning, ``<think>…</think>`` or ``<thinking>…</thinking>``, from its text while it flows.

Self-hosted models write it into their answer where their server does not separate it. It is not part of the answer: no
reader sees it, and a number in brackets in it is no citation. It is returned separately, to be recorded.

- A tag counts wherever it is outside of code, in upper or lower case; blanks may be before its ``>``. Reasoning that is
  never closed goes on to the end of the call. Tags within it nest. An end without a beginning is removed on its own.
- In code of the answer a tag is text: in a fenced block, and in a code span that ends on its line. In what is thought,
  only a span is code: a block in it that was never closed must not hide its end.

What is held back: a tag that has begun, a run of backticks, and what follows a tag behind an open backtick, to the end
of the span or of the line, at most ``MAX_SPAN`` characters. The result does not depend on where the chunks were cut.
"""

import re

from service.markup.streaming.code import KEPT_OF_LINE, MAX_SPAN, CodeLexer, run_of

PIECE_CHARACTERS = 1_000
"""Limit for the part of a chunk that is handled at once: the rest of it is copied at each step."""

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
        """Number of open tags."""
        self._has_thought = False
        self._line = ""
        """The answer's line so far, its beginning at least."""
        self._lexer = CodeLexer()

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
        self._depth, self._line, self._lexer = 0, "", CodeLexer()
        return self._take()

    def pause(self) -> str:
        """Return what is still held back where a call is cut: the next goes on with the text, not with a thought."""
        self._buffer += "".join(self._unread)
        self._unread.clear()
        self._run(final=True)
        self._depth = 0
        return self._take()

    def take_thoughts(self) -> str:
        """Return the reasoning since the last call."""
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
                line = self._line
                self._let_through(run)
                self._lexer.run(mark * run, line, may_be_fence=not self._depth)
                return True

    def _pass(self, count: int) -> None:
        """Pass on that number of characters, to where they belong."""
        text = self._buffer[:count]
        if "\n" not in text:
            self._lexer.text(count)
        elif self._depth:
            self._lexer.end_span()
        else:
            for line in (self._line + text.rpartition("\n")[0]).split("\n"):
                self._lexer.end_line(line[:KEPT_OF_LINE])
        self._let_through(count)

    def _let_through(self, count: int) -> None:
        text, self._buffer = self._buffer[:count], self._buffer[count:]
        (self._thoughts if self._depth else self._out).append(text)
        if not self._depth:
            _, newline, last = text.rpartition("\n")
            self._line = (last if newline else self._line + last)[:KEPT_OF_LINE]

    def _angle(self, final: bool) -> bool:
        """At ``<``: a tag, or a sign."""
        buffer = self._buffer
        found = _TAG.match(buffer)
        if found is None:
            if not final and _TAG_BEGUN.match(buffer):
                return False
            self._pass(1)
            return True
        if self._lexer.fence and not self._depth:
            self._pass(found.end())
            return True
        if self._lexer.ticks:
            ends = self._ends_span(found.end(), final)
            if ends is None:
                return False
            if ends:
                self._pass(found.end())
                return True
            self._lexer.ticks = 0
        self._tag(found)
        return True

    def _ends_span(self, at: int, final: bool) -> bool | None:
        """Return whether the span that is open ends behind this place; None: that is yet to be seen."""
        buffer = self._buffer
        limit = max(0, MAX_SPAN - self._lexer.in_span)
        newline = buffer.find("\n")
        end = min(limit, len(buffer) if newline < 0 else newline)
        while (at := buffer.find("`", at, end)) >= 0:
            run = run_of(buffer, at)
            if at + run == len(buffer) and not final:
                return None
            if run == self._lexer.ticks:
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
