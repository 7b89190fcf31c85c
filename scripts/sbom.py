"""The packages of the single binary, as requirements with their versions and hashes: what its bill of materials lists.

scripts/build-binary calls it with the list of modules that were packed, and the pinned constraints.
"""

import re
import sys
from importlib.metadata import packages_distributions
from pathlib import Path


def pinned(constraints: str) -> dict[str, str]:
    """Each package's entry of a constraints file, by its normalized name."""
    entries = re.split(r"(?m)^(?=[A-Za-z0-9])", constraints)
    return {normalized(entry.partition("==")[0]): entry for entry in entries if "==" in entry}


def normalized(name: str) -> str:
    """As PEP 503 says."""
    return re.sub(r"[-_.]+", "-", name.split("[")[0].strip()).lower()


def requirements(modules: set[str], constraints: str) -> str:
    """The entries of all packages that any of the modules belongs to; our own is the subject of the bill, not in it."""
    entries, distributions = pinned(constraints), packages_distributions()
    names = {normalized(name) for module in modules for name in distributions.get(module, ())} - {"docsmith"}
    return "".join(entries[name] for name in sorted(names & entries.keys()))


if __name__ == "__main__":
    modules, constraints = (Path(argument).read_text(encoding="utf-8") for argument in sys.argv[1:])
    sys.stdout.write(requirements(set(modules.split()), constraints))
