"""The data folder: what makes a folder one, and that only its owner can read it."""

import fcntl
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Literal

from msgspec import Struct

from service.domain.errors import Conflict, NotFound

UMASK = 0o077
"""For every process that writes into a data folder: files 600, folders 700, whatever the caller's umask is."""
OTHERS = 0o077
LOG = "events.db"
ELSEWHERE = "store"
"""The file that says where the log is, in a folder that does not have it."""
LOG_COPY = "log-copy.db"
"""The copy of a log that is elsewhere, which is read while that is away: derived, and made again when it is deleted."""
WRAPPING = "wrapping-keys"
"""The folder with the wrapping keys of a vault in PostgreSQL."""
COPY_MARK = "restored.json"
"""The file that restore leaves in a folder until the copy is put to use."""
_DERIVED = ("views.db", "checkpoints.jsonl", "hosted")
"""Made after the log, so a folder with one of these has had a log."""
_OURS = re.compile(
    r"(events|keys|views|usage|sessions|log-copy)\.db.*|server\.lock|instances|hosted|repos|index|widget|websites?|checkpoint.*|usage.*"
    r"|store|store\.new|moved|wrapping-keys|demo\.log|(?:manual|sample)|\.(?:manual|sample)-.*|docsmith\.toml|restored\.json|lost\+found|\.snapshot",
    re.DOTALL,
)
"""Names that a new data folder may hold already: leftovers of a start that did not get far, the demo's copy of the
manual, a settings file, and entries of file systems in the root of a volume.
"""


SPARE_BYTES = 1 << 20
"""With less free than that a disk counts as full: SQLite and git need as much for a moment."""

TroubleKind = Literal["disk_full", "read_only", "unreadable", "write_failed", "log_away"]


class Trouble(Struct, frozen=True):
    """Why a data folder cannot be written."""

    kind: TroubleKind
    says: str
    """One sentence, with what to do."""


def is_data_folder(folder: Path) -> bool:
    return any((folder / name).exists() for name in (LOG, ELSEWHERE, *_DERIVED))


def require_data_folder(data: Path, default: Path) -> None:
    """Raise NotFound ``no_data`` for a folder without a log, so that a command which only reads makes none there."""
    with suppress(FileNotFoundError):
        next(data.iterdir(), None)  # raises NotADirectoryError and PermissionError
    if is_data_folder(data):
        return
    named = "" if data == default else f" --data {data}"
    raise NotFound(
        f"There is no data folder {data}. Name the data folder with --data DIR, or begin one: "
        f"docsmith organization create --name NAME{named}",
        code="no_data",
    )


def make_data_folder(data: Path) -> None:
    """Make the folder if need be, and close it, with everything in it, to other users.

    Raises Conflict ``not_a_data_folder`` for one that holds other things.
    """
    create_private(data)
    tighten(data)


def create_private(data: Path) -> None:
    """Make the folder if need be. Raises Conflict ``not_a_data_folder`` for one that holds other things."""
    require_no_other_things(data)
    data.mkdir(mode=0o700, parents=True, exist_ok=True)


def require_no_other_things(data: Path) -> None:
    """Raise Conflict ``not_a_data_folder`` for a folder that is no data folder and holds other things."""
    if (other := other_thing_in(data)) is not None:
        raise Conflict(
            f"{data} is not a data folder and holds other things ({other!r}). Name a new or empty folder with "
            "--data DIR.",
            code="not_a_data_folder",
        )


def other_thing_in(data: Path) -> str | None:
    """The name of what keeps a folder from being one for data; None for a data folder, and for what can become one."""
    if is_data_folder(data) or not data.exists():
        return None
    return next((entry.name for entry in sorted(data.iterdir()) if not _OURS.fullmatch(entry.name)), None)


