"""``docsmith apply``: the organizations, projects, sites, keys, webhooks and people that a file declares."""

import os
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import click

from eventstore import Metadata
from service.cli.output import DONE, Output, note
from service.cli.parsing import FILE, Options, command
from service.cli.runtime import Program, Runtime
from service.cli.sites import restricted_pages
from service.commands.apply.entries import Declared, read_declared
from service.commands.apply.files import apply, planned
from service.commands.apply.installation import Installation
from service.queries.payments import payment_of
from service.runtime.data_folder import is_data_folder, make_data_folder
from service.runtime.settings.settings import Settings
from service.runtime.system import cli_actor
from service.views.apply import AppliedView, ChangeView

DID = {"create": "created", "change": "changed", "remove": "removed", "none": "unchanged"}


@command(
    "apply",
    more="A second run changes nothing. What the file does not name stays; an entry goes only with remove = true. A "
    "new key's token is written once, to the file that its entry names. It works while the service runs or not.",
    examples=["apply docsmith-entries.toml --dry-run", "apply docsmith-entries.toml"],
    reads_settings=True,
)
@click.argument("file", type=FILE, metavar="FILE.toml")
@click.option("--dry-run", is_flag=True, help="print what would change, and change nothing")
async def apply_file(options: Options, output: Output, program: Program, read_settings: Callable[[], Settings]) -> int:
    declared, settings = read_declared(options.file), read_settings()
    if options.dry_run and not is_data_folder(options.data):
        with tempfile.TemporaryDirectory(prefix="docsmith-apply-") as empty:
            async with program.open(Path(empty), settings) as runtime:
                _print(await planned(_installation(runtime, options.file), declared), output)
        return DONE
    if not options.dry_run:
        make_data_folder(options.data)
    async with program.open(options.data, settings) as runtime:
        _print(await _apply(runtime, options, declared, output), output)
    return DONE


async def _apply(runtime: Runtime, options: Options, declared: Declared, output: Output) -> AppliedView:
    if options.dry_run:
        return await planned(_installation(runtime, options.file), declared)

    def on_change(change: ChangeView) -> None:
        if change.action != "none" or change.notes:
            output.line(_line(change, DID[change.action]))
            _note(change, output)

    return await apply(lambda: _installation(runtime, options.file), declared, options.data, on_change)


def _installation(runtime: Runtime, file: Path) -> Installation:
    return Installation(
        store=runtime.store,
        views=runtime.views,
        docs=runtime.docs,
        code_hosts=runtime.code_hosts,
        payment=lambda: payment_of(runtime.models, runtime.settings.cost_bounds),
        restricted_pages=partial(restricted_pages, runtime),
        limits=runtime.settings.limits,
        allow_private=runtime.settings.network.allow_private,
        folder=file.resolve().parent,
        environment=os.environ,
        metadata=Metadata(actor=cli_actor()),
    )


def _print(applied: AppliedView, output: Output) -> None:
    lines = []
    if applied.dry_run:
        for change in applied.changes:
            if change.action != "none":
                lines.append(_line(change, f"would {change.action}"))
            _note(change, output)
    lines.append(f"unchanged: {applied.unchanged}")
    output.result(applied, "\n".join(lines))


def _line(change: ChangeView, did: str) -> str:
    what = [f"{one.name}: {one.before or '-'} → {one.after or '-'}" for one in change.fields]
    if change.file is not None:
        what.append(f"secret in {change.file}")
    return "  ".join([f"{did:<12}", f"{change.kind:<12}", change.name, *what])


def _note(change: ChangeView, output: Output) -> None:
    if not output.as_json:
        for sentence in change.notes:
            note(sentence)
