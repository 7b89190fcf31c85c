"""``docsmith gap``: what readers ask and the documentation does not answer."""

import click

from eventstore import Metadata
from service.cli.audit.reading import one_line
from service.cli.output import DONE, Output, table
from service.cli.parsing import COUNT, Group, Options
from service.cli.projects import the_organization, the_project
from service.cli.runtime import Runtime
from service.commands.gaps import dismiss_gap, restore_gap
from service.queries.read_models import catch_up
from service.queries.readers.gaps import GapQuery, GapReader
from service.queries.readers.questions import Period
from service.runtime.system import cli_actor
from service.views.readers.gaps import GapsView

gap = Group("gap")

_project = click.option("--project", metavar="ID_OR_DOMAIN", help="only those of this project")
_organization = click.option("--organization", metavar="ID", help="whose they are; needed only when there are several")


async def _query(runtime: Runtime, options: Options) -> GapQuery:
    """Return the choice of gaps; of all time, so that an id that was listed is found again."""
    project = await the_project(runtime, options.project) if options.project is not None else None
    if project is not None:
        return GapQuery(project.organization_id, Period(), project.id)
    return GapQuery(await the_organization(runtime, options.organization), Period())


@gap.command(
    "list",
    does="list groups of questions that the documentation does not answer, the most frequent first",
    more="A question is in no gap any more once one in the same words was answered later, once the site answers it"
    " after it was indexed again, or once its gap was dismissed.",
    examples=["gap list", "gap list --project guide", "gap list --dismissed --json"],
)
@_project
@_organization
@click.option("--dismissed", is_flag=True, help="the dismissed ones instead, the latest first")
@click.option("--limit", type=COUNT, default=20, metavar="N", help="how many at most (default: 20)")
async def show_list(runtime: Runtime, options: Options, output: Output) -> int:
    reader, query = GapReader(runtime.store, runtime.views), await _query(runtime, options)
    read = reader.list_dismissed if options.dismissed else reader.list
    found = await read(query, limit=options.limit + 1)
    has_more = len(found) > options.limit
    gaps = tuple(one for _, one in found[: options.limit])
    listed = GapsView(gaps, str(found[options.limit - 1][0]) if has_more else None, has_more)
    cells = [
        (
            one.id, one.count, one.last_asked_at[:16].replace("T", " "), one_line(one.question, 60),
            *((one.dismissed_by, one.dismissed_at) if options.dismissed else ()),
        )
        for one in gaps
    ]  # fmt: skip
    head = ("ID", "ASKED", "LAST (UTC)", "QUESTION", *(("DISMISSED BY", "AT") if options.dismissed else ()))
    output.result(listed, table(head, cells) if cells else "No gaps found.")
    return DONE


@gap.command(
    "dismiss",
    does="dismiss a gap: nothing is to be written for it",
    more="Questions in the same words are in no gap from now on; in other words they are one again.",
    examples=["gap dismiss GAP_ID"],
)
@click.argument("id", metavar="GAP_ID", help="of the gap, as docsmith gap list shows it")
@_project
@_organization
async def dismiss(runtime: Runtime, options: Options, output: Output) -> int:
    reader, query = GapReader(runtime.store, runtime.views), await _query(runtime, options)
    metadata = Metadata(actor=cli_actor())
    await dismiss_gap(runtime.store, runtime.views, reader, query, options.id, metadata)
    await catch_up(runtime.views)
    output.result({"id": options.id, "dismissed": True}, f"gap {options.id} is dismissed")
    return DONE


@gap.command(
    "restore",
    does="list a dismissed gap again",
    more="It stays away where its questions are answered by now.",
    examples=["gap restore GAP_ID"],
)
@click.argument("id", metavar="GAP_ID", help="of the gap, as docsmith gap list --dismissed shows it")
@_organization
async def restore(runtime: Runtime, options: Options, output: Output) -> int:
    organization_id = await the_organization(runtime, options.organization)
    metadata = Metadata(actor=cli_actor())
    await restore_gap(runtime.store, runtime.views, organization_id, options.id, metadata)
    await catch_up(runtime.views)
    output.result({"id": options.id, "dismissed": False}, f"gap {options.id} is listed again")
    return DONE
