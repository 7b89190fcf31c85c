"""Says that a log is in use: an advisory lock, for as long as the connection that took it lives.

Any number of services share it. One who moves the log, or puts another in its place, takes it for itself. A connection
can be lost while both ends live on, and with it the lock. It is then taken again at once; where the log was taken for
another use meanwhile, this one has to stop.
"""

import asyncio
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from typing import Self

import asyncpg

from eventstore.errors import StoreBusy
from eventstore.postgres.connections import CONNECT_SECONDS, FAILURES, Address, Connections

_SERVED = 0x45765376
"""'EvSv': the advisory lock of those who use a log. A program from before several could share it takes it alone."""
_SHARED, _ALONE = "SELECT pg_try_advisory_lock_shared($1)", "SELECT pg_try_advisory_lock($1)"
_SHARED_BEGUN, _ALONE_BEGUN = "SELECT pg_try_advisory_xact_lock_shared($1)", "SELECT pg_try_advisory_xact_lock($1)"
"""Behind a pooler: it gives a connection to one client for as long as that one's transaction lasts."""
LOOK_SECONDS = 5.0
"""Between two looks whether the connection still answers; the end of one is noticed at once."""
RETRY_SECONDS = 1.0
TRIES = 20
"""Times that the lock is asked for, a tenth of a second apart, while the session of before comes to its end."""
_NOTICE = "SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3"
"""Lets the server notice within half a minute that this machine is gone; by default that takes it two hours."""


class Use:
    """The right to use a log, alone or together with others. Its methods are for other threads, and may block."""

    def __init__(self, connections: Connections, *, is_shared: bool) -> None:
        self.lost: str | None = None
        """Why this one may not use the log any more; None while it may."""
        self._connections, self._is_shared = connections, is_shared
        self._connection: asyncpg.Connection | None = None
        self._session: tuple[object, ...] | None = None
        """Names the session that had the lock last: its process and when that began."""
        self._gone = asyncio.Event()
        self._keeping: Future[None] | None = None

    @classmethod
    def take(cls, address: Address, *, is_shared: bool) -> Self:
        """Raise StoreBusy where another has it who does not share it, StoreUnavailable and its kinds."""
        with ExitStack() as undo:
            use = cls(Connections.open(address), is_shared=is_shared)
            undo.callback(use.close)
            if not use._connections.run(use._lock()):
                raise StoreBusy(
                    f"the log in {address.name} is being moved or restored; start again when that is done"
                    if is_shared
                    else f"another service uses the log in {address.name}; stop it first"
                )
            use._keeping = asyncio.run_coroutine_threadsafe(use._keep(), use._connections.loop)
            undo.pop_all()
            return use

    def close(self) -> None:
        """Let go of the log."""
        if self._keeping is not None:
            self._keeping.cancel()
        with suppress(Exception):  # it is closed, or the connection is gone
            self._connections.run_plainly(self._let_go())
        self._connections.close()

    async def _lock(self) -> bool:
        connection, is_pooled = await self._connections.connect(), self._connections.address.is_pooled
        shared, alone = (_SHARED_BEGUN, _ALONE_BEGUN) if is_pooled else (_SHARED, _ALONE)
        try:
            # A pooler's connections are others' as well: none of theirs is ended, and no setting of theirs is changed.
            await connection.execute("BEGIN" if is_pooled else _NOTICE)
            ended = (
                self._session is not None
                and not is_pooled
                and await connection.fetch(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = $1 AND backend_start = $2",
                    *self._session,
                )
            )
            for _ in range(TRIES if ended else 1):  # the server may not know yet that its old connection is gone
                if await connection.fetchval(shared if self._is_shared else alone, _SERVED):
                    row = await connection.fetchrow(
                        "SELECT pid, backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid()"
                    )
                    self._session = None if row is None else tuple(row)
                    self._gone.clear()
                    connection.add_termination_listener(lambda _: self._gone.set())
                    self._connection = connection
                    return True
                await asyncio.sleep(0.1)
        except BaseException:
            connection.terminate()
            raise
        connection.terminate()
        return False

    async def _keep(self) -> None:
        """Take the lock again whenever its connection was lost, until another has it."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_SECONDS):
                    await self._gone.wait()
            try:
                if self._connection is not None and not self._connection.is_closed():
                    await self._connection.fetchval("SELECT 1")
                elif not await self._lock():
                    name = self._connections.address.name
                    self.lost = f"the connection to {name} was lost for a time, and the log there is in other use now"
                    return
            except FAILURES:
                if self._connection is not None:
                    self._connection.terminate()
                await asyncio.sleep(RETRY_SECONDS)

    async def _let_go(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close(timeout=CONNECT_SECONDS)
