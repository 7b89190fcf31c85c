"""Values in configurations that are programs of JavaScript or TypeScript: read as data, never run.

``exported`` follows literals, constants, spreads, functions that return a literal, and files that are imported by a
relative path. Anything else is ``UNKNOWN``, and what holds it is kept: a sidebar with one entry that is computed still
has its others. Of a call of an unknown function the value is its first list or object (``defineConfig({…})``).

The time is bounded by numbers of tokens, steps and files.
"""

import re
from collections.abc import Callable, Sequence
from json import JSONDecodeError, loads
from posixpath import dirname, normpath

from service.retrieval.site.script_tokens import (
    MAX_DECLARATION,
    MAX_DEPTH,
    MAX_TOKENS,
    Template,
    Text,
    Token,
    Tokens,
    TooMuch,
    after_type,
    is_word,
    names_in,
    tokens_of,
)
from service.retrieval.site.script_values import UNKNOWN, Unknown, joined, path_of

MAX_STEPS, MAX_FILES, MAX_CHARACTERS = 200_000, 30, 1 << 20
"""Limits for one configuration, with all the files that it imports."""

ReadFile = Callable[[str], str | None]
"""A function of a path: the text of the file, None where there is none."""


_SUFFIXES = ("", ".ts", ".mts", ".js", ".mjs", ".cjs", ".json", "/index.ts", "/index.mts", "/index.js", "/index.mjs")
_DECLARED = frozenset(("const", "let", "var"))


def exported(path: str, read: ReadFile) -> object:
    """Return the default export of a file, or its ``module.exports``, as strings, numbers, truth values, None, lists,
    dictionaries and ``UNKNOWN``.
    """
    return _Program(read).export(path, "default")


class _Program:
    def __init__(self, read: ReadFile) -> None:
        self._read = read
        self._modules: dict[str, _Module | None] = {}
        self.steps = self.tokens = self.files = 0

    def export(self, path: str, name: str) -> object:
        try:
            module = self.module(path)
            return UNKNOWN if module is None else module.export(name, 0)
        except (TooMuch, RecursionError):
            return UNKNOWN

    def module(self, path: str) -> "_Module | None":
        if path not in self._modules:
            text = self._read(path) if self.files < MAX_FILES else None
            self._modules[path] = None
            if text is not None:
                self.files += 1
                self._modules[path] = _Module(self, path, text[:MAX_CHARACTERS])
        return self._modules[path]

    def imported(self, path: str, target: str) -> "_Module | None":
        """Return the file that an import by a relative path names; None for packages."""
        if not target.startswith("."):
            return None
        found = normpath(f"{dirname(path)}/{target}".lstrip("/"))
        stem = re.sub(r"\.[cm]?js$", "", found)
        for name in dict.fromkeys((*(found + suffix for suffix in _SUFFIXES), *(stem + each for each in _SUFFIXES))):
            module = None if name.startswith("..") else self.module(name)
            if module is not None:
                return module
        return None


