"""The installation as a whole: how far its log and views are, what its data folder takes, and who is home."""

import os
import shutil
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from eventstore import EventStore, ProjectionStatus, Views
from service.ports.shared.instances import Peer

WALK_SECONDS = 1.0
"""For all folders together: of a larger one the files that were counted by then are shown."""
PARTS = {
    "Log of all events": ("events.db", "events.db-wal", "events.db-shm"),
    "Copy of the log, read while it is away": ("log-copy.db", "log-copy.db-wal", "log-copy.db-shm"),
    "Vault: keys of encrypted text": ("keys.db", "keys.db-wal", "keys.db-shm"),
    "Tables made from the log": ("views.db", "views.db-wal", "views.db-shm"),
    "Search indexes": ("index",),
    "Hosted repositories": ("hosted",),
    "Clones of repositories": ("repos",),
    "Copies of websites": ("websites",),
    "Earlier versions of the widget": ("widget",),
    "Uploads": ("uploads",),
}
"""Files and folders of the data folder, by what people call them."""


class PartSize(Struct, frozen=True):
    name: str
    size: int
    """Bytes."""
    is_partial: bool = False
    """There is more: the time to count was over."""


class Disk(Struct, frozen=True):
    free: int
    total: int
    parts: tuple[PartSize, ...]

    @property
    def used_share(self) -> float:
        return 1 - self.free / self.total if self.total else 0.0


class Progress(Struct, frozen=True):
    head: int
    """The position of the log's last event."""
    lag: int
    """Events that the slowest view has not applied."""
    failed: tuple[ProjectionStatus, ...]


async def read_progress(store: EventStore, views: Views) -> Progress:
    status = views.status()
    failed = tuple(one for one in status if one.failed is not None)
    return Progress(await store.head(), max((one.lag for one in status), default=0), failed)


def explain_homes(peers: Sequence[Peer], *, is_home: bool = False) -> str | None:
    """Return what is wrong where several instances are home; else None. ``is_home``: this instance is one of them."""
    homes = sorted(peer.url for peer in peers if peer.is_home and peer.url)
    if len(homes) + is_home < 2:
        return None
    named = ["this instance", *homes] if is_home else homes
    return (
        f"{len(named)} instances are home to the embedded code host: {', '.join(named)}. Set home = true in "
        "[instances] of the one that has its repositories, and home = false on the others."
    )


def measure_disk(data: Path, hosted: Path) -> Disk:
    """Return what the data folder takes, and its disk; and what the hosted repositories take, in a folder that may be
    elsewhere. It walks folders: call it on a thread. Raises OSError.
    """
    usage, until = shutil.disk_usage(data), time.monotonic() + WALK_SECONDS
    named = {name for names in PARTS.values() for name in names}
    folders = {"hosted": hosted}
    parts = [
        _measured(title, [folders.get(name, data / name) for name in names], until) for title, names in PARTS.items()
    ]
    parts.append(_measured("Everything else", [one for one in data.iterdir() if one.name not in named], until))
    return Disk(usage.free, usage.total, tuple(one for one in parts if one.size))


def _measured(title: str, paths: list[Path], until: float) -> PartSize:
    size = 0
    for path in paths:
        for file in _files(path):
            size += file
            if time.monotonic() > until:
                return PartSize(title, size, is_partial=True)
    return PartSize(title, size)


def _files(path: Path) -> Iterator[int]:
    """Yield the sizes of a file, or of all files below a folder; links are not followed."""
    try:
        if not path.is_dir() or path.is_symlink():
            yield path.lstat().st_size
            return
        with os.scandir(path) as entries:
            found = list(entries)
    except OSError:  # removed meanwhile, or not ours to read
        return
    for entry in found:
        yield from _files(Path(entry.path))
