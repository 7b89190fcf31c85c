"""``docsmith eval``: golden questions against a site's index, for the operator's own CI.

A file has one question a line, as JSON: ``{"query": …, "relevant": [page, …]}``, where a page is named by its path in
the repository or on the site, or ``{"query": …, "facts": [text, …]}``, where what is found must say so. Of each
question's first ten pages (sections, for facts): recall at 5, the reciprocal rank of the first right one, nDCG at 10.
"""

import asyncio
import math
from collections.abc import Sequence
from pathlib import Path

import click
import msgspec
from msgspec import Struct

from service.cli.output import DONE, FAILED, Output, failure
from service.cli.parsing import FILE, Options, command
from service.cli.runtime import Runtime
from service.cli.sites import open_site
from service.domain.errors import Invalid
from service.domain.threads.threads import MAX_QUESTION_CHARACTERS
from service.ports.search_index import Section
from service.queries.sites import list_sites

LOOKED_AT, RECALLED = 10, 5
READ_SECTIONS = 40
"""Sections of one search: several may be of one page."""
MAX_FILE_BYTES, MAX_QUESTIONS = 64 * 1024 * 1024, 100_000
SHOWN_MISSES = 50


class Question(Struct, frozen=True):
    query: str
    relevant: tuple[str, ...] = ()
    """Pages."""
    facts: tuple[str, ...] = ()
    """Texts that the passages found must contain, in any case and spacing."""
    source: str = ""
    """``…:path`` of the page that the question was taken from: it is left out, or it would answer itself."""


class Missed(Struct, frozen=True):
    query: str
    wanted: tuple[str, ...]
    found: tuple[str, ...]
    """The first pages instead."""


class Evaluation(Struct, frozen=True):
    domain: str
    commit: str
    questions: int
    recall_at_5: float
    """The share of what each question wants that is among the first five, on average."""
    hit_at_5: float
    """The share of questions with something right among the first five."""
    mrr: float
    ndcg_at_10: float
    misses: tuple[Missed, ...]
    """Questions with nothing right among the first five."""
    failed: tuple[str, ...]
    """The thresholds that were missed."""


def share(text: str) -> float:
    number = float(text)
    if not 0 <= number <= 1:
        raise ValueError(f"{text!r} is not a number from 0 to 1.")
    return number


@command(
    "eval",
    more="One question a line, as JSON: a query, and the relevant pages or the facts that must be found.",
    examples=["eval golden.jsonl --domain guide", "eval golden.jsonl --min-recall 0.8 --min-ndcg 0.6 --json"],
)
@click.argument("file", type=FILE, metavar="FILE", help="golden questions, JSON lines")
@click.option("--domain", metavar="D", help="of the site (default: the only one)")
@click.option("--min-recall", type=share, metavar="X", help="exit with 1 when recall at 5 is less (0 to 1)")
@click.option("--min-mrr", type=share, metavar="X", help="exit with 1 when mean reciprocal rank is less (0 to 1)")
@click.option("--min-ndcg", type=share, metavar="X", help="exit with 1 when nDCG at 10 is less (0 to 1)")
async def evaluate(runtime: Runtime, options: Options, output: Output) -> int:
    questions = await asyncio.to_thread(read_questions, options.file)
    domain = options.domain or await _only_domain(runtime)
    await open_site(runtime, domain)
    scores: list[Score] = []
    misses: list[Missed] = []
    commit = ""
    for number, question in enumerate(questions, start=1):
        wanted = await _wanted(runtime, domain, question)
        result = await runtime.index.search(domain, question.query, limit=READ_SECTIONS)
        commit = result.commit
        found = _found(question, result.sections, wanted)
        score = scored(found, len(wanted))
        scores.append(score)
        if not score.hit:
            pages = tuple(dict.fromkeys(section.path for section in result.sections))[:RECALLED]
            misses.append(Missed(question.query, question.relevant or question.facts, pages))
        output.progress(f"asking {domain}", number, len(questions))
    measured = {
        "recall": _mean([score.recall for score in scores]),
        "mrr": _mean([score.reciprocal_rank for score in scores]),
        "ndcg": _mean([score.ndcg for score in scores]),
    }
    failed = tuple(
        f"{name} is {value:.3f}, less than {least:g}"
        for name, value in measured.items()
        if (least := getattr(options, f"min_{name}")) is not None and value < least
    )
    hits = _mean([float(score.hit) for score in scores])
    report = Evaluation(
        domain, commit, len(scores), measured["recall"], hits, measured["mrr"], measured["ndcg"], tuple(misses), failed
    )
    output.result(report, _text(report))
    for reason in failed:
        failure(f"{reason}.")
    return FAILED if failed else DONE


