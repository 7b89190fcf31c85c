"""Phrases that a reader whose second language is English stumbles over, and where they are.

Looked for in the docstrings of the program and the scripts, in the texts of the program's errors and of its command
line, in the README, the manual and the pages of errors. Not looked for in code itself, names of log events, tests and
the changelog's past.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

INSTEAD_OF = {
    r"\b(?:is|are|was|were|be|been) told\b": "is notified, receives, reports",
    r"\btells? of\b|\btold of\b|\btells\b": "reports, sends, publishes",
    r"\b[Ww]hoever\b": "the caller, the client",
    r"\b[Nn]obody\b": "no one",
    r"\bwho asks\b": "the caller",
    r"\banew\b": "again; rebuilt",
    r"\btakes? in\b|\btaken in\b": "import, accept",
    r"\bheeds?\b|\bheeded\b": "handle",
    r"\bput out of sight\b": "archived",
    r"\bin vain\b": "without success",
    r"\bnone at all\b": "empty",
    r"\bthat (?:is|are) none\b": "invalid",
    r"\b[Ss]o many\b|\bas many\b": "at most N",
    r"\btakes no (?:\w+ ){1,2}(?:milli)?(?:second|minute|hour|day)s?\b": "within 10 s",
    r"\bdoorkeeper\b|\bat the door\b": "connection limiter, admission",
    r"\bThere is no such\b": "… not found: X. Do Y.",
    r"\bno such\b": "not found",
}
"""Patterns, and what to write."""

INSTEAD_OF_ON_PAGES = {
    r"\bgolden questions?\b|\bGolden questions?\b": "test questions",
    r"\bmean reciprocal rank\b": "place of the first right page",
    r"\bKind of stream\b": "About",
    r"\b[Nn]ext place free\b": "Count goes down",
    r"\b[Aa] bound\b|\b[Cc]ost bounds?\b|\b(?:site|installation)'s bound\b": "cost limit",
    r"\b[Tt]he service is well\b|\b[Nn]ot all is well\b": "The service is running normally.",
    r"\b[Tt]his takes the role\b": "Only owners may do this.",
    r"\b[Aa] project names (?:it|them)\b": "Create a project to add some.",
    r"\bwhose log has\b": "the service's log has",
    r"\bnames? the domains\b|\b[Aa] domain is\b|\bthe site's domain\b|\b(?:a|its) site's domain\b": "site name",
    r"\bare? being (?:read|indexed|sent|written) (?:now|again)\b": "what has happened: a page shows the state itself",
    r"\b[Nn]othing was found: every file\b": "what was looked at, and what was not",
    r"(?<=>)[Ww]hat to do(?: about it)?(?=</a>)": "How to solve this problem",
    r"\b[Cc]arry out \d+ instructions\b|\b[Cc]arry out \{": "what was changed",
    r"\bNo event fits\b|\bNo question fits\b": "matches",
}
"""Patterns for what people read on pages, in the manual, in errors and in help, and what to write."""

BEGINNINGS = re.compile(r"(?:Of|What|Whoever|Beside|Who|As of|Whose)\b(?! is\b)")
"""Beginnings of docstrings that do not begin with a verb or a noun."""

_PATTERN = re.compile("|".join(f"(?:{pattern})" for pattern in INSTEAD_OF))
_ON_PAGES = re.compile("|".join(f"(?:{pattern})" for pattern in (*INSTEAD_OF, *INSTEAD_OF_ON_PAGES)))
_READ_BY_PEOPLE = ("README.md", "service/manual/*.md", "service/web/**/*.html")


class Phrase(Struct, frozen=True):
    place: str
    """File and line."""
    found: str
    text: str
    """The line that it is in."""


def phrases_in(root: Path) -> list[Phrase]:
    """Return the phrases of a tree, by file and line."""
    found: list[Phrase] = []
    for name in ("service", "eventstore"):
        for file in sorted((root / name).rglob("*.py")):
            found.extend(_in_module(file, str(file.relative_to(root))))
    for file in sorted((root / "scripts").glob("*.py")):
        found.extend(_in_module(file, str(file.relative_to(root)), only_docstrings=True))
    for pattern in _READ_BY_PEOPLE:
        for file in sorted(root.glob(pattern)):
            for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
                found.extend(_in_text(line, f"{file.relative_to(root)}:{number}", _ON_PAGES))
    return found


def _in_module(file: Path, name: str, *, only_docstrings: bool = False) -> Iterator[Phrase]:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    documented = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    log_events = set(_log_events(tree))
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str) or id(node) in log_events:
            continue
        is_docstring = id(node) in documented
        if is_docstring and (begun := BEGINNINGS.match(node.value)):
            yield Phrase(f"{name}:{node.lineno}", begun[0], node.value.partition("\n")[0])
        if is_docstring or (" " in node.value and not only_docstrings):
            for number, line in enumerate(node.value.splitlines()):
                pattern = _PATTERN if is_docstring else _ON_PAGES
                yield from _in_text(line, f"{name}:{node.lineno + number}", pattern)


def _log_events(tree: ast.Module) -> Iterator[int]:
    """Yield the names of log events: others search logs for them, so they stay."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(
                func=ast.Attribute(attr="debug" | "info" | "warning" | "error" | "exception"), args=[name, *_]
            ):
                yield id(name)
            case _:
                pass


def _in_text(line: str, place: str, pattern: re.Pattern[str]) -> Iterator[Phrase]:
    for found in pattern.finditer(line):
        yield Phrase(place, found[0], line.strip())
