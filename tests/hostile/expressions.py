"""Every regular expression of the service, found in its source, and texts that make one work hard.

The texts are made from the expression itself: what it repeats, again and again, behind what must stand before it, and
with something behind that it cannot end with. That finds runs that are looked through again from each of their
characters, starts that each look to the end, and neighbours that share a run out in every way.
"""

import ast
import importlib
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from re import _constants as c  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from types import ModuleType
from typing import Any, NamedTuple

import service

ROOT = Path(service.__file__).parent
FUNCTIONS = {
    "compile": 1,
    "match": 2,
    "search": 2,
    "fullmatch": 2,
    "findall": 2,
    "finditer": 2,
    "split": 3,
    "sub": 4,
    "subn": 4,
}
"""Of ``re``, and which of their arguments, from 0, are the flags."""
_USE = re.compile(rf"(?<![\w.])(\w+)\.({'|'.join(FUNCTIONS)})\b")
"""A use of a name by one of these, or what looks like it in a text: no syntax tree of every file is needed for that."""


class Expression(NamedTuple):
    where: str
    """Module and line, or module and name."""
    pattern: "re.Pattern[str] | re.Pattern[bytes]"
    ways: frozenset[str]
    """The methods that it is used with."""


def expressions(module: str, built: Mapping[str, list[str]]) -> Iterator[Expression]:
    """Those of one module. ``built``: examples of those that a function builds as it runs, by module and function.

    Raises LookupError for one that is built and has no example.
    """
    loaded = importlib.import_module(module)
    tree = ast.parse(Path(str(loaded.__file__)).read_text())
    used = _methods([tree])
    functions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    at_top = {id(node) for top in tree.body if not isinstance(top, functions) for node in ast.walk(top)}
    own = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    for name, pattern in _patterns_in(loaded):
        if name not in own:
            continue  # imported
        ways = used.get(name) or _used_anywhere().get(name) or frozenset({"search"})
        yield Expression(f"{module} {name}", pattern, ways)
    for call in ast.walk(tree):
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)):
            continue
        if not (isinstance(call.func.value, ast.Name) and call.func.value.id == "re" and call.func.attr in FUNCTIONS):
            continue
        if call.func.attr == "compile" and id(call) in at_top:
            continue  # its value is among the module's
        flags = next((k.value for k in call.keywords if k.arg == "flags"), None)
        position = FUNCTIONS[call.func.attr]
        flags = call.args[position] if flags is None and len(call.args) > position else flags
        function = f"{module} {_around(tree, call)}"
        try:
            texts = [_value(call.args[0], loaded)]
        except NameError:
            if function not in built:
                raise LookupError(
                    f"{function}, line {call.lineno}: add an example of its expression to BUILT"
                ) from None
            texts = built[function]
        for text in texts:
            pattern = re.compile(text, int(_value(flags, loaded)) if flags is not None else 0)
            yield Expression(
                f"{module}:{call.lineno}", pattern, frozenset({call.func.attr}) - {"compile"} or {"search"}
            )


def modules() -> list[str]:
    """Those that use ``re``."""
    calls = re.compile(r"\bre\.(?:" + "|".join(FUNCTIONS) + r")\(")
    files = [file for file in sorted(ROOT.rglob("*.py")) if calls.search(file.read_text())]
    return [".".join(["service", *file.relative_to(ROOT).with_suffix("").parts]) for file in files]


def _value(node: ast.expr, module: ModuleType) -> Any:
    return eval(compile(ast.Expression(node), "<expression>", "eval"), dict(vars(module)))


