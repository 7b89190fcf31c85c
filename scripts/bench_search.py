"""Search, measured: how often the right page is found, how long a query takes, what an index costs.

    python scripts/bench_search.py --corpora FOLDER [--keep FOLDER] [--baseline FOLDER]
        [--embeddings URL] [--json] [NAME …]

FOLDER holds documentation as ``NAME.tar.xz`` (or unpacked, as ``NAME/``) and labelled questions as
``queries/NAME.jsonl``, one a line: ``{"query": …, "relevant": [path, …], "source": "…:path"}``. The pages that the
questions were taken from (``source``) are left out of the ranking, or they would win it. To these come questions of our
own and ones that a rule takes from the corpus itself (``search.question_sets``); figures are by kind. Rivals
(``search.rivals``) run over the same sections in the same run. ``--keep FOLDER`` writes the outcome of each question,
and ``--baseline FOLDER`` compares with what another tree has kept (``search.compare``).

Figures are page-level: hit@5 (a right page among the first five) and nDCG@10. Labels are positive only and incomplete,
so compare rows rather than trust them. Questions are in one of two halves by the hash of their words, each told apart:
tune on the first, and judge by the second. The weights of ``service.retrieval.search.ranking`` were chosen in sight of
all questions, ours and the derived ones too, so neither half was held back; only other corpora can tell how they do
elsewhere. Times are of a whole query, from the event loop and back, one at a time and with eight at once, which on a
machine of two cores wait for each other: the processor's time per query is reported beside them. In a large site
``CHANGED_PAGES`` are changed, and the time is taken until a query finds them.
"""

import argparse
import asyncio
import hashlib
import json
import math
import os
import random
import resource
import sqlite3
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from scripts.bench_table import report as tell
from scripts.search.compare import compared, keep, kept
from scripts.search.embeddings import embed_site, meaning_over
from scripts.search.question_sets import (
    at_pages,
    derived_questions,
    pages_showing,
    without_questions,
    written_questions,
)
from scripts.search.rivals import ranked_by_rivals, sections_of
from service.markup.pages import MARKDOWN_SUFFIXES
from service.retrieval.index.archive import Archive, blob_of
from service.retrieval.index.build import PAGES_FILE, build_index, renew_index
from service.retrieval.index.report import IndexReport
from service.retrieval.search.query import SiteIndexes
from service.runtime.processes import run_in_child

GOALS = {"kubernetes": (0.85, 0.7), "dbt": (0.7, 0.49), "mintlify": (0.94, 0.83), "streamlit": (0.37, 0.32)}
"""hit@5 and nDCG@10 that the weights gave when they were chosen, rounded down."""
P50_MS, P99_MS = 3.0, 8.0
"""The p50 and p99 of queries one at a time, in milliseconds."""
AT_ONCE_CPU_MS, AT_ONCE_P99 = 2.0, 12.0
"""The processor's time of each query when ``AT_ONCE`` wait, and their p99, times the p50 of one at a time."""
LARGE_PAGES = 10_000
BUILD_SECONDS, BUILD_MEGABYTES, SIZE_RATIO, DELAY_P99_MS = 45.0, 300, 1.6, 20.0
CHANGED_PAGES, RENEW_SECONDS = 20, 1.0
TIMED_QUERIES, AT_ONCE = 400, 8
MOST_RIVAL_PAGES = 2000
"""Larger sites are not given to the rivals: some take minutes."""
SWITCH_SECONDS = 0.0005
"""As the service sets it."""


