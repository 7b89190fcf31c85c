"""``docsmith init``: files to begin with, for the service and for what runs and watches it."""

import argparse
import sys
from pathlib import Path
from typing import Any

import msgspec

from service.cli.output import DONE, Output
from service.cli.parsing import add_command
from service.cli.setup.grafana import alert_rules, dashboard
from service.cli.setup.recipes import BACKUP, DATA, FOLLOW, recipe
from service.domain.errors import Conflict
from service.runtime.settings import Settings
from service.runtime.system import program_file

SETTINGS = """\
# The settings of Docsmith. Every value is optional; those that stand here as comments are the defaults.
# Each can be a variable instead, which wins: DOCSMITH_SERVER__PORT=8081
# docsmith config check looks for mistakes. After a change: systemctl reload docsmith, or kill -HUP.
"""
ABOUT = {
    "server": "Where it listens, and how people reach it. Behind a reverse proxy name that in trusted_proxies.",
    "agent": "What works on documentation. model: an alias of [models.…] below, or \"builtin\".",
    "assistant": "What answers questions.",
    "threads": "Conversations.",
    "audit": "The log's signed checkpoints.",
    "limits": "Accepted requests; 0 for any number.",
    "network": "Addresses that people name.",
    "webhooks": "What is told to others when a job ends.",
    "hosted": "The embedded code host.",
    "index": "When repositories and websites are looked at for changes.",
    "search": "Ordering by meaning, beside words.",
    "log": "On standard error.",
    "metrics": "/metrics, for Prometheus.",
}  # fmt: skip
MODEL = """\

# A model: the name in brackets is the alias. The key stays in the environment.
# [models.sonnet]
# model = "anthropic/claude-sonnet-5-5"
# api_key_env = "ANTHROPIC_API_KEY"
"""

UNIT = """\
# /etc/systemd/system/docsmith.service:
#   useradd --system --home-dir /var/cache/docsmith --shell /usr/sbin/nologin docsmith
#   systemctl daemon-reload && systemctl enable --now docsmith
# Settings, when there are any: /etc/docsmith/docsmith.toml (docsmith init --config writes one to begin with).
# Commands, as the user whose the data is: sudo -u docsmith docsmith project list --data /var/lib/docsmith
[Unit]
Description=Docsmith, documentation agent and assistant
After=network-online.target
Wants=network-online.target

[Service]
Type=notify
User=docsmith
ExecStart={program} serve --data /var/lib/docsmith
ExecReload=/bin/kill -HUP $MAINPID
# A stop is told to the service alone: its children end what they are at.
KillMode=mixed
# docsmith.toml is read from the folder that it runs in, if it is there.
ConfigurationDirectory=docsmith
WorkingDirectory=/etc/docsmith
# Keys of models and code hosts, a line each: ANTHROPIC_API_KEY=…
EnvironmentFile=-/etc/docsmith/environment
Restart=on-failure
RestartSec=2
TimeoutStartSec=300
TimeoutStopSec=15
WatchdogSec=60

# No DynamicUser: commands work on the same folder, and could not be run as a user that comes and goes.
StateDirectory=docsmith
StateDirectoryMode=0700
# The user's home, where the single binary keeps what it has unpacked: for commands it is the same one.
CacheDirectory=docsmith
UnsetEnvironment=CACHE_DIRECTORY
UMask=0077
LimitNOFILE=16384

CapabilityBoundingSet=
LockPersonality=yes
NoNewPrivileges=yes
PrivateDevices=yes
PrivateTmp=yes
ProcSubset=pid
ProtectClock=yes
ProtectControlGroups=yes
ProtectHome=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectProc=invisible
ProtectSystem=strict
RemoveIPC=yes
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallFilter=~@privileged @resources
SystemCallErrorNumber=EPERM

[Install]
WantedBy=multi-user.target
"""

SOCKET = """\
# /etc/systemd/system/docsmith.socket: systemctl daemon-reload && systemctl enable --now docsmith.socket
# Beside docsmith.service, which then listens here and not where its settings say. Whoever comes while it starts anew
# waits instead of being refused; the first one to come starts it.
[Unit]
Description=Where Docsmith listens

[Socket]
ListenStream=127.0.0.1:8080
NoDelay=yes

[Install]
WantedBy=sockets.target
"""

