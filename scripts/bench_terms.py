"""Terms, measured: whether the section that explains a flag, an option or a function is the first that is found.

    scripts/bench terms --corpora FOLDER [--misses] [--json] NAME …

FOLDER as for ``bench_search``. A term is a heading that is a name in code: all of it between backticks, or spelled as
names are (``--run-in-band``, ``build.target``, ``useState()``); its arguments, a type in brackets and a custom anchor
do not belong to it. Of each site the current version in its own language counts, and terms that at most ``MOST_ALIKE``
headings have; each of these sections is right, and so is a page that has the term for its title. The source lines
decide, not the index's own idea of a term.

Each term is looked for alone, between backticks, in quotation marks, and as "What does X do?" and "How do I use X?".
``first`` and ``three`` are the shares of terms whose section is first and among three, of the bare term; ``forms`` is
``first`` over all five spellings. ``quoted`` is the share for which the builtin model answers the questions, and cites
the section first.
"""

import argparse
import asyncio
import hashlib
import os
import re
import sqlite3
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from msgspec import Struct

sys.path.insert(0, str(Path(__file__).parent.parent))

from scripts.bench_search import as_tar, at_least, built_in_child
from scripts.bench_table import report
from service.adapters.builtin.answer import BuiltinAnswer
from service.assistant.answer import answer
from service.assistant.question import Question
from service.domain.threads.replies import ReplyBroken, ReplyDone, SearchFinished
from service.retrieval.index.build import PAGES_FILE
from service.retrieval.search.query import SiteIndexes

MOST_OF_A_SITE = 80
"""Terms of one site: those with the smallest hashes."""
MOST_ALIKE = 3
FIRST, THREE, QUOTED = 0.95, 0.99, 0.9
ASKED = ("{}", "`{}`", '"{}"', "What does {} do?", "How do I use {}?")

_HEADING = re.compile(r"#{1,6}[ \t]+(?P<words>.+?)[ \t]*(?:\{[^{}]*\})?[ \t]*#*")
_CODE = re.compile(r"`(?P<code>[^`]+)`[ \t]*(?P<rest>.*)")
_SPELLED = re.compile(
    r"(?P<code>--?[A-Za-z][\w-]*|[@$]?[A-Za-z_][\w$]*(?:(?:\.|::)[\w$]+)+|[a-z][a-z0-9]*[A-Z]\w*|\w+_\w+|[\w.$]+\(.*\))"
    r"(?P<rest>.*)"
)
_NAME = re.compile(r"[@$:.#]*-{0,2}[A-Za-z_][\w$]*(?:(?:\.|::?|-|/)[\w$]+)*")
_BESIDE = re.compile(r"(?:\s*(?:\\?\[.*\]|\(.*\)|<[^<>]*>(?:[^<>]*</[^<>]*>)?|\*.*\*|=.*|,.*|:\s*\S+))*\s*")
"""Arguments, a type, a badge: what may follow a name in its heading."""

Rows = list[dict[str, Any]]


class Term(Struct, frozen=True):
    name: str
    urls: frozenset[str]
    """Where its sections are, with their anchors."""


def main() -> None:
    arguments = argparse.ArgumentParser(description="Measure how terms are found.")
    arguments.add_argument("--corpora", type=Path, default=os.environ.get("DOCSMITH_CORPORA"), help="folder of corpora")
    arguments.add_argument("--misses", action="store_true", help="print what was not first, and not quoted")
    arguments.add_argument("--no-answers", action="store_true", help="measure only search")
    arguments.add_argument("--json", action="store_true", help="one JSON document on standard output")
    arguments.add_argument("names", nargs="+", help="corpora")
    given = arguments.parse_args()
    if given.corpora is None or not given.corpora.is_dir():
        arguments.error("--corpora (or DOCSMITH_CORPORA) names no folder; see the top of this script")
    with tempfile.TemporaryDirectory(prefix="docsmith-bench-") as scratch:
        found = measured(given.corpora, given.names, Path(scratch), answers=not given.no_answers, misses=given.misses)
        rows, goals = asyncio.run(found)
    report("terms", rows, goals, as_json=given.json)


async def measured(
    corpora: Path, names: Sequence[str], scratch: Path, *, answers: bool = True, misses: bool = False
) -> tuple[Rows, Rows]:
    """Return a row for each site and one for all, and the goals."""
    indexes = SiteIndexes(scratch / "index")
    rows: Rows = []
    try:
        for name in names:
            archive = as_tar(corpora, name, scratch)
            await built_in_child(indexes, archive, name)
            await indexes.use(name, "bench")
            terms = terms_of(archive, indexes.path_of(name, "bench"))
            rows.append({"corpus": name, **await judged(indexes, name, terms, answers=answers, misses=misses)})
    finally:
        await indexes.close()
    everything = sum(row["terms"] for row in rows) or 1
    columns = [column for column in rows[0] if column not in ("corpus", "terms")]
    means = {column: round(sum(row[column] * row["terms"] for row in rows) / everything, 3) for column in columns}
    rows.append({"corpus": "all", "terms": everything, **means})
    goals = [at_least("terms whose own section is first", FIRST, means["first"])]
    goals.append(at_least("terms whose own section is among three", THREE, means["three"]))
    if answers:
        goals.append(at_least("questions about terms whose own section is quoted first", QUOTED, means["quoted"]))
    return rows, goals