def main() -> None:
    arguments = argparse.ArgumentParser(description="Measure search.")
    arguments.add_argument("--corpora", type=Path, default=os.environ.get("DOCSMITH_CORPORA"), help="folder of corpora")
    arguments.add_argument("--json", action="store_true", help="one JSON document on standard output")
    arguments.add_argument("--no-rivals", action="store_true", help="measure only Docsmith")
    arguments.add_argument("--no-times", action="store_true", help="measure only how often the right page is found")
    arguments.add_argument("--embeddings", metavar="URL", help="order by meaning, too: see scripts/embedding-server")
    arguments.add_argument("--keep", type=Path, help="folder for the outcome of each question")
    arguments.add_argument("--baseline", type=Path, help="folder that another run has kept, to compare with")
    arguments.add_argument("names", nargs="*", help="corpora; all by default")
    given = arguments.parse_args()
    if given.corpora is None or not given.corpora.is_dir():
        arguments.error("--corpora (or DOCSMITH_CORPORA) names no folder; see the top of this script")
    sys.setswitchinterval(SWITCH_SECONDS)
    names = given.names or corpora_in(given.corpora)
    with tempfile.TemporaryDirectory(prefix="docsmith-bench-") as scratch:
        measured = Measured(given.corpora, Path(scratch), given.embeddings)
        asyncio.run(measure(measured, names, with_rivals=not given.no_rivals, with_times=not given.no_times))
    rows = [*measured.rows, *means_of(measured.outcomes)]
    if given.baseline is not None:
        rows += compared({name: kept(given.baseline, name) for name in names}, measured.outcomes)
    for name, outcomes in measured.outcomes.items() if given.keep is not None else ():
        keep(given.keep, name, outcomes)
    tell("search", rows, measured.goals, as_json=given.json)


Rows = list[dict[str, Any]]


class Measured:
    """The figures of the corpora so far."""

    def __init__(self, corpora: Path, scratch: Path, embeddings: str | None = None) -> None:
        self.corpora, self.scratch = corpora, scratch
        self.meaning = meaning_over(embeddings, scratch / "index") if embeddings else None
        self.rows: Rows = []
        self.goals: Rows = []
        self.outcomes: dict[str, dict[str, dict[str, float]]] = {}
        """nDCG@10 by corpus, kind of question and question."""


async def measure(measured: Measured, names: Sequence[str], *, with_rivals: bool, with_times: bool) -> None:
    corpora, scratch, rows, goals = measured.corpora, measured.scratch, measured.rows, measured.goals
    asked = {name: questions(corpora, name) for name in names}
    everyone = [question["query"] for each in asked.values() for question in each]
    indexes = SiteIndexes(scratch / "index", meaning=measured.meaning)
    for name in names:
        archive = as_tar(corpora, name, scratch)
        built, cost = await built_in_child(indexes, archive, name)
        await indexes.use(name, "bench")
        if measured.meaning is not None:
            cost["embed_seconds"] = await embed_site(indexes, measured.meaning, name)
        asked[name] = at_pages(asked[name], pages_showing(indexes.path_of(name, "bench")))
        if asked[name]:
            rows += await judged(name, asked[name], indexes)
            hit, ndcg = GOALS.get(name, (0.0, 0.0))
            if hit:
                goals.append(at_least(f"{name} hit@5", hit, rows[-3]["hit5"]))
                goals.append(at_least(f"{name} nDCG@10", ndcg, rows[-3]["ndcg10"]))
            if with_rivals and built.pages <= MOST_RIVAL_PAGES:
                sections = sections_of(indexes.path_of(name, "bench"))
                for rival in ranked_by_rivals(sections, [question["query"] for question in asked[name]], scratch):
                    figures = {**score(asked[name], rival.pages), **quantiles(rival.milliseconds)}
                    rows.append({"corpus": name, "engine": rival.engine, **figures})
                    rows[-1]["build_seconds"] = round(rival.build_seconds, 2)
        measured.outcomes[name] = await judged_by_kind(indexes, name, archive, measured)
        times = await timed(indexes, name, everyone) if with_times else {}
        row = {"corpus": name, "engine": "docsmith", **cost, **times}
        rows.append(row)
        if with_times and built.pages >= LARGE_PAGES:
            row["renew_seconds"] = await renewed(indexes, archive, name)
            goals += goals_of_size(built.pages, row)
    await indexes.close()


