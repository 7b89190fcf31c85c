"""Turns at the one stream of accepted requests: an advisory lock, which the server gives in the order of asking."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import datetime

import structlog

from eventstore.errors import EventStoreError
from eventstore.postgres.connections import FAILURES, Session
from service.adapters.postgres.tables import Tables
from service.ports.shared.turns import MAX_TURN_SECONDS

log = structlog.get_logger()

_LOCK = 0x44734164
"""'DsAd', with the schema: several logs may be in one database."""
# One statement for the server to take, and one way there and back. A lock of a transaction works behind a pooler, too.
_BEGIN = (
    f"BEGIN; SET LOCAL lock_timeout = '{MAX_TURN_SECONDS}s'; SET LOCAL synchronous_commit = off;"
    f" SET LOCAL idle_in_transaction_session_timeout = '{MAX_TURN_SECONDS}s';"
    f" SELECT pg_advisory_xact_lock({_LOCK}, hashtext(current_schema()))"
)
_TIME = "SELECT clock_timestamp()"
TIME_SECONDS = 10.0
"""Between two questions for the server's time: each is one more way there and back, and two clocks part slowly."""


class TableTurns:
    """See Turns. The clock that all share is the server's."""

    def __init__(
        self,
        tables: Tables,
        *,
        is_alone: Callable[[], bool] = lambda: False,
        seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        """``is_alone``: there is no other instance now, and no turn is needed."""
        self._tables, self._is_alone, self._seconds = tables, is_alone, seconds
        self._timed_at: float | None = None
        """When the server's time was asked for last, in ``seconds``."""
        self._is_hindered = False
        self._ending: set[asyncio.Future[None]] = set()

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[datetime | None]:
        asks = self._timed_at is None or self._seconds() - self._timed_at >= TIME_SECONDS
        if self._is_alone() and not asks:
            yield None
            return
        held, time_there = AsyncExitStack(), None
        try:
            async with asyncio.timeout(MAX_TURN_SECONDS):
                if asks:
                    self._timed_at = self._seconds()
                if self._is_alone():
                    time_there = (await self._tables.fetch(_TIME))[0][0]
                else:
                    time_there = await self._tables.on_loop(_take(held, self._tables, asks=asks))
        except (EventStoreError, TimeoutError) as error:
            if not self._is_hindered:
                log.warning("requests are counted without turns", reason=str(error) or type(error).__name__)
            self._is_hindered = True
        else:
            self._is_hindered = False
        try:
            yield time_there
        finally:
            ending = asyncio.ensure_future(self._give_up(held))  # the next one need not wait for that
            self._ending.add(ending)
            ending.add_done_callback(self._ending.discard)

    async def _give_up(self, held: AsyncExitStack) -> None:
        with suppress(EventStoreError, *FAILURES):
            await self._tables.on_loop(held.aclose())


async def _take(held: AsyncExitStack, tables: Tables, *, asks: bool) -> datetime | None:
    """Begin a turn; return the server's time if it ``asks`` for that. On the loop of the tables, as all below."""
    async with AsyncExitStack() as stack:
        connection = await stack.enter_async_context(tables.pooled())
        stack.push_async_callback(_end, connection)
        await connection.execute(_BEGIN)
        time_there = await connection.fetchval(_TIME) if asks else None
        held.push_async_exit(stack.pop_all())
        return time_there


async def _end(connection: Session) -> None:
    with suppress(*FAILURES):  # the server has ended it
        await connection.execute("ROLLBACK")
