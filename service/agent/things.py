"""Things that a page states and that can be looked up word by word: names, flags, paths and numbers, in code and prose.

Words of a language, placeholders and reserved hosts (RFC 2606) are no facts. Nor is a plain word in a block of code:
what makes it a name is its form (``max_height``, ``flyHigh``, ``v2``) or what follows it (``fly(``, ``wind=``).
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

from msgspec import Struct

from service.markup.markdown import Markdown

Kind = Literal["name", "flag", "path", "number"]

MAX_THINGS = 2_000
"""Limit for one page: a change that can be reviewed states fewer."""

_THING = re.compile(
    r"(?P<flag>(?<![\w-])--?[A-Za-z][\w-]{0,100})"
    r"|(?P<path>(?<![\w.@/-])(?:https?://|[.~]{0,2}/)?[\w.@{}$:-]{1,100}(?:/[\w.@{}$*:-]{1,100}){1,30}/?)"
    r"|(?P<number>(?<![\w.])\d{1,30}(?:,\d{3}(?!\d)|\.\d{1,30}){0,5}(?!\w))"
    r"|(?P<name>(?<![\w$])[A-Za-z_$][\w$]{0,100}(?:\.[A-Za-z_$][\w$]{0,100}){0,10})"
)
WORD = re.compile(r"[\w$]{1,200}")
_SHAPED = re.compile(r"\w_|[A-Za-z]\d|[a-z][A-Z]|\.\w|^[A-Z]{3,}$")
"""A name that no one would take for a word."""
_CALLED = re.compile(r"\(|=(?!=)|['\"]?:(?=\s|$)")
_AT_LINE_START = re.compile(r"[\s{,-]*['\"]?")
_PLACEHOLDER = re.compile(r"your|example|placeholder|foo|bar|baz|xxx|localhost|127\.0\.0\.1|\.\.\.", re.IGNORECASE)
_WORDS = frozenset(
    {
        "and", "any", "array", "as", "async", "await", "begin", "bool", "boolean", "break", "case", "cat",
        "catch", "cd", "class", "const", "continue", "curl", "def", "default", "dict", "do", "done", "double",
        "echo", "elif", "else", "end", "enum", "except", "export", "false", "fi", "finally", "float", "fn",
        "for", "from", "func", "function", "grep", "if", "import", "in", "include", "int", "integer",
        "interface", "is", "let", "list", "ls", "map", "mod", "new", "nil", "no", "none", "not", "note", "null",
        "number", "object", "of", "off", "on", "or", "package", "pass", "print", "private", "pub", "public",
        "raise", "require", "return", "self", "set", "static", "str", "string", "struct", "sudo", "super",
        "switch", "then", "this", "throw", "todo", "true", "try", "tuple", "type", "undefined", "use", "var",
        "void", "warning", "while", "with", "yes",
    }
)  # fmt: skip
"""Words of languages and shells."""


class Thing(Struct, frozen=True):
    text: str
    kind: Kind


def things_of_code(page: Markdown) -> Mapping[Thing, int]:
    """Return the things in a page's code, and the line of each where it comes first, from 1."""
    found: dict[Thing, int] = {}
    spans = [(page.line_of(start), page.text[start:end].strip("`"), True) for start, end in page.code_spans]
    blocks = [
        (page.first_line + block.first + (2 if block.mark else 1), block.text, False)
        for block in page.blocks
        if block.kind in ("fence", "code")
    ]
    for first, code, is_span in sorted([*spans, *blocks]):
        line, done = first, 0
        for thing, at in _things(code, whole_words=is_span):
            line, done = line + code.count("\n", done, at), at
            found.setdefault(thing, line)
            if len(found) >= MAX_THINGS:
                return found
    return found


def things_of_lines(lines: Iterable[str]) -> set[Thing]:
    """Return the things that lines of a page state, in code and prose; of prose, what no one would take for words."""
    found: set[Thing] = set()
    for line in lines:
        parts = line.split("`")
        for number, part in enumerate(parts):
            is_span = bool(number % 2) and number < len(parts) - 1
            for thing, _ in _things(part, whole_words=is_span):
                found.add(thing)
                if len(found) >= MAX_THINGS:
                    return found
    return found


def _things(code: str, *, whole_words: bool) -> Iterator[tuple[Thing, int]]:
    """Yield things and their places. ``whole_words``: a single word is a name, too."""
    for match in _THING.finditer(code):
        kind, text = match.lastgroup, match[0]
        if kind == "path":
            text = text.rstrip("/:.")
        if kind == "name" and not _is_name(code, match, alone=whole_words and match[0] == code.strip(" ()")):
            continue
        if kind is None or len(text) > 200 or (kind != "number" and _PLACEHOLDER.search(text)):
            continue
        yield Thing(text, kind), match.start()  # type: ignore[arg-type]  # the groups are the kinds


def _is_name(code: str, match: re.Match[str], *, alone: bool) -> bool:
    text = match[0]
    if text.lower() in _WORDS:
        return False
    if alone or _SHAPED.search(text):
        return True
    follows = _CALLED.match(code, match.end())
    if follows is None:
        return False
    if follows[0].endswith(":"):  # a key of YAML or JSON, not a word before a colon
        start = max(code.rfind("\n", max(0, match.start() - 100), match.start()) + 1, match.start() - 100, 0)
        return _AT_LINE_START.fullmatch(code, start, match.start()) is not None
    return True


def stands_in(thing: Thing, text: str) -> bool:
    """Return whether a text has the thing as a whole: ``--retry`` does not stand in ``--retry-after``."""
    wanted, at = thing.text, text.find(thing.text)
    joined = "-" if thing.kind == "flag" else ""
    while at >= 0:
        before, after = text[at - 1 : at] if at else "", text[at + len(wanted) : at + len(wanted) + 1]
        if not (_continues(before, joined) or _continues(after, joined)):
            return True
        at = text.find(wanted, at + 1)
    return False


def _continues(character: str, joined: str) -> bool:
    return character.isalnum() or (character == "_") or (character != "" and character == joined)


def parts_of(thing: Thing) -> list[Thing]:
    """Return what a dotted name or a path is made of; itself for others."""
    if thing.kind == "path":
        segments = [segment for segment in thing.text.split("/") if segment.strip(".~") and not segment.endswith(":")]
        return [Thing(segment, "name") for segment in segments]
    if thing.kind == "name" and "." in thing.text:
        return [Thing(part, "name") for part in thing.text.split(".")]
    return [thing]