def goals_of_size(pages: int, row: dict[str, Any]) -> Rows:
    at = f"at {pages:,} pages"
    times = round(row[f"p99_ms_x{AT_ONCE}"] / max(row["p50_ms"], 0.01), 1)
    return [
        at_most(f"p50 one at a time {at}, ms", P50_MS, row["p50_ms"]),
        at_most(f"p99 one at a time {at}, ms", P99_MS, row["p99_ms"]),
        at_most(f"processor's time with {AT_ONCE} at once {at}, ms", AT_ONCE_CPU_MS, row[f"cpu_ms_x{AT_ONCE}"]),
        at_most(f"p99 with {AT_ONCE} at once {at}, times p50 one at a time", AT_ONCE_P99, times),
        at_most(f"seconds to index {at}", BUILD_SECONDS, row["build_seconds"]),
        at_most(f"seconds to index {CHANGED_PAGES} changed pages {at}", RENEW_SECONDS, row["renew_seconds"]),
        at_most(f"megabytes to index {at}", BUILD_MEGABYTES, row["build_mb"]),
        at_most(f"size of the index, times the text, {at}", SIZE_RATIO, row["size_ratio"]),
        at_most(f"p99 of the event loop's delay while indexing {at}, ms", DELAY_P99_MS, row["delay_p99_ms"]),
    ]


def at_least(name: str, goal: float, measured: float) -> dict[str, Any]:
    return {"name": name, "goal": goal, "measured": measured, "met": measured >= goal}


def at_most(name: str, goal: float, measured: float) -> dict[str, Any]:
    return {"name": name, "goal": goal, "measured": measured, "met": measured <= goal}


def corpora_in(folder: Path) -> list[str]:
    found = {file.name.split(".")[0] for file in folder.iterdir() if file.is_dir() or file.name.endswith(".tar.xz")}
    return sorted(found - {"queries"})


def questions(corpora: Path, name: str) -> list[dict[str, Any]]:
    file = corpora / "queries" / f"{name}.jsonl"
    if not file.is_file():
        return []
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]


def as_tar(corpora: Path, name: str, scratch: Path) -> Path:
    """Uncompressed, with names from the corpus's folder."""
    target = scratch / f"{name}.tar"
    folder, packed = corpora / name, corpora / f"{name}.tar.xz"
    with tarfile.open(target, "w") as written:
        if folder.is_dir():
            for file in sorted(folder.rglob("*")):
                if file.is_file() and not file.is_symlink():
                    written.add(file, str(file.relative_to(folder)))
            return target
        with tarfile.open(packed, "r:xz") as read:
            for member in read:
                content = read.extractfile(member) if member.isfile() else None
                if content is not None:
                    entry = tarfile.TarInfo(member.name.removeprefix("./").removeprefix(f"{name}/"))
                    entry.size = member.size
                    written.addfile(entry, content)
    return target


async def built_in_child(indexes: SiteIndexes, archive: Path, name: str) -> tuple[IndexReport, dict[str, Any]]:
    """As the service builds it: in a process of its own, while this one answers."""
    target, delays = indexes.path_of(name, "bench"), []

    async def watch() -> None:
        while True:
            began = time.perf_counter()
            await asyncio.sleep(0.005)
            delays.append(1000 * (time.perf_counter() - began - 0.005))

    watching = asyncio.create_task(watch())
    report, megabytes = await run_in_child(_build, archive, target, timeout_seconds=1800, on_progress=lambda _: None)
    watching.cancel()
    await asyncio.wait([watching])
    with tarfile.open(archive) as read:
        text = sum(member.size for member in read if member.name.endswith(MARKDOWN_SUFFIXES))
    size = sum(file.stat().st_size for file in target.rglob("*") if file.is_file())
    return report, {
        "pages": report.pages, "sections": report.sections, "build_seconds": round(report.seconds, 2),
        "build_mb": megabytes,
        "index_mb": round(size / 1e6, 1), "size_ratio": round(size / text, 2),
        "delay_p99_ms": quantiles(delays)["p99_ms"],
    }  # fmt: skip


def _build(archive: Path, target: Path, report: Callable[[object], None]) -> tuple[IndexReport, int]:
    """With the most memory that it took, in MB."""
    built = build_index(archive, target, docs_folder="", commit="0" * 40, progress=lambda done, _all: report(done))
    return built, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


