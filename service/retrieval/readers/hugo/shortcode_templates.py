"""A site's own shortcodes (``layouts/shortcodes/NAME.html``), where they are simple: text, ``.Inner``, ``.Get``,
variables, ``with`` and ``if``. Those that ask for more are not simple, and are read by their names.
"""

import re
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from service.markup.dialects.shortcodes import Call

INNER = "\0"
"""Stands for the inner text in what a template shows."""
MAX_TEMPLATE, MAX_STEPS = 8_000, 500
"""Characters of a template that counts as simple, and its actions."""
_ACTION = re.compile(
    # Neither "{{" nor an escaped quotation mark outside of a string: what has no end is looked through once.
    r"\{\{-?((?>(?:[^\"`{}\\]|\{(?!\{)|\\(?![\"`])|\"(?:[^\"\\]|\\.)*\"|`[^`]*`|\}(?!\}))*))\}\}",
    re.DOTALL,
)
_WORD = re.compile(r"(\"(?:[^\"\\]|\\.?)*+(?:\"|\Z)|`[^`]*`|\||\(|\)|:=|=|[^\s|()\"`]+)")
_TAG = re.compile(
    r"<!--.*?(?:-->|\Z)|<(?:script|style|svg)\b.*?(?:</(?:script|style|svg)\s*>|\Z)|</?(?:(?P<block>div|p|h[1-6]|li|ul|ol|table|tr|br|hr|section|details|summary|blockquote|figure|figcaption|aside|dt|dd|dl)"
    r"\b|[A-Za-z])[^<>]*>",
    re.DOTALL,
)
_SAME = frozenset(
    ("markdownify", "safeHTML", "safehtml", "safeURL", "htmlUnescape", "plainify", "string", "emojify", "trim", "chomp")
)
"""Functions that leave a text as it is, for search."""


class NotSimple(Exception):
    """The template asks for more than the call can say."""


class Facts(Struct, frozen=True):
    """A call, and the values that its template may ask for."""

    call: Call
    page: Callable[[str], str]
    """A function of the name of a page's field."""
    site: Callable[[str], str]
    """A function of the name of a parameter of the site."""


def shown_by(template: str, facts: Facts) -> str:
    """Return the Markdown that a template shows, ``INNER`` in it for the inner text. Raise NotSimple."""
    if len(template) > MAX_TEMPLATE:
        raise NotSimple
    text = _Run(template, facts).text()
    text = _TAG.sub(lambda tag: "\n" if tag["block"] else "", text)
    lines = [line.strip() for line in text.strip().split("\n")]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines))


