"""``docsmith index`` and ``docsmith search``."""

import asyncio
import signal
from collections.abc import Coroutine
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click
from msgspec import to_builtins

from eventstore import Metadata
from service.cli.output import DONE, VERIFICATION_FAILED, Output, failure, warning
from service.cli.parsing import COUNT, LANGUAGE, Options, command
from service.cli.runtime import Runtime
from service.domain.errors import Conflict, Damaged, Forbidden, Invalid, NotFound, ServiceError
from service.domain.search import SearchFilter
from service.markup.pages import MARKDOWN_SUFFIXES
from service.ports.search_index import Section
from service.queries.projects import project_of_domain, source_of
from service.queries.read_models import catch_up
from service.queries.sites import get_site
from service.retrieval.search.explained import explained
from service.runtime.system import cli_actor
from service.views.projects import ProjectView
from service.views.search import SearchResult, explained_result, search_result

if TYPE_CHECKING:
    from service.retrieval.index.report import IndexReport
    from service.workers.indexing.indexer import Indexer

NEAR_SECONDS, FAR_SECONDS, AGAIN_SECONDS = 1.0, 30.0, 10.0
"""Between two looks at a folder or repository of this machine; at one elsewhere; and, besides, after a failure."""
SKIPPED_SHOWN = 3
"""Files of each reason."""
CHECK_SHOWN = 5
"""Findings of each kind; with ``--json`` up to a thousand."""
MEANING_SECONDS = 5.0
"""That a command waits for what its question means."""


@command(
    "index",
    more="Files that did not change since the last time are not read again. A running service indexes by itself"
    " after each push and merge; a folder is looked at by this command only.",
    examples=["index guide", "index guide --watch", "index guide --check"],
    at_most_one=[("watch", "all", "skipped", "check")],
)
@click.option("--watch", is_flag=True, help="go on, and index each change as it comes, until Ctrl-C; a line for each")
@click.option("--all", is_flag=True, help="read every file again")
@click.option("--skipped", is_flag=True, help="index nothing: list the files that were left out, and why")
@click.option(
    "--check",
    is_flag=True,
    help="report how well the site was read, from the index that is there: markup that was not read, pages with one"
    " address, entries of the navigation and includes that lead nowhere (exit code 3 for any of these), pages outside"
    " the navigation, and what was left out",
)
@click.argument("domain", metavar="SITE", help="name of the site, as docsmith project list shows it")
async def index(runtime: Runtime, options: Options, output: Output) -> int:
    project = await project_of_domain(runtime.views, options.domain)
    if project is None:
        raise no_site(options.domain)
    if options.skipped:
        await open_site(runtime, options.domain)
        skipped = await runtime.index.skipped(options.domain)
        lines = "\n".join(f"{one.path}: {one.reason}" for one in skipped)
        output.result({"skipped": skipped}, lines or "Nothing was skipped.")
        return DONE
    from service.workers.indexing.indexer import Indexer  # late: no other command needs it

    indexer = Indexer(runtime.store, runtime.views, runtime.docs, runtime.index, runtime.data)
    if options.check:
        return await _checked(runtime, indexer, project, output)
    if options.watch:
        await _until_stopped(_watch(runtime, indexer, project, output))
        return DONE
    try:
        await runtime.docs.refresh(source_of(project))
    except (Conflict, Damaged, Forbidden, Invalid) as error:  # what is here already can still be indexed
        warning(str(error))
    report = await _indexed(indexer, project, output, whole=options.all)
    if not report.pages:
        where = f"{project.docs_folder} of {project.repository}" if project.docs_folder else project.repository
        failure(
            f"There is no page of documentation in {where}, branch {project.ref}.",
            next_step=f"Pages are files that end in {', '.join(MARKDOWN_SUFFIXES[:-1])} or {MARKDOWN_SUFFIXES[-1]}.",
        )
    output.result(report, report_text(report, options.domain))
    return DONE


async def _indexed(indexer: "Indexer", project: ProjectView, output: Output, *, whole: bool = False) -> "IndexReport":
    report = await indexer.index(
        project.domain,
        Metadata(actor=cli_actor()),
        on_progress=lambda done, total: output.progress(f"indexing {project.domain}", done, total),
        whole=whole,
    )
    assert report is not None  # it was asked for whatever the commit
    return report


async def _checked(runtime: Runtime, indexer: "Indexer", project: ProjectView, output: Output) -> int:
    """Print the check of a site's index, which is made first where there is none."""
    from service.retrieval.index.check import described

    site = await get_site(runtime.views, project.domain)
    if site is None or site.file is None or not (runtime.data / "index" / project.domain / site.file).is_dir():
        await _indexed(indexer, project, output)
        await catch_up(runtime.views)
    await open_site(runtime, project.domain)
    check = await runtime.index.check(project.domain)
    output.result(check, described(check, shown=CHECK_SHOWN))
    return DONE if check.is_clean else VERIFICATION_FAILED


