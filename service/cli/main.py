"""``docsmith``: every command, its options, and how its errors are reported."""

import argparse
import asyncio
import errno
import json
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import cast

from service import __version__
from service.cli.output import DONE, FAILED, WRONG_USAGE, Output, Unwritable, failure, flush, leave_standard_output
from service.cli.parsing import Formatter, Parser, WrongUsage, add_command, port
from service.cli.runtime import Program, Runtime
from service.cli.setup.config import settings_of
from service.domain.errors import ServiceError
from service.runtime.data_folder import UMASK, full_disk, make_data_folder, require_data_folder
from service.runtime.settings import Settings

DEFAULT_DATA = "data"

Command = Callable[[Runtime, argparse.Namespace, Output], Awaitable[int]]
LoneCommand = Callable[[argparse.Namespace, Output], Awaitable[int]]
SettingsCommand = Callable[[argparse.Namespace, Output, Program, Callable[[], Settings]], Awaitable[int]]

MODULES = {
    "projects": ("organization", "project"),
    "keys": ("key",),
    "sites": ("index", "search"),
    "evaluation": ("eval",),
    "threads": ("ask",),
    "jobs": ("job",),
    "webhooks": ("webhook",),
    "audit.commands": ("audit",),
    "operate.commands": ("backup", "restore", "take-over"),
    "operate.doctor": ("doctor",),
    "operate.health": ("health",),
    "setup.config": ("config",),
    "setup.init": ("init",),
    "setup.completion": ("completion",),
    "setup.demo": ("demo",),
}
"""The commands of each module, in the order of the help. Only the module of the command at hand is imported, with the
libraries that it needs: all of them take half a second.
"""

OWN = ("serve", "openapi", "version")
"""The commands of this module."""

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


def run(arguments: Sequence[str], program: Program) -> int:
    """Run one command; its exit code: 0 done, 1 failed, 2 wrong usage, 3 verification failed."""
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
        parser = _parser(arguments)
        options = parser.parse_args(_without_leading_options(_rewritten(arguments))[1])
    except WrongUsage as error:
        output.failed(str(error), "wrong_usage")
        return WRONG_USAGE
    except SystemExit:  # argparse has printed the help that was asked for
        return DONE
    options.whole_parser = _parser  # for the command that completes all
    if not hasattr(options, "command"):
        parser.print_help()
        return WRONG_USAGE
    output.as_json = getattr(options, "json", False)
    if not getattr(options, "writes_for_others", False):
        os.umask(UMASK)
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)  # from here on Ctrl-C ends the command in order
    try:
        return asyncio.run(_run(options, output, program))
    except KeyboardInterrupt:
        if sys.stderr is not None and sys.stderr.isatty():
            print(file=sys.stderr)  # a progress bar has left its line open
        return 130
    except BrokenPipeError:
        raise
    except ServiceError as error:
        output.failed(str(error), error.code)
    except OSError as error:
        output.failed(_reason(error, getattr(options, "data", None)), "unavailable")
    return FAILED


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


async def _run(options: argparse.Namespace, output: Output, program: Program) -> int:
    if options.command is print_version:
        print_version(output)
        return DONE
    if options.command is print_openapi:
        print(json.dumps(program.openapi(), indent=2, ensure_ascii=False))
        return DONE
    import sqlite3  # late, for those above need none of it

    from eventstore import EventStoreError
    from service.cli.operate.damage import described

    try:
        return await _work(options, output, program)
    except (EventStoreError, sqlite3.DatabaseError) as error:
        failed = described(error, options.data)
        output.failed(f"{failed.says}; {failed.remedy}" if failed.remedy else failed.says, failed.code)
        return FAILED


async def _work(options: argparse.Namespace, output: Output, program: Program) -> int:
    command = options.command
    if command is serve:
        await program.serve(options.data, settings_of(options), lambda: settings_of(options), options.drill)
        return DONE
    import structlog  # late, as above

    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))  # the result is the output
    if getattr(options, "works_alone", False):  # it opens of the data folder what it needs, as it needs it
        return await cast("LoneCommand", command)(options, output)
    if getattr(options, "reads_settings", False):  # it reports what is wrong with the settings, too
        return await cast("SettingsCommand", command)(options, output, program, lambda: settings_of(options))
    settings = settings_of(options)
    if getattr(options, "creates_data_folder", False):
        make_data_folder(options.data)
    else:
        require_data_folder(options.data, Path(DEFAULT_DATA))
    async with program.open(options.data, settings) as runtime:
        return await cast("Command", command)(runtime, options, output)