def _around(tree: ast.Module, call: ast.Call) -> str:
    """The name of the function that a call stands in."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return next((one.name for one in reversed(functions) if any(node is call for node in ast.walk(one))), "")


@cache
def _used_anywhere() -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for file in ROOT.rglob("*.py"):
        for name, method in _USE.findall(file.read_text()):
            found.setdefault(name, set()).add(method)
    return {name: frozenset(methods) for name, methods in found.items()}


def _methods(trees: Iterable[ast.Module]) -> dict[str, frozenset[str]]:
    """By the name of an expression, how it is used."""
    found: dict[str, set[str]] = {}
    for node in (node for tree in trees for node in ast.walk(tree)):
        if isinstance(node, ast.Attribute) and node.attr in FUNCTIONS and isinstance(node.value, ast.Name):
            found.setdefault(node.value.id, set()).add(node.attr)
    return {name: frozenset(methods) for name, methods in found.items()}


def _patterns_in(module: ModuleType) -> Iterator[tuple[str, "re.Pattern[Any]"]]:
    for name, value in vars(module).items():
        yield from ((name, pattern) for pattern in _nested(value, 3))


def _nested(value: object, depth: int) -> Iterator["re.Pattern[Any]"]:
    if isinstance(value, re.Pattern):
        yield value
    elif depth and isinstance(value, Mapping):
        yield from (pattern for each in value.values() for pattern in _nested(each, depth - 1))
    elif depth and isinstance(value, tuple | list):
        yield from (pattern for each in value for pattern in _nested(each, depth - 1))


# Texts

Shape = tuple[str, str, str]
"""What stands before, what is repeated, what stands behind."""
PROBES = " \t\na0A_-.:/[](){}<>`*\"'\\@#!=,;|&~+$%^?\x00é中’"  # noqa: RUF001
REPEATS = (c.MAX_REPEAT, c.MIN_REPEAT, c.POSSESSIVE_REPEAT)
MANY = 20
"""Repetitions that are worth an attack."""
CATEGORIES = {
    c.CATEGORY_SPACE: r"\s", c.CATEGORY_NOT_SPACE: r"\S", c.CATEGORY_DIGIT: r"\d", c.CATEGORY_NOT_DIGIT: r"\D",
    c.CATEGORY_WORD: r"\w", c.CATEGORY_NOT_WORD: r"\W",
}  # fmt: skip


def shapes(pattern: "re.Pattern[Any]") -> list[Shape]:
    source = pattern.pattern.decode("latin-1") if isinstance(pattern.pattern, bytes) else pattern.pattern
    tree = _parser.parse(source, pattern.flags)
    repeated: list[tuple[str, str]] = []
    for choice in range(2):
        _repeated(tree, "", repeated, choice)
    wholes = [_sample(tree, {}, choice) for choice in range(3)]
    found: dict[Shape, None] = {}
    for before, unit in repeated:
        for behind in ("", "\0", "x" * 600):
            found[before, unit, behind] = None
        found["", unit, "\0"] = None
        found["", before + unit, ""] = None
        found["", before + unit * 8, ""] = None
        found["", before, ""] = None
    for whole in wholes:
        found["", whole, ""] = found["", whole[:-1], ""] = None
    for letter in _letters(tree):
        found["", letter, ""] = found["", letter, "\0"] = None
    return [shape for shape in found if shape[1]]


def _letters(tree: Any) -> list[str]:
    found: dict[str, None] = {" ": None, "\n": None, "a": None}
    for code, value in tree:
        if code is c.LITERAL:
            found[chr(value)] = None
        elif code is c.IN:
            found |= dict.fromkeys(_class(value)[:3])
        for inner in _inside(code, value):
            found |= dict.fromkeys(_letters(inner))
    return list(found)


def _inside(code: Any, value: Any) -> list[Any]:
    if code is c.BRANCH:
        return list(value[1])
    if code is c.SUBPATTERN:
        return [value[3]]
    if code is c.ATOMIC_GROUP:
        return [value]
    if code in (c.ASSERT, c.ASSERT_NOT):
        return [value[1]]
    return [value[2]] if code in REPEATS else []


def _class(items: Any) -> list[str]:
    """Some characters of a class."""
    own: list[str] = []
    tests = []
    for code, value in items:
        if code is c.LITERAL:
            own.append(chr(value))
            tests.append(lambda letter, value=value: ord(letter) == value)
        elif code is c.RANGE:
            own.append(chr(value[0]))
            tests.append(lambda letter, value=value: value[0] <= ord(letter) <= value[1])
        elif code is c.CATEGORY:
            tests.append(lambda letter, value=value: re.match(CATEGORIES[value], letter) is not None)
    negated = any(code is c.NEGATE for code, _ in items)
    return [
        letter
        for letter in dict.fromkeys([*([] if negated else own), *PROBES])
        if any(test(letter) for test in tests) != negated
    ]


def _sample(tree: Any, groups: dict[int, str], choice: int) -> str:
    """A text that fits, or nearly: what looks around is not looked at."""
    text = ""
    for code, value in tree:
        if code is c.LITERAL:
            text += chr(value)
        elif code is c.NOT_LITERAL:
            text += next(letter for letter in PROBES[3:] if ord(letter) != value)
        elif code is c.ANY:
            text += "a"
        elif code is c.IN:
            letters = _class(value)
            text += letters[choice % len(letters)] if letters else ""
        elif code is c.BRANCH:
            text += _sample(value[1][choice % len(value[1])], groups, choice)
        elif code is c.SUBPATTERN:
            groups[value[0]] = _sample(value[3], groups, choice)
            text += groups[value[0]]
        elif code is c.ATOMIC_GROUP:
            text += _sample(value, groups, choice)
        elif code in REPEATS:
            text += _sample(value[2], groups, choice) * min(max(value[0], choice % 2), 500)
        elif code is c.GROUPREF:
            text += groups.get(value, "")
    return text


def _repeated(tree: Any, before: str, found: list[tuple[str, str]], choice: int) -> None:
    """What the expression repeats, with what stands before it."""
    for code, value in tree:
        if code in REPEATS and value[1] >= MANY:
            inner = value[2]
            if len(inner) == 1 and inner[0][0] is c.IN:
                letters = _class(inner[0][1])
                found.extend((before, letter) for letter in [*letters[:6], *letters[-2:]])
            elif len(inner) == 1 and inner[0][0] in (c.ANY, c.NOT_LITERAL):
                found.extend((before, letter) for letter in " a\n<")
            else:
                found.extend((before, unit) for each in range(4) if (unit := _sample(inner, {}, each)))
        for inside in _inside(code, value):
            _repeated(inside, before, found, choice)
        before += _sample([(code, value)], {}, choice)