class _Module:
    """A file: what it declares, imports and exports, by the first token of each."""

    def __init__(self, program: _Program, path: str, text: str) -> None:
        self._program, self.path = program, path
        self._json: object = UNKNOWN
        self._declared: dict[str, int] = {}
        self._imports: dict[str, tuple[str, str]] = {}
        self._exports: dict[str, str] = {}
        self._default = -1
        self.tokens = Tokens()
        self._known: dict[str, object] = {}
        if path.endswith(".json"):
            try:
                self._json = loads(text)
            except (JSONDecodeError, RecursionError):
                self._json = UNKNOWN
            return
        self.tokens = tokens_of(text, self._count)
        self._survey()

    def _count(self) -> None:
        self._program.tokens += 1
        if self._program.tokens > MAX_TOKENS:
            raise TooMuch

    def export(self, name: str, depth: int) -> object:
        if self.path.endswith(".json"):
            return self._json if name == "default" or not isinstance(self._json, dict) else self._json.get(name)
        if name == "*":
            return {key: self.value(own, depth + 1) for key, own in self._exports.items()}
        if name in self._exports:
            return self.value(self._exports[name], depth)
        if name == "default" and self._default >= 0:
            return self.evaluate(self._default, depth)
        return UNKNOWN

    def value(self, name: str, depth: int) -> object:
        """Return the value of a name in this file."""
        if name in self._known:
            return self._known[name]
        self._known[name] = UNKNOWN  # while it is looked at: it may be made from itself
        value: object = UNKNOWN
        if name in self._declared:
            value = self.evaluate(self._declared[name], depth + 1)
        elif name in self._imports:
            target, original = self._imports[name]
            module = self._program.imported(self.path, target)
            value = module.export(original, depth + 1) if module is not None else UNKNOWN
        self._known[name] = value
        return value

    def evaluate(self, at: int, depth: int) -> object:
        return _Expression(self, self._program, self.tokens, at).value(depth)

    def of_tokens(self, tokens: Tokens, depth: int) -> object:
        return _Expression(self, self._program, tokens, 0).value(depth)

    def _survey(self) -> None:
        """Find what the file declares, at its margin or deeper: configurations seldom use a name twice."""
        tokens = self.tokens
        for at, piece in enumerate(tokens):
            if piece in _DECLARED and not isinstance(piece, Text) and is_word(tokens, at + 1):
                begin = after_type(tokens, at + 2)
                if begin:
                    self._declared.setdefault(str(tokens[at + 1]), begin)
            elif piece == "function" and not isinstance(piece, Text) and is_word(tokens, at + 1):
                self._declared.setdefault(str(tokens[at + 1]), at)
            elif piece == "import" and not isinstance(piece, Text):
                self._import(at + 1)
            elif piece == "export" and not isinstance(piece, Text):
                self._export(at + 1)
            elif piece == "module" and tokens[at + 1 : at + 4] == [".", "exports", "="]:
                self._default = at + 4

    def _export(self, at: int) -> None:
        tokens = self.tokens
        piece = tokens[at] if at < len(tokens) else ""
        if piece == "default":
            self._default = at + 1
        elif (piece in _DECLARED or piece == "function") and is_word(tokens, at + 1):
            self._exports[str(tokens[at + 1])] = str(tokens[at + 1])
        elif piece == "async" and tokens[at + 1 : at + 2] == ["function"] and is_word(tokens, at + 2):
            self._exports[str(tokens[at + 2])] = str(tokens[at + 2])
        elif piece == "{":
            names, after = names_in(tokens, at)
            source = tokens[after + 1] if tokens[after : after + 1] == ["from"] and after + 1 < len(tokens) else None
            for own, shown in names:
                if isinstance(source, Text):
                    self._imports[f"{shown} from"] = (source, own)
                    self._exports[shown] = f"{shown} from"
                else:
                    self._exports[shown] = own

    def _import(self, at: int) -> None:
        tokens = self.tokens
        found: list[tuple[str, str]] = []  # the name there and here
        last = min(at + MAX_DECLARATION, len(tokens))
        while at < last and tokens[at] not in ("from", ";", "(", "import", "export"):
            piece = tokens[at]
            if piece == "{":
                names, at = names_in(tokens, at)
                found += names
                continue
            if piece == "*" and tokens[at + 1 : at + 2] == ["as"] and is_word(tokens, at + 2):
                found.append(("*", str(tokens[at + 2])))
                at += 3
                continue
            if is_word(tokens, at) and piece != "type":
                found.append(("default", str(piece)))
            elif piece != ",":
                return
            at += 1
        source = tokens[at + 1] if tokens[at : at + 1] == ["from"] and at + 1 < len(tokens) else None
        if isinstance(source, Text):
            self._imports.update({here: (str(source), there) for there, here in found})


