"""``docsmith``: every command, its options, and how its errors are told."""

import argparse
import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import cast

import structlog

from eventstore import EventStoreError
from service.cli import audit, backup, demo, jobs, keys, projects, sites, threads
from service.cli.output import DONE, FAILED, Output, failure
from service.cli.runtime import Program, Runtime
from service.domain.errors import ServiceError
from service.settings import Settings, load_settings

DEFAULT_DATA = "data"

Command = Callable[[Runtime, argparse.Namespace, Output], Awaitable[int]]
LoneCommand = Callable[[argparse.Namespace, Output], Awaitable[int]]

EXAMPLES = """\
examples:
  docsmith serve --data data
  docsmith organization create --name Acme
  docsmith project create --name Guide --repository ../guide --domain guide
  docsmith key create --kind assistant --domain guide
  docsmith ask guide "How do I install it?"
"""


def run(arguments: Sequence[str], program: Program) -> int:
    """Run one command; its exit code: 0 done, 1 failed, 2 wrong usage, 3 verification failed."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if not hasattr(options, "command"):
        parser.print_help()
        return 2
    output = Output(as_json=getattr(options, "json", False))
    try:
        return asyncio.run(_run(options, output, program))
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # the reader of our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except (ServiceError, EventStoreError) as error:
        failure(str(error))
        return FAILED
    except OSError as error:
        failure(f"{error.filename or ''}: {error.strerror or error}".lstrip(": "))
        return FAILED


async def _run(options: argparse.Namespace, output: Output, program: Program) -> int:
    if options.command is print_version:
        print_version(output)
        return DONE
    command = options.command
    if command == demo.run:
        return await demo.run(options)
    if getattr(options, "works_alone", False):  # it opens of the data folder what it needs, as it needs it
        structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
        return await cast("LoneCommand", command)(options, output)
    settings = _settings(options)
    if options.command is serve:
        await program.serve(options.data, settings)
        return DONE
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))  # the result is the output
    async with program.open(options.data, settings) as runtime:
        return await cast("Command", command)(runtime, options, output)


def serve() -> None:
    """Marks the command that runs until it is stopped."""


def print_version(output: Output) -> None:
    number = version("docsmith")
    output.result({"version": number}, f"docsmith {number}")


def _settings(options: argparse.Namespace) -> Settings:
    file: Path | None = options.config
    if file is None and Path("docsmith.toml").is_file():
        file = Path("docsmith.toml")
    environment = dict(os.environ)
    for name in ("host", "port"):
        if getattr(options, name, None) is not None:
            environment[f"DOCSMITH_SERVER__{name.upper()}"] = str(getattr(options, name))
    return load_settings(file, environment)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="docsmith",
        description="Self-hosted documentation agent and assistant: one service, two APIs, one log.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument(
        "--data",
        type=Path,
        default=Path(os.environ.get("DOCSMITH_DATA", DEFAULT_DATA)),
        help="the data folder (DOCSMITH_DATA; default: %(default)s)",
    )
    common.add_argument("--json", action="store_true", help="print one JSON document and nothing else")
    common.add_argument(
        "--config",
        type=Path,
        default=Path(os.environ["DOCSMITH_CONFIG"]) if os.environ.get("DOCSMITH_CONFIG") else None,
        help="a settings file (DOCSMITH_CONFIG; default: docsmith.toml, when it is there)",
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")

    one = commands.add_parser("serve", parents=[common], help="run the service")
    one.add_argument("--host", help="the address to listen on (default: 127.0.0.1)")
    one.add_argument("--port", type=int, help="the port to listen on; 0 picks a free one (default: 8080)")
    one.set_defaults(command=serve)

    projects.add_commands(commands, common)
    keys.add_commands(commands, common)
    sites.add_commands(commands, common)
    threads.add_commands(commands, common)
    jobs.add_commands(commands, common)
    audit.add_commands(commands, common)
    backup.add_commands(commands, common)
    demo.add_command(commands, common)

    one = commands.add_parser("version", parents=[common], help="print the version")
    one.set_defaults(command=print_version)
    return parser
