"""The backends that an event store may have: what test_store_writes.py and test_store_reads.py run on.

A new one is one more entry of BACKENDS, and a new kind of storage needs nothing else to be held to the contract.
"""

import hashlib
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple

from eventstore import EventStore, verify
from eventstore.postgres.connections import Address, Connections
from eventstore.postgres.postgres_store import PostgresEventStore
from eventstore.postgres.verification import verify_tables
from tests.eventstore.cluster import server_address
from tests.eventstore.shapes import opened

ROOT = Path(__file__).parent.parent.parent


class Backend(NamedTuple):
    """A kind of storage."""

    open: Callable[..., Awaitable[EventStore]]
    """Opens the storage that belongs to a folder, making it if need be, as each process does; ``clock`` gives times."""
    is_sound: Callable[[Path], bool]
    """Whether the log of a folder verifies, by itself."""


async def opened_tables(folder: Path, **options: Any) -> EventStore:
    """Open the store of a folder in PostgreSQL: a schema of its own on the server, for the log and for the vault."""
    log, vault = addresses(folder)
    return await PostgresEventStore.open(log, vault=vault, **options)


def addresses(folder: Path) -> tuple[Address, Address]:
    """Return the addresses of a folder's log and vault, which exist."""
    server, name = server_address(), "of_" + hashlib.sha256(str(folder).encode()).hexdigest()[:16]
    connections = Connections.open(Address(server))
    try:
        for schema in (f"{name}_log", f"{name}_vault"):
            connections.fetch(f"CREATE SCHEMA IF NOT EXISTS {schema}")
    finally:
        connections.close()
    return Address(f"{server}&search_path={name}_log"), Address(f"{server}&search_path={name}_vault")


BACKENDS = {
    "sqlite": Backend(opened, lambda folder: verify(folder / "events.db").is_sound),
    "postgres": Backend(opened_tables, lambda folder: verify_tables(addresses(folder)[0]).is_sound),
}


def start_appender(backend: str, folder: Path, *arguments: object) -> subprocess.Popen[str]:
    """Start another process that appends to the store of a folder (appender.py)."""
    command = [sys.executable, "-m", "tests.eventstore.appender", backend, str(folder), *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=dict(os.environ))
