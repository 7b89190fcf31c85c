"""Notices what other instances append and erase: a bell that each batch rings (LISTEN), and a look now and then.

The look finds what no bell rang for: an erasure, a bell that rang while its connection was away, and everything behind
a pooler that changes connections between statements, where LISTEN does nothing.
"""

import asyncio
import contextlib
from collections.abc import Callable

import asyncpg

from eventstore.errors import EventStoreError
from eventstore.postgres.away.away import PATIENCE_SECONDS
from eventstore.postgres.connections import FAILURES, Connections, explained, is_lost
from eventstore.postgres.log_writer import BELL

POLL_SECONDS = 0.2
REST_SECONDS = 0.1
"""The least time between two looks that the bell asks for. Under load, instances append many batches a second, and to
fetch each by itself takes several statements at every other instance. This delays no request: one that asks where the
log ends waits for those events only, which ``look`` fetches at once, as it does this process's own.
"""
_HEAD = "SELECT position, hash, to_jsonb(head) ->> 'held' AS held FROM head"
"""By that name the column may be missing: who only reads may be newer than the tables."""
RETRY_SECONDS = 1.0
"""Before the connection for the bell is made again."""


class Doorbell:
    """See Watch. It has a connection of its own while it watches."""

    def __init__(
        self,
        connections: Connections,
        *,
        refresh: Callable[[], int],
        known: Callable[[], int],
        on_head: Callable[[int, bytes, str | None], None],
    ) -> None:
        self._connections, self._refresh, self._known, self._on_head = connections, refresh, known, on_head
        self._loop = asyncio.get_running_loop()
        self._changed = asyncio.Event()
        self._found = 0
        self._wake = asyncio.Event()
        self._is_asked = self._is_watching = self._is_closed = False
        self._task: asyncio.Future[None] | None = None
        self._has_rung = False
        """Since the last look. Then one is due though nothing watches any more: this machine's copy waits for it."""
        self._looked_at = 0.0
        self._ringing: asyncio.TimerHandle | None = None
        """The look that is due once those who look have rested."""
        self._bell: asyncpg.Connection | None = None

    def begin(self) -> None:
        self._changed.clear()
        self._is_watching = True
        if self._task is None:
            self._task = asyncio.wrap_future(
                asyncio.run_coroutine_threadsafe(self._run(), self._connections.loop), loop=self._loop
            )
        self.again()

    def end(self) -> None:
        self._is_watching = False

    def look(self) -> None:
        self._changed.set()  # there is something: it need not be asked for

    def again(self) -> None:
        self._is_asked = True
        self._look_soon()

    def _look_soon(self) -> None:
        self._connections.loop.call_soon_threadsafe(self._wake.set)

    async def changed(self) -> int:
        await self._changed.wait()
        self._changed.clear()
        return self._found

    def close(self) -> None:
        self._is_closed = True
        with contextlib.suppress(RuntimeError):  # the loop has ended already
            self._look_soon()

    async def _run(self) -> None:
        """Look when the bell rings, when asked to, and now and then. On the loop of the connections."""
        seen_vault = -1
        bell_task = asyncio.create_task(self._keep_listening())  # behind a pooler it would listen for someone else
        try:
            while not self._is_closed:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(POLL_SECONDS if self._is_watching else None):
                        await self._wake.wait()
                self._wake.clear()
                if self._is_closed or not (self._is_watching or self._has_rung):
                    continue
                self._end_rest()
                # Readers get the error themselves; a RuntimeError is of a thread that cannot be started.
                with contextlib.suppress(EventStoreError, MemoryError, RuntimeError, *FAILURES):
                    is_asked, self._is_asked = self._is_asked, False
                    try:
                        head, hash_, held = await self._head()
                        self._on_head(head, hash_, held)
                        vault = await asyncio.to_thread(self._refresh)
                    except BaseException as error:
                        self._is_asked = self._is_asked or is_asked
                        if self._connections.away is not None and is_lost(error):
                            self._connections.away.failed(str(explained(error, self._connections.address.name)))
                        raise
                    if is_asked or vault != seen_vault or head > self._known():
                        self._tell(vault)
                    seen_vault = vault
        finally:
            bell_task.cancel()
            self._end_rest()
            if self._bell is not None:
                self._bell.terminate()

    async def _head(self) -> tuple[int, bytes, str | None]:
        async with self._connections.pooled() as connection:
            try:
                row = await connection.fetchrow(_HEAD, timeout=PATIENCE_SECONDS)
            except (TimeoutError, asyncio.CancelledError):
                connection.terminate()  # it may be cut off without a word: to give it back would wait for it once more
                raise
        if self._connections.away is not None:
            self._connections.away.answered()
        assert row is not None
        return int(row["position"]), bytes(row["hash"]), row["held"]

    async def _keep_listening(self) -> None:
        while not self._connections.address.is_pooled:
            with contextlib.suppress(*FAILURES):  # looking goes on without it
                if self._bell is None or self._bell.is_closed():
                    bell = await self._connections.connect()
                    try:
                        await bell.add_listener(BELL, lambda *_: self._rung())
                    except BaseException:
                        bell.terminate()
                        raise
                    self._bell = bell
                    self._wake.set()  # for what came meanwhile
            await asyncio.sleep(RETRY_SECONDS)

    def _rung(self) -> None:
        loop, self._has_rung = self._connections.loop, True
        if loop.time() >= self._looked_at + REST_SECONDS:
            self._wake.set()
        elif self._ringing is None:
            self._ringing = loop.call_at(self._looked_at + REST_SECONDS, self._wake.set)

    def _end_rest(self) -> None:
        """Forget the bell: the look that begins sees all that it rang for."""
        self._looked_at, self._has_rung = self._connections.loop.time(), False
        if self._ringing is not None:
            self._ringing.cancel()
            self._ringing = None

    def _tell(self, vault: int) -> None:
        with contextlib.suppress(RuntimeError):  # the event loop has ended, and with it all who would listen
            self._loop.call_soon_threadsafe(self._told, vault)

    def _told(self, vault: int) -> None:
        self._found = vault
        self._changed.set()
