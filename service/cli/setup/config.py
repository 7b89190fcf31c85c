"""``docsmith config``: whether the settings are right, and what they are."""

import os
from contextlib import suppress
from pathlib import Path

import click

from service.cli.output import DONE, FAILED, Output, table
from service.cli.parsing import Group, Options
from service.cli.runtime import Program
from service.domain.errors import ServiceError
from service.runtime.settings.settings import Settings
from service.runtime.settings.settings_file import load_settings, read_settings
from service.runtime.settings.settings_shown import masked, written

USUAL_FILE = Path("docsmith.toml")


def sources_of(options: Options) -> tuple[Path | None, dict[str, str]]:
    """The settings file, if there is one, and the environment with the command line's own options on top."""
    file: Path | None = options.config
    if file is None:
        with suppress(PermissionError):  # root's home, for another user by sudo: nothing there is meant for them
            file = USUAL_FILE if USUAL_FILE.is_file() else None
    environment = dict(os.environ)
    for name in ("host", "port"):
        if getattr(options, name, None) is not None:
            environment[f"DOCSMITH_SERVER__{name.upper()}"] = str(getattr(options, name))
    return file, environment


def settings_of(options: Options) -> Settings:
    """Raises BadSettings."""
    return load_settings(*sources_of(options))


config = Group("config")


@config.command(
    "check",
    does="check the settings file and the DOCSMITH_ variables",
    more="One line for each problem, with its place. It exits with 1 when there is one.",
    examples=["config check", "config check --config /etc/docsmith/docsmith.toml"],
    reads_settings=True,
)
async def check(options: Options, output: Output, program: Program, _read: object) -> int:
    file, environment = sources_of(options)
    reading = read_settings(file, environment)
    problems = list(reading.problems)
    if reading.settings is not None:
        try:
            await program.check(options.data, reading.settings)
        except ServiceError as error:
            problems.append(f"{file or 'settings'}: {error}")
    where = str(file) if file else "no settings file"
    text = "\n".join(problems) or f"{where}: nothing is wrong"
    output.result({"file": str(file) if file else None, "problems": problems}, text)
    return FAILED if problems else DONE


@config.command(
    "show",
    does="show each setting in effect, where it comes from, and where the log is",
    more="Values that look like a secret are not shown, and of the address of a database only its host and its name.",
    examples=["config show", "config show --changed --json"],
    reads_settings=True,
)
@click.option("--changed", is_flag=True, help="leave out defaults")
async def show(options: Options, output: Output, _program: Program, _read: object) -> int:
    file, environment = sources_of(options)
    load_settings(file, environment)  # raises what is wrong
    values = [masked(one) for one in read_settings(file, environment).values]
    if options.changed:
        values = [one for one in values if one.origin != "default"]
    rows = [(one.name, written(one.value), one.origin) for one in values]
    where, says = _log_of(options)
    output.result({"settings": values, "log": where}, f"{table(('SETTING', 'VALUE', 'FROM'), rows)}\n\n{says}")
    return DONE


def _log_of(options: Options) -> tuple[dict[str, str], str]:
    """Return where the log and its vault are, and a sentence of it; or why that is not known."""
    from service.integrity.log_place import STORE, VAULT, log_place  # late: every command imports this module

    try:
        place = log_place(options.data)
    except ServiceError as error:
        return {"problem": str(error)}, str(error)
    where = {"store": "files" if place.is_local else "postgresql", "log": place.name, "vault": place.vault_name}
    if place.is_local:
        return where, f"The log is in {place.name}, its vault in {place.vault_name}."
    says = f"The log is in PostgreSQL at {place.name} ({STORE}), its vault at {place.vault_name} ({VAULT})."
    return where, says
