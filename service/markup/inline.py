"""The parts of a block: code spans, comments, tags, and brackets that make links (CommonMark 0.31, section 6).

Code spans, tags and comments bind closer than brackets do; a link has no link in it; an image may. Everything has its
place in the page. Each character is looked at a bounded number of times.
"""

import re
from bisect import bisect_left
from collections.abc import Mapping

from msgspec import Struct

from service.markup.syntax import COMMENTS, SHORTCODE, TAG, is_component

MAX_LABEL = 999
"""Characters between the brackets of a reference (CommonMark 0.31, section 4.7)."""

_TOKEN = re.compile(r"\\[!-/:-@\[-`{-~]|`+|<!--|\{/\*|\{\{|\{%|<|!?\[|\]")
_TAG_TOKEN = re.compile(r"<!--|\{/\*|\{\{|\{%|<")
_RUN = re.compile(r"`+")
_AUTOLINK = re.compile(r"<[A-Za-z][A-Za-z0-9+.-]{1,31}:[^\s<>]{0,2000}>|<[\w.+-]{1,64}@[\w.-]{1,255}>")
_TITLE = r"\"(?:\\.|[^\"\\]){0,1000}\"|'(?:\\.|[^'\\]){0,1000}'|\((?:\\.|[^()\\]){0,1000}\)"
_DESTINATION = (
    r"(?:<(?P<wrapped>(?:\\.|[^<>\\\n]){0,2000})>"
    r"|(?P<plain>(?!<)(?:\{\{[^\n{}]{0,500}\}\}|\{%[^\n{}]{0,500}%\}|\\.|[^\s()\\]|\((?:\\.|[^\s()\\]|\((?:\\.|[^\s()\\]){0,500}+\)){0,500}+\)){1,2000}+))"
)
_GAP = r"(?>[ \t]*\n[ \t>]*|[ \t]+)"
"""White space, with at most one end of a line and the marks of quotes behind it."""
_TARGET = re.compile(rf"\({_GAP}?+(?:{_DESTINATION}(?:{_GAP}(?:{_TITLE}))?)?{_GAP}?+\)")
_REFERENCE = re.compile(rf"\[(?P<label>(?:\\.|[^\[\]\\]){{0,{MAX_LABEL}}}+)\]")
_DEFINITION = re.compile(
    rf"\[(?!\^)(?P<label>(?:\\.|[^\[\]\\]){{1,{MAX_LABEL}}}+)\]:[ \t]*+(?:\n[ \t>]*+)?{_DESTINATION}"
    rf"(?:[ \t]*+(?:(?<=[ \t])|\n[ \t>]*+)(?:{_TITLE}))?[ \t]*+(?:\n[ \t>]*+|\Z)"
)
_CALL_BEGINS = ("{{", "{%")
_NOT_MARKUP = frozenset(("script", "style", "svg"))
_NAMES_HEADING = re.compile(r"\{/\*\s*#")

Place = tuple[int, int]


class Bracketed(Struct, frozen=True, gc=False):
    """A link or an image made of brackets."""

    start: int
    """Position of the first bracket, or of the ``!`` before it."""
    label: Place
    target: Place
    """Where it leads, as written; of a reference, at its definition."""
    is_image: bool
    is_reference: bool


