"""Builds the samples of ``scripts/generators`` with the real generators and compares Docsmith's reading with them.

The generators are installed, in the versions that their modules name, into a folder that is kept for the next time.
With --write, what they made is written down beside the samples, where quick tests read it.
"""

import argparse
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from scripts.oracle import docusaurus, gitbook, hugo, mkdocs, nextra, sphinx, starlight, vitepress
from scripts.oracle.compare import SAMPLES, BuiltSite, differences, read_sample, samples, write, written

Build = Callable[[Path, Path], BuiltSite]
"""A function of a sample and of a folder for the generator and its work, which it finds as it left it."""
GENERATORS: Mapping[str, Build] = {
    "docusaurus": docusaurus.build,
    "gitbook": gitbook.build,
    "hugo": hugo.build,
    "mkdocs": mkdocs.build,
    "nextra": nextra.build,
    "sphinx": sphinx.build,
    "starlight": starlight.build,
    "vitepress": vitepress.build,
}


def main() -> int:
    options = _options()
    wrong = 0
    for name in options.names or GENERATORS:
        for sample in samples(name):
            if options.samples and sample not in options.samples:
                continue
            work = options.work / name
            work.mkdir(parents=True, exist_ok=True)
            built = written(name, sample) if options.written else GENERATORS[name](SAMPLES / name / sample, work)
            if options.write:
                write(name, sample, built)
            found = list(differences(built, read_sample(name, sample, built.docs_folder)))
            print(f"{name} {sample}: {len(built.pages)} pages, {len(found)} differences")
            print("".join(f"  {line}\n" for line in found), end="", flush=True)
            wrong += len(found)
    return 1 if wrong else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/generator-oracle", description=__doc__)
    parser.add_argument(
        "names", nargs="*", choices=[*GENERATORS, []], help="generators; all of them when none is named"
    )
    parser.add_argument("--samples", nargs="+", default=[], help="only samples of these names")
    parser.add_argument("--work", type=Path, default=Path("build/generators"), help="folder of the generators")
    parser.add_argument("--write", action="store_true", help="write down what the generators made")
    parser.add_argument("--written", action="store_true", help="compare with what was written down, build nothing")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
