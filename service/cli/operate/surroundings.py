"""The checks of ``docsmith doctor`` before anything is opened: the machine, the data folder, the settings."""

import os
import re
import shutil
import socket
import stat
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from ipaddress import ip_address
from pathlib import Path
from typing import Literal

from msgspec import Struct

from service.cli.parsing import DEFAULT_DATA
from service.cli.runtime import is_served
from service.runtime.data_folder import OTHERS, is_copy, open_to_others, other_thing_in
from service.runtime.scratch import VAULT, leftovers_beside
from service.runtime.settings.settings import LimitsSection, Settings

Level = Literal["ok", "note", "wrong"]

BUILT = datetime(2026, 11, 1, tzinfo=UTC)
"""No clock that is right is before this."""
LITTLE_SPACE, TOO_LITTLE_SPACE = 1 << 30, 100 << 20
"""Bytes."""
NETWORK_FILE_SYSTEMS = frozenset(
    {
        "9p", "afs", "ceph", "cifs", "fuse.glusterfs", "fuse.rclone", "fuse.s3fs", "fuse.sshfs", "lustre", "nfs",
        "nfs4", "smb3", "smbfs",
    }
)  # fmt: skip
"""SQLite's locks and its shared memory do not hold on these."""
LITESTREAM = {
    "events.db": "Litestream copies events.db: once the service is killed, such a copy may be of another log.",
    "keys.db": "Litestream copies keys.db: nothing can be erased while it runs, and its copies keep the erased keys.",
}
"""Seen with 0.5.17; following.py says how. It leaves a folder beside each file that it copies."""
SECRET = re.compile(
    r"\b(sk-[A-Za-z0-9_-]{16,}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|docsmith_\w{36})"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY|://[^/\s:@]+:[^/\s:@]+@"
)


KEY_FILES = ("keys.db", "checkpoint.key", "usage.key")
SHOWN_FILES = 5
"""Limit for the listed files that others can read."""


class Finding(Struct, frozen=True):
    name: str
    level: Level
    says: str
    mend: str = ""
    """A command, or what to write into the settings."""


def look_around(data: Path, settings_file: Path | None, now: datetime) -> Iterator[Finding]:
    yield from _folder(data)
    yield from _clock(now)
    yield from _settings_file(settings_file or Path("docsmith.toml"))


def _folder(data: Path) -> Iterator[Finding]:
    if not data.is_dir():
        if data == DEFAULT_DATA:  # nobody named another: it is not made yet
            yield Finding("data folder", "note", f"There is no folder {data} here yet.", "docsmith serve   # makes it")
        else:
            mend = f"docsmith serve --data {data}   # makes it, unless another folder is meant"
            yield Finding("data folder", "wrong", f"There is no folder {data}.", mend)
        return
    if (other := other_thing_in(data)) is not None:
        says = f"{data} is not a data folder; it holds other things, such as {other!r}."
        yield Finding("data folder", "wrong", says, "--data DIR, or DOCSMITH_DATA, with the right one")
        return
    mode = stat.S_IMODE(data.stat().st_mode)
    if mode & OTHERS:
        yield Finding("permissions", "wrong", f"Others on this machine can look into {data}.", f"chmod 700 {data}")
    elif not os.access(data, os.W_OK | os.X_OK):
        yield Finding("permissions", "wrong", f"{data} cannot be written.", f"sudo chown -R $(id -un) {data}")
    else:
        yield Finding("permissions", "ok", f"{data} is its owner's alone.")
    yield from _open_files(data, is_closed=not mode & OTHERS)
    for left in leftovers_beside(data):
        has_keys = any((left / name).exists() for name in KEY_FILES) or left.name.startswith(VAULT)
        what = "keys of what may be erased later" if has_keys else "an unfinished copy"
        says = f"{left} was left by a backup or restore that was killed, with {what}."
        yield Finding("leftovers", "wrong" if has_keys else "note", says, f"rm -r {left}   # or start the service")
    yield from _space(data)
    kind = file_system(data)
    if kind in NETWORK_FILE_SYSTEMS:
        yield Finding(
            "file system", "wrong", f"{data} is on a network file system ({kind}), where SQLite's locks do not hold.",
            f"cp -a {data} /var/lib/docsmith   # then --data /var/lib/docsmith",
        )  # fmt: skip
    else:
        yield Finding("file system", "ok", f"{kind or 'of this machine'}.")
    if (data / "events.db").exists() and not (data / "keys.db").exists():
        yield Finding(
            "vault", "wrong", "keys.db is missing: what people typed cannot be read.",
            f"docsmith restore BACKUP.tar --vault VAULT.tar --data {data}.new",
        )  # fmt: skip
    elif (data / "events.db").exists():
        yield Finding("vault", "ok", "keys.db is there; back it up apart from the log.")
    if is_copy(data):
        yield Finding(
            "restored copy", "note", "Restored from a backup, and not served until it takes over from the original.",
            f"docsmith take-over --data {data} --yes   # or try it: docsmith serve --drill --data {data}",
        )  # fmt: skip
    for name, says in LITESTREAM.items():
        if (data / f".{name}-litestream").exists():
            mend = f"docsmith backup FOLDER --follow, and no {name} in litestream.yml; rm -r {data}/.{name}-litestream"
            yield Finding("litestream", "wrong", says, mend)
    if (data / "checkpoint.pub").exists():
        yield Finding(
            "checkpoint key", "note", "Keep a copy of checkpoint.pub elsewhere: with one, a rewritten log is found.",
            f"cp {data / 'checkpoint.pub'} /elsewhere/",
        )  # fmt: skip


