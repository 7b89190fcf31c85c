"""Search, measured: how often the right page is found, and how long a query takes.

    python scripts/bench_search.py --corpora FOLDER [--json] [NAME …]

FOLDER holds documentation as ``NAME.tar.xz`` (or unpacked, as ``NAME/``) and labelled questions as
``queries/NAME.jsonl``, one a line: ``{"query": …, "relevant": [path, …], "source": "…:path"}``. The pages that the
questions were taken from (``source``) are left out of the ranking, or they would win it. Rivals run over the same
sections: SQLite's full text as it is usually written, one table of title, headings and body, with OR and with AND.

Figures are page-level: hit@5 (a right page among the first five) and nDCG@10. Labels are positive only and incomplete,
so compare rows rather than trust them. The weights of ``service.retrieval.query`` were chosen in sight of the questions
on kubernetes, dbt and mintlify; only other corpora can tell how they do elsewhere.
"""

import argparse
import asyncio
import json
import math
import os
import random
import re
import sqlite3
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from service.retrieval.index import IndexReport, build_index
from service.retrieval.query import SiteIndexes

GOALS = {"kubernetes": (0.82, 0.683), "dbt": (0.69, 0.463), "mintlify": (0.95, 0.817)}
"""hit@5 and nDCG@10 that this recipe gave when it was chosen."""
LARGE_MS, SMALL_MS, SMALL_PAGES = 50.0, 30.0, 1000
BUILD_SECONDS = 60.0
TIMED_QUERIES = 200

Rank = Callable[[str], Sequence[str]]


def main() -> None:
    arguments = argparse.ArgumentParser(description="Measure search.")
    arguments.add_argument("--corpora", type=Path, default=os.environ.get("DOCSMITH_CORPORA"), help="folder of corpora")
    arguments.add_argument("--json", action="store_true", help="one JSON document on standard output")
    arguments.add_argument("names", nargs="*", help="corpora; all by default")
    given = arguments.parse_args()
    if given.corpora is None or not given.corpora.is_dir():
        arguments.error("--corpora (or DOCSMITH_CORPORA) names no folder; see the top of this script")
    with tempfile.TemporaryDirectory(prefix="docsmith-bench-") as scratch:
        report = asyncio.run(measure(given.corpora, given.names or corpora_in(given.corpora), Path(scratch)))
    if given.json:
        print(json.dumps(report))
    else:
        show(report)


async def measure(corpora: Path, names: Sequence[str], scratch: Path) -> dict[str, Any]:
    rows: list[dict[str, Any]] = []
    goals: list[dict[str, Any]] = []
    asked = {name: questions(corpora, name) for name in names}
    everyone = [question["query"] for each in asked.values() for question in each]
    index = SiteIndexes(scratch / "index")
    for name in names:
        archive = as_tar(corpora, name, scratch)
        report = build(index, archive, name)
        await index.use(name, "bench")
        if asked[name]:
            rows += [await judged(name, report, asked[name], index), *rivals(name, index, asked[name])]
            hit, ndcg = GOALS.get(name, (0.0, 0.0))
            if hit:
                goals += [
                    at_least(f"{name} hit@5", hit, rows[-3]["hit5"]),
                    at_least(f"{name} nDCG@10", ndcg, rows[-3]["ndcg10"]),
                ]
        row = await timed(index, name, report, everyone)
        rows.append(row)
        if report.pages > 10 * SMALL_PAGES:
            goals.append(at_most(f"p50 at {report.pages} pages, ms", LARGE_MS, row["p50_ms"]))
            goals.append(at_most(f"seconds to index {report.pages} pages", BUILD_SECONDS, report.seconds))
            part = build(index, subset(archive, scratch / "subset.tar", SMALL_PAGES), f"{name}-part")
            await index.use(f"{name}-part", "bench")
            row = await timed(index, f"{name}-part", part, everyone)
            rows.append(row)
            goals.append(at_most(f"p50 at {part.pages} pages, ms", SMALL_MS, row["p50_ms"]))
    await index.close()
    return {"bench": "search", "rows": rows, "goals": goals}


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


def subset(archive: Path, target: Path, count: int) -> Path:
    with tarfile.open(archive) as read, tarfile.open(target, "w") as written:
        members = [member for member in read.getmembers() if member.name.endswith((".md", ".mdx"))]
        for member in random.Random(1).sample(members, min(count, len(members))):
            written.addfile(member, read.extractfile(member))
    return target


