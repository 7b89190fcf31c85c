"""Answers, measured: the words that a model gets, the words that the builtin model says, and links that lead somewhere.

    scripts/bench answers --corpora FOLDER [--context] [--builtin] [--citations] [--json] [NAME …]
    scripts/bench answers --plain [FILE] [--misses] [--json]
    scripts/bench answers --corpora FOLDER --invented [FILE] [--misses] [--json]

FOLDER as for ``bench_search``; a NAME is a corpus; without any of the parts, all of them run.

- ``--context``: for each question of ``scripts/answers/questions.jsonl``, whether the words that answer it are in the
  first prompt of an answer, at each budget of ``--tokens``, and as it was before (``scripts/answers/before.py``). The
  service's own code runs over a real index; the model only records its first request. "planned" is with a planner that
  is always right and in time; the goals are for answers without one. With ``--misses`` the questions whose words were
  not there are printed.
- ``--builtin``: of 60 of the questions, the share for which the builtin model's reply has the answering words and does
  not say that the documentation lacks an answer (``scripts/answers/builtin.py``).
- ``--citations``: whether each citation leads to a page, an anchor and lines that exist
  (``scripts/answers/citations.py``).
- ``--plain``: what the builtin model makes of plain questions about small sites and the manual, alone and in one
  conversation (``scripts/answers/plain.py``); with a FILE, of those in it. It needs no corpora. With ``--misses`` what
  was not answered rightly is printed.

- ``--invented``: whether the builtin model says of names in questions about corpora that they are on no page.

Half of the questions have ``"held": true``: those are for judging. Tune by the others only; both are printed apart.
``--keep FOLDER`` keeps the indexes, so that the next run need not build them while the code that builds them stays as
it is.
"""

import argparse
import asyncio
import os
import sys
import tempfile
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from scripts.answers import builtin, citations, context, plain
from scripts.answers.questions import AskedQuestion, asked_questions
from scripts.answers.sites import indexes_of
from scripts.bench_search import corpora_in
from scripts.bench_table import report

PARTS = ("context", "builtin", "citations", "plain", "invented")

Rows = list[dict[str, Any]]


def main() -> None:
    arguments = argparse.ArgumentParser(description="Measure answers.")
    arguments.add_argument("--corpora", type=Path, default=os.environ.get("DOCSMITH_CORPORA"), help="folder of corpora")
    arguments.add_argument("--context", action="store_true", help="the words in the first prompt of an answer")
    arguments.add_argument("--builtin", action="store_true", help="the words in the builtin model's replies")
    arguments.add_argument("--citations", action="store_true", help="whether citations lead somewhere")
    arguments.add_argument(
        "--plain", type=Path, nargs="?", const=plain.QUESTIONS_FILE, metavar="FILE", help="questions about small sites"
    )
    arguments.add_argument(
        "--invented",
        type=Path,
        nargs="?",
        const=plain.INVENTED_FILE,
        metavar="FILE",
        help="questions with invented names",
    )
    arguments.add_argument("--tokens", default="12000,6000,3000", help="budgets of --context (default: %(default)s)")
    arguments.add_argument("--misses", action="store_true", help="print the questions for tuning that were missed")
    arguments.add_argument("--keep", type=Path, help="folder for indexes that later runs use again")
    arguments.add_argument("--answers", type=int, default=1000, help="answers of --citations (default: %(default)s)")
    arguments.add_argument("--json", action="store_true", help="one JSON document on standard output")
    arguments.add_argument("names", nargs="*", help="corpora; all by default")
    given = arguments.parse_args()
    parts = [part for part in PARTS if getattr(given, part)] or PARTS
    rows: Rows = []
    goals: Rows = []
    if "plain" in parts:
        some_rows, some_goals = asyncio.run(plain_measured(given.plain or plain.QUESTIONS_FILE, misses=given.misses))
        rows, goals = rows + some_rows, goals + some_goals
    if parts == ["plain"]:
        report("answers", rows, goals, as_json=given.json)
        return
    if given.corpora is None or not Path(given.corpora).is_dir():
        arguments.error("--corpora (or DOCSMITH_CORPORA) names no folder; see the top of this script")
    names = given.names or corpora_in(given.corpora)
    with nullcontext(given.keep) if given.keep else tempfile.TemporaryDirectory(prefix="docsmith-bench-") as folder:
        if "context" in parts or "builtin" in parts:
            budgets = [int(tokens) for tokens in given.tokens.split(",")]
            questions = [question for question in asked_questions() if question.corpus in names]
            if not questions:
                arguments.error(f"no question is about {', '.join(names)}")
            found = measured(given.corpora, questions, Path(folder), parts, budgets, misses=given.misses)
            for some_rows, some_goals in asyncio.run(found):
                rows, goals = rows + some_rows, goals + some_goals
        if "invented" in parts:
            asked = plain.plain_questions(given.invented or plain.INVENTED_FILE)
            asked = [one for one in asked if one.site in names]
            some_rows, some_goals = asyncio.run(
                invented_measured(given.corpora, asked, Path(folder), misses=given.misses)
            )
            rows, goals = rows + some_rows, goals + some_goals
    if "citations" in parts:
        some_rows, some_goals = citations.run(given.corpora, given.names, given.answers)
        rows, goals = rows + some_rows, goals + some_goals
    report("answers", rows, goals, as_json=given.json)


async def plain_measured(file: Path, *, misses: bool) -> tuple[Rows, Rows]:
    """Return rows and goals of the plain questions in a file."""
    questions = plain.plain_questions(file)
    with tempfile.TemporaryDirectory(prefix="docsmith-bench-") as folder:
        indexes = await plain.small_sites(dict.fromkeys(one.site for one in questions), Path(folder))
        try:
            rows, goals, replies = await plain.measured(indexes, questions)
        finally:
            await indexes.close()
    if misses:
        plain.print_faults(replies)
    return rows, goals


async def invented_measured(
    corpora: Path, questions: Sequence[plain.PlainQuestion], folder: Path, *, misses: bool
) -> tuple[Rows, Rows]:
    """Return rows and goals of questions with invented names about corpora."""
    indexes = await indexes_of(corpora, list(dict.fromkeys(one.site for one in questions)), folder)
    try:
        rows, goals, replies = await plain.invented_measured(indexes, questions)
    finally:
        await indexes.close()
    if misses:
        plain.print_faults(replies)
    return rows, goals


async def measured(
    corpora: Path,
    questions: Sequence[AskedQuestion],
    folder: Path,
    parts: Sequence[str],
    budgets: Sequence[int],
    *,
    misses: bool,
) -> list[tuple[Rows, Rows]]:
    """Return rows and goals of the parts that need indexes alone."""
    names = list(dict.fromkeys(question.corpus for question in questions))
    indexes = await indexes_of(corpora, names, folder)
    found = []
    try:
        if "context" in parts:
            rows, goals, outcomes = await context.measured(indexes, questions, budgets)
            found.append((rows, goals))
            if misses:
                context.print_misses(outcomes)
        if "builtin" in parts:
            found.append(await builtin.measured(indexes, questions))
    finally:
        await indexes.close()
    return found


if __name__ == "__main__":
    main()