def trouble_of(data: Path) -> Trouble | None:
    """Look whether a data folder can be written: its disk is not full, and its files are the process's to write.

    What a look cannot find (a quota, a limit of the process) the log meets: ``EventStore.trouble``.
    """
    try:
        disk = os.statvfs(data)
    except OSError as error:
        return Trouble("unreadable", f"{data} cannot be read: {error.strerror}.")
    if disk.f_flag & os.ST_RDONLY:
        return Trouble("read_only", f"The disk of {data} is read-only: make it writable, and the service goes on.")
    free = disk.f_bavail * disk.f_frsize
    if free < SPARE_BYTES:
        says = f"The disk of {data} is full ({free >> 10} KiB free): make room there, and the service goes on."
        return Trouble("disk_full", says)
    for path in (data, *(data / name for name in (LOG, "keys.db", "views.db"))):
        if path.exists() and not os.access(path, os.W_OK):
            says = f"{path} cannot be written by the user of the service (uid {os.getuid()}): give it the right to."
            return Trouble("read_only", says)
    return None


def full_disk(data: Path | None) -> str:
    """Return what to do when a disk has no room: it may be that of the data, or the one for temporary files."""
    for what, place in (("the data folder", data), ("temporary files (TMPDIR)", Path(tempfile.gettempdir()))):
        with suppress(OSError):
            while place is not None and not place.exists() and place != place.parent:
                place = place.parent
            if place is not None and shutil.disk_usage(place).free < SPARE_BYTES:
                return f"the disk of {what}, {place}, is full: make room there, and nothing is lost"
    return ""


def tighten(data: Path) -> None:
    """Take from other users what they may do in a data folder that was made with a looser umask.

    The whole folder is walked only when it, or an entry at its top, is open: a repository may have 100,000 files.
    """
    try:
        tops = [data, *data.iterdir()]
    except OSError:
        return
    if any(_is_open(path) for path in tops):
        for path in (data, *open_to_others(data)):
            with suppress(OSError):  # another user's, or on a disk that is read-only: doctor names it
                mode = path.lstat().st_mode
                path.chmod(stat.S_IMODE(mode) & ~OTHERS)


def open_to_others(data: Path) -> Iterator[Path]:
    """Yield what lies in the folder, at any depth, and other users may read, write or enter."""
    for folder, folders, files in os.walk(data):
        for name in (*folders, *files):
            if _is_open(path := Path(folder, name)):
                yield path


def is_copy(data: Path) -> bool:
    return (data / COPY_MARK).exists()


def require_served_as(data: Path, *, drill: bool) -> None:
    """Raise Conflict for a restored copy served as the original, and for a drill on anything else."""
    if is_copy(data) and not drill:
        raise Conflict(
            f"{data} is a restored copy, which would send and do again what the original does: go on from it for good "
            f"with docsmith take-over --data {data} --yes, or try it with docsmith serve --drill --data {data}",
            code="restored_copy",
        )
    if drill and not is_copy(data):
        raise Conflict(
            f"{data} is not a restored copy, and --drill runs only one; make one with docsmith restore BACKUP --data "
            "DIR",
            code="not_a_copy",
        )


def _is_open(path: Path) -> bool:
    try:
        mode = path.lstat().st_mode
    except OSError:
        return False
    return not stat.S_ISLNK(mode) and bool(mode & OTHERS)


# Who serves it


class AlreadyServed(Conflict):
    """Another process serves this data folder."""

    code = "already_served"


@contextmanager
def only_server(data: Path, *, reads_only: bool = False) -> Iterator[Callable[[str], None]]:
    """Hold the data folder's lock. It says who holds it, and where that one listens, once the function that this gives
    is called. The kernel releases the lock when this process dies.

    Raises AlreadyServed, with the process id of the one that has it, and Conflict ``not_a_data_folder``.
    """
    if not reads_only:
        make_data_folder(data)
    file = _lock_file(data / "server.lock", reads_only=reads_only)
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(file, 100, 0).decode().partition("\n")[0]
            raise AlreadyServed(f"{data} is served by process {holder} already.") from None

        def say(text: str) -> None:  # over what is there: that needs no space on a full disk
            with suppress(OSError) if reads_only else nullcontext():
                os.ftruncate(file, os.pwrite(file, text.encode(), 0))

        say(f"{os.getpid()}\n")
        yield lambda url: say(f"{os.getpid()}\n{url}\n")
    finally:
        os.close(file)


def _lock_file(file: Path, *, reads_only: bool) -> int:
    if reads_only:
        with suppress(OSError):
            return os.open(file, os.O_RDWR | os.O_CLOEXEC)
        with suppress(OSError):
            return os.open(file, os.O_RDONLY | os.O_CLOEXEC)
        return os.open(file.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    return os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