def serve() -> None:
    """Marks the command that runs until it is stopped."""


def print_version(output: Output) -> None:
    number = __version__
    output.result({"version": number}, f"docsmith {number}")


def print_openapi() -> None:
    """Marks the command that prints the API's description."""


def _rewritten(arguments: Sequence[str]) -> list[str]:
    """``help COMMAND`` is ``COMMAND --help``, and ``--version`` is ``version``, as people type them elsewhere."""
    leading, rest = _without_leading_options(arguments)
    match rest:
        case ["help", *command]:
            rest = [*(word for word in command if not word.startswith("-")), "--help"]
        case ["--version" | "-V", *more]:
            rest = ["version", *more]
    return [*leading, *rest]


def _without_leading_options(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """The common options that stand before the command, or between it and what is within it, and the rest."""
    leading: list[str] = []
    rest = list(arguments)
    for at in (0, 1):
        while len(rest) > at and (name := rest[at].partition("=")[0]) in ("--data", "--json", "--config"):
            end = at + (1 if "=" in rest[at] or name == "--json" else 2)
            leading += rest[at:end]
            del rest[at:end]
    return leading, rest


def _parser(arguments: Sequence[str] = ()) -> argparse.ArgumentParser:
    """With every command, or for the arguments of one command with no more than that one. Common options that stand
    before the command are its defaults.
    """
    leading, arguments = _without_leading_options(_rewritten(arguments))
    parent = Parser(prog="docsmith", add_help=False)
    common = parent.add_argument_group("common options")
    common.add_argument(
        "--data",
        type=Path,
        metavar="DIR",
        default=Path(os.environ.get("DOCSMITH_DATA", DEFAULT_DATA)),
        help="the data folder (DOCSMITH_DATA; default: %(default)s)",
    )
    common.add_argument(
        "--json", action="store_true", help="print one JSON document on standard output and nothing else"
    )
    common.add_argument(
        "--config",
        type=Path,
        metavar="FILE",
        default=Path(os.environ["DOCSMITH_CONFIG"]) if os.environ.get("DOCSMITH_CONFIG") else None,
        help="the settings file (DOCSMITH_CONFIG; default: docsmith.toml, when it is there)",
    )
    parent.set_defaults(**vars(parent.parse_args(leading)))
    parser = Parser(
        prog="docsmith",
        description="Self-hosted documentation agent and assistant: one service, two APIs, one log.",
        epilog=EXAMPLES,
        formatter_class=Formatter,
        parents=[parent],
    )
    parser.add_argument("--version", action="store_true", help="as the command version")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")

    one = add_command(
        commands,
        "serve",
        "run the service",
        more="It prints listening on http://HOST:PORT when it takes requests, and stops at Ctrl-C or SIGTERM.",
        examples=["serve", "serve --host 0.0.0.0 --port 80 --data /var/lib/docsmith"],
        parents=[parent],
    )
    one.add_argument("--host", metavar="ADDRESS", help="the address to listen on (default: 127.0.0.1)")
    one.add_argument(
        "--port", type=port, help="the port to listen on, from 0 to 65535; 0 picks a free one (default: 8080)"
    )
    one.add_argument(
        "--drill",
        action="store_true",
        help="try a restored copy: builtin model, and nothing leaves the machine (no webhook, push, crawl or trace)",
    )
    one.set_defaults(command=serve)

    first = arguments[0] if arguments else ""
    known = any(first in names for names in (*MODULES.values(), OWN))
    for module, names in MODULES.items():
        if first in names or not known:
            import_module(f"service.cli.{module}").add_commands(commands, parent)

    one = add_command(
        commands,
        "openapi",
        "print the API's description (OpenAPI 3.1)",
        more="The service itself serves it at /openapi.json, and for people at /docs.",
        examples=["openapi > openapi.json"],
        parents=[parent],
    )
    one.set_defaults(command=print_openapi)
    one = add_command(commands, "version", "print the version", parents=[parent])
    one.set_defaults(command=print_version)
    return parser