async def judged(
    indexes: SiteIndexes, site: str, terms: Sequence[Term], *, answers: bool, misses: bool
) -> dict[str, Any]:
    """Return the figures of a site's terms."""
    first, three, forms, quoted = 0, 0, 0, 0
    for term in terms:
        for form in ASKED:
            query = form.format(term.name)
            found = await indexes.search(site, query, limit=10)
            places = [at for at, section in enumerate(found.sections) if section.url in term.urls]
            is_first = bool(places) and places[0] == 0
            if form == ASKED[0]:
                first += is_first
                three += bool(places) and places[0] < 3
            forms += is_first
            if misses and not is_first:
                shown = found.sections[0].url if found.sections else "nothing"
                print(f"{site}: {query}: {shown}, not {min(term.urls)} ({places[:1]})", file=sys.stderr)
            if answers and "?" in form:
                cited = await first_cited(indexes, site, query)
                quoted += cited in term.urls
                if misses and cited not in term.urls:
                    print(f"{site}: asked {query}: {cited}, not {min(term.urls)}", file=sys.stderr)
    count = len(terms) or 1
    figures = {"terms": len(terms), "first": first / count, "three": three / count, "forms": forms / count / len(ASKED)}
    if answers:
        figures["quoted"] = quoted / count / sum("?" in form for form in ASKED)
    return {column: round(value, 3) for column, value in figures.items()}


async def first_cited(indexes: SiteIndexes, site: str, question: str) -> str:
    """Return the address that an answer cites first; empty where it is none."""
    sources: dict[int, str] = {}
    async for event in answer(Question(site, "msg_terms", question), index=indexes, model=BuiltinAnswer()):
        match event:
            case SearchFinished(sources=found):
                sources.update((source.number, source.url) for source in found)
            case ReplyDone() as done:
                return sources[done.cited[0]] if done.cited and done.outcome == "answered" else ""
            case ReplyBroken(message=message):
                raise SystemExit(f"no answer to {question!r}: {message}")
            case _:
                pass
    raise SystemExit(f"the answer to {question!r} has no end")


def terms_of(archive: Path, index: Path) -> list[Term]:
    """Return the terms of a site, by the lines of its files on which the sections of its index begin."""
    with closing(sqlite3.connect(index / PAGES_FILE)) as db:
        language = db.execute("SELECT value FROM meta WHERE key = 'language'").fetchone()[0]
        rows = db.execute(
            "SELECT pages.path, pages.url, anchor, min(start_line) FROM sections"
            " JOIN pages ON pages.id = sections.id >> 16"
            " WHERE sections.path = '' AND anchor != '' AND is_default AND NOT is_history"
            " AND (pages.language IN ('', ?) OR pages.language LIKE ? || '-%')"
            " GROUP BY pages.path, anchor ORDER BY sections.id",
            (language, language),
        ).fetchall()
        titles = db.execute("SELECT title, url FROM pages WHERE is_default AND NOT is_history").fetchall()
    found: dict[str, tuple[str, set[str]]] = {}
    with tarfile.open(archive) as tar:
        texts: dict[str, list[str]] = {}
        for path, url, anchor, line in rows:
            if path not in texts:
                content = tar.extractfile(path)
                texts[path] = content.read().decode("utf-8", "replace").splitlines() if content is not None else []
            if 0 < line <= len(texts[path]) and (name := term_in(texts[path][line - 1])):
                found.setdefault(name.casefold(), (name, set()))[1].add(f"{url}#{anchor}")
    for title, url in titles:
        if name := term_in(f"# {title}"):
            found.get(name.casefold(), (name, set()))[1].add(url)
    terms = [Term(name, frozenset(urls)) for name, urls in found.values() if len(urls) <= MOST_ALIKE]
    return sorted(terms, key=lambda term: hashlib.sha256(term.name.encode()).digest())[:MOST_OF_A_SITE]


def term_in(line: str) -> str:
    """Return the name that a heading is; empty for another line."""
    heading = _HEADING.fullmatch(line.strip())
    named = heading and (_CODE.fullmatch(heading["words"]) or _SPELLED.fullmatch(heading["words"]))
    if not named or not _BESIDE.fullmatch(named["rest"]):
        return ""
    name = _NAME.match(named["code"])
    if not name:
        return ""
    beside = named["code"][name.end() :]
    if name[0].startswith("-"):  # its value; ``yield from`` and ``fastapi dev`` are other things than their first word
        beside = beside.replace(" ", "=", 1)
    return name[0] if _BESIDE.fullmatch(beside) else ""


if __name__ == "__main__":
    main()
