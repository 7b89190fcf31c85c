"""The backends that an event store may have: what test_store_writes.py and test_store_reads.py run on.

A new one is one more entry of BACKENDS, and a new kind of storage needs nothing else to be held to the contract.
"""

import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NamedTuple

from eventstore import EventStore, verify
from tests.eventstore.shapes import opened

ROOT = Path(__file__).parent.parent.parent


class Backend(NamedTuple):
    """A kind of storage."""

    open: Callable[..., Awaitable[EventStore]]
    """Opens the storage that belongs to a folder, making it if need be, as each process does; ``clock`` gives times."""
    is_sound: Callable[[Path], bool]
    """Whether the log of a folder verifies, by itself."""


BACKENDS = {"sqlite": Backend(opened, lambda folder: verify(folder / "events.db").is_sound)}


def start_appender(backend: str, folder: Path, *arguments: object) -> subprocess.Popen[str]:
    """Start another process that appends to the store of a folder (appender.py)."""
    command = [sys.executable, "-m", "tests.eventstore.appender", backend, str(folder), *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=dict(os.environ))
