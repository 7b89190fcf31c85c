"""Count what the house rules count, of this tree or another one: ``scripts/survey --root ../before``.

Branches of a function are its ``if``, ``for``, ``while``, ``except``, ``case`` and conditional expressions, conditions
of comprehensions, and each further operand of ``and`` and ``or``. An import cycle is a set of modules that import each
other by statements that run when they are imported. Phrases are those of scripts/phrases.py, in docstrings, errors,
the command line's help, and what people read.
"""

import argparse
import ast
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

from scripts.phrases import Phrase, phrases_in

PACKAGES = ("service", "eventstore")
MAX_LINES = 500
MAX_BRANCHES = 15
FENCE = ("`{3", "```", "~{3", "~~~")
"""Parts of a text by which code looks for a fence."""


class Module:
    def __init__(self, root: Path, file: Path) -> None:
        self.file = file.relative_to(root)
        self.name = ".".join(self.file.with_suffix("").parts).removesuffix(".__init__")
        self.text = file.read_text(encoding="utf-8")
        self.tree = ast.parse(self.text)
        parts = self.name.split(".")
        self.package = parts[0] if parts[0] == "eventstore" else ".".join(parts[:2])


def modules(root: Path) -> list[Module]:
    return [Module(root, file) for name in PACKAGES for file in sorted((root / name).rglob("*.py"))]


def lines_by_package(found: list[Module]) -> Counter[str]:
    lines: Counter[str] = Counter()
    for module in found:
        lines[module.package] += module.text.count("\n")
    return lines


def long_modules(found: list[Module]) -> dict[str, int]:
    counted = {str(module.file): module.text.count("\n") for module in found}
    return {name: lines for name, lines in counted.items() if lines > MAX_LINES}


def functions(module: Module) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{module.file}:{node.lineno} {node.name}", node


def branches(function: ast.AST) -> int:
    """Count the branches of a function, those of functions within it too."""
    count = 0
    for node in ast.walk(function):
        if isinstance(
            node, ast.If | ast.For | ast.AsyncFor | ast.While | ast.ExceptHandler | ast.IfExp | ast.match_case
        ):
            count += 1
        elif isinstance(node, ast.BoolOp):
            count += len(node.values) - 1
        elif isinstance(node, ast.comprehension):
            count += len(node.ifs)
    return count


def branching(found: list[Module]) -> dict[str, int]:
    counted = {name: branches(node) for module in found for name, node in functions(module)}
    return {name: count for name, count in counted.items() if count > MAX_BRANCHES}


def function_lengths(found: list[Module]) -> list[int]:
    return sorted((node.end_lineno or 0) - node.lineno + 1 for module in found for _, node in functions(module))


def broad_excepts(found: list[Module]) -> list[str]:
    """Return the places of clauses that catch everything and raise nothing: what they catch goes no further."""
    return [
        f"{module.file}:{node.lineno}"
        for module in found
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ExceptHandler)
        and (node.type is None or (isinstance(node.type, ast.Name) and node.type.id in ("Exception", "BaseException")))
        and not any(isinstance(inner, ast.Raise) for inner in ast.walk(node))
    ]


def imports(found: list[Module]) -> dict[str, set[str]]:
    """Return, by module, the modules of ours that it imports while it is imported itself."""
    names = {module.name for module in found}
    graph: dict[str, set[str]] = {}
    for module in found:
        graph[module.name] = set()
        for node in _run_at_import(module.tree):
            if isinstance(node, ast.Import):
                graph[module.name] |= {alias.name for alias in node.names} & names
            elif isinstance(node, ast.ImportFrom) and node.module:
                inner = {f"{node.module}.{alias.name}" for alias in node.names} & names
                whole = len(inner) < len(node.names) and node.module in names
                graph[module.name] |= inner | ({node.module} if whole else set())
        graph[module.name].discard(module.name)
    return graph


def _run_at_import(tree: ast.AST) -> Iterator[ast.AST]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            continue
        yield node
        yield from _run_at_import(node)


def cycles(graph: Mapping[str, set[str]]) -> list[list[str]]:
    """Return the sets of modules that import each other (Tarjan, 1972)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for other in graph[name]:
            if other not in index:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], index[other])
        if low[name] == index[name]:
            together = stack[stack.index(name) :]
            del stack[stack.index(name) :]
            if len(together) > 1:
                found.append(sorted(together))

    for name in graph:
        if name not in index:
            visit(name)
    return found


def fence_detectors(found: list[Module]) -> list[str]:
    """Return the modules with a text that looks for a fence, docstrings aside."""
    return sorted({str(module.file) for module in found for text in _texts(module.tree) if _looks_for_fence(text)})


def _looks_for_fence(text: str) -> bool:
    return any(part in text for part in FENCE) and "\n" not in text.strip("\n")


def _texts(tree: ast.AST) -> Iterator[str]:
    documented = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documented:
            yield node.value


def largest_folder(found: list[Module]) -> tuple[str, int]:
    files = Counter(str(module.file.parent) for module in found if module.file.name != "__init__.py")
    return files.most_common(1)[0]


def survey(root: Path) -> tuple[dict[str, object], dict[str, list[str]]]:
    """Return figures, and what some of them count."""
    found = modules(root)
    lengths, graph = function_lengths(found), imports(found)
    wide = [len(line) for module in found for line in module.text.splitlines() if line.strip()]
    folder, files = largest_folder(found)
    phrases: list[Phrase] = phrases_in(root)
    rings, long, many = cycles(graph), long_modules(found), branching(found)
    figures: dict[str, object] = {
        "lines": dict(sorted(lines_by_package(found).items())),
        "lines in all": sum(lines_by_package(found).values()),
        f"modules over {MAX_LINES} lines": len(long),
        "functions": len(lengths),
        "lines of a function, median and p95": [lengths[len(lengths) // 2], lengths[len(lengths) * 95 // 100]],
        "characters of a line, mean": round(sum(wide) / len(wide), 1),
        f"functions over {MAX_BRANCHES} branches": len(many),
        "broad excepts": len(broad_excepts(found)),
        "import cycles": len(rings),
        "fence detectors": len(fence_detectors(found)),
        "files in the largest folder": f"{files} ({folder})",
        "phrases": len(phrases),
    }
    listed: dict[str, list[str]] = defaultdict(list)
    listed["long modules"] = [f"{name} {lines}" for name, lines in long.items()]
    listed["branching"] = [f"{name} {count}" for name, count in sorted(many.items(), key=lambda item: -item[1])]
    listed["broad excepts"] = broad_excepts(found)
    listed["cycles"] = [" ".join(ring) for ring in rings]
    listed["fences"] = fence_detectors(found)
    listed["phrases"] = [f"{phrase.place}: {phrase.found!r} in {phrase.text!r}" for phrase in phrases]
    return figures, listed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, default=Path(), help="the tree to look at (default: this one)")
    parser.add_argument(
        "--list", action="append", default=[], metavar="WHAT", help="long modules, branching, cycles, …"
    )
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    figures, listed = survey(options.root.resolve())
    for what in options.list:
        print("\n".join(listed[what]))
    if not options.list:
        print(json.dumps(figures, indent=2) if options.json else "\n".join(f"{k}: {v}" for k, v in figures.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