class _Run:
    def __init__(self, template: str, facts: Facts) -> None:
        self._facts = facts
        self._pieces: list[tuple[str, str]] = []  # text, and the action behind it
        at = 0
        for match in _ACTION.finditer(template):
            action = match[1].strip()
            self._pieces.append((template[at : match.start()], action.removesuffix("-").strip()))
            at = match.end()
        self._pieces.append((template[at:], ""))
        if len(self._pieces) > MAX_STEPS:
            raise NotSimple
        self._at = 0
        self._variables: dict[str, str] = {}

    def text(self) -> str:
        return self._block(shows=True, dot=None)[0]

    def _block(self, *, shows: bool, dot: str | None) -> tuple[str, str]:
        """Return what the actions up to ``else`` or ``end`` show, and the one that ended them."""
        out: list[str] = []
        while self._at < len(self._pieces):
            text, action = self._pieces[self._at]
            self._at += 1
            if shows:
                out.append(text)
            word, _, rest = action.partition(" ")
            if action.startswith("/*") or not action:
                continue
            if word in ("else", "end"):
                return "".join(out), action
            if word in ("with", "if"):
                out.append(self._choice(word, rest, shows=shows, dot=dot))
            elif word in ("range", "block", "define", "template", "partial", "return", "break", "continue"):
                raise NotSimple
            elif shows:
                out.append(self._action(action, dot))
        return "".join(out), ""

    def _choice(self, word: str, condition: str, *, shows: bool, dot: str | None) -> str:
        value = self._value(condition, dot) if shows else ""
        text, ended = self._block(shows=shows and bool(value), dot=value if word == "with" else dot)
        while ended.startswith("else"):
            further = ended[4:].strip()
            if further.startswith(("if ", "with ")):
                return text + self._choice(*further.split(" ", 1), shows=shows and not value, dot=dot)
            other, ended = self._block(shows=shows and not value, dot=dot)
            text += other
        return text

    def _action(self, action: str, dot: str | None) -> str:
        assigned = re.match(r"(\$\w+)\s*:?=\s*", action)
        if assigned is not None:
            self._variables[assigned[1]] = self._value(action[assigned.end() :], dot)
            return ""
        return self._value(action, dot)

    def _value(self, expression: str, dot: str | None) -> str:
        words = _WORD.findall(expression)
        value, rest = self._pipeline(words, dot)
        if rest:
            raise NotSimple
        return value

    def _pipeline(self, words: Sequence[str], dot: str | None) -> tuple[str, Sequence[str]]:
        """Return the value of the words up to a closing bracket, and the words behind it."""
        value: str | None = None
        while True:
            terms: list[str] = []
            name = ""
            while words and words[0] not in ("|", ")"):
                if words[0] == "(":
                    inner, words = self._pipeline(words[1:], dot)
                    terms.append(inner)
                    continue
                word, words = words[0], words[1:]
                if not terms and not name and _is_function(word):
                    name = word
                elif word == ".Get" or word.endswith(".Get"):
                    if not words or words[0] in ("|", ")"):
                        raise NotSimple
                    terms.append(self._given(words[0]))
                    words = words[1:]
                else:
                    terms.append(self._term(word, dot))
            if value is not None:
                terms.append(value)
            value = _applied(name, terms)
            if not words or words[0] == ")":
                return value, words[1:]
            words = words[1:]

    def _given(self, key: str) -> str:
        call = self._facts.call
        if key.isdecimal():
            return call.argument(int(key))
        if key.startswith(('"', "`")):
            return call.named.get(key[1:-1], "")
        raise NotSimple

    def _term(self, word: str, dot: str | None) -> str:
        if word.startswith(('"', "`")):
            return word[1:-1]
        if word in (".Inner", "$.Inner"):
            return INNER if self._facts.call.has_inner else ""
        if word == "." and dot is not None:
            return dot
        if word.startswith("$") and word in self._variables:
            return self._variables[word]
        if word in ("true", "false"):
            return word if word == "true" else ""
        for lead in (".Site.Params.", "site.Params.", "$.Site.Params.", ".Page.Site.Params."):
            if word.startswith(lead):
                return self._facts.site(word[len(lead) :])
        for lead in (".Page.Params.", "$.Page.Params.", ".Page."):
            if word.startswith(lead) and re.fullmatch(r"[\w.]{1,100}", word[len(lead) :]):
                return self._facts.page(word[len(lead) :].lower())
        raise NotSimple


def _is_function(word: str) -> bool:
    return word in _FUNCTIONS or word in _SAME


def _applied(name: str, terms: Sequence[str]) -> str:
    if name in _SAME or (not name and len(terms) == 1):
        return terms[-1] if terms else ""
    function = _FUNCTIONS.get(name)
    if function is None:
        raise NotSimple
    return function(terms)


_FUNCTIONS: Mapping[str, Callable[[Sequence[str]], str]] = {
    "default": lambda terms: next((term for term in reversed(terms) if term), ""),
    "or": lambda terms: next((term for term in terms if term), ""),
    "and": lambda terms: terms[-1] if terms and all(terms) else "",
    "not": lambda terms: "" if any(terms) else "true",
    "eq": lambda terms: "true" if len(set(terms)) == 1 else "",
    "ne": lambda terms: "true" if len(set(terms)) > 1 else "",
    "upper": lambda terms: terms[-1].upper() if terms else "",
    "lower": lambda terms: terms[-1].lower() if terms else "",
    "title": lambda terms: terms[-1].title() if terms else "",
    "humanize": lambda terms: terms[-1].replace("-", " ").capitalize() if terms else "",
}
