"""The joint between a text that was cut off and what a model writes behind it.

Asked to go on, models often say the last words again, begin the cut word again, or the line, or all of it. What is
repeated is removed; the result does not depend on where the chunks were cut. It is held back only as long as it may
still be a repetition.

- A repetition is at least ``LEAST_REPEATED`` characters long, and the whole end of the text; or it is all of the text;
  or its last words, the last of them perhaps cut, at the very beginning. A text of one pattern ("- - - -", a row of
  zeros) may go on as it ended, so there it is none.
- White space that the text ends with is not repeated either: models do not see it (``continued`` in the adapters).
"""

import re

LEAST_REPEATED = 12
LEAST_OF_WORD = 3
MAX_PLACES = 2_000
"""Places of the text at which a repetition may begin; of more, the first ones are looked at."""
MAX_COMPARED = 8
"""Those of them that end as a repetition would, and are compared whole; only patterns have more."""
_WORD = re.compile(r"(?<!\S)\S+")


class Joint:
    """Feed it what the model writes behind ``begun``, then ``finish``; what they return follows ``begun``."""

    def __init__(self, begun: str) -> None:
        self._begun = begun.rstrip()
        self._white = begun[len(self._begun) :]
        self._held = ""
        self._place = 0
        """Where the text has what is held back; nowhere before."""
        self._may_repeat = bool(self._begun)
        self._is_over = not begun

    def feed(self, text: str) -> str:
        if self._is_over:
            return text
        self._held += text
        words = self._held.lstrip()
        if not words or (self._may_repeat and len(words) < len(self._begun) and self._is_in_begun(words)):
            return ""
        if self._may_repeat:
            self._cut(words)
        return self.finish() if self._held.strip() or not self._white else ""

    def finish(self) -> str:
        """Return what is still held back."""
        if self._may_repeat:
            self._cut(self._held.lstrip())
        self._is_over = True
        held, self._held = self._held, ""
        return self._behind_white(held)

    def _is_in_begun(self, words: str) -> bool:
        """``words`` only grow from call to call."""
        if not self._begun.startswith(words, self._place):
            self._place = self._begun.find(words, self._place + 1)
        return self._place >= 0

    def _cut(self, words: str) -> None:
        self._may_repeat = False
        if repeated := self._repeated(words) or self._repeated_words(self._held):
            self._held = words[repeated:]

    def _repeated(self, words: str) -> int:
        """Return how many of the first characters repeat the end of the text."""
        begun = self._begun
        first, last = words[:LEAST_REPEATED], begun[-LEAST_REPEATED:]
        at, compared = -1, 0
        for _ in range(MAX_PLACES if len(first) == LEAST_REPEATED else 0):
            at = begun.find(first, at + 1)
            length = len(begun) - at
            if at < 0 or length < LEAST_REPEATED or compared >= MAX_COMPARED:
                break
            if words.startswith(last, length - LEAST_REPEATED):
                compared += 1
                if words.startswith(begun[at:]) and not _is_pattern(begun[at:]):
                    return length
        return 0

    def _repeated_words(self, held: str) -> int:
        """Return the length of the last words, or of a text that is no longer, where they are begun once more."""
        if held[:1].isspace():  # it goes on at the next word
            return 0
        begun = self._begun
        first = max(0, len(begun) - LEAST_REPEATED)
        starts = [0] if self._white else [found.start() for found in _WORD.finditer(begun, first)]
        tails = (begun[start:] for start in starts)
        fitting = (tail for tail in tails if held.startswith(tail) and not _is_pattern(tail))
        return next((len(tail) for tail in fitting if len(tail) >= LEAST_OF_WORD), 0)

    def _behind_white(self, text: str) -> str:
        """Return the text without the white space that the text before it ends with."""
        if not self._white:
            return text
        words = text.lstrip()
        white = text[: len(text) - len(words)]
        if white.startswith(self._white):
            return text[len(self._white) :]
        return words if self._white.endswith(white) or "\n" not in white else text


def _is_pattern(text: str) -> bool:
    """Return whether the text is a shorter one again and again."""
    return text in (text + text)[1:-1] or len(set(text)) <= 2