def report_text(report: "IndexReport", domain: str) -> str:
    """``12 pages, 34 sections, 2 skipped in 0.4 s; 3 files were read again``, and what was skipped, by reason."""
    text = f"{report.pages:,} pages, {report.sections:,} sections"
    if report.skipped:
        text += f", {len(report.skipped):,} skipped"
    text += f" in {report.seconds:.1f} s"
    if report.read < report.pages + len(report.skipped):
        text += f"; {report.read:,} {'file was' if report.read == 1 else 'files were'} read again"
    reasons: dict[str, list[str]] = {}
    for one in report.skipped:
        reasons.setdefault(one.reason, []).append(one.path)
    lines = [text]
    for reason, paths in sorted(reasons.items(), key=lambda item: -len(item[1])):
        more = f" and {len(paths) - SKIPPED_SHOWN:,} more" if len(paths) > SKIPPED_SHOWN else ""
        lines.append(f"  skipped {', '.join(paths[:SKIPPED_SHOWN])}{more}: {reason}")
    if any(len(paths) > SKIPPED_SHOWN for paths in reasons.values()):
        lines.append(f"  all of them: docsmith index {domain} --skipped")
    return "\n".join(lines)


async def _watch(runtime: Runtime, indexer: "Indexer", project: ProjectView, output: Output) -> None:
    """Index each change, with a line for each time. An error is printed once, and the index is tried again."""
    source = source_of(project)
    is_near = project.code_host == "local" and "://" not in project.repository
    output.line(f"Watching {project.repository}; Ctrl-C ends it.")
    complaint = ""
    while True:
        try:
            await runtime.docs.refresh(source)
            await catch_up(runtime.views)
            site = await get_site(runtime.views, project.domain)
            fetched = await runtime.docs.fetch(source)
            if site is None or site.file is None or site.view.commit != fetched.base_commit:
                report = await _indexed(indexer, project, output)
                at = datetime.now().astimezone().strftime("%H:%M:%S")
                text = f"{at} {fetched.base_commit[:12]}: {report_text(report, project.domain)}".partition("\n")[0]
                output.result({"commit": fetched.base_commit, **to_builtins(report)}, text)
            complaint = ""
        except (ServiceError, OSError) as error:  # a folder in the middle of a change
            if str(error) != complaint:
                complaint = str(error)
                warning(complaint)
            await asyncio.sleep(AGAIN_SECONDS)
        await asyncio.sleep(NEAR_SECONDS if is_near else FAR_SECONDS)


async def _until_stopped(work: Coroutine[Any, Any, None]) -> None:
    """Ctrl-C and SIGTERM are the ends that are wanted."""
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    for one in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(one, stop.set)
    working, stopping = asyncio.create_task(work), asyncio.create_task(stop.wait())
    await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
    for task in (working, stopping):
        task.cancel()
    await asyncio.wait({working, stopping})
    if not working.cancelled():
        working.result()


def no_site(domain: str) -> NotFound:
    return NotFound(f"Site not found: {domain}. See: docsmith project list")


async def open_site(runtime: Runtime, domain: str) -> None:
    """Make a site's index ready for questions."""
    site = await get_site(runtime.views, domain)
    if site is None:
        raise no_site(domain)
    if site.file is None or not (runtime.data / "index" / domain / site.file).is_dir():
        raise NotFound(f"{domain} is not indexed yet. Index it with: docsmith index {domain}")
    await runtime.index.use(domain, site.file)
    if runtime.meaning is not None:
        await runtime.meaning.prepare(wait_seconds=MEANING_SECONDS)


async def restricted_pages(runtime: Runtime, domain: str) -> int:
    """Return how many pages of a site's index are for groups of readers alone; 0 where it has no index."""
    try:
        await open_site(runtime, domain)
        return await runtime.index.restricted_pages(domain)
    except NotFound:
        return 0


@command(
    "search",
    more="Words in quotation marks, and code between backticks, are looked for side by side. A query that is an option"
    " of this command stands behind --.",
    takes_words=True,
    examples=[
        'search guide "retry a failed job" --limit 3',
        'search guide "Wie starte ich einen Job neu?" --language de --explain',
        'search guide "how to inst" --prefix',
        "search guide --dry-run",
        "search guide -- --json",
    ],
)
@click.argument("domain", metavar="SITE", help="name of the site, as docsmith project list shows it")
@click.argument("query", metavar="QUERY", help="words, or a question")
@click.option("--limit", type=COUNT, default=10, metavar="N", help="the most to print (default: 10)")
@click.option("--explain", is_flag=True, help="say why each result has its place")
@click.option(
    "--language",
    type=LANGUAGE,
    metavar="TAG",
    help="of the reader, such as de; pages that the site has for other languages are left out",
)
@click.option("--prefix", is_flag=True, help="take the last word as the beginning of one, as while typing")
async def search(runtime: Runtime, options: Options, output: Output) -> int:
    await open_site(runtime, options.domain)
    found = await runtime.index.search(
        options.domain, options.query, limit=options.limit, filter=SearchFilter(language=options.language),
        explain=options.explain, prefix=options.prefix,
    )  # fmt: skip
    lines = []
    for number, section in enumerate(found.sections, start=1):
        lines.append(
            f"{number}. {section.title}{' / ' + section.heading if section.heading else ''}  {section.url}"
            f"  {section.path}:{section.start_line}"
        )
        if section.explanation is not None:
            lines.append(f"   {explained(section.explanation)}")
    results = [_result(section, found.commit) for section in found.sections]
    output.result({"commit": found.commit, "results": results}, "\n".join(lines) or "Nothing found.")
    return DONE


def _result(section: Section, commit: str) -> SearchResult:
    """Return a result as over HTTP, with its explanation where there is one."""
    return search_result(section, commit) if section.explanation is None else explained_result(section, commit)
