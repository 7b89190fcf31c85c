"""The files that ``docsmith init`` prints, with the names of a program and of a data folder put in."""

import re
from importlib import resources
from pathlib import Path

from service.domain.errors import Invalid

DATA = Path("/var/lib/docsmith")
"""Where the service's own unit has it."""


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
    common = filled("copies.conf", path=_quoted(str(data))).removesuffix("\n")
    return filled(name, common=common, program=_quoted(program, "$"), data=_quoted(str(data), "$"))


def _quoted(word: str, doubled: str = "") -> str:
    """A path, or with ``doubled`` a word of a command (systemd.syntax, "Quoting"; systemd.service, "Command lines")."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"')
    for character in f"%{doubled}":
        escaped = escaped.replace(character, 2 * character)
    return f'"{escaped}"' if set(word) & set(" ';#\"\\") else escaped
