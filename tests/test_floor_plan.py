"""Imports point down the floor plan (service/manual/develop.md, "Floor plan")."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

LOW = {"service.domain", "service.runtime"}
LOG = {"service.streams", "service.ports", "eventstore"}
ACCESS = {"service.integrity", "service.commands", "service.queries", "service.views"}
"""The one way to write, the one way to read, and the shapes that are read: above them, projections are not known."""
MAY_IMPORT: dict[str, set[str]] = {
    "eventstore": set(),
    "service.domain": set(),
    "service.sdk": set(),
    "service.runtime": {"service.domain"},
    "service.markup": LOW,
    "service.ports": {"service.domain"},
    "service.wire": {"service.domain"},
    "service.streams": {"service.domain", "eventstore"},
    "service.projections": {"service.streams", "service.domain", "eventstore"},
    "service.integrity": {*LOW, *LOG},
    "service.views": {"service.domain", "service.ports"},
    "service.queries": {*LOW, *LOG, "service.projections", "service.views"},
    "service.commands": {*LOW, *LOG, "service.queries", "service.views"},
    "service.retrieval": {*LOW, "service.markup", "service.ports"},
    "service.sentences": {"service.domain", "service.markup"},
    "service.agent": {*LOW, "service.retrieval", "service.sentences", "service.markup", "service.ports"},
    "service.assistant": {*LOW, "service.retrieval", "service.sentences", "service.markup", "service.ports"},
    "service.adapters": {*LOW, "service.markup", "service.ports"},
    "service.adapters.postgres": {*LOW, "service.ports", "eventstore"},
    "service.workers": {
        *LOW, *LOG, *ACCESS, "service.agent", "service.assistant", "service.retrieval", "service.markup",
    },
    "service.web": {*LOW, *LOG, *ACCESS, "service.workers", "service.retrieval", "service.markup", "service.wire"},
    "service.cli": {
        *LOW, *LOG, *ACCESS, "service.workers", "service.agent", "service.assistant", "service.retrieval",
        "service.markup", "service.wire",
    },
}  # fmt: skip
ROOTS = {"service.main", "service.__main__", "service"}
"""The composition root may import everything."""


def package_of(module: str) -> str:
    parts = module.split(".")
    if parts[:3] == ["service", "adapters", "postgres"]:
        return "service.adapters.postgres"  # its tables are beside those of the event store, by the same functions
    return parts[0] if parts[0] == "eventstore" else ".".join(parts[:2])


def is_module(name: str) -> bool:
    path = ROOT.joinpath(*name.split("."))
    return name.startswith(("service.", "eventstore.")) and (path.is_dir() or path.with_suffix(".py").is_file())


def imports_of(file: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative import"
            module = node.module or ""
            names = {alias.name for alias in node.names} - {"__version__"}
            found.update({f"{module}.{name}" for name in names} if module == "service" else {module})
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and is_module(node.value):
            found.add(node.value)  # a module named in a string is imported later
    return {package_of(module) for module in found if module.split(".")[0] in ("service", "eventstore")}


FILES = sorted([*ROOT.glob("service/**/*.py"), *ROOT.glob("eventstore/**/*.py")])


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_imports_point_down(file: Path) -> None:
    module = ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    package = package_of(module)
    if package in ROOTS:
        return
    assert package in MAY_IMPORT, f"{package} has no place in the floor plan"
    assert imports_of(file) - {package} <= MAY_IMPORT[package]


def test_the_plan_has_no_cycles() -> None:
    done: set[str] = set()
    while left := MAY_IMPORT.keys() - done:
        free = {package for package in left if MAY_IMPORT[package] <= done}
        assert free, f"a cycle among {sorted(left)}"
        done |= free


def test_litellm_is_not_imported_with_our_modules() -> None:
    """Its import takes seconds and 165 MB: only a model that needs it may bring it in."""
    for file in FILES:
        tree = ast.parse(file.read_text(encoding="utf-8"))
        for node in tree.body:
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = [alias.name for alias in node.names] + [getattr(node, "module", None) or ""]
                assert not any(name.split(".")[0] == "litellm" for name in names), file


def test_the_manual_lists_each_package() -> None:
    section = (
        (ROOT / "service" / "manual" / "develop.md").read_text("utf-8").split("## Floor plan")[1].split("\n## ")[0]
    )
    listed = {line.split("`")[1] for line in section.splitlines() if line.startswith("| `")}
    assert listed == MAY_IMPORT.keys() | {"service.main"}
