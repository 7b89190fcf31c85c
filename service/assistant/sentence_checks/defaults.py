"""The values that a text says are defaults."""

import re
from collections.abc import Iterator

_VALUE = (
    r"(?:[`'\"*\[(]{0,4})(?P<value>[<>=!]{0,2}\d[\w.,%]{0,30}|true|false|none|null"
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
_BY_DEFAULT = re.compile(r"\b(?:by default|standardmäßig|par défaut)\b[^.,;:()]{0,60}?\s" + _VALUE, re.IGNORECASE)


def claimed_in(text: str) -> Iterator[tuple[int, str]]:
    """Yield the defaults that a sentence of an answer names, which may be further from the word."""
    yield from defaults_in(text)
    for pattern in (_BY_DEFAULT, _IF_UNSET):
        for match in pattern.finditer(text):
            yield match.start("value"), _bare(match["value"])


def defaults_in(text: str) -> Iterator[tuple[int, str]]:
    """Yield where each stands, and the value without its marks."""
    for pattern in (_BEHIND, _BEFORE, _IS_DEFAULT):
        for match in pattern.finditer(text):
            yield match.start("value"), _bare(match["value"])


def _bare(value: str) -> str:
    return value.strip("`'\"[]()* .,").casefold()
