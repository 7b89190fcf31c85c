"""Values in configurations that are programs of JavaScript or TypeScript: read as data, never run.

``exported`` follows literals, constants, spreads, functions that return a literal, and files that are imported by a
relative path. Anything else is ``UNKNOWN``, and what holds it is kept: a sidebar with one entry that is computed still
has its others. Of a call of an unknown function the value is its first list or object (``defineConfig({…})``).

The time is bounded by numbers of tokens, steps and files.
"""

import re
from collections.abc import Callable
from json import JSONDecodeError, loads
from posixpath import dirname, normpath

from service.retrieval.site.javascript.expressions import Expression, Function
from service.retrieval.site.javascript.tokens import (
    MAX_DECLARATION,
    MAX_TOKENS,
    Text,
    Tokens,
    TooMuch,
    after_type,
    is_word,
    names_in,
    tokens_of,
)
from service.retrieval.site.javascript.values import UNKNOWN

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

    def count(self, steps: int) -> None:
        self.steps += steps
        if self.steps > MAX_STEPS:
            raise TooMuch

    def export(self, path: str, name: str) -> object:
        try:
            module = self.module(path)
            value = UNKNOWN if module is None else module.export(name, 0)
            return value.call((), 0) if isinstance(value, Function) else value
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
        return Expression(self, self.tokens, at).value(depth)

    def declared(self, name: str) -> int:
        return self._declared.get(name, -1)

    def required(self, target: str, depth: int) -> object:
        module = self._program.imported(self.path, target)
        return module.export("default", depth + 1) if module is not None else UNKNOWN

    def count(self, steps: int) -> None:
        self._program.count(steps)

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
