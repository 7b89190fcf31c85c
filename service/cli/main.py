"""``docsmith``: every command, its options, and how its errors are printed."""

import errno
import json
import os
import signal
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import NoReturn

import click

from service import __version__
from service.cli.output import (
    DONE,
    FAILED,
    WRONG_USAGE,
    Output,
    Unwritable,
    failure,
    flush,
    leave_standard_output,
    writing,
)
from service.cli.parsing import DEFAULT_DATA, PORT, Command, Described, Group, Options, command
from service.cli.runtime import Program
from service.cli.setup.config import settings_of, sources_of
from service.domain.errors import ServiceError
from service.runtime.data_folder import UMASK, full_disk, make_data_folder, require_data_folder
from service.runtime.settings.settings import Settings
from service.runtime.settings.settings_shown import SettingsReader

COMPLETE_VARIABLE = "_DOCSMITH_COMPLETE"
"""Set by what ``docsmith completion`` prints, when a shell asks what may follow."""

COMMANDS = {
    "serve": ("main:serve", "run the service"),
    "organization": ("projects:organization", "create and list organizations, the owners of projects and keys"),
    "project": ("projects:project", "create, change and list projects: a repository, its code host, its site"),
    "site": ("public_sites:site", "open a site to everyone, and see which are"),
    "login": ("people:login", "sign in to the dashboard in a browser, by a link that works once"),
    "person": ("people:person", "add, list, remove and erase the people who sign in"),
    "key": ("keys:key", "create, change, list and revoke API keys"),
    "index": ("sites:index", "index a site's newest commit now"),
    "search": ("sites:search", "search a site"),
    "eval": ("evaluation:evaluate", "measure a site's search by test questions"),
    "ask": ("threads:ask", "ask the assistant about a site"),
    "job": ("jobs:job", "give jobs to the agent and follow them"),
    "gap": ("gaps:gap", "list and dismiss what readers ask and the documentation does not answer"),
    "model": ("models:model", "add a language model, try it, and choose it for jobs and answers"),
    "webhook": ("webhooks:webhook", "notify other services of jobs, and receive pushes"),
    "apply": ("apply:apply_file", "create and change organizations, projects, keys and the rest as a file says"),
    "audit": ("audit.commands:audit", "check, sign, read, replay and export the log; erase from it"),
    "backup": ("operate.commands:backup", "copy everything into one file, while the service runs"),
    "restore": ("operate.restore:restore", "make a data folder from a backup, after a check"),
    "store": ("operate.store:store", "copy the log to PostgreSQL and back"),
    "vault": ("operate.vault:vault", "change and copy the keys that a vault in PostgreSQL is wrapped under"),
    "take-over": ("operate.take_over:take_over", "let a restored copy go on in place of the original"),
    "doctor": ("operate.doctor:examine", "find mistakes in the setup, and say how to correct them"),
    "health": ("operate.health:health", "check that the running service is ready"),
    "config": ("setup.config:config", "check the settings, and show them"),
    "init": ("setup.init:init", "write a docsmith.toml to begin with"),
    "completion": ("setup.completion:completion", "print what a shell needs to complete commands and options"),
    "demo": ("setup.demo:run_demo", "see the whole service at work, on its manual or on your documentation"),
    "openapi": ("main:openapi", "print the API's description (OpenAPI 3.1)"),
    "version": ("main:version", "print the version"),
}
"""Where each command is declared, and what it does, in the order of the help. Only the module of the command at hand is
imported, with the libraries that it needs: all of them take half a second.
"""

EXAMPLES = """\
to begin:
  docsmith demo
  docsmith demo --docs ../guide

or step by step:
  docsmith organization create --name Acme
  docsmith project create --name Guide --repository ../guide --domain guide
  docsmith index guide
  docsmith ask guide "How do I install it?"
  docsmith key create --kind admin
  docsmith key create --kind assistant --domain guide
  docsmith serve

docsmith COMMAND --help explains each.
"""


