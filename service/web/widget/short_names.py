"""Short names for the declarations of a widget's script that no other code can name.

Without a parser, so only where the text alone shows that a word is a variable: one that is anywhere a property, a key,
a member of a class or within a template keeps its name everywhere in its module.
"""

import itertools
import re
from collections.abc import Iterator, Sequence, Set

COMMENT = r"//[^\n]*|/\*.*?\*/"
LITERAL = (
    r""""(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`"""
    r"""|(?:(?<=[=(,:!&|?;{\[>])|(?<=[=(,:!&|?;{\[>] )|(?<=return ))"""
    r"""/(?![*/])(?:[^\\/\n\[]|\\.|\[(?:[^\]\\\n]|\\.)*\])+/[a-z]*"""
)
"""A string, a template (none within another), or a regular expression."""

_PRIVATE = re.compile(r"\bthis\.#(\w+)")
_DECLARED = re.compile(
    r"(?:^(?:async )?(?:function|class) |(?<![\w$#.])(?<!export )(?:const|let) )(?:(\w+)|\[([\w, ]+)\])"
    r"|\(([\w, ]+)\) (?:=>|\{)",
    re.MULTILINE,
)
"""A declaration of a function or class at the margin, of a variable anywhere, or of a parameter; in braces there are
imports and members of objects. A name is made short in all of its module at once, so scopes do not matter.
"""
_WORD = re.compile(r"(?<![\w$#])[\w$]+")
_TOKEN = re.compile(rf"(?P<comment>{COMMENT})|(?P<literal>{LITERAL})|#?[\w$]+|\.\.\.|\S", re.DOTALL)
_CLOSES = {")": "(", "]": "[", "}": "{"}
_RESERVED = frozenset({"as", "do", "if", "in", "is", "of"})
_GLOBAL = frozenset({"event", "history", "location", "origin", "self", "status", "top"})
"""Names that a window has and variables have as well: a module may mean either."""
_CLASS = "class {"


def with_short_names(source: str) -> str:
    """Return a module with short names for its classes' private members and for what it alone declares."""
    private = {name: _letters(at) for at, name in enumerate(dict.fromkeys(_PRIVATE.findall(source)))}
    source = re.sub(r"#(\w+)", lambda found: f"#{private.get(found[1], found[1])}", source)
    tokens = [found for found in _TOKEN.finditer(source) if not found["comment"]]
    code = _TOKEN.sub(lambda found: " " if found["comment"] or found["literal"] else found[0], source)
    declared = {name: None for found in _DECLARED.finditer(code) for name in found[found.lastindex or 0].split(", ")}
    kept = _kept([found[0] for found in tokens], declared.keys())
    kept |= {word for found in tokens if found[0].startswith("`") for word in _WORD.findall(found[0])}
    taken = {*_WORD.findall(source), *_RESERVED}
    free = (name for name in map(_letters, itertools.count()) if name not in taken)
    names = dict(zip((name for name in declared if name not in kept and name not in _GLOBAL), free, strict=False))

    def renamed(found: re.Match[str]) -> str:
        return found[0] if found["comment"] or found["literal"] else names.get(found[0], found[0])

    return _TOKEN.sub(renamed, source)


def _kept(words: Sequence[str], names: Set[str]) -> set[str]:
    """Return the names that are somewhere perhaps not a variable's."""
    ends = _ends(words)
    kept = set()
    for at, (word, bracket) in enumerate(zip(words, _brackets(words), strict=True)):
        if word not in names:
            continue
        before, after = words[at - 1] if at else "", words[at + 1]
        is_property = before == "." or after == ":" or bracket == _CLASS
        is_shorthand = bracket == "{" and before in ("{", ",") and after in (",", "}", "=")
        is_method = after == "(" and before != "function" and words[ends[at + 1] + 1 : ends[at + 1] + 2] == ["{"]
        if is_property or is_shorthand or is_method:
            kept.add(word)
    return kept


def _brackets(words: Sequence[str]) -> Iterator[str]:
    """Yield for each word the bracket that it is in; a class's body is one of its own kind."""
    open_ones, is_class = [""], False
    for at, word in enumerate(words):
        if word in _CLOSES:
            open_ones.pop()
        yield open_ones[-1]
        if word == "class" and words[at + 1] != ":":
            is_class = True
        if word in _CLOSES.values():
            open_ones.append(_CLASS if word == "{" and is_class else word)
            is_class = is_class and word != "{"


def _ends(words: Sequence[str]) -> dict[int, int]:
    """Return where each bracket is closed."""
    ends, open_ones = {}, []
    for at, word in enumerate(words):
        if word in _CLOSES.values():
            open_ones.append(at)
        elif word in _CLOSES:
            ends[open_ones.pop()] = at
    return ends


def _letters(number: int) -> str:
    return (_letters(number // 26 - 1) if number >= 26 else "") + chr(ord("a") + number % 26)
