"""What to do about a damaged file of the data folder."""

import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

LITTLE_BYTES = 1 << 20
"""With less than that, what SQLite calls an input or output error is a full disk."""


def next_step(says: str, data: Path) -> str:
    """To follow a message of the event store about one of its files, whose name begins it; empty if there is none."""
    if "disk I/O error" in says or "disk is full" in says:
        return full_disk(data)
    if not any(word in says for word in ("malformed", "damaged", "not a database", "corrupt")):
        return ""
    match says.partition(":")[0]:
        case "views.db":
            return (
                "; docsmith serve makes this file anew when it starts. If it does not, delete it and start again: "
                f"rm {data / 'views.db'}*"
            )
        case "keys.db":
            return (
                "; without it nobody can read what people typed. Restore a backup and its vault into a new folder: "
                f"docsmith restore BACKUP --vault VAULT --data {data}-2"
            )
        case "events.db":
            return (
                f"; docsmith audit verify --data {data} says where. Restore a backup into a new folder: docsmith "
                f"restore BACKUP --vault VAULT --data {data}-2"
            )
        case _:
            return f"; docsmith doctor --data {data} says what is wrong with it"


def full_disk(data: Path | None) -> str:
    """What to do when a disk has no room: it may be that of the data, or the one for temporary files."""
    for what, place in (("the data folder", data), ("temporary files (TMPDIR)", Path(tempfile.gettempdir()))):
        with suppress(OSError):
            while place is not None and not place.exists() and place != place.parent:
                place = place.parent
            if place is not None and shutil.disk_usage(place).free < LITTLE_BYTES:
                return f"; the disk of {what}, {place}, is full: make room there, and nothing is lost"
    return ""