def _open_files(data: Path, *, is_closed: bool) -> Iterator[Finding]:
    """Yield findings about files that others can read; behind a closed folder only notes, except for keys."""
    count, shown = 0, list[str]()
    for path in open_to_others(data):
        if path.parent == data and path.name in KEY_FILES:
            yield Finding("permissions", "wrong", f"Others can read {path}, which holds keys.", f"chmod 600 {path}")
            continue
        count += 1
        if len(shown) < SHOWN_FILES:
            shown.append(str(path.relative_to(data)))
    if count:
        more = f", and {count - len(shown):,} more" if count > len(shown) else ""
        says = f"In {data} these can be read by others{', once the folder is open' if is_closed else ''}: "
        level: Level = "note" if is_closed else "wrong"
        yield Finding("permissions", level, f"{says}{', '.join(shown)}{more}.", f"chmod -R go= {data}")


def _space(data: Path) -> Iterator[Finding]:
    for what, folder in (("space", data), ("temporary space", Path(tempfile.gettempdir()))):
        free = shutil.disk_usage(folder).free
        says = f"{free >> 20:,} MiB free at {folder}."
        if free < TOO_LITTLE_SPACE:
            yield Finding(what, "wrong", says, f"du -xh {folder} | sort -h | tail")
        else:
            yield Finding(what, "ok" if free >= LITTLE_SPACE else "note", says)


def file_system(folder: Path, mounts: str | None = None) -> str:
    """Return the type of file system that a folder is on, by the kernel's table; empty when it is unknown."""
    if mounts is None:
        try:
            mounts = Path("/proc/self/mounts").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""
    found = ("", "")
    for line in mounts.splitlines():
        parts = line.split(" ")
        if len(parts) > 2:
            at = parts[1].replace("\\040", " ")
            if folder.resolve().is_relative_to(at) and len(at) >= len(found[0]):
                found = at, parts[2]
    return found[1]


def _clock(now: datetime) -> Iterator[Finding]:
    if now < BUILT:
        yield Finding("clock", "wrong", f"The clock says {now:%Y-%m-%d %H:%M} UTC.", "sudo timedatectl set-ntp true")
    else:
        yield Finding("clock", "ok", f"{now:%Y-%m-%d %H:%M} UTC.")


def _settings_file(file: Path) -> Iterator[Finding]:
    try:
        text, mode = file.read_text(encoding="utf-8", errors="replace"), stat.S_IMODE(file.stat().st_mode)
    except OSError:
        return  # the reader of the settings reports it
    if SECRET.search(text):
        mend = f'chmod 600 {file}   # and put it into a variable: api_key_env = "NAME"'
        level: Level = "wrong" if mode & 0o044 else "note"
        says = "which others can read" if mode & 0o044 else "better kept in the environment"
        yield Finding("settings file", level, f"{file} holds what looks like a secret, {says}.", mend)
    else:
        yield Finding("settings file", "ok", f"{file} holds no secret.")


def look_at_settings(data: Path, settings: Settings) -> Iterator[Finding]:
    server = settings.server
    if _is_loopback(server.host):
        proxied = bool(server.public_url)
    else:
        proxied = False
        if not server.public_url:
            yield Finding(
                "public address", "wrong", f"The service listens on {server.host}, but its links do not know its name.",
                '[server] public_url = "https://YOUR.SITE"',
            )  # fmt: skip
        if not server.trusted_proxies:
            yield Finding(
                "TLS", "wrong", "Keys and questions travel unencrypted: no proxy that speaks TLS is named.",
                '[server] host = "127.0.0.1" and trusted_proxies = ["127.0.0.1"], with nginx or Caddy in front',
            )  # fmt: skip
    if server.public_url.startswith("http://") and not _is_loopback(server.public_url[7:].partition(":")[0]):
        yield Finding(
            "TLS", "wrong", f"People reach it at {server.public_url}, unencrypted.", '[server] public_url = "https://…"'
        )
    elif proxied and server.public_url.startswith("https://") and not server.trusted_proxies:
        yield Finding(
            "proxy", "wrong", "There is a proxy in front that no setting names: all callers count as one address.",
            '[server] trusted_proxies = ["127.0.0.1"]',
        )  # fmt: skip
    else:
        yield Finding("address", "ok", server.public_url or f"Only this machine reaches {server.host}.")
    defaults = LimitsSection()
    on = [name for name in defaults.__struct_fields__ if getattr(defaults, name)]
    if off := [name for name in on if not getattr(settings.limits, name)]:
        mend = f"[limits] {off[0]} = {getattr(defaults, off[0])}"
        yield Finding("limits", "note", f"Without limit: {', '.join(off)}.", mend)
    else:
        yield Finding("limits", "ok", "All are on.")
    if not re.fullmatch(r"[^<>\n]+ <[^<>@\s]+@[^<>@\s]+>", settings.agent.author):
        yield Finding(
            "author", "wrong", f"{settings.agent.author!r} cannot be the author of a commit.",
            '[agent] author = "Docs Bot <docs@example.com>"',
        )  # fmt: skip
    elif settings.agent.author.endswith(".localhost>"):
        yield Finding(
            "author", "note", "The commits' author has an address that does not exist.",
            '[agent] author = "Docs Bot <docs@example.com>"',
        )  # fmt: skip
    yield from _port(data, server.host, server.port)


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _port(data: Path, host: str, port: int) -> Iterator[Finding]:
    if is_served(data):
        yield Finding("port", "ok", "The service runs.")
        return
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            trial.bind(address)
    except OSError as error:
        yield Finding(
            "port",
            "wrong",
            f"{host} port {port}: {error.strerror or error}.",
            "docsmith serve --port 8081   # or another",
        )
    else:
        yield Finding("port", "ok", f"{host} port {port} is free.")