class Score(Struct, frozen=True):
    hit: bool
    recall: float
    reciprocal_rank: float
    ndcg: float


def scored(found: Sequence[frozenset[int]], wanted: int) -> Score:
    """``found``: for each place, best first, which of the wanted things are there (counted from 0)."""
    seen: set[int] = set()
    gain, first, recalled = 0.0, 0, 0
    for place, things in enumerate(found[:LOOKED_AT], start=1):
        if things - seen:
            gain += 1 / math.log2(place + 1)
            first = first or place
        seen |= things
        if place == min(RECALLED, len(found)):
            recalled = len(seen)
    ideal = sum(1 / math.log2(place + 1) for place in range(1, min(LOOKED_AT, wanted) + 1))
    return Score(
        0 < first <= RECALLED,
        recalled / min(wanted, RECALLED) if wanted else 0.0,
        1 / first if first else 0.0,
        min(1.0, gain / ideal) if ideal else 0.0,
    )


def _mean(values: Sequence[float]) -> float:
    return round(sum(values) / len(values), 4)


async def _only_domain(runtime: Runtime) -> str:
    domains = [site.view.domain for site in await list_sites(runtime.views)]
    if len(domains) != 1:
        known = f" Choose one with --domain: {', '.join(domains)}." if domains else ""
        raise Invalid(f"There are {len(domains)} sites.{known}")
    return domains[0]


async def _wanted(runtime: Runtime, domain: str, question: Question) -> list[str]:
    """Paths of the relevant pages, as the index names them; or the facts."""
    if question.facts:
        return [_plain(fact) for fact in question.facts]
    wanted = []
    for name in dict.fromkeys(question.relevant):
        page = await runtime.index.read_page(domain, name)
        wanted.append(page.path if page is not None else name)
    return list(dict.fromkeys(wanted))


def _found(question: Question, sections: Sequence[Section], wanted: Sequence[str]) -> list[frozenset[int]]:
    if question.facts:
        texts = [_plain(f"{section.title} {section.heading} {section.text}") for section in sections]
        return [frozenset(number for number, fact in enumerate(wanted) if fact in text) for text in texts]
    source = question.source.rpartition(":")[2].partition("#")[0]
    pages = [path for path in dict.fromkeys(section.path for section in sections) if path != source or path in wanted]
    places = {path: number for number, path in enumerate(wanted)}
    return [frozenset({places[path]} if path in places else ()) for path in pages]


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def read_questions(file: Path) -> list[Question]:
    """Raises Invalid with the line for what is no question, and for a file that cannot be read."""
    try:
        if file.stat().st_size > MAX_FILE_BYTES:
            raise Invalid(f"{file} has more than {MAX_FILE_BYTES // 1024**2} MB.")
        lines = file.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise Invalid(f"{file} cannot be read: {error}") from error
    questions = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            question = msgspec.json.decode(line, type=Question)
        except msgspec.DecodeError as error:
            raise Invalid(f"{file}, line {number}: {error}") from error
        if not question.query.strip() or len(question.query) > MAX_QUESTION_CHARACTERS:
            raise Invalid(f"{file}, line {number}: the query is blank, or too long.")
        if bool(question.relevant) == bool(question.facts) or not all(map(_plain, question.relevant + question.facts)):
            raise Invalid(f"{file}, line {number}: give either relevant pages or facts, none of them blank.")
        questions.append(question)
    if not 0 < len(questions) <= MAX_QUESTIONS:
        raise Invalid(f"{file} has {len(questions)} questions; give 1 to {MAX_QUESTIONS}.")
    return questions


def _text(report: Evaluation) -> str:
    lines = [
        f"{report.questions:,} questions: recall@5 {report.recall_at_5:.3f}, hit@5 {report.hit_at_5:.3f},"
        f" MRR {report.mrr:.3f}, nDCG@10 {report.ndcg_at_10:.3f}"
    ]
    for missed in report.misses[:SHOWN_MISSES]:
        lines.append(f"  missed: {missed.query}")
        lines.append(f"    wanted {', '.join(missed.wanted[:3])}; found {', '.join(missed.found[:3]) or 'nothing'}")
    if len(report.misses) > SHOWN_MISSES:
        lines.append(f"  and {len(report.misses) - SHOWN_MISSES} more; --json lists all")
    return "\n".join(lines)
