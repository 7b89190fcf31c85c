"""The packages of the single binary, as requirements with their versions and hashes: what its bill of materials lists.

scripts/build-binary calls it with the list of modules that were packed, and the pinned constraints. Then it calls it
with the bill (CycloneDX) and the manifest of the scripts of others, which it adds to the bill.
"""

import json
import re
import sys
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any


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


def with_vendored(bill: dict[str, Any], manifest: list[dict[str, str]]) -> dict[str, Any]:
    """Return the bill with a component for each package of the manifest, and its files within."""
    packages: dict[tuple[str, str], list[dict[str, str]]] = {}
    for one in manifest:
        packages.setdefault((one["name"], one["version"]), []).append(one)
    components = [_component(name, version, files) for (name, version), files in sorted(packages.items())]
    return {**bill, "components": [*bill.get("components", ()), *components]}


def _component(name: str, version: str, files: list[dict[str, str]]) -> dict[str, Any]:
    address = f"pkg:npm/{name.replace('@', '%40')}@{version}"
    licences = sorted({file["licence"] for file in files})
    sources = sorted({file["source"] for file in files})
    return {
        "type": "library",
        "bom-ref": address,
        "name": name,
        "version": version,
        "purl": address,
        "licenses": [{"license": {"id": licence}} for licence in licences],
        "externalReferences": [{"type": "distribution", "url": source} for source in sources],
        "components": [
            {
                "type": "file",
                "bom-ref": f"{address}#{file['file']}",
                "name": file["file"],
                "hashes": [{"alg": "SHA-256", "content": file["sha256"]}],
            }
            for file in files
        ],
    }


if __name__ == "__main__":
    first, second = (Path(argument).read_text(encoding="utf-8") for argument in sys.argv[1:])
    if first.lstrip().startswith("{"):
        whole = with_vendored(json.loads(first), json.loads(second))
        Path(sys.argv[1]).write_text(json.dumps(whole, indent=2) + "\n", encoding="utf-8")
    else:
        sys.stdout.write(requirements(set(first.split()), second))
