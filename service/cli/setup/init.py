"""``docsmith init``: files to begin with, for the service and for what runs and watches it."""

import sys
from pathlib import Path

import click
import msgspec

from service.cli.output import DONE, Output, warning
from service.cli.parsing import FILE, Options, command
from service.cli.setup.recipes import DATA, filled, out_of_reach, quoted, recipe
from service.domain.errors import Conflict, Invalid
from service.runtime.settings.settings import Settings
from service.runtime.system import program_file

ABOUT = {
    "server": "Where the service listens, and how people reach it. Behind a reverse proxy, set trusted_proxies.",
    "agent": "The agent, which changes documentation. model: an alias of [models.…] below, or \"builtin\".",
    "assistant": "The assistant, which answers questions.",
    "sign_in": "The identity provider that signs people in (OpenID Connect).",
    "threads": "Conversations.",
    "audit": "The log's signed checkpoints.",
    "limits": "Accepted requests; 0 for any number.",
    "network": "Addresses that the service may call.",
    "webhooks": "Messages to other services when a job changes.",
    "hosted": "The embedded code host.",
    "instances": "One of several instances of a log in PostgreSQL.",
    "vault": "A wrapped vault in PostgreSQL: when its wrapping key is replaced and destroyed.",
    "index": "How repositories and websites are checked for changes.",
    "search": "Search by meaning, beside words.",
    "log": "Log lines on standard error.",
    "metrics": "/metrics, for Prometheus.",
}  # fmt: skip


KINDS = (
    "systemd", "systemd_socket", "systemd_backup", "systemd_follow", "container", "grafana", "alerts",
    "compose", "kubernetes",
)  # fmt: skip
"""The options that exclude each other."""

PRINTED = {
    "systemd_socket": "docsmith.socket",
    "container": "Containerfile",
    "grafana": "dashboard.json",
    "alerts": "alerts.yml",
}
"""The files that are printed as they are, by option."""


@command(
    "init",
    more="Nothing that is there is overwritten. Most options print another file instead, on standard output; --compose "
    "and --kubernetes write a folder that runs several instances, with new passwords in files of its own.",
    examples=[
        "init",
        "init --systemd > docsmith.service",
        "init --systemd-socket > docsmith.socket",
        "init --grafana > dashboard.json",
        "init --compose --to /srv/docsmith",
    ],
    works_alone=True,
    writes_for_others=True,
    at_most_one=[KINDS],
)
@click.option("--systemd", is_flag=True, help="print a unit file for systemd")
@click.option("--systemd-socket", is_flag=True, help="print a socket file for systemd, beside the unit")
@click.option("--systemd-backup", is_flag=True, help="print a script that sets up hourly backups")
@click.option("--systemd-follow", is_flag=True, help="print a unit file for a copy that follows")
@click.option("--container", is_flag=True, help="print a recipe for a container")
@click.option("--grafana", is_flag=True, help="print a dashboard for Grafana")
@click.option("--alerts", is_flag=True, help="print alert rules for Prometheus")
@click.option("--compose", is_flag=True, help="write files for Docker Compose: PostgreSQL, three instances, a proxy")
@click.option("--kubernetes", is_flag=True, help="write manifests for Kubernetes: PostgreSQL, three instances")
@click.option("--to", type=FILE, metavar="DIR", help="the folder to write, with --compose or --kubernetes")
async def init(options: Options, output: Output) -> int:
    """Raises Conflict: there is a file or a folder already."""
    if options.compose or options.kubernetes:
        return _write_deployment(options, output)
    if options.to is not None:
        raise Invalid("--to is for --compose and --kubernetes: name a settings file with --config FILE.")
    printed = _printed(options)
    if printed is not None:
        output.result({"text": printed}, printed.rstrip("\n"))
        return DONE
    file: Path = options.config or Path("docsmith.toml")
    try:
        with file.open("x", encoding="utf-8") as out:
            out.write(commented_settings())
    except FileExistsError:
        raise Conflict(f"{file} is there already, and stays as it is; name another one with --config FILE.") from None
    output.result({"file": str(file)}, f"wrote {file}; next: docsmith config check")
    return DONE


def _write_deployment(options: Options, output: Output) -> int:
    from service.cli.setup.deployments import COMPOSE, KUBERNETES, write_deployment  # late: others do without

    deployment = COMPOSE if options.compose else KUBERNETES
    folder: Path = options.to or deployment.made
    files = write_deployment(deployment, folder, str(program_file() or "dist/docsmith"))
    output.result({"folder": str(folder), "files": files}, f"wrote {folder}; {deployment.next_steps}")
    return DONE


def _printed(options: Options) -> str | None:
    program = str(program_file() or _installed())
    if options.systemd or options.systemd_backup or options.systemd_follow:
        _warn_if_hidden(Path(program))
    if options.systemd:
        return filled("docsmith.service", program=quoted(program, "$"))
    if options.systemd_backup or options.systemd_follow:
        data = DATA if options.data == Path("data") else options.data.resolve()
        return recipe("backup.sh" if options.systemd_backup else "docsmith-follow.service", program, data)
    return next((filled(name) for option, name in PRINTED.items() if getattr(options, option)), None)


def _warn_if_hidden(program: Path) -> None:
    """Warn when the unit's user could not read the program, or the Python and the packages that it runs with."""
    if not program.is_absolute():
        return
    is_python = program_file() is None
    behind = (Path(sys.executable), Path(sys.base_prefix), Path(__file__)) if is_python else ()
    hidden = out_of_reach((program, *behind))
    if hidden is None:
        return
    remedy = (
        "python3 -m venv /opt/docsmith && /opt/docsmith/bin/pip install WHEEL, with a Python of the system"
        if is_python
        else f"install -m 755 {program} /usr/local/bin/docsmith"
    )
    warning(
        f"This unit will not start: a service cannot read {hidden}. Install Docsmith where every user can read it, as "
        f"root: {remedy}. Then run this again with that program."
    )


def _installed() -> Path | str:
    """The command as it was called; for ``python -m service`` the one beside that Python."""
    called = Path(sys.argv[0]).resolve()
    if called.name == "docsmith":
        return called
    beside = Path(sys.executable).with_name("docsmith")
    return beside if beside.exists() else "docsmith"


def commented_settings() -> str:
    """Every setting with its default, commented out."""
    lines: list[str] = []
    for field in msgspec.structs.fields(Settings):
        default = field.default
        if not isinstance(default, msgspec.Struct):
            continue
        about = ABOUT.get(field.name)
        lines += [*([f"# {about}"] if about else []), *_section(field.name, default)]
    return filled("docsmith.toml", settings="\n".join(lines).rstrip() + "\n")


def _section(path: str, section: msgspec.Struct) -> list[str]:
    """Return the lines of a section, then those of the sections within it."""
    values = {name: getattr(section, name) for name in section.__struct_fields__}
    inner = {name: value for name, value in values.items() if isinstance(value, msgspec.Struct)}
    lines = [f"[{path}]"] if len(inner) < len(values) else []
    for name, value in values.items():
        if name in inner:
            continue
        lines.append(f"# {name} = {_toml(value)}" if value is not None else f"# {name} is not set")
    lines += [""] if lines else []
    return lines + [line for name, value in inner.items() for line in _section(f"{path}.{name}", value)]


def _toml(value: object) -> str:
    return msgspec.json.encode(value).decode()
