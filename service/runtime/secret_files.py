"""Files that hold one new secret, for its owner alone.

A secret is shown once, so it must not be lost between its creation and the file. It is first kept in a file beside the
one that was named, then recorded, then that file gets its name. A process that is killed between leaves the file beside
it, and the next one finds by the log whether its secret was recorded.
"""

import os
from contextlib import suppress
from pathlib import Path

from service.domain.errors import Conflict
from service.runtime.durable import sync_folder

MAX_BYTES = 1_000
MAX_NAME_BYTES = 255 - len("..unfinished")
"""The limit for a file's name, which is part of that of the file beside it."""


def is_there(file: Path) -> bool:
    """Return whether the name is taken, also by a link that leads nowhere."""
    return os.path.lexists(file)


def keep_unfinished(file: Path, secret: str) -> None:
    """Keep a secret beside a file, durably, until ``finish``. Raise OSError, as where the folder does not exist."""
    beside = _beside(file)
    beside.unlink(missing_ok=True)  # of a process that recorded nothing: it may have been opened for others
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as out:
        out.write(f"{secret}\n")
        out.flush()
        os.fsync(descriptor)
    sync_folder(file.parent)


def unfinished(file: Path) -> str | None:
    """Return the secret that is kept beside a file; None when there is none, or it was not written whole."""
    with suppress(OSError, UnicodeDecodeError):
        descriptor = os.open(_beside(file), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, encoding="ascii") as opened:  # a pipe of others does not hold it up
            text = opened.read(MAX_BYTES)
            return text[:-1] if text.endswith("\n") else None
    return None


def finish(file: Path) -> None:
    """Give the file with the secret its name. Raise Conflict for a name that is taken."""
    if is_there(file):
        raise Conflict(f"{file} exists already. Move it away, and apply again: the secret is in {_beside(file)}.")
    _beside(file).rename(file)
    sync_folder(file.parent)


def _beside(file: Path) -> Path:
    return file.with_name(f".{file.name}.unfinished")