class InlineReader:
    """Gathers what is in the blocks that it is given, in the order of the page."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.code: list[Place] = []
        self.comments: list[Place] = []
        self.tags: list[re.Match[str]] = []
        """Tags of HTML and components, and calls of shortcodes."""
        self.brackets: list[Bracketed] = []
        self.definitions: dict[str, Place] = {}
        """Where references lead, by label; gather all with ``define`` before the prose is read."""

    def define(self, start: int, end: int) -> int:
        """Take in the definitions that a paragraph begins with; return where it goes on."""
        at = self._text.find("[", start, end)
        while at >= 0 and (found := _DEFINITION.match(self._text, at, end)) is not None:
            self.definitions.setdefault(label_key(found["label"]), _place(found))
            at = found.end()
        return max(at, start)

    def read(self, start: int, end: int) -> None:
        """Read a paragraph or heading."""
        self._walk(start, end, _TOKEN, is_prose=True)

    def read_html(self, start: int, end: int) -> None:
        """Read a block of HTML, in which nothing is Markdown."""
        self._walk(start, end, _TAG_TOKEN, is_prose=False)

    def _walk(self, start: int, end: int, token: re.Pattern[str], *, is_prose: bool) -> None:
        text, at = self._text, start
        brackets = _Brackets(self._text, end, self.definitions, self.brackets)
        runs: Mapping[int, list[int]] | None = None
        endless: set[str] = set()
        """Beginnings without an end here: each end is searched for once."""
        while (found := token.search(text, at, end)) is not None:
            begin, at = found.span()
            mark = found[0]
            if mark[0] == "\\":
                continue
            if mark[0] == "`":
                if runs is None:
                    runs = _runs(text, begin, end)
                starts = runs.get(len(mark), [])
                closing = bisect_left(starts, at)
                if closing < len(starts):
                    at = starts[closing] + len(mark)
                    self.code.append((begin, at))
            elif mark in COMMENTS:
                if mark in endless or _NAMES_HEADING.match(text, begin, end) is not None:
                    continue
                close = text.find(COMMENTS[mark], at, end)
                if close < 0:
                    endless.add(mark)
                    continue
                at = close + len(COMMENTS[mark])
                self.comments.append((begin, at))
            elif mark in _CALL_BEGINS:
                if (call := SHORTCODE.match(text, begin, end)) is not None:
                    self.tags.append(call)
            elif mark == "<":
                at = self._tag(begin, end, endless)
            elif is_prose:
                at = brackets.close(begin) if mark == "]" else brackets.open(begin, at)

    def _tag(self, at: int, end: int, endless: set[str]) -> int:
        found = _AUTOLINK.match(self._text, at, end)
        if found is not None:
            return found.end()
        found = TAG.match(self._text, at, end)
        if found is None:
            return at + 1
        self.tags.append(found)
        name = found["tag"]
        if "](" in found[0] and is_component(name):
            self._walk(at + 1, found.end() - 1, _TOKEN, is_prose=True)  # sites read Markdown in captions and the like
        if name.lower() in _NOT_MARKUP and not found["close"] and name not in endless:
            close = self._text.find(f"</{name}", found.end(), end)
            if close >= 0:
                return close
            endless.add(name)
        return found.end()


class _Brackets:
    """The brackets of one block that are open."""

    def __init__(self, text: str, end: int, definitions: Mapping[str, Place], found: list[Bracketed]) -> None:
        self._text, self._end, self._definitions, self._found = text, end, definitions, found
        self._open: list[tuple[int, int]] = []
        """Where each begins, and where its label does."""
        self._inert = 0
        """Number of the outermost brackets, images excepted, that are text because there is a link in them."""

    def open(self, begin: int, label: int) -> int:
        self._open.append((begin, label))
        return label

    def close(self, at: int) -> int:
        """At ``]``: return where what follows begins."""
        if not self._open:
            return at + 1
        begin, label = self._open.pop()
        is_image = self._text[begin] == "!"
        is_inert = len(self._open) < self._inert and not is_image
        self._inert = min(self._inert, len(self._open))
        if is_inert:
            return at + 1
        target, after, is_reference = self._target(label, at)
        if target is None:
            return after
        if not is_image:
            self._inert = len(self._open)
        self._found.append(Bracketed(begin, (label, at), target, is_image, is_reference))
        return after

    def _target(self, label: int, at: int) -> tuple[Place | None, int, bool]:
        text, end = self._text, self._end
        if text.startswith("(", at + 1, end) and (found := _TARGET.match(text, at + 1, end)) is not None:
            return _place(found), found.end(), False
        if not self._definitions:
            return None, at + 1, True
        after, key = at + 1, text[label:at] if at - label <= MAX_LABEL else ""
        if (found := _REFERENCE.match(text, at + 1, end)) is not None:
            after, key = found.end(), found["label"] or key
        target = self._definitions.get(label_key(key))
        return target, after if target is not None else at + 1, True


def label_key(label: str) -> str:
    """Return what two labels have in common that mean the same (CommonMark 0.31, section 4.7)."""
    return " ".join(label.split()).casefold()


def _place(found: re.Match[str]) -> Place:
    group = "wrapped" if found["wrapped"] is not None else "plain"
    return found.span(group) if found[group] is not None else (found.end() - 1, found.end() - 1)


def _runs(text: str, start: int, end: int) -> dict[int, list[int]]:
    """Return where runs of backticks begin, by their length."""
    found: dict[int, list[int]] = {}
    for run in _RUN.finditer(text, start, end):
        found.setdefault(len(run[0]), []).append(run.start())
    return found