async def renewed(indexes: SiteIndexes, archive: Path, name: str) -> float:
    """Seconds from the changes' being known to an answer from the last of them."""
    with Archive(archive) as files, sqlite3.connect(indexes.path_of(name, "bench") / PAGES_FILE) as db:
        paths = [path for (path,) in db.execute("SELECT path FROM pages ORDER BY path")]
        picked = random.Random(3).sample(paths, CHANGED_PAGES)
        texts = {path: (files.read(path) or b"") + b"\n\n## Zylophant\n\nIt is new.\n" for path in picked}
    began = time.perf_counter()
    before, target = indexes.path_of(name, "bench"), indexes.path_of(name, "renewed")
    report = await run_in_child(_renew, before, target, texts, timeout_seconds=600, on_progress=lambda _: None)
    assert report is not None
    assert report.read == CHANGED_PAGES
    await indexes.use(name, "renewed")
    found = await indexes.search(name, "zylophant")
    assert {section.path for section in found.sections} <= set(picked)
    return round(time.perf_counter() - began, 3)


def _renew(before: Path, target: Path, texts: dict[str, bytes], report: Callable[[object], None]) -> IndexReport | None:
    return renew_index(
        before,
        target,
        lambda path, limit: texts[path][:limit] if path in texts else None,
        {path: blob_of(text) for path, text in texts.items()},
        docs_folder="",
        commit="1" * 40,
        progress=lambda done, _all: report(done),
    )


async def judged_by_kind(
    indexes: SiteIndexes, name: str, archive: Path, measured: Measured
) -> dict[str, dict[str, float]]:
    """Ask the written and derived questions, note the figures of each kind, and return each question's nDCG@10."""
    written = written_questions(measured.corpora, name)
    derived = derived_questions(indexes.path_of(name, "bench"))
    headings = [question for question in derived if question["kind"] == "heading"]
    others = [question for question in derived if question["kind"] != "heading"]
    outcomes: dict[str, dict[str, float]] = {}
    await _judge_kinds(indexes, name, [*written, *others], outcomes)
    if headings:
        blank = measured.scratch / f"{name}.blank.tar"
        without_questions(archive, blank, headings)
        site = f"{name}.blank"
        await run_in_child(_build, blank, indexes.path_of(site, "bench"), timeout_seconds=1800, on_progress=lambda _: 0)
        await indexes.use(site, "bench")
        await _judge_kinds(indexes, site, headings, outcomes)
    for kind, scores in outcomes.items():
        mean = round(sum(scores.values()) / len(scores), 3)
        measured.rows.append({"corpus": name, "engine": "docsmith", "kind": kind, "questions": len(scores)})
        measured.rows[-1]["ndcg10"] = mean
    return outcomes


async def _judge_kinds(
    indexes: SiteIndexes, site: str, asked: Sequence[dict[str, Any]], outcomes: dict[str, dict[str, float]]
) -> None:
    asked = at_pages(asked, pages_showing(indexes.path_of(site, "bench")))
    taken = [question for question in asked if "source" in question]
    for question in asked:
        pages = await found_pages(indexes, site, question["query"])
        others = [page for page in pages if page != question.get("leaves_out")]
        figures = score([question], [others], among=taken if "source" in question else [question])
        outcomes.setdefault(question["kind"], {})[question["query"]] = figures["ndcg10"]


async def found_pages(indexes: SiteIndexes, site: str, query: str) -> list[str]:
    """Return the pages of a result, best first."""
    showing = pages_showing(indexes.path_of(site, "bench"))
    found = await indexes.search(site, query, limit=100)
    return list(dict.fromkeys(showing.get(section.path, section.path) for section in found.sections))


def means_of(outcomes: dict[str, dict[str, dict[str, float]]]) -> Rows:
    """Return a row for each kind of question, and one for all, in which each corpus counts alike."""
    means: dict[str, list[float]] = {}
    counts: dict[str, int] = {}
    for kinds in outcomes.values():
        for kind, scores in kinds.items():
            for each in (kind, "all"):
                means.setdefault(each, []).append(sum(scores.values()) / len(scores))
                counts[each] = counts.get(each, 0) + len(scores)
    return [
        {"corpus": "mean", "engine": "docsmith", "kind": kind, "questions": counts[kind],
         "ndcg10": round(sum(values) / len(values), 3)}
        for kind, values in sorted(means.items())
    ]  # fmt: skip


