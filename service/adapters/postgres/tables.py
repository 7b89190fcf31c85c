"""The service's tables in one database: made at the first use, and asked from the event loop.

Two databases have some: that of the log (``service_log``: instances and counts) and that of the vault
(``service_vault``: secrets and sessions).
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from typing import Any, Literal, Self, TypeVar, cast

from eventstore.errors import StoreClosed
from eventstore.postgres.connections import FAILURES, Address, Connections, Rows, Session, explained
from eventstore.postgres.schema import prepare

T = TypeVar("T")

MIGRATIONS = "service.adapters.postgres.migrations"
Kind = Literal["service_log", "service_vault"]


class Tables:
    """Connections to one database that has the tables of the service. They live on a loop of their own thread."""

    def __init__(self, connections: Connections) -> None:
        self._connections, self._is_closed = connections, False

    @classmethod
    async def open(cls, address: str, kind: Kind) -> Self:
        """Connect, and make the tables if need be. Raise StoreUnavailable and its kinds, StoreNewer."""
        return cls(await asyncio.to_thread(_opened, address, kind))

    @classmethod
    async def open_to_read(cls, address: str) -> Self:
        """Open tables as they are, even while the database is away: then each statement fails."""
        return cls(await asyncio.to_thread(Connections.open, Address(address), read_only=True))

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        return self._connections.loop

    def pooled(self) -> AbstractAsyncContextManager[Session]:
        """Lend a connection. For the loop of this object."""
        return self._connections.pooled()

    async def run(self, work: Callable[[Session], Awaitable[T]]) -> T:
        """Do something with a connection, and wait for it.

        Raises:
            StoreUnavailable and its kinds, StoreCorrupt: in place of asyncpg's errors.
        """

        async def done() -> T:
            async with self.pooled() as connection:
                return await work(connection)

        return await self.on_loop(done())

    async def fetch(self, sql: str, *values: object) -> Rows:
        """Return the rows of one statement. Raises what ``run`` raises."""
        return await self.run(lambda connection: cast("Awaitable[Rows]", connection.fetch(sql, *values)))

    async def on_loop(self, work: Coroutine[Any, Any, T]) -> T:
        """Do something on the loop of this object. Raises what ``run`` raises."""
        if self._is_closed:
            work.close()
            raise StoreClosed("the tables are closed")
        try:
            return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(_awaited(work), self.loop))
        except FAILURES as error:
            raise explained(error, self._connections.address.name) from error

    async def close(self) -> None:
        self._is_closed = True
        await asyncio.to_thread(self._connections.close)


async def _awaited(work: Coroutine[Any, Any, T]) -> T:
    """Do something. Once it is cancelled no one hears how it fails, such as that a connection that hangs is lost."""
    try:
        return await work
    except FAILURES:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise asyncio.CancelledError from None
        raise


def _opened(address: str, kind: Kind) -> Connections:
    connections = Connections.open(Address(address))
    try:
        prepare(connections, kind, read_only=False, migrations=MIGRATIONS)
    except BaseException:
        connections.close()
        raise
    return connections
