"""``docsmith eval``: test questions against a site's index, for the operator's own CI."""

import asyncio
from pathlib import Path

import click
from msgspec.structs import asdict

from service.cli.output import DONE, FAILED, Output, failure
from service.cli.parsing import FILE, Options, command
from service.cli.runtime import Runtime
from service.cli.sites import open_site
from service.domain.errors import Invalid
from service.queries.evaluation import Evaluation, Question, evaluate_site, parse_questions
from service.queries.sites import list_sites
from service.views.evaluation import CheckedEvaluationView
from service.workers.judged_answers import answers_with

MAX_FILE_BYTES, MAX_QUESTIONS = 64 * 1024 * 1024, 100_000
SHOWN_MISSES = 50


def share(text: str) -> float:
    number = float(text)
    if not 0 <= number <= 1:
        raise ValueError(f"{text!r} is not a number from 0 to 1.")
    return number


@command(
    "eval",
    more="One question a line: a plain one, which is checked for being answered by the builtin assistant, or as JSON: "
    '{"query": TEXT, "relevant": [PAGE, ...]}, or {"query": TEXT, "facts": [TEXT, ...]} for texts that the sections '
    "found must contain.",
    examples=["eval questions.jsonl --domain guide", "eval questions.jsonl --min-recall 0.8 --min-ndcg 0.6 --json"],
)
@click.argument("file", type=FILE, metavar="FILE", help="test questions, one a line")
@click.option("--domain", metavar="SITE", help="name of the site (default: the only one)")
@click.option(
    "--min-answered", type=share, metavar="X", help="exit with 1 when a smaller part of plain ones is answered (0 to 1)"
)
@click.option(
    "--min-recall",
    type=share,
    metavar="X",
    help="exit with 1 when fewer of the right pages are among the first five (recall at 5, 0 to 1)",
)
@click.option(
    "--min-mrr",
    type=share,
    metavar="X",
    help="exit with 1 when the first right page comes later on average (MRR, 0 to 1)",
)
@click.option(
    "--min-ndcg",
    type=share,
    metavar="X",
    help="exit with 1 when right pages stand lower among the first ten (nDCG at 10, 0 to 1)",
)
async def evaluate(runtime: Runtime, options: Options, output: Output) -> int:
    questions = await asyncio.to_thread(read_questions, options.file)
    domain = options.domain or await _only_domain(runtime)
    await open_site(runtime, domain)
    report = await evaluate_site(
        runtime.index,
        domain,
        questions,
        lambda done, total: output.progress(f"asking {domain}", done, total),
        answers_with(runtime.index, runtime.models.builtin_for_assistant),
    )
    answered = report.answered / report.plain if report.plain else None
    measured = {"answered": answered, "recall": report.recall_at_5, "mrr": report.mrr, "ndcg": report.ndcg_at_10}
    failed = tuple(
        f"{name} is not measured" if value is None else f"{name} is {value:.3f}, less than {least:g}"
        for name, value in measured.items()
        if (least := getattr(options, f"min_{name}")) is not None and (value is None or value < least)
    )
    output.result(CheckedEvaluationView(**asdict(report.view), failed=failed), _text(report))
    for reason in failed:
        failure(f"{reason}.")
    return FAILED if failed else DONE


async def _only_domain(runtime: Runtime) -> str:
    domains = [site.view.domain for site in await list_sites(runtime.views)]
    if len(domains) != 1:
        if not domains:
            raise Invalid("There is no site yet. Create one: docsmith project create --name NAME --repository PATH")
        raise Invalid(f"There are {len(domains)} sites. Choose one with --domain: {', '.join(domains)}.")
    return domains[0]


def read_questions(file: Path) -> list[Question]:
    """Raises Invalid with the line for what is no question, and for a file that cannot be read."""
    try:
        if file.stat().st_size > MAX_FILE_BYTES:
            raise Invalid(f"{file} has more than {MAX_FILE_BYTES // 1024**2} MB.")
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise Invalid(f"{file} cannot be read: {error}") from error
    return parse_questions(text, str(file), most=MAX_QUESTIONS)


def _text(report: Evaluation) -> str:
    lines = []
    if report.recall_at_5 is not None:
        lines.append(
            f"{report.questions - report.plain:,} questions: recall@5 {report.recall_at_5:.3f}, hit@5"
            f" {report.hit_at_5:.3f}, MRR {report.mrr:.3f}, nDCG@10 {report.ndcg_at_10:.3f}"
        )
    if report.plain:
        lines.append(f"{report.plain:,} plain questions: {report.answered:,} answered")
    for missed in report.misses[:SHOWN_MISSES]:
        if not missed.wanted:
            lines.append(f"  not answered: {missed.query}\n    found {', '.join(missed.found[:3]) or 'nothing'}")
            continue
        lines.append(f"  missed: {missed.query}")
        lines.append(f"    wanted {', '.join(missed.wanted[:3])}; found {', '.join(missed.found[:3]) or 'nothing'}")
    if len(report.misses) > SHOWN_MISSES:
        lines.append(f"  and {len(report.misses) - SHOWN_MISSES} more; --json lists all")
    return "\n".join(lines)
