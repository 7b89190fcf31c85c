"""The agent, measured: what a job costs besides its model, what its prompts hold, and what a model carries out.

    scripts/bench agent [--corpora FOLDER] [--json] [--part tasks|overhead|score] [--only WORDS]
    scripts/bench agent --corpora FOLDER --part score [--model ALIAS] [--config FILE]

FOLDER holds documentation as ``NAME.tar.xz`` (or unpacked, as ``NAME/``): ``mdn`` for the overhead; for the tasks and
instructions those that ``agent/cases.py`` and ``agent/more_cases.py`` name.

- ``tasks``: a scripted model plays a good transcript of each task over the real tools; the results are checked by rule,
  and the prompts for the facts that each write needs, their tokens, and what of them a provider's cache can keep.
  Without corpora, those over this repository's own sample site are played.
- ``overhead``: what a job costs besides its model, beside git's command line.
- ``score``, only on request: how many instructions a model carries out, by checks that no model judges. ``--model`` is
  an alias of the settings; without it the builtin model is asked, which knows a few forms of instructions only.
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
    parser.add_argument("--part", choices=("tasks", "overhead", "score"), help="only this part")
    parser.add_argument("--model", default="builtin", metavar="ALIAS", help="of the settings (default: builtin)")
    parser.add_argument("--config", type=Path, metavar="FILE", help="the settings file that says what the alias means")
    parser.add_argument("--large", default="mdn", metavar="NAME", help="the corpus of the overhead (default: mdn)")
    parser.add_argument("--jobs", type=int, default=5, help="measured for the overhead (default: 5)")
    parser.add_argument("--only", default="", metavar="WORDS", help="only the tasks with these words in their name")
    parser.add_argument("--show", type=Path, metavar="FOLDER", help="write the tasks' pull requests there, to be read")
    given = parser.parse_args()
    if given.show is not None:
        given.show.mkdir(parents=True, exist_ok=True)
    if given.corpora is None and given.part in ("overhead", "score"):
        parser.error(f"{given.part} needs --corpora (or DOCSMITH_CORPORA); see the top of this script")
    if given.corpora is not None and not given.corpora.is_dir():
        parser.error(f"--corpora (or DOCSMITH_CORPORA) is no folder: {given.corpora}")
    import structlog  # and the service below: child processes import this module again, and need none of it

    logging.disable(logging.CRITICAL)
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    rows, goals = [], []
    with tempfile.TemporaryDirectory(prefix="docsmith-bench-") as folder:
        scratch = Path(folder)
        if given.part in (None, "tasks"):
            from scripts.agent.transcripts import TASKS, sample_corpus, tasks

            played = sample_corpus(scratch)
            if given.corpora is not None:
                names = dict.fromkeys(case.corpus for case in TASKS if given.only in case.name)
                played |= {name: unpacked(given.corpora, name, scratch) for name in names if name not in played}
            found = asyncio.run(tasks(played, scratch, given.only, given.show))
            rows, goals = rows + found[0], goals + found[1]
        if given.corpora is not None and given.part in (None, "overhead"):
            from scripts.agent.overhead import overhead

            found = asyncio.run(overhead(unpacked(given.corpora, given.large, scratch), scratch, given.jobs))
            rows, goals = rows + found[0], goals + found[1]
        if given.part == "score":
            from scripts.agent.cases import CASES
            from scripts.agent.score import score

            corpora = {name: unpacked(given.corpora, name, scratch) for name in {case.corpus for case in CASES}}
            found = asyncio.run(score(corpora, scratch, given.model, given.config))
            rows, goals = rows + found[0], goals + found[1]
    report("agent", rows, goals, as_json=given.json)


if __name__ == "__main__":
    main()
