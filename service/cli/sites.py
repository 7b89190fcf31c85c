"""``docsmith index`` and ``docsmith search``."""

import argparse
from typing import Any

from eventstore import Metadata
from service.cli.output import DONE, Output, failure
from service.cli.parsing import add_command, count
from service.cli.runtime import Runtime
from service.domain.errors import NotFound
from service.ports.search_index import Explanation
from service.projections.projects import project_of_domain
from service.projections.sites import get_site
from service.retrieval.markdown import SUFFIXES
from service.system import cli_actor

MEANING_SECONDS = 5.0
"""That a command waits for what its question means."""


def add_commands(commands: Any, common: argparse.ArgumentParser) -> None:
    one = add_command(
        commands,
        "index",
        "index a site's newest commit now",
        more="A running service does so by itself after each push and merge.",
        examples=["index guide"],
        parents=[common],
    )
    one.add_argument("domain", metavar="DOMAIN", help="of the site, as docsmith project list shows it")
    one.set_defaults(command=index)
    one = add_command(
        commands, "search", "search a site", examples=['search guide "retry a failed job" --limit 3'], parents=[common]
    )
    one.add_argument("domain", metavar="DOMAIN", help="of the site, as docsmith project list shows it")
    one.add_argument("query", metavar="QUERY", help="words, or a question")
    one.add_argument("--limit", type=count, default=10, metavar="N", help="the most to print (default: %(default)s)")
    one.add_argument("--explain", action="store_true", help="say what gave each result its place")
    one.set_defaults(command=search)


async def index(runtime: Runtime, options: argparse.Namespace, output: Output) -> int:
    project = await project_of_domain(runtime.views, options.domain)
    if project is None:
        raise no_site(options.domain)
    from service.workers.indexer import Indexer  # late: no other command needs it

    indexer = Indexer(runtime.store, runtime.views, runtime.docs, runtime.index, runtime.data)
    report = await indexer.index(
        options.domain,
        Metadata(actor=cli_actor()),
        on_progress=lambda done, total: output.progress(f"indexing {options.domain}", done, total),
    )
    assert report is not None  # it was asked for whatever the commit
    skipped = f", {len(report.skipped)} skipped" if report.skipped else ""
    text = f"{report.pages:,} pages, {report.sections:,} sections{skipped} in {report.seconds:.1f} s"
    if not report.pages:
        where = f"{project.docs_folder} of {project.repository}" if project.docs_folder else project.repository
        failure(
            f"There is no page of documentation in {where}, branch {project.ref}.",
            next_step=f"Pages are files that end in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}.",
        )
    output.result(report, "\n".join([text, *(f"  skipped {one.path}: {one.reason}" for one in report.skipped)]))
    return DONE


def no_site(domain: str) -> NotFound:
    return NotFound(f"There is no site {domain}; see: docsmith project list")


async def open_site(runtime: Runtime, domain: str) -> None:
    """Make a site's index ready for questions."""
    site = await get_site(runtime.views, domain)
    if site is None:
        raise no_site(domain)
    if site.file is None or not (runtime.data / "index" / domain / site.file).is_dir():
        raise NotFound(f"{domain} is not indexed yet; do it with: docsmith index {domain}")
    await runtime.index.use(domain, site.file)
    if runtime.meaning is not None:
        await runtime.meaning.prepare(wait_seconds=MEANING_SECONDS)


def explained(why: Explanation) -> str:
    """``7.12 points: body 4.1, title 3.0; looked for: …``"""
    parts = {
        "body": why.body,
        "heading": why.heading,
        "title": why.title,
        "names in links": why.links,
        "further sections": why.further_sections,
        "neighbouring words": why.pairs,
    }
    gave = sorted(((value, name) for name, value in parts.items() if value > 0), reverse=True)
    text = f"{why.points:.2f} points: {', '.join(f'{name} {value:.2f}' for value, name in gave)}"
    if why.place != 1:
        text += f"; times {why.place:.2f} for its place"
    if why.meaning_rank:
        text += f"; {why.word_rank}. by words, {why.meaning_rank}. by meaning"
    text += f"; looked for: {', '.join(why.words)}"
    return text + "".join(f"; {typed} read as {term}" for typed, term in why.corrected.items())


async def search(runtime: Runtime, options: argparse.Namespace, output: Output) -> int:
    await open_site(runtime, options.domain)
    found = await runtime.index.search(options.domain, options.query, limit=options.limit, explain=options.explain)
    lines = []
    for number, section in enumerate(found.sections, start=1):
        lines.append(
            f"{number}. {section.title}{' / ' + section.heading if section.heading else ''}  {section.url}"
            f"  {section.path}:{section.start_line}"
        )
        if section.explanation is not None:
            lines.append(f"   {explained(section.explanation)}")
    output.result({"commit": found.commit, "results": found.sections}, "\n".join(lines) or "Nothing found.")
    return DONE
