"""The agent, measured: what a job costs besides its model, and how many instructions a model carries out.

    python scripts/bench_agent.py --corpora FOLDER [--json] [--part overhead|score] [--model ALIAS] [--config FILE]

FOLDER holds documentation as ``NAME.tar.xz`` (or unpacked, as ``NAME/``): ``mdn`` for the overhead; ``mintlify``,
``streamlit``, ``kubernetes`` and ``dbt`` for the instructions of ``agent_cases.py``, each with checks that no model
judges. ``--model`` is an alias of the settings; without it the builtin model is asked, which knows a few forms of
instructions only, and whose score says how many of these are of such a form.
"""

import argparse
import asyncio
import logging
import os
import sys
import tarfile
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from scripts.bench_table import report


def unpacked(corpora: Path, name: str, scratch: Path) -> Path:
    """The corpus as a folder, which no one changes."""
    if (corpora / name).is_dir():
        return corpora / name
    with tarfile.open(corpora / f"{name}.tar.xz", "r:xz") as packed:
        packed.extractall(scratch / "corpora", filter="data")
    return scratch / "corpora" / name


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpora", type=Path, default=os.environ.get("DOCSMITH_CORPORA"), help="folder of corpora")
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output")
    parser.add_argument("--part", choices=("overhead", "score"), help="only one of the two")
    parser.add_argument("--model", default="builtin", metavar="ALIAS", help="of the settings (default: builtin)")
    parser.add_argument("--config", type=Path, metavar="FILE", help="the settings file that says what the alias means")
    parser.add_argument("--large", default="mdn", metavar="NAME", help="the corpus of the overhead (default: mdn)")
    parser.add_argument("--jobs", type=int, default=5, help="measured for the overhead (default: 5)")
    given = parser.parse_args()
    if given.corpora is None or not given.corpora.is_dir():
        parser.error("--corpora (or DOCSMITH_CORPORA) names no folder; see the top of this script")
    import structlog  # and the service below: child processes import this module again, and need none of it

    logging.disable(logging.CRITICAL)
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    rows, goals = [], []
    with tempfile.TemporaryDirectory(prefix="docsmith-bench-") as folder:
        scratch = Path(folder)
        if given.part != "score":
            from scripts.agent_overhead import overhead

            found = asyncio.run(overhead(unpacked(given.corpora, given.large, scratch), scratch, given.jobs))
            rows, goals = rows + found[0], goals + found[1]
        if given.part != "overhead":
            from scripts.agent_cases import CASES
            from scripts.agent_score import score

            corpora = {name: unpacked(given.corpora, name, scratch) for name in {case.corpus for case in CASES}}
            found = asyncio.run(score(corpora, scratch, given.model, given.config))
            rows, goals = rows + found[0], goals + found[1]
    report("agent", rows, goals, as_json=given.json)


if __name__ == "__main__":
    main()