def build(index: SiteIndexes, archive: Path, name: str) -> IndexReport:
    file = index.path_of(name, "bench")
    return build_index(archive, file, docs_folder="", commit="0" * 40, progress=lambda _done, _all: None)


async def judged(name: str, report: IndexReport, asked: Sequence[dict[str, Any]], index: SiteIndexes) -> dict[str, Any]:
    async def pages(query: str) -> list[str]:
        found = await index.search(name, query, limit=100)
        return list(dict.fromkeys(section.path for section in found.sections))

    ranked = [await pages(question["query"]) for question in asked]
    return {"corpus": name, "engine": "docsmith", "pages": report.pages, **score(asked, ranked)}


def rivals(name: str, index: SiteIndexes, asked: Sequence[dict[str, Any]]) -> Iterable[dict[str, Any]]:
    """FTS5 as usually written."""
    db = sqlite3.connect(":memory:")
    db.execute("ATTACH ? AS made", (str(index.path_of(name, "bench")),))
    db.execute("CREATE VIRTUAL TABLE usual USING fts5(path UNINDEXED, title, heading, body)")
    db.execute(
        "INSERT INTO usual SELECT pages.path, pages.title, sections.heading, sections.text FROM made.sections"
        " JOIN made.pages ON pages.id = sections.id >> 16"
    )
    for engine, joint in (("FTS5, one table, OR", " OR "), ("FTS5, one table, AND", " ")):
        ranked = []
        for question in asked:
            words = joint.join(f'"{word}"' for word in re.findall(r"\w+", question["query"]))
            found = db.execute("SELECT path FROM usual WHERE usual MATCH ? ORDER BY rank LIMIT 300", (words,))
            ranked.append(list(dict.fromkeys(path for (path,) in found)))
        yield {"corpus": name, "engine": engine, **score(asked, ranked)}
    db.close()


def score(asked: Sequence[dict[str, Any]], ranked: Sequence[Sequence[str]]) -> dict[str, Any]:
    sources = {question.get("source", "").rpartition(":")[2].partition("#")[0] for question in asked}
    folders = tuple({f"{source.rpartition('/')[0]}/" for source in sources if "/" in source})
    hits, gain = 0, 0.0
    for question, pages in zip(asked, ranked, strict=True):
        right = set(question["relevant"])
        kept = [page for page in pages if page in right or (page not in sources and not page.startswith(folders))][:10]
        hits += any(page in right for page in kept[:5])
        ideal = sum(1 / math.log2(place + 2) for place in range(min(10, len(right))))
        gain += sum(1 / math.log2(place + 2) for place, page in enumerate(kept) if page in right) / ideal
    return {"questions": len(asked), "hit5": round(hits / len(asked), 3), "ndcg10": round(gain / len(asked), 3)}


async def timed(index: SiteIndexes, name: str, report: IndexReport, everyone: Sequence[str]) -> dict[str, Any]:
    """Half questions that people asked, half made of this site's own titles."""
    with sqlite3.connect(index.path_of(name, "bench")) as db:
        titles = [title for (title,) in db.execute("SELECT title FROM pages")]
    chance = random.Random(2)
    queries = [f"How do I use {chance.choice(titles)}?" for _ in range(TIMED_QUERIES)]
    if everyone:
        queries[::2] = chance.choices(everyone, k=len(queries[::2]))
    for query in queries[:10]:
        await index.search(name, query)  # the file's pages come into memory
    took = []
    for query in queries:
        began = time.perf_counter()
        await index.search(name, query)
        took.append(1000 * (time.perf_counter() - began))
    took.sort()
    return {
        "corpus": name, "engine": "docsmith", "pages": report.pages, "sections": report.sections,
        "build_seconds": report.seconds, "p50_ms": round(took[len(took) // 2], 2),
        "p99_ms": round(took[int(0.99 * len(took))], 2),
    }  # fmt: skip


def show(report: dict[str, Any]) -> None:
    columns = (
        "corpus",
        "engine",
        "pages",
        "sections",
        "questions",
        "hit5",
        "ndcg10",
        "build_seconds",
        "p50_ms",
        "p99_ms",
    )
    table = [columns, *[[str(row.get(column, "")) for column in columns] for row in report["rows"]]]
    widths = [max(len(line[at]) for line in table) for at in range(len(columns))]
    for line in table:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
    print()
    for goal in report["goals"]:
        print(f"{'met   ' if goal['met'] else 'MISSED'}  {goal['name']}: {goal['measured']} (goal {goal['goal']})")


if __name__ == "__main__":
    main()