class Root(Group):
    """All commands. Each is only a name and what it does until it is called."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] == "help" and not ctx.resilient_parsing:  # "docsmith help COMMAND", as people type it elsewhere
            args = [*(word for word in args[1:] if not word.startswith("-")), "--help"]
            if len(args) == 1:
                _print_help(ctx, DONE)
        name, known, rest = super().resolve_command(ctx, args)
        return name, known and _loaded(str(name)), rest


def _loaded(name: str) -> Described:
    place, does = COMMANDS[name]
    module, _, attribute = place.partition(":")
    loaded: Described = getattr(import_module(f"service.cli.{module}"), attribute)
    loaded.describe(does)
    return loaded


def _print_help(ctx: click.Context, status: int) -> NoReturn:
    click.echo(ctx.get_help())
    ctx.exit(status)


@click.pass_context
def _begin(ctx: click.Context, /, version: bool, **_common: object) -> object:
    """Print the help when there is no command, and the version for ``--version``; called before each command, too."""
    if version and ctx.invoked_subcommand is not None:
        ctx.fail(f"--version takes no command, such as {ctx.invoked_subcommand!r}.")
    if version:
        with _loaded("version").make_context("version", [], parent=ctx) as beneath:
            return beneath.command.invoke(beneath)
    if ctx.invoked_subcommand is None:
        _print_help(ctx, WRONG_USAGE)
    return None


ROOT = Root(
    "docsmith",
    more="Self-hosted documentation agent and assistant: one service, two APIs, one log.",
    notes=EXAMPLES.rstrip(),
    callback=_begin,
    invoke_without_command=True,
    params=[click.Option(["-V", "--version"], is_flag=True, help="as the command version")],
    context_settings={"help_option_names": ["-h", "--help"]},
    commands={name: click.Command(name, short_help=does) for name, (_, does) in COMMANDS.items()},
)


def run(arguments: Sequence[str], program: Program) -> int:
    """Run one command; its exit code: 0 done, 1 failed, 2 wrong usage, 3 verification failed, 4 a job needs input."""
    if instruction := os.environ.get(COMPLETE_VARIABLE):
        from service.cli.setup.completion import offer  # late, for nothing else needs it

        return offer(instruction)
    status = FAILED
    try:
        status = _told(arguments, program)
        flush()
    except BrokenPipeError:  # the reader of our output has seen enough
        leave_standard_output()
        return status if status != FAILED else DONE
    except Unwritable as error:
        leave_standard_output()
        failure(str(error))
        return FAILED
    return status


def _told(arguments: Sequence[str], program: Program) -> int:
    """Run one command, and print why if it fails."""
    output = Output(as_json="--json" in arguments)
    try:
        with writing(), ROOT.make_context("docsmith", list(arguments)) as context:
            called, options = ROOT.invoke(context)
    except click.UsageError as error:
        output.failed(_one_line(error), "wrong_usage")
        return WRONG_USAGE
    except click.exceptions.Exit as end:  # the help that was asked for has been printed
        return end.exit_code
    output.as_json = options.json
    if not called.writes_for_others:
        os.umask(UMASK)
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)  # from here on Ctrl-C ends the command in order
    try:
        if any(f"DOCSMITH_{name}_FILE" in os.environ for name in ("STORE", "VAULT", "VAULT_SECRET")):
            from service.integrity.log_place import read_address_files  # late: most folders have their log

            read_address_files()
        return _run(called, options, output, program)
    except KeyboardInterrupt:
        if sys.stderr is not None and sys.stderr.isatty():
            print(file=sys.stderr)  # a progress bar has left its line open
        return 130
    except BrokenPipeError:
        raise
    except ServiceError as error:
        output.failed(str(error), error.code)
    except OSError as error:
        output.failed(_reason(error, options.data), "unavailable")
    return FAILED


def _one_line(error: click.UsageError) -> str:
    says = " ".join(error.format_message().split())
    if isinstance(error, click.NoSuchCommand | click.NoSuchOption) and error.possibilities:
        says = f"{error.message} Did you mean {error.possibilities[0]!r}?"  # the nearest is enough
    where = error.ctx.command_path if error.ctx is not None else "docsmith"
    return f"{says}{'' if says.endswith(('.', '?')) else '.'} See: {where} --help"


def _reason(error: OSError, data: Path | None) -> str:
    reason = error.strerror or str(error)
    if error.errno == errno.ENOSPC:
        advice = full_disk(data)
        where = f": {os.fsdecode(error.filename)}" if error.filename else ""
        return f"{reason}{where}{f'; {advice}' if advice else ''}"
    if not error.filename:
        return reason
    file = Path(os.fsdecode(error.filename))
    if data is not None and (file.is_relative_to(data) or data.is_relative_to(file)):
        return f"{data} cannot be the data folder ({file}: {reason}); name another one with --data DIR"
    return f"{file}: {reason}"


def _run(called: Command, options: Options, output: Output, program: Program) -> int:
    if called.prints:
        return int(called.function(output, program))
    import asyncio  # late, since the functions above do not need it
    import sqlite3

    from eventstore import EventStoreError
    from service.cli.operate.damage import described

    try:
        return asyncio.run(_work(called, options, output, program))
    except (EventStoreError, sqlite3.DatabaseError) as error:
        failed = described(error, options.data)
        output.failed(f"{failed.says}; {failed.remedy}" if failed.remedy else failed.says, failed.code)
        return FAILED


async def _work(called: Command, options: Options, output: Output, program: Program) -> int:
    function = called.function
    if called is not serve:
        import structlog  # late, as above

        structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))  # the result is the output
    if called.works_alone:
        return int(await function(options, output))
    if called.reads_settings:
        return int(await function(options, output, program, lambda: settings_of(options)))
    settings = settings_of(options)
    if called.creates_data_folder:
        make_data_folder(options.data)
    else:
        require_data_folder(options.data, DEFAULT_DATA)
    async with program.open(options.data, settings) as runtime:
        return int(await function(runtime, options, output))


@command(
    "serve",
    more="It prints listening on http://HOST:PORT when it takes requests, and stops at Ctrl-C or SIGTERM.",
    examples=["serve", "serve --host 0.0.0.0 --port 80 --data /var/lib/docsmith"],
    reads_settings=True,
)
@click.option("--host", metavar="ADDRESS", help="the address to listen on (default: 127.0.0.1)")
@click.option("--port", type=PORT, help="the port to listen on, from 0 to 65535; 0 picks a free one (default: 8080)")
@click.option(
    "--store",
    metavar="ADDRESS",
    help="keep the log in PostgreSQL, as postgresql://USER@HOST/DATABASE; with a password only in DOCSMITH_STORE, "
    "which every other command needs, too",
)
@click.option("--vault", metavar="ADDRESS", help="the database of the keys of encrypted text, or DOCSMITH_VAULT")
@click.option(
    "--drill",
    is_flag=True,
    help="try a restored copy: builtin model, and nothing leaves the machine (no webhook, push, crawl or trace)",
)
async def serve(options: Options, _output: Output, program: Program, read_settings: Callable[[], Settings]) -> int:
    for name, address in (("DOCSMITH_STORE", options.store), ("DOCSMITH_VAULT", options.vault)):
        if address is not None:
            from service.integrity.log_place import require_no_password  # late: only these options need it

            require_no_password(address, name)
            os.environ[name] = address  # for all that asks where the log is, child processes too
    await program.serve(options.data, read_settings(), SettingsReader(lambda: sources_of(options)), options.drill)
    return DONE


@command(
    "openapi",
    more="The service itself serves it at /openapi.json, and for people at /docs.",
    examples=["openapi > openapi.json"],
    prints=True,
)
def openapi(_output: Output, program: Program) -> int:
    print(json.dumps(program.openapi(), indent=2, ensure_ascii=False))
    return DONE


@command("version", prints=True)
def version(output: Output, _program: Program) -> int:
    output.result({"version": __version__}, f"docsmith {__version__}")
    return DONE
