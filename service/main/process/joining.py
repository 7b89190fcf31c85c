"""Makes a process an instance of its log: by a file of the data folder, or by a row where the log is in PostgreSQL."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit

from msgspec import Struct

from service import __version__
from service.integrity.log_place import log_place
from service.integrity.shared_secrets import CLUSTER, new_secret
from service.ports.shared.instances import Instances
from service.ports.shared.internal_http import InternalHttp
from service.ports.shared.shared_secrets import SharedSecrets
from service.runtime.settings.settings import Settings
from service.workers.instances import Instance

if TYPE_CHECKING:
    from eventstore import LogPlace
    from service.adapters.postgres.tables import Tables


async def _for_no_one(url: str, *, is_home: bool) -> None:
    """The instances of a data folder are on one machine, and only one of them serves."""


class ServeAt(Protocol):
    async def __call__(self, url: str, *, is_home: bool) -> None:
        """Let the others know where this one listens, and whether it has the repositories of the embedded code host.

        Raises StoreUnavailable and its kinds.
        """


class Joined(Struct, frozen=True):
    instances: Instances
    tables: "Tables | None" = None
    """The service's tables in the log's database; None where the log is in a data folder."""
    serve_at: ServeAt = _for_no_one


class Others(Struct, frozen=True):
    """How this instance reaches the others of its log."""

    http: InternalHttp
    key: bytes
    """The secret that the instances share."""


@asynccontextmanager
async def reaching_others(joined: Joined, secrets: SharedSecrets) -> AsyncIterator[Others | None]:
    """Yield how to reach the others; None where there cannot be any. Raise as ``SharedSecrets.obtain`` does."""
    if joined.tables is None:
        yield None
        return
    from service.adapters.internal_http import AiohttpInternalHttp

    key = await secrets.obtain(CLUSTER, new_secret)
    http = AiohttpInternalHttp(key)
    try:
        yield Others(http, key)
    finally:
        await http.close()


@asynccontextmanager
async def join(data: Path, settings: Settings, *, serves: bool) -> AsyncIterator[Joined]:
    """Be an instance of the log of a data folder. ``serves``: it is the service, and no command.

    Raises what ``log_place`` raises, StoreUnavailable and its kinds, StoreNewer, OSError.
    """
    place = log_place(data)
    with Instance(data) as instance:
        if place.is_local:
            yield Joined(instance)
        else:
            async with _in_tables(place, settings, instance, serves=serves) as joined:
                yield joined


@asynccontextmanager
async def _in_tables(
    place: "LogPlace", settings: Settings, instance: Instance, *, serves: bool
) -> AsyncIterator[Joined]:
    """Be an instance by a row, under the name of the file: what another process of this folder left by a crash is known
    to have ended, without a wait for its lease.
    """
    from eventstore.postgres.place import TablePlace
    from service.adapters.postgres.instances import TableInstances
    from service.adapters.postgres.tables import Tables

    assert isinstance(place, TablePlace)
    database, mine = place.log, settings.instances
    tables = await Tables.open(database, "service_log")
    try:
        instances = await TableInstances.open(
            tables, name=instance.name, version=__version__, ended=instance.crashed, may_lead=serves
        )

        async def serve_at(url: str, *, is_home: bool) -> None:
            url = mine.url.rstrip("/") or await asyncio.to_thread(internal_url, url, database)
            await instances.serve_at(url, is_home=is_home)

        try:
            yield Joined(instances, tables, serve_at)
        finally:
            await instances.close()
    finally:
        await tables.close()


def internal_url(listening: str, database: str) -> str:
    """Return the URL by which other instances reach this one. If it listens on all addresses, take the one that faces
    the database.
    """
    parts = urlsplit(listening)
    try:
        if not ip_address(parts.hostname or "").is_unspecified:
            return listening
    except ValueError:
        return listening
    host = _address_facing(urlsplit(database).netloc.rpartition("@")[2].partition(",")[0])
    return f"http://{f'[{host}]' if ':' in host else host}:{parts.port}"


def _address_facing(host: str) -> str:
    """Return this machine's address from which it reaches a host; the loopback address for no or an unknown one."""
    name = urlsplit(f"//{host}").hostname
    with suppress(OSError):
        for family, kind, protocol, _, address in socket.getaddrinfo(name, 9, type=socket.SOCK_DGRAM) if name else ():
            with socket.socket(family, kind, protocol) as out:
                out.connect(address)  # sends nothing
                return str(out.getsockname()[0])
    return "127.0.0.1"
