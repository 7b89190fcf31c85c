"""Markdown has one reader: no other package looks for fences or front matter by expressions of its own."""

import ast
from collections.abc import Iterator
from pathlib import Path

import service

ROOT = Path(service.__file__).parent
SIGNS = ("```", "~~~", "`{3", "~{3", "(---", "(?:---")
"""What an expression has in it that finds a fence, or the marks around front matter."""
CALLS = frozenset({"compile", "match", "search", "fullmatch", "sub", "split", "finditer", "findall"}) | frozenset(
    {"startswith", "endswith", "removeprefix", "removesuffix", "find", "index", "count", "partition", "lstrip"}
)


def signs_in(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        searched: list[ast.AST] = []
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CALLS:
            searched = [*node.args, node.func.value]
        elif isinstance(node, ast.Compare):
            searched = [node.left, *node.comparators]
        for part in searched:
            for each in ast.walk(part):
                if isinstance(each, ast.Constant) and isinstance(each.value, str):
                    yield from (
                        f"{file.relative_to(ROOT)}:{node.lineno} {sign}" for sign in SIGNS if sign in each.value
                    )


def test_fences_are_found_in_one_package():
    files = [file for file in ROOT.rglob("*.py") if file.relative_to(ROOT).parts[0] != "markup"]
    assert len(files) > 100
    assert [sign for file in files for sign in signs_in(file)] == []


def test_search_for_fences_finds_them():
    assert list(signs_in(ROOT / "markup" / "blocks.py"))
