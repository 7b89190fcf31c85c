"""Search in many languages, measured on documentation that was really translated.

    python scripts/bench_languages.py --corpora FOLDER [--json] [NAME …]

FOLDER holds documentation with a folder for each language, ``NAME/docs/<language>/docs`` (FastAPI's, by default). The
questions are made by a rule from the headings of the translated pages (``search.language_questions``). They are asked
of

- the site of that language alone,
- one site of all languages with a folder for each, without a word on the reader,
- the same site with the language as the filter, as a widget sends it.

English questions from the headings of the same sections are asked beside them. Figures: the right page is among the
first five (``recall5``), or the first (``first``), and the part of the first five pages that are in the language of the
question (``own``).
Goals: each language has at least ``RECALL`` and ``FIRST`` of the English figures. What the analysis of words costs a
site in one language is compared between two versions of this program by hand: see ``bench search``.
"""

import argparse
import asyncio
import io
import os
import sys
import tarfile
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from scripts.bench_search import at_least
from scripts.bench_table import report as tell
from scripts.search.language_questions import ENGLISH, LanguageQuestion, questions_by_language
from service.ports.search_index import NO_FILTER, SearchFilter
from service.retrieval.index.build import build_index
from service.retrieval.search.query import SiteIndexes

RECALL, FIRST = 0.97, 0.95
"""The least that a language has of the English figures."""
QUESTIONS = 30
PAGES_SHOWN = 5

Rows = list[dict[str, Any]]


def main() -> None:
    arguments = argparse.ArgumentParser(description="Measure search in many languages.")
    arguments.add_argument("--corpora", type=Path, default=os.environ.get("DOCSMITH_CORPORA"), help="folder of corpora")
    arguments.add_argument("--json", action="store_true", help="one JSON document on standard output")
    arguments.add_argument("--questions", type=int, default=QUESTIONS, help="how many in each language")
    arguments.add_argument("--misses", action="store_true", help="print the questions whose page is not the first")
    arguments.add_argument("names", nargs="*", default=["fastapi"], help="corpora with a folder for each language")
    given = arguments.parse_args()
    if given.corpora is None or not given.corpora.is_dir():
        arguments.error("--corpora (or DOCSMITH_CORPORA) names no folder; see the top of this script")
    rows: Rows = []
    goals: Rows = []
    for name in given.names:
        with tempfile.TemporaryDirectory(prefix="docsmith-bench-") as scratch:
            measuring = _Measuring(given.corpora / name, Path(scratch), given.questions, with_misses=given.misses)
            found, reached = asyncio.run(measuring.run())
        rows += [{"corpus": name, **row} for row in found]
        goals += [{**goal, "name": f"{name} {goal['name']}"} for goal in reached]
    tell("languages", rows, goals, as_json=given.json)


class _Measuring:
    """The sites of one corpus, and what is found on them."""

    def __init__(self, corpus: Path, scratch: Path, count: int, *, with_misses: bool) -> None:
        docs = corpus / "docs"
        self._folders = {one.name: one / "docs" for one in sorted(docs.iterdir()) if (one / "docs").is_dir()}
        self._shown = [(f"docs_src/{p.relative_to(corpus / 'docs_src')}", p) for p in (corpus / "docs_src").rglob("*")]
        self._asked = questions_by_language(self._folders, count)
        self._scratch, self._with_misses = scratch, with_misses
        self._index = SiteIndexes(scratch / "index")

    async def run(self) -> tuple[Rows, Rows]:
        everything = "all.example"
        await self._build(everything, self._folders)
        rows: Rows = []
        for language in sorted(self._folders, key=lambda one: (one != ENGLISH, one)):
            alone = f"{language}.example"
            await self._build(alone, {language: self._folders[language]})
            filtered = SearchFilter(language=language)
            found = [
                ("alone", await self._answers(alone, language)),
                ("all", await self._answers(everything, language)),
                ("all, filter", await self._answers(everything, language, filtered)),
            ]
            rows += [{"language": language, "site": site, **self._figures(language, pages)} for site, pages in found]
            for site, pages in found if self._with_misses else ():
                self._print_misses(language, site, pages)
        await self._index.close()
        return rows, _goals(rows)

    async def _build(self, domain: str, folders: Mapping[str, Path]) -> None:
        archive = self._scratch / f"{domain}.tar"
        files = [
            (f"docs/{language}/{file.relative_to(folder)}", file)
            for language, folder in folders.items()
            for file in sorted(folder.rglob("*"))
        ]
        _write(archive, [*files, *self._shown])
        target = self._index.path_of(domain, "bench")
        await asyncio.to_thread(
            build_index, archive, target, docs_folder="", commit="0" * 40, progress=lambda _done, _all: None
        )
        await self._index.use(domain, "bench")
        archive.unlink()

    async def _answers(self, domain: str, language: str, filter_: SearchFilter = NO_FILTER) -> list[list[str]]:
        """Return the first pages for each question of a language."""
        answers = []
        for question in self._asked[language]:
            found = await self._index.search(domain, question.query, limit=4 * PAGES_SHOWN, filter=filter_)
            paths = dict.fromkeys(section.path.removeprefix("docs/") for section in found.sections)
            answers.append(list(paths)[:PAGES_SHOWN])
        return answers

    def _figures(self, language: str, answers: Sequence[Sequence[str]]) -> dict[str, Any]:
        right = [f"{language}/{question.page}" for question in self._asked[language]]
        pairs = list(zip(right, answers, strict=True))
        shown = [page for pages in answers for page in pages]
        return {
            "questions": len(pairs),
            "recall5": round(sum(page in pages for page, pages in pairs) / len(pairs), 3),
            "first": round(sum(pages[:1] == [page] for page, pages in pairs) / len(pairs), 3),
            "own": round(sum(page.startswith(f"{language}/") for page in shown) / max(1, len(shown)), 3),
        }

    def _print_misses(self, language: str, site: str, answers: Sequence[Sequence[str]]) -> None:
        for question, pages in zip(self._asked[language], answers, strict=True):
            if pages[:1] != [f"{language}/{question.page}"]:
                print(f"{language}, {site}: {_missed(question, pages)}", file=sys.stderr)


def _missed(question: LanguageQuestion, pages: Sequence[str]) -> str:
    return f"{question.query!r} wants {question.page}, has {', '.join(pages) or 'nothing'}"


def _goals(rows: Sequence[dict[str, Any]]) -> Rows:
    by_site = {(row["language"], row["site"]): row for row in rows}
    goals = []
    for (language, site), row in by_site.items():
        english = by_site[ENGLISH, site]
        if language == ENGLISH:
            if site != "alone":
                goals.append(at_least(f"{language}, {site}: English among the first five", 1.0, row["own"]))
            continue
        for figure, part in (("recall5", RECALL), ("first", FIRST)):
            ratio = round(row[figure] / max(english[figure], 0.001), 3)
            goals.append(at_least(f"{language}, {site}: {figure}, of the English one", part, ratio))
    return goals


def _write(archive: Path, files: Iterable[tuple[str, Path]]) -> None:
    with tarfile.open(archive, "w") as written:
        for name, file in files:
            if file.is_file() and not file.is_symlink():
                data = file.read_bytes()
                entry = tarfile.TarInfo(name)
                entry.size = len(data)
                written.addfile(entry, io.BytesIO(data))
        config = b"site_name: Bench\n"
        entry = tarfile.TarInfo("mkdocs.yml")
        entry.size = len(config)
        written.addfile(entry, io.BytesIO(config))


if __name__ == "__main__":
    main()
