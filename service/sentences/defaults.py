"""The values that a text says are defaults."""

import re
from collections.abc import Iterator

_VALUE = (
    r"(?:[`'\"*\[(]{0,4})(?P<value>[<>=!]{0,2}\d[\w.,%]{0,30}|true|false|none|null"
    r"|(?:on|off|enabled|disabled)(?=\s+(?:by default|unless you))"
    r"|(?<=[`'\"])[^`'\"\n]{1,60}(?=[`'\"]))"
)
_BEHIND = re.compile(
    r"(?:\bdefault\w*|standardm|Standardwert|\bpar défaut|\bdéfaut|既定|デフォルト)"
    r"[ \t,:=*は-]{1,4}(?:[A-Za-zäöüéè]{1,16}[ \t:=*-]{1,4})?"
    r"(?:(?:is|are|was|to|of|as|ist|est|vaut|de)[ \t:=*-]{1,4})?" + _VALUE,
    re.IGNORECASE,
)
_BEFORE = re.compile(
    _VALUE + r"[`'\"*\])]{0,4}\s+(?:[A-Za-z]{1,12}\s+){0,1}"
    r"(?:by default|unless you|par défaut|\(default\)|\(Standard\))",
    re.IGNORECASE,
)
_IS_DEFAULT = re.compile(
    _VALUE + r"[`'\"*\])]{0,4}\s+(?:is|are|being)\s+(?:the|its|their)\s+(?:[A-Za-z]{1,12}\s+){0,1}default\b",
    re.IGNORECASE,
)
_IF_UNSET = re.compile(
    _VALUE + r"[`'\"*\])]{0,4}\s+(?:is|are|applies|apply)\b[^.,;:()`]{0,30}?\b(?:if|when|unless)\s+(?:"
    r"you\s+(?:set|give|specify|pass)\s+(?:nothing|none)|nothing\s+is|none\s+is|"
    r"(?:you|it|they|this)\s+(?:do(?:es)?\s+not|don't|doesn't|leave|omit|change|is\s+not|isn't|are\s+not|is\s+omitted|is\s+unset)|"
    r"(?:not|un)\s*(?:set|specified|given))",
    re.IGNORECASE,
)
"""A default without the word for it."""
_UNSET_IS = re.compile(
    r"\b(?:if|when)\s+(?:you\s+(?:leave|omit|don't|do\s+not|set\s+nothing|give\s+none)|(?:it|none|nothing)\s+is\s+(?:not\s+)?(?:set|given))"
    r"[^.;:()]{0,60}?,\s+(?:it|this|that|the\s+value)\s+(?:is|defaults\s+to|becomes)\s+" + _VALUE,
    re.IGNORECASE,
)
_DEFAULT_OF = re.compile(
    r"\bdefault(?:\s+value)?(?:\s+(?:of|for))?(?:\s+the)?\s+[`'\"]?[\w.-]{1,60}[`'\"]?(?:\s+[a-z]{1,16}){0,2}\s*(?:is|are|=|:)\s+"
    + _VALUE,
    re.IGNORECASE,
)
_BY_DEFAULT = re.compile(r"\b(?:by default|standardmäßig|par défaut)\b[^.,;:()]{0,60}?\s" + _VALUE, re.IGNORECASE)


_PAIR = re.compile(
    r"(?P<condition>\b(?:if|when|unless|while|once|where|with|set|to)\s+)?`[\w.-]{2,60}`\s{0,3}(?:\s(?:is|are)\s|[=:|,(])\s{0,3}"
    + _VALUE,
    re.IGNORECASE,
)
_OF = re.compile(r"\bof\b")
_IS = re.compile(r"[`'\"*]{0,4}\s*(?:[a-z]{1,16}\s+){0,2}(?:is|are|=|:)\s")
"""Stands behind the name that has the default: the default of ``port`` is 80."""
_MARKS = ("default", "défaut", "standard", "既定", "デフォルト")
"""A text without any of them in lower case names no default by its word."""
_CONDITIONS = ("if", "when", "unless")


def claimed_in(text: str) -> Iterator[tuple[int, str]]:
    """Yield the defaults that a sentence of an answer names, which may be further from the word."""
    yield from defaults_in(text)
    folded = text.lower()
    if _has(folded, _MARKS):
        yield from _values(_BY_DEFAULT, text)
        yield from _values(_DEFAULT_OF, text)
    if _has(folded, _CONDITIONS):
        yield from _values(_IF_UNSET, text)
        yield from _values(_UNSET_IS, text)


def told_in(text: str) -> Iterator[tuple[int, str]]:
    """Yield the values that stand right behind a name in code, and are no condition: ``debug`` is ``False``."""
    if "`" in text:
        for match in _PAIR.finditer(text):
            if match["condition"] is None:
                yield match.start("value"), _bare(match["value"])


def defaults_in(text: str) -> Iterator[tuple[int, str]]:
    """Yield where each stands, and the value without its marks."""
    folded = text.lower()
    if _has(folded, _MARKS):
        yield from _values(_BEHIND, text)
    if _has(folded, _MARKS) or "unless" in folded:
        yield from _values(_BEFORE, text)
    if "default" in folded:
        yield from _values(_IS_DEFAULT, text)


def _has(folded: str, words: tuple[str, ...]) -> bool:
    """Return whether one of the words is in a text. To look for them costs a hundredth of a search for a value."""
    return any(word in folded for word in words)


def _values(pattern: re.Pattern[str], text: str) -> Iterator[tuple[int, str]]:
    for match in pattern.finditer(text):
        if pattern is not _BEHIND or not (_OF.search(match[0]) and _IS.match(text, match.end())):
            value = _bare(match["value"])
            if not value.startswith("-"):
                yield match.start("value"), value


_SWITCHED = {"on": "true", "enabled": "true", "off": "false", "disabled": "false"}


def _bare(value: str) -> str:
    bare = value.strip("`'\"[]()* .,").casefold()
    return _SWITCHED.get(bare, bare)