async def judged(name: str, asked: Sequence[dict[str, Any]], indexes: SiteIndexes) -> Rows:
    ranked = [await found_pages(indexes, name, question["query"]) for question in asked]
    rows = [{"corpus": name, "engine": "docsmith", **score(asked, ranked)}]
    for which, half in enumerate(("first half", "second half")):
        members = [number for number, question in enumerate(asked) if half_of(question["query"]) == which]
        figures = score([asked[number] for number in members], [ranked[number] for number in members], among=asked)
        rows.append({"corpus": name, "engine": f"docsmith, {half}", **figures})
    return rows


def half_of(query: str) -> int:
    """0 or 1, the same on every machine."""
    return hashlib.sha256(query.encode()).digest()[0] & 1


def score(
    asked: Sequence[dict[str, Any]], ranked: Sequence[Sequence[str]], *, among: Sequence[dict[str, Any]] = ()
) -> dict[str, Any]:
    """``among``: all questions, when these are a part of them."""
    sources = {question.get("source", "").rpartition(":")[2].partition("#")[0] for question in among or asked}
    folders = tuple({f"{source.rpartition('/')[0]}/" for source in sources if "/" in source})
    hits, gain = 0, 0.0
    for question, pages in zip(asked, ranked, strict=True):
        right = set(question["relevant"])
        kept = [page for page in pages if page in right or (page not in sources and not page.startswith(folders))][:10]
        hits += any(page in right for page in kept[:5])
        ideal = sum(1 / math.log2(place + 2) for place in range(min(10, len(right))))
        gain += sum(1 / math.log2(place + 2) for place, page in enumerate(kept) if page in right) / ideal
    return {"questions": len(asked), "hit5": round(hits / len(asked), 3), "ndcg10": round(gain / len(asked), 3)}


async def timed(indexes: SiteIndexes, name: str, everyone: Sequence[str]) -> dict[str, Any]:
    """Ten questions, five that people asked, four made of this site's own titles, and a long one."""
    with sqlite3.connect(indexes.path_of(name, "bench") / PAGES_FILE) as db:
        titles = [title for (title,) in db.execute("SELECT title FROM pages ORDER BY id")]
    chance = random.Random(2)
    queries = [f"How do I use {chance.choice(titles)}?" for _ in range(TIMED_QUERIES)]
    if everyone:
        queries[::2] = chance.choices(everyone, k=len(queries[::2]))
    queries[5::10] = [" ".join(chance.choices([*titles, *everyone], k=20)) for _ in queries[5::10]]
    for query in queries[:10]:
        await indexes.search(name, query)  # the file's pages come into memory
    took: list[float] = []

    async def ask(waiting: list[str]) -> None:
        while waiting:
            query, began = waiting.pop(), time.perf_counter()
            await indexes.search(name, query)
            took.append(1000 * (time.perf_counter() - began))

    processor = time.process_time()
    await ask(list(queries))
    alone = {**quantiles(took), "cpu_ms": round(1000 * (time.process_time() - processor) / len(queries), 2)}
    took.clear()
    waiting, processor = list(queries), time.process_time()
    await asyncio.gather(*(ask(waiting) for _ in range(AT_ONCE)))
    cost = 1000 * (time.process_time() - processor) / len(queries)
    together = {**quantiles(took), "cpu_ms": round(cost, 2)}
    return {**alone, **{f"{key}_x{AT_ONCE}": value for key, value in together.items()}}


def quantiles(milliseconds: Sequence[float]) -> dict[str, float]:
    ordered = sorted(milliseconds) or [0.0]
    return {"p50_ms": round(ordered[len(ordered) // 2], 2), "p99_ms": round(ordered[int(0.99 * len(ordered))], 2)}


if __name__ == "__main__":
    main()
