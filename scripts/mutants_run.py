"""Make small bugs, one at a time, in a copy of the tree; do the tests notice?

A bug is one changed operator, condition, value or statement, in a function that a seed chooses; packages have turns by
their size. The tests of the bug's own package are run first, then the others, until one fails. What survives is printed
with its place: it is a missing test, dead code, or a change that makes no difference.
"""

import argparse
import ast
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct, to_builtins

ROOT = Path(__file__).parent.parent
OWN_SECONDS, SECONDS = 120, 1800
"""For the tests of a bug's own package, and for all; a bug that makes them wait for ever is noticed."""
FIRST = {
    "eventstore": ["tests/eventstore"],
    "service.adapters": ["tests/adapters", "tests/contracts"],
    "service.agent": ["tests/agent"],
    "service.assistant": ["tests/assistant", "tests/renderers"],
    "service.cli": ["tests/cli"],
    "service.integrity": ["tests/workers", "tests/cli/test_audit.py", "tests/cli/test_lost_log.py", "tests/cli"],
    "service.main": ["tests/main", "tests/end_to_end/test_operations.py", "tests/cli"],
    "service.markup": ["tests/markup", "tests/retrieval", "tests/agent"],
    "service.projections": ["tests/projections", "tests/queries"],
    "service.queries": ["tests/queries", "tests/projections"],
    "service.retrieval": ["tests/retrieval"],
    "service.runtime": ["tests/test_processes.py", "tests/test_memory.py", "tests/test_content_coding.py", "tests/cli"],
    "service.web": ["tests/web", "tests/end_to_end"],
    "service.wire": ["tests/wire"],
    "service.workers": ["tests/workers"],
}
"""By package; another one's are those of the folder of its name, if there is one."""
COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE, ast.LtE: ast.Gt,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip


class Mutant(Struct):
    """A small bug: one node of a file replaced. Lines count from 1, columns in bytes from 0."""

    package: str
    file: str
    line: int
    was: str
    becomes: str
    start: int
    """Where the node is in the file, in bytes."""
    end: int


def mutants_of(file: Path) -> list[Mutant]:
    """Return all the small bugs that this script knows to make in a file."""
    source = file.read_bytes()
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    name = file.relative_to(ROOT)
    package = name.parts[0] if name.parts[0] == "eventstore" else ".".join(name.with_suffix("").parts[:2])
    found: list[Mutant] = []
    for function in ast.walk(ast.parse(source)):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if len(function.body) == 1 and isinstance(function.body[0], ast.Expr):
            continue  # a Protocol's, which no one runs
        for node, becomes in _changes(function):
            start = starts[node.lineno - 1] + node.col_offset
            end = starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
            was = source[start:end].decode()
            found.append(Mutant(package, str(name), node.lineno, was, becomes, start, end))
    return found


def _changes(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    for node in ast.walk(function):
        match node:
            case ast.Compare(ops=[op]) if type(op) in COMPARED:
                other = ast.Compare(node.left, [COMPARED[type(op)]()], node.comparators)
                yield node, f"({ast.unparse(other)})"
            case ast.BoolOp(op=ast.And()):
                yield node, f"({ast.unparse(ast.BoolOp(ast.Or(), node.values))})"
            case ast.BoolOp(op=ast.Or()):
                yield node, f"({ast.unparse(ast.BoolOp(ast.And(), node.values))})"
            case ast.UnaryOp(op=ast.Not()):
                yield node, f"({ast.unparse(node.operand)})"
            case ast.Constant(value=bool() as value):
                yield node, str(not value)
            case ast.AugAssign(op=ast.Add()):
                yield node, ast.unparse(ast.AugAssign(node.target, ast.Sub(), node.value))
            case ast.Expr(value=ast.Call() | ast.Await()) if "log." not in ast.unparse(node):
                yield node, "pass"


def chosen(count: int, seed: int) -> list[Mutant]:
    """Return bugs of all packages, each package's share by its number of lines, in an order that a seed decides."""
    files = [file for name in ("service", "eventstore") for file in sorted((ROOT / name).rglob("*.py"))]
    source = random.Random(seed)
    by_package: dict[str, list[Mutant]] = {}
    for file in files:
        for mutant in mutants_of(file):
            by_package.setdefault(mutant.package, []).append(mutant)
    every = [mutant for found in by_package.values() for mutant in found]
    first = [source.choice(found) for _, found in sorted(by_package.items())]
    more = source.sample(every, max(0, count - len(first)))
    return (first + more)[:count]


class Copy:
    """A copy of the tree for one bug at a time."""

    def __init__(self, folder: Path, processes: int, *, own_only: bool) -> None:
        self.root, self._processes, self._own_only = folder / "tree", processes, own_only
        tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True)
        for name in tracked.stdout.decode().split("\0"):
            if name and (ROOT / name).is_file():
                (self.root / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, self.root / name)

    def is_noticed(self, mutant: Mutant) -> str:
        """Return the first test that fails with the bug, or "" when all pass."""
        file = self.root / mutant.file
        source = file.read_bytes()
        file.write_bytes(source[: mutant.start] + mutant.becomes.encode() + source[mutant.end :])
        try:
            first = [path for path in self._first(mutant.package) if (self.root / path).exists()]
            failed = self._failed(first, OWN_SECONDS) if first else ""
            if failed or self._own_only:
                return failed
            return self._failed(["tests", "--ignore=tests/binary"], SECONDS)
        finally:
            file.write_bytes(source)

    def _first(self, package: str) -> list[str]:
        return FIRST.get(package, [f"tests/{package.rpartition('.')[2]}"])

    def _failed(self, paths: list[str], seconds: float) -> str:
        command = [
            sys.executable, "-m", "pytest", "-q", "-x", "--no-header", "-p", "no:cacheprovider", "--tb=no",
            "--numprocesses", str(self._processes), "--dist", "worksteal", *paths,
        ]  # fmt: skip
        environment = {**os.environ, "PYTHONPATH": str(self.root), "PYTHONDONTWRITEBYTECODE": "1"}
        process = subprocess.Popen(
            command, cwd=self.root, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            start_new_session=True,
        )  # fmt: skip
        try:
            output, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # its workers, too, which hold the pipe
            process.communicate()
            return "time is up"
        if process.returncode == 0:
            return ""
        failures = [line for line in output.splitlines() if line.startswith(("FAILED", "ERROR"))]
        return failures[0].partition(" - ")[0] if failures else f"pytest ended with {process.returncode}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=40, help="how many bugs (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="which bugs (default: %(default)s)")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="of pytest (default: %(default)s)")
    parser.add_argument("--own", action="store_true", help="run the tests of the bug's own package only")
    parser.add_argument("--list", action="store_true", help="only name them")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    mutants, survived = chosen(options.count, options.seed), []
    if options.list:
        for mutant in mutants:
            print(f"{mutant.file}:{mutant.line}: {mutant.was} → {mutant.becomes}")
        return 0
    with tempfile.TemporaryDirectory(prefix="docsmith-mutants-") as folder:
        copy = Copy(Path(folder), options.processes, own_only=options.own)
        for number, mutant in enumerate(mutants, 1):
            by = copy.is_noticed(mutant)
            place = f"{mutant.file}:{mutant.line}: {mutant.was} → {mutant.becomes}"
            print(f"{number}. {'noticed by ' + by if by else 'SURVIVED'}: {place}", file=sys.stderr, flush=True)
            if not by:
                survived.append(mutant)
    if options.json:
        print(json.dumps({"count": len(mutants), "survived": to_builtins(survived)}, indent=2))
    else:
        print(f"{len(mutants) - len(survived)} of {len(mutants)} noticed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
