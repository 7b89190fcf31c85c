"""The tokens of a program of JavaScript or TypeScript, for ``script``."""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

MAX_TOKENS, MAX_DEPTH, MAX_DECLARATION = 200_000, 60, 400
"""Limits for one configuration; the last for the tokens of a type, or of the names that an import lists."""

_TOKEN = re.compile(  # what is not closed goes on to its end: looking for the end again and again would take long
    r"(?P<space>[\s\ufeff]++|//[^\n\r]*+|/\*(?:[^*]|\*(?!/))*+(?:\*/)?+)"
    r"|(?P<string>\"(?:[^\"\\\n]|\\.)*+\"?+|'(?:[^'\\\n]|\\.)*+'?+)"
    r"|(?P<number>\d[\d_]*+(?:\.\d++)?+(?![\w$]))"
    r"|(?P<word>[\w$]++)"
    r"|(?P<mark>\.\.\.|=>|\?\?|\?\.|\|\||&&|[=!]==?|[^\s\w])",
    re.DOTALL,
)
_REGULAR_EXPRESSION = re.compile(r"/(?:[^/\\\[\n]|\\[^\n]|\[(?:[^\]\\\n]|\\[^\n])*+\])++/\w*+")
_BEFORE_EXPRESSION = frozenset("(,=:[!&|?{;+*%<>~^") | {"=>", "||", "&&", "??", "return", "===", "!=="}
_ESCAPE = re.compile(r"\\(?:u\{([0-9a-fA-F]{1,6})\}|u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|\r?\n|(.))", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "0": "\0"}
_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")


class TooMuch(Exception):
    """The program is larger than any configuration that people write."""


class Template:
    """The parts of a template literal: texts, and the tokens of expressions."""

    def __init__(self, parts: "list[str | Tokens]") -> None:
        self.parts = parts


class Text(str):
    """The value of a string literal, which is no word or mark."""

    __slots__ = ()


Token = str | float | Template


class Tokens(list[Token]):
    """The tokens of a file, or of an expression in a template."""

    @cached_property
    def _ends(self) -> Mapping[int, int]:
        ends: dict[int, int] = {}
        opened: list[int] = []
        for at, piece in enumerate(self):
            if piece in _OPENING and not isinstance(piece, Text):
                opened.append(at)
            elif piece in _CLOSING and not isinstance(piece, Text) and opened:
                ends[opened.pop()] = at + 1
        return ends

    def closed(self, at: int) -> int:
        """Return the place behind the bracket that closes the one at a place."""
        return self._ends.get(at, len(self))


def tokens_of(text: str, count: Callable[[], None]) -> Tokens:
    tokens, _ = _read_tokens(text, 0, count, 0)
    return tokens


def _read_tokens(text: str, at: int, count: Callable[[], None], depth: int) -> tuple[Tokens, int]:
    """Return the tokens from a place on, up to the brace that closes an expression in a template."""
    if depth > MAX_DEPTH:
        raise TooMuch
    tokens = Tokens()
    braces = 0
    while at < len(text):
        count()
        if text[at] == "`":
            template, at = _template(text, at + 1, count, depth)
            tokens.append(template)
            continue
        found = _TOKEN.match(text, at)
        if found is None:
            break
        if found["mark"] == "/" and (not tokens or (isinstance(tokens[-1], str) and tokens[-1] in _BEFORE_EXPRESSION)):
            found = _REGULAR_EXPRESSION.match(text, at) or found
            tokens.append("RegExp")
            at = found.end()
            continue
        at = found.end()
        if found["string"] is not None:
            tokens.append(Text(_unescaped(found[0][1:].removesuffix(found[0][0]))))
        elif found["number"] is not None:
            tokens.append(float(found[0].replace("_", "")))
        elif found["space"] is None:
            braces += {"{": 1, "}": -1}.get(found[0], 0)
            if braces < 0 and depth:
                return tokens, at
            tokens.append(found[0])
    return tokens, at


def _template(text: str, at: int, count: Callable[[], None], depth: int) -> tuple[Token, int]:
    parts: list[str | Tokens] = []
    begin = at
    while at < len(text) and text[at] != "`":
        if text[at] == "\\":
            at += 2
        elif text.startswith("${", at):
            parts.append(_unescaped(text[begin:at]))
            tokens, at = _read_tokens(text, at + 2, count, depth + 1)
            parts.append(tokens)
            begin = at
        else:
            at += 1
    parts.append(_unescaped(text[begin:at]))
    if len(parts) == 1 and isinstance(parts[0], str):
        return Text(parts[0]), at + 1
    return Template(parts), at + 1


def _unescaped(text: str) -> str:
    def shown(found: re.Match[str]) -> str:
        code = found[1] or found[2] or found[3]
        if code:
            return chr(int(code, 16)) if int(code, 16) <= 0x10FFFF else ""
        return _ESCAPED.get(found[4], found[4]) if found[4] else ""

    if "\\" not in text:
        return text
    return _ESCAPE.sub(shown, text).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def is_word(tokens: Sequence[Token], at: int) -> bool:
    piece = tokens[at] if at < len(tokens) else ""
    return isinstance(piece, str) and not isinstance(piece, Text) and (piece[:1].isalnum() or piece[:1] in ("_", "$"))


def after_type(tokens: Tokens, at: int) -> int:
    """Return the place behind ``=`` of a declaration, its type stepped over; 0 where there is none."""
    for place in range(at, min(at + MAX_DECLARATION, len(tokens))):
        piece = tokens[place]
        if piece == "=" and not isinstance(piece, Text):
            return place + 1
        if place == at and piece != ":":
            return 0
        if piece in (";", "const", "let", "var"):
            return 0
    return 0


def names_in(tokens: Tokens, at: int) -> tuple[list[tuple[str, str]], int]:
    """Return the names in braces, each with the one that it has behind ``as``, and the place behind the braces."""
    after = tokens.closed(at)
    found: list[tuple[str, str]] = []
    place = at + 1
    while place < min(after - 1, at + MAX_DECLARATION):
        if is_word(tokens, place) and tokens[place] != "type":
            name = str(tokens[place])
            if tokens[place + 1 : place + 2] == ["as"] and is_word(tokens, place + 2):
                found.append((name, str(tokens[place + 2])))
                place += 3
                continue
            found.append((name, name))
        place += 1
    return found, after
