"""``docsmith index`` and ``docsmith search``."""

import argparse
from typing import Any

from eventstore import Metadata
from service.cli.output import DONE, Output
from service.cli.runtime import Runtime
from service.domain.errors import NotFound
from service.projections.sites import get_site
from service.system import cli_actor
from service.workers.indexer import Indexer


def add_commands(commands: Any, common: argparse.ArgumentParser) -> None:
    one = commands.add_parser("index", parents=[common], help="index a site's newest commit now")
    one.add_argument("domain", metavar="DOMAIN")
    one.set_defaults(command=index)
    one = commands.add_parser("search", parents=[common], help="search a site")
    one.add_argument("domain", metavar="DOMAIN")
    one.add_argument("query", metavar="QUERY")
    one.add_argument("--limit", type=int, default=10)
    one.set_defaults(command=search)


async def index(runtime: Runtime, options: argparse.Namespace, output: Output) -> int:
    indexer = Indexer(runtime.store, runtime.views, runtime.docs, runtime.index, runtime.data)
    report = await indexer.index(
        options.domain,
        Metadata(actor=cli_actor()),
        on_progress=lambda done, total: output.progress(f"indexing {options.domain}", done, total),
    )
    assert report is not None  # it was asked for whatever the commit
    skipped = f", {len(report.skipped)} skipped" if report.skipped else ""
    text = f"{report.pages} pages, {report.sections} sections{skipped} in {report.seconds:.1f} s"
    output.result(report, "\n".join([text, *(f"  skipped {one.path}: {one.reason}" for one in report.skipped)]))
    return DONE


async def open_site(runtime: Runtime, domain: str) -> None:
    """Make a site's index ready for questions."""
    site = await get_site(runtime.views, domain)
    if site is None:
        raise NotFound(f"There is no site {domain}; see: docsmith project list")
    if site.file is None or not (runtime.data / "index" / domain / site.file).is_file():
        raise NotFound(f"{domain} is not indexed yet; do it with: docsmith index {domain}")
    await runtime.index.use(domain, site.file)


async def search(runtime: Runtime, options: argparse.Namespace, output: Output) -> int:
    await open_site(runtime, options.domain)
    found = await runtime.index.search(options.domain, options.query, limit=options.limit)
    lines = [
        f"{number}. {section.title}{' / ' + section.heading if section.heading else ''}  {section.url}"
        f"  {section.path}:{section.start_line}"
        for number, section in enumerate(found.sections, start=1)
    ]
    output.result({"commit": found.commit, "results": found.sections}, "\n".join(lines) or "Nothing found.")
    return DONE