class _Expression:
    """Reads one expression, from a place among tokens."""

    def __init__(self, module: _Module, program: _Program, tokens: Tokens, at: int) -> None:
        self._module, self._program, self._tokens, self._at = module, program, tokens, at

    def value(self, depth: int) -> object:
        """Return the value; the place is then behind it. Of ``a || b`` and ``c ? a : b`` what is known first is it."""
        value = self._one(depth)
        while True:
            match self._peek():
                case "||" | "??":
                    self._at += 1
                    other = self._one(depth)
                    value = other if isinstance(value, Unknown) or value in ("", None, False) else value
                case "&&":
                    self._at += 1
                    other = self._one(depth)
                    value = other if isinstance(value, Unknown) or value else value
                case "+":
                    self._at += 1
                    other = self._one(depth)
                    value = joined([value, other])
                case "?":
                    self._at += 1
                    one = self.value(depth + 1)
                    if self._peek() != ":":
                        return UNKNOWN
                    self._at += 1
                    other = self.value(depth + 1)
                    chosen, beside = (other, one) if value in (False, None, "") else (one, other)
                    return beside if isinstance(chosen, Unknown) else chosen
                case "as" | "satisfies":
                    self._at += 1
                    self._skip_type()
                case "===" | "!==" | "==" | "!=" | "-" | "*" | "/" | "%" | "<" | ">" | "in" | "instanceof":
                    self._at += 1
                    self._one(depth)
                    value = UNKNOWN
                case _:
                    return value

    def _one(self, depth: int) -> object:
        self._program.steps += 1
        if depth > MAX_DEPTH or self._program.steps > MAX_STEPS:
            raise TooMuch
        piece = self._next()
        value: object = UNKNOWN
        if isinstance(piece, Text):
            value = str(piece)
        elif isinstance(piece, Template):
            value = self._text(piece, depth)
        elif isinstance(piece, float):
            value = int(piece) if piece.is_integer() else piece
        elif piece == "[":
            value = self._list(depth)
        elif piece == "{":
            value = self._object(depth)
        elif piece == "(":
            value = self._in_parentheses(depth)
        elif piece in ("await", "new"):
            return self._one(depth + 1)
        elif piece in ("!", "-", "+", "typeof", "void"):
            self._one(depth + 1)
            return UNKNOWN
        elif piece in ("function", "async"):
            value = self._function(depth)
        elif piece in ("true", "false"):
            value = piece == "true"
        elif piece in ("null", "undefined"):
            value = None
        elif piece == "import":
            value = UNKNOWN
        elif piece == "require" and self._peek() == "(":
            value = self._required(depth)
        elif piece in ("resolve", "join") and self._peek() == "(":
            value = path_of(self._arguments(depth))
        elif is_word([piece], 0):
            value = self._arrow(depth) if self._peek() == "=>" else self._module.value(str(piece), depth)
        return self._used(value, depth)

    def _used(self, value: object, depth: int) -> object:
        """Return what becomes of a value by the members and calls that follow it."""
        while True:
            match self._peek():
                case "." | "?.":
                    self._at += 1
                    name = self._next()
                    if self._peek() == "(":  # a method, of which a list remains what it is: ``filter``, ``concat``
                        given = self._arguments(depth)
                        if not isinstance(value, list):
                            value = path_of(given) if name in ("resolve", "join") else UNKNOWN
                        elif name not in ("filter", "concat", "flat"):
                            value = UNKNOWN
                    else:
                        value = value.get(str(name), UNKNOWN) if isinstance(value, dict) else UNKNOWN
                case "[":
                    self._at += 1
                    key = self.value(depth + 1)
                    self._skip_to("]")
                    value = value.get(key, UNKNOWN) if isinstance(value, dict) and isinstance(key, str) else UNKNOWN
                case "(":
                    given = self._arguments(depth)
                    if isinstance(value, Unknown):
                        value = next((each for each in given if isinstance(each, list | dict)), UNKNOWN)
                case "!":
                    self._at += 1
                case _:
                    return value

    def _text(self, template: Template, depth: int) -> object:
        parts = template.parts
        return joined([part if isinstance(part, str) else self._module.of_tokens(part, depth + 1) for part in parts])

    def _list(self, depth: int) -> object:
        values: list[object] = []
        while self._peek() not in ("]", ""):
            if self._peek() == ",":
                self._at += 1
                continue
            spread = self._peek() == "..."
            self._at += spread
            value = self.value(depth + 1)
            if not spread:
                values.append(value)
            elif isinstance(value, list):
                values += value
            self._skip_to(",", "]", keep=True)
        self._at += 1
        self._check_size(len(values))
        return values

    def _object(self, depth: int) -> object:
        values: dict[str, object] = {}
        while self._peek() not in ("}", ""):
            piece = self._next()
            if piece == ",":
                continue
            if piece == "...":
                value = self.value(depth + 1)
                values |= value if isinstance(value, dict) else {}
            elif piece == "[":
                key = self.value(depth + 1)
                self._skip_to("]")
                self._property(values, key, depth)
            elif piece in ("async", "get") and self._peek() not in (":", ",", "}", "("):
                continue
            else:
                self._property(values, f"{piece:g}" if isinstance(piece, float) else str(piece), depth)
            self._skip_to(",", "}", keep=True)
        self._at += 1
        self._check_size(len(values))
        return values

    def _property(self, values: dict[str, object], key: object, depth: int) -> None:
        value: object = UNKNOWN
        if self._peek() == ":":
            self._at += 1
            value = self.value(depth + 1)
        elif self._peek() == "(":
            value = self._method(depth)
        elif isinstance(key, str):
            value = self._module.value(key, depth + 1)
        if isinstance(key, str):
            values[key] = value

    def _in_parentheses(self, depth: int) -> object:
        """Return the value in parentheses; of a function without a name, what it returns."""
        after = self._tokens.closed(self._at - 1)
        if self._is_arrow(after):
            self._at = after
            return self._arrow(depth)
        value = self.value(depth + 1)
        self._at = after
        return value

    def _is_arrow(self, after: int) -> bool:
        """Return whether ``=>`` follows, a type of what is returned left out."""
        follows = self._tokens[after] if after < len(self._tokens) else ""
        if follows != ":":
            return follows == "=>"
        stop = next((at for at in range(after, min(after + 40, len(self._tokens))) if self._tokens[at] == "=>"), 0)
        return bool(stop) and not any(piece in (",", ";", "?") for piece in self._tokens[after:stop])

    def _arrow(self, depth: int) -> object:
        while self._peek() not in ("=>", ""):
            self._at += 1
        self._at += 1
        return self._body(depth) if self._peek() == "{" else self.value(depth + 1)

    def _function(self, depth: int) -> object:
        while self._peek() not in ("(", "{", "") and self._peek() != "=>":
            self._at += 1
        return self._method(depth)

    def _method(self, depth: int) -> object:
        if self._peek() == "(":
            self._at = self._tokens.closed(self._at)
        if self._peek() == "=>":
            return self._arrow(depth)
        if self._peek() == ":":
            self._at += 1
            while self._peek() not in ("{", "=>", ""):
                self._at += 1
            if self._peek() == "=>":
                return self._arrow(depth)
        return self._body(depth) if self._peek() == "{" else UNKNOWN

    def _body(self, depth: int) -> object:
        """Return what the body of a function returns, at its last ``return``."""
        after = self._tokens.closed(self._at)
        value: object = UNKNOWN
        level = 0
        for at in range(self._at, after):
            piece = self._tokens[at]
            if isinstance(piece, Text):
                continue
            level += 1 if piece in ("{", "(", "[") else -1 if piece in ("}", ")", "]") else 0
            if piece == "return" and level == 1:
                value = self._module.evaluate(at + 1, depth + 1) if self._tokens is self._module.tokens else UNKNOWN
        self._at = after
        return value

    def _arguments(self, depth: int) -> Sequence[object]:
        after = self._tokens.closed(self._at)
        self._at += 1
        given: list[object] = []
        while self._at < after - 1:
            given.append(self.value(depth + 1))
            self._skip_to(",", ")")
            if len(given) > 20:
                break
        self._at = after
        return given

    def _required(self, depth: int) -> object:
        given = self._arguments(depth)
        target = given[0] if given else None
        module = self._program.imported(self._module.path, target) if isinstance(target, str) else None
        return module.export("default", depth + 1) if module is not None else UNKNOWN

    def _skip_type(self) -> None:
        """Step over a type: words, dots, brackets and what is in them."""
        while True:
            piece = self._peek()
            if piece in ("[", "{", "("):
                self._at = self._tokens.closed(self._at)
            elif piece == "<":
                while self._peek() not in (">", ""):
                    self._at += 1
                self._at += 1
            elif piece in (".", "|", "&") or (is_word([piece], 0) and piece not in ("as", "satisfies")):
                self._at += 1
            else:
                return

    def _skip_to(self, *marks: str, keep: bool = False) -> None:
        """Step behind the next of these marks outside brackets; before it, if it is to be kept."""
        while self._at < len(self._tokens):
            piece = self._tokens[self._at]
            if not isinstance(piece, Text) and piece in marks:
                self._at += not keep
                return
            if not isinstance(piece, Text) and piece in ("(", "[", "{"):
                self._at = self._tokens.closed(self._at)
                continue
            if not isinstance(piece, Text) and piece in (")", "]", "}", ";"):
                return
            self._at += 1

    def _check_size(self, size: int) -> None:
        self._program.steps += size
        if self._program.steps > MAX_STEPS:
            raise TooMuch

    def _peek(self) -> Token:
        piece = self._tokens[self._at] if self._at < len(self._tokens) else ""
        return piece if not isinstance(piece, Text) else f"'{piece}"

    def _next(self) -> Token:
        piece = self._tokens[self._at] if self._at < len(self._tokens) else ""
        self._at += 1
        return piece
