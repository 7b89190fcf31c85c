"""The text of an answer on its way from the model to the reader: what is not for readers out, the rest safe to show.

Each step sees the whole text in pieces, however they are cut, and what the step before made of it:

1. Line ends become LF, as CommonMark 0.31 (section 2.1) has all three of them, and NUL becomes U+FFFD (section 2.3):
   nothing behind this need know that a renderer does so.
2. The model's reasoning, control tokens, calls as text and the prompt's own tags are removed (``model_text``).
3. Citations become links (``citations``). 4. Raw HTML and addresses that are not from the material are made harmless
(``markup``).
"""

from collections.abc import Callable, Collection, Sequence

from service.assistant.showing.citations import CitationFilter
from service.assistant.showing.markup import MarkupGuard
from service.markup.streaming.lines import CODE_INDENT
from service.markup.streaming.links import Resolve
from service.markup.streaming.model_text import ModelTextFilter, WordFilter

_BLANKS = " \t\n\v\f\x1c\x1d\x1e\x1f\x85\xa0\u2028\u2029\ufeff"


class AnswerText:
    """Feed it what the model writes, ``finish`` after each call of it; send what they return."""

    def __init__(
        self,
        url_of: Callable[[int], str | None],
        is_allowed_url: Callable[[str], bool],
        resolve: Resolve | None = None,
        tools: Collection[str] = (),
        mark: str = "",
    ) -> None:
        """The first three as ``CitationFilter`` and ``MarkupGuard`` take them, the others as ``ModelTextFilter``."""
        self._is_behind_cr = False
        self._plain = ModelTextFilter(tools, mark)
        self._unmarked = WordFilter(mark)
        self._raw: list[str] = []
        self._citations = CitationFilter(url_of)
        self._guard = MarkupGuard(is_allowed_url, resolve)
        self._has_text = False
        self._written = _Beginning()
        self._shown = _Beginning()
        """The same of what the citations leave, for the first of them may go."""
        self._is_under_way = False
        """Both are over."""

    @property
    def cited(self) -> Sequence[int]:
        """Passages in the order in which they were first cited."""
        return self._citations.cited

    @property
    def says_unanswered(self) -> bool:
        """The model has marked the question as one that the documentation does not answer."""
        return self._citations.says_unanswered

    @property
    def suggestions(self) -> Sequence[str]:
        """Lines of the model's own block of suggestions."""
        return self._citations.suggestions

    def feed(self, text: str) -> str:
        if not text.isascii():
            text = text.encode("utf-8", "replace").decode()  # half of a surrogate pair cannot be stored or sent
        if self._is_behind_cr or "\r" in text or "\0" in text:
            text = self._plain_ends(text)
        text = self._unmarked.feed(self._plain.feed(text))
        if text:
            self._raw.append(text)
        if self._is_under_way:
            return self._guard.feed(self._citations.feed(text))
        shown = self._guard.feed(self._begun(self._citations.feed(self._written.feed(text))))
        self._is_under_way = self._written.is_over and self._shown.is_over
        return shown

    def take_up(self, raw: str) -> str:
        """Return what is shown of the words that are on record of an answer, to go on behind them."""
        self._plain.take_up(raw)
        return self._guard.feed(self._begun(self._citations.feed(self._written.feed(raw))))

    def pause(self) -> str:
        """Return what is known to be text where a call is cut; what the next one writes goes on behind it."""
        raw = self._unmarked.feed(self._plain.pause()) + self._unmarked.finish()
        self._raw.append(raw)
        return self._guard.feed(self._begun(self._citations.feed(self._written.feed(raw))))

    def finish(self) -> str:
        """What is still held back, at the end of a call. What the next call writes begins a paragraph."""
        raw = self._unmarked.feed(self._plain.finish()) + self._unmarked.finish()
        self._raw.append(raw)
        text = self._citations.feed(self._written.feed(raw))
        shown = self._guard.feed(self._begun(text + self._citations.finish())) + self._guard.finish()
        self._is_behind_cr, self._written, self._shown = False, _Beginning(), _Beginning()
        self._is_under_way = False
        return shown

    def _begun(self, text: str) -> str:
        """Strip the beginning before the guard sees it: with its blanks, the first line might be code. A later call is
        a paragraph.
        """
        if self._shown.is_over:
            return text
        text = self._shown.feed(text)
        if not text:
            return ""
        has_text, self._has_text = self._has_text, True
        return "\n\n" + text.lstrip(_BLANKS) if has_text else text

    def take_thoughts(self) -> str:
        """Return the model's reasoning since the last call; for the record, not for readers."""
        return self._plain.take_thoughts()

    def take_calls(self) -> Sequence[str]:
        """Return the calls that the model wrote as text since the last call."""
        return self._plain.take_calls()

    def take_raw(self) -> str:
        """Return the model's own words since the last call, without its reasoning: fed again, they give the same."""
        raw = "".join(self._raw)
        self._raw.clear()
        return raw

    def _plain_ends(self, text: str) -> str:
        """CR and CRLF as LF. A CR at the end of a piece is a line's end at once: an LF that follows adds nothing."""
        if self._is_behind_cr and text:
            self._is_behind_cr = False
            text = text.removeprefix("\n")
        if "\r" in text:
            self._is_behind_cr = text[-1] == "\r"
            text = text.replace("\r\n", "\n").replace("\r", "\n")
        return text.replace("\0", "\ufffd")


class _Beginning:
    """Takes the white space off that a call's text begins with, but for the indent of a fence, up to three blanks."""

    def __init__(self) -> None:
        self._blanks = ""
        self.is_over = False

    def feed(self, text: str) -> str:
        """Return the part that belongs to the text, from its first letter on."""
        if self.is_over:
            return text
        letters = text.lstrip(_BLANKS)
        self._blanks = (self._blanks + text[: len(text) - len(letters)]).rpartition("\n")[2][-CODE_INDENT:]
        if not letters:
            return ""
        self.is_over = True
        is_indent = letters[0] in "`~" and len(self._blanks) < CODE_INDENT and not self._blanks.strip(" ")
        return self._blanks + letters if is_indent else letters
