"""VitePress's ``rewrites``: from the paths of files to the paths that their addresses are made from, in the language of
path-to-regexp 6 (vitepress.dev/guide/routing#route-rewrites). Rules that are a function are not known.

Of the expressions in parentheses only simple ones are read; rules with others are left out. What all matching costs is
estimated before it is done, by the parameters that may end anywhere, and bounded by ``MAX_STEPS``.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from service.retrieval.site.layout import join_path, within

MAX_RULES, MAX_WILDCARDS, MAX_RULE = 1_000, 6, 500
"""Limits for the rules of a site, the parameters of one, and the characters of one or of a path."""
MAX_STEPS = 100_000_000
_SEGMENT = "[^/#?]+?"

_PART = re.compile(
    r"(?P<escaped>\\(?P<plain>.))|\{(?P<prefix>[^{}:()]*)(?P<braced>(?::\w+)?(?:\((?:[^()\\]|\\.)*\))?)\}(?P<how>[?*+]?)"
    r"|(?P<slash>/?)(?::(?P<name>\w+)(?:\((?P<pattern>(?:[^()\\]|\\.)*)\))?|\((?P<bare>(?:[^()\\]|\\.)*)\))(?P<many>[?*+]?)"
    r"|(?P<text>.)",
    re.DOTALL,
)
_SIMPLE = re.compile(r"(?:\.|\\[dw]|\[[\w^/.-]{1,40}\])[*+]\??|[\w-]+(?:\|[\w-]+)*")


class _Piece(Struct, frozen=True):
    """A text, or a parameter with what stands before it."""

    text: str = ""
    name: str = ""
    pattern: str = ""
    many: str = ""


class _Rule(Struct, frozen=True):
    number: int
    expression: re.Pattern[str]
    names: tuple[str, ...]
    open_ended: int
    """Number of the parameters that may end at any character."""
    target: tuple[_Piece, ...]


def rewritten(rules: object, root: str, files: frozenset[str]) -> dict[str, str]:
    """Return the new path of each page that a rule moves, by its path; of several rules the first."""
    plain, patterns = _rules(rules if isinstance(rules, dict) else {})
    moved: dict[str, str] = {}
    steps = MAX_STEPS
    for path in sorted(files) if plain or patterns else ():
        inside = path[len(root) :].lstrip("/")
        if not path.endswith(".md") or not within(path, root) or len(path) > MAX_RULE:
            continue
        number, target = plain.get(inside, (MAX_RULES, ""))
        for rule in patterns:
            steps -= len(inside) ** max(rule.open_ended, 1)
            if rule.number > number or steps < 0:
                break
            match = rule.expression.fullmatch(inside)
            if match is not None:
                target = _filled(rule.target, dict(zip(rule.names, match.groups(), strict=True)))
                break
        if target and target != inside:
            moved[path] = join_path(root, target)
    return moved


def _rules(rules: Mapping[str, object]) -> tuple[dict[str, tuple[int, str]], list[_Rule]]:
    """Return the rules for single files, by their paths, and those with parameters."""
    plain: dict[str, tuple[int, str]] = {}
    patterns: list[_Rule] = []
    for number, (rule, target) in enumerate(list(rules.items())[:MAX_RULES]):
        if not isinstance(target, str) or len(rule) > MAX_RULE or len(target) > MAX_RULE:
            continue
        pieces, to = _pieces(rule), _pieces(target)
        if pieces is None or to is None:
            continue
        names = tuple(piece.name for piece in pieces if piece.name)
        if not names:
            plain.setdefault("".join(piece.text for piece in pieces), (number, _filled(to, {})))
        elif len(names) <= MAX_WILDCARDS:
            patterns.append(_Rule(number, _expression(pieces), names, _open_ended(pieces), tuple(to)))
    return plain, patterns


def _open_ended(pieces: Sequence[_Piece]) -> int:
    following = [*(piece.text for piece in pieces[1:]), "/"]
    return sum(
        bool(piece.name) and not (piece.pattern == _SEGMENT and not piece.many and after.startswith("/"))
        for piece, after in zip(pieces, following, strict=True)
    )


def _pieces(rule: str) -> list[_Piece] | None:
    """Return the pieces of a rule; None when it has an expression that is not read."""
    found: list[_Piece] = []
    text = ""
    unnamed = 0
    for part in _PART.finditer(rule):
        if part["escaped"] is not None or part["text"] is not None:
            text += part["plain"] or part["text"] or ""
            continue
        if part["how"] is not None:
            inner = re.fullmatch(r"(?::(\w+))?(?:\((.*)\))?", part["braced"])
            prefix, name, pattern, many = part["prefix"], inner and inner[1], inner and inner[2], part["how"]
        else:
            prefix, name, pattern = part["slash"], part["name"], part["pattern"] or part["bare"]
            many = part["many"]
        if pattern and not _SIMPLE.fullmatch(pattern):
            return None
        if name is None:
            name, unnamed = str(unnamed), unnamed + 1
        if text:
            found.append(_Piece(text))
            text = ""
        found.append(_Piece(prefix or "", name, pattern or _SEGMENT, many or ""))
    if text:
        found.append(_Piece(text))
    return found


def _expression(pieces: Sequence[_Piece]) -> re.Pattern[str]:
    """Return the expression that a rule means: letter case plays no part, and a slash may follow."""
    return re.compile("".join(_expressions(pieces)) + "/?", re.IGNORECASE)


def _expressions(pieces: Sequence[_Piece]) -> Iterator[str]:
    for piece in pieces:
        before = re.escape(piece.text)
        if not piece.name:
            yield before
        elif piece.many in ("*", "+"):
            inner = r"[^#?]+?" if piece.text == "/" and piece.pattern == _SEGMENT else piece.pattern
            yield f"(?:{before}({inner})){'?' if piece.many == '*' else ''}"
        else:
            yield f"(?:{before}({piece.pattern})){piece.many}"


def _filled(pieces: Sequence[_Piece], values: Mapping[str, str | None]) -> str:
    shown = []
    for piece in pieces:
        value = values.get(piece.name) if piece.name else ""
        shown.append(piece.text if not piece.name else f"{piece.text}{value}" if value else "")
    return "".join(shown).lstrip("/")
