"""The files that ``docsmith init`` prints, with the names of a program and of a data folder put in."""

import re
import stat
from collections.abc import Iterable
from importlib import resources
from pathlib import Path

from service.domain.errors import Invalid

DATA = Path("/var/lib/docsmith")
"""Where the service's own unit has it."""

CLOSED = ("/home", "/root", "/run/user", "/tmp", "/var/tmp")  # noqa: S108 - nothing is written there
"""Folders that the units hide from the service: ProtectHome= and PrivateTmp= (systemd.exec, "Sandboxing")."""


def filled(name: str, **words: str) -> str:
    """Return a file of the folder ``files`` with each ``{word}`` that is given put in."""
    text = (resources.files("service.cli.setup") / "files" / name).read_text("utf-8")
    return re.sub(r"\{(\w+)\}", lambda found: words.get(found[1], found[0]), text) if words else text


def recipe(name: str, program: str, data: Path) -> str:
    """Return what systemd needs for copies of a data folder: ``backup.sh`` or ``docsmith-follow.service``.

    Raise Invalid when the folder's name cannot be in a unit file.
    """
    if not str(data).isprintable():
        raise Invalid(f"{str(data)!r} cannot be in a unit file. Choose a data folder with printable characters only.")
    common = filled("copies.conf", path=quoted(str(data))).removesuffix("\n")
    return filled(name, common=common, program=quoted(program, "$"), data=quoted(str(data), "$"))


def out_of_reach(files: Iterable[Path]) -> Path | None:
    """Return the first file or folder that a unit's user cannot read; None where all can be read."""
    for named in files:
        for path in (named, named.resolve()):
            if any(path.is_relative_to(folder) for folder in CLOSED) or not _is_for_all(path):
                return path
    return None


def _is_for_all(path: Path) -> bool:
    """Return whether every user may read a file, or enter a folder, and reach it."""
    try:
        return bool(path.stat().st_mode & stat.S_IROTH) and all(
            folder.stat().st_mode & stat.S_IXOTH for folder in path.parents
        )
    except OSError:
        return False


def quoted(word: str, doubled: str = "") -> str:
    """A path, or with ``doubled`` a word of a command (systemd.syntax, "Quoting"; systemd.service, "Command lines")."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"')
    for character in f"%{doubled}":
        escaped = escaped.replace(character, 2 * character)
    return f'"{escaped}"' if set(word) & set(" ';#\"\\") else escaped