CONTAINER = """\
# Containerfile, beside the program that scripts/build-binary makes (dist/docsmith):
#   podman build --format docker -t docsmith .          # or docker build -t docsmith .
#   podman run --name docsmith --read-only --tmpfs /tmp -v docsmith:/data -p 127.0.0.1:8080:8080 docsmith
# Commands, beside it: podman exec docsmith docsmith project list. (Only Docker's format has room for a HEALTHCHECK.)
FROM docker.io/library/debian:bookworm-slim
RUN apt-get update \\
    && apt-get install --no-install-recommends --yes ca-certificates \\
    && rm -rf /var/lib/apt/lists/* \\
    && useradd --system --uid 10001 --home-dir /data --shell /usr/sbin/nologin docsmith \\
    && install --directory --owner=docsmith --mode=0700 /data
COPY --chmod=0755 docsmith /usr/local/bin/docsmith
# It is unpacked here, once, into a folder that only root can write.
ENV XDG_CACHE_HOME=/var/cache
RUN docsmith version
USER 10001
WORKDIR /data
VOLUME /data
EXPOSE 8080
ENV DOCSMITH_DATA=/data \\
    DOCSMITH_SERVER__HOST=0.0.0.0
STOPSIGNAL SIGTERM
# The first start after an upgrade may take a while.
HEALTHCHECK --start-period=5m --timeout=15s CMD ["/usr/local/bin/docsmith", "health"]
ENTRYPOINT ["/usr/local/bin/docsmith"]
CMD ["serve"]
"""


def add_commands(commands: Any, common: argparse.ArgumentParser) -> None:
    one = add_command(
        commands,
        "init",
        "write a docsmith.toml to begin with",
        more="Nothing that is there is overwritten. The options print other files instead, on standard output.",
        examples=[
            "init",
            "init --systemd > docsmith.service",
            "init --systemd-socket > docsmith.socket",
            "init --grafana > dashboard.json",
        ],
        parents=[common],
    )
    which = one.add_mutually_exclusive_group()
    which.add_argument("--systemd", action="store_true", help="print a unit file for systemd")
    which.add_argument("--systemd-socket", action="store_true", help="print a socket file for systemd, beside the unit")
    which.add_argument("--systemd-backup", action="store_true", help="print a script that sets up hourly backups")
    which.add_argument("--systemd-follow", action="store_true", help="print a unit file for a copy that follows")
    which.add_argument("--container", action="store_true", help="print a recipe for a container")
    which.add_argument("--grafana", action="store_true", help="print a dashboard for Grafana")
    which.add_argument("--alerts", action="store_true", help="print alert rules for Prometheus")
    one.set_defaults(command=init, works_alone=True, writes_for_others=True)


async def init(options: argparse.Namespace, output: Output) -> int:
    """Raises Conflict: there is a file already."""
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


def _printed(options: argparse.Namespace) -> str | None:
    program = str(program_file() or _installed())
    if options.systemd:
        return UNIT.format(program=program)
    if options.systemd_backup or options.systemd_follow:
        data = DATA if options.data == Path("data") else options.data.resolve()
        return recipe(BACKUP if options.systemd_backup else FOLLOW, program, data)
    if options.systemd_socket:
        return SOCKET
    if options.container:
        return CONTAINER
    if options.grafana:
        return dashboard()
    return alert_rules() if options.alerts else None


def _installed() -> Path | str:
    """The command as it was called; for ``python -m service`` the one beside that Python."""
    called = Path(sys.argv[0]).resolve()
    if called.name == "docsmith":
        return called
    beside = Path(sys.executable).with_name("docsmith")
    return beside if beside.exists() else "docsmith"


def commented_settings() -> str:
    """Every setting with its default, commented out."""
    lines = [SETTINGS]
    for field in msgspec.structs.fields(Settings):
        default = field.default
        if not isinstance(default, msgspec.Struct):
            continue
        about = ABOUT.get(field.name)
        lines += [*([f"# {about}"] if about else []), f"[{field.name}]"]
        for name in default.__struct_fields__:
            value = getattr(default, name)
            lines.append(f"# {name} = {_toml(value)}" if value is not None else f"# {name} is not set")
        lines.append("")
    return "\n".join(lines).rstrip() + "\n" + MODEL


def _toml(value: object) -> str:
    return msgspec.json.encode(value).decode()
