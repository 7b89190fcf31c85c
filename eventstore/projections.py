"""From the log to tables that are easy to query.

The tables and the position up to which they hold are in one file and change in one transaction, so they never differ;
the file is derived, and made again when it is deleted. Several processes may keep one file up to date: each reads the
position inside of its write transaction, and what another has applied already is not applied twice. All of them
have to register the same projections, since the tables of others are dropped.
"""

import asyncio
import contextlib
import sqlite3
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import aiosqlite
from msgspec import Struct

from eventstore.errors import EventStoreError, StoreClosed, StoreReadOnly, StoreUnavailable, lacks_memory
from eventstore.events import RecordedEvent
from eventstore.sqlite import files, view_file
from eventstore.store import EventStore

T = TypeVar("T")

PAGE = 1_000
"""Events in one transaction."""
QUERY_CONNECTIONS = 3
RETRY_SECONDS = 0.5
"""After the file or the log could not be used."""


class ProjectionStatus(Struct, frozen=True):
    name: str
    position: int
    lag: int
    """Events that it has yet to apply."""
    failed: str | None
    """Why it has stopped, if it has: it goes on at the next start."""


class Views:
    """The projections' tables, kept up to date with a store."""

    def __init__(
        self,
        path: Path,
        store: EventStore,
        runs: list[view_file.Run],
        db: sqlite3.Connection,
        queries: list[aiosqlite.Connection],
    ) -> None:
        self._path, self._store, self._runs, self._db = path, store, runs, db
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="views")
        self._queries = queries
        self._idle_queries: asyncio.Queue[aiosqlite.Connection] = asyncio.Queue()
        for query in queries:
            self._idle_queries.put_nowait(query)
        self._waiting: list[_Waiting] = []
        self._head = 0
        self._failure: EventStoreError | None = None
        self._waits = True
        self._is_closed = False

    @classmethod
    async def open(cls, path: Path, store: EventStore, projections: Sequence[view_file.Projection]) -> Self:
        """Open the file, making it and the projections' tables if need be, and dropping what no projection owns.

        Raises:
            StoreUnavailable and its kinds, StoreCorrupt: about the file; deleting it is safe.
            ValueError: two projections of one name.
        """
        if len({projection.name for projection in projections}) < len(projections):
            raise ValueError("two projections have the same name")
        db = await asyncio.to_thread(view_file.open_file, path)
        try:
            runs = [view_file.Run(projection) for projection in projections]
            await asyncio.to_thread(view_file.prepare, db, path, runs)
            for run in runs:
                if not await _is_of(store, run):
                    await asyncio.to_thread(view_file.start_over, db, path, run)
            # aiosqlite fits here: a query is one statement, so it is one trip to the connection's thread.
            queries = [await _connect_for_queries(files.uri(path, read_only=True)) for _ in range(QUERY_CONNECTIONS)]
        except BaseException:
            db.close()
            raise
        return cls(path, store, runs, db, queries)

    @classmethod
    async def open_to_read(
        cls, path: Path, store: EventStore, projections: Sequence[view_file.Projection], *, away: str | None = None
    ) -> Self:
        """Open a file that cannot be written, as it is: queries are answered, and nothing is kept up to date.

        ``away``: why the log does not answer, of a file that can be written: no one waits for what it has not seen.

        Raises:
            StoreUnavailable and its kinds, StoreCorrupt: about the file, or it was made by another version.
        """
        db = await asyncio.to_thread(files.connect_offline, path)
        try:
            runs = [view_file.Run(projection) for projection in projections]
            await asyncio.to_thread(view_file.read_positions, db, path, runs)
            address = await asyncio.to_thread(files.offline_uri, path)
            queries = [await _connect_for_queries(address) for _ in range(QUERY_CONNECTIONS)]
        except BaseException:
            db.close()
            raise
        views = cls(path, store, runs, db, queries)
        views._failure = StoreReadOnly(f"{path.name} cannot be written", file=path.name)
        if away is not None:
            views._failure, views._waits = StoreUnavailable(away), False
        return views

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    # Keeping up

    async def run(self) -> None:
        """Follow the store until cancelled. What may pass (a full disk, a locked file) is tried again."""
        while True:
            try:
                await self.catch_up()
                self._failure = None
                await self._follow()
            except StoreClosed:
                raise
            except EventStoreError as error:
                self._failure = error
                await asyncio.sleep(RETRY_SECONDS)
            except (MemoryError, RuntimeError) as error:
                if not lacks_memory(error):
                    raise
                self._failure = StoreUnavailable(f"{type(error).__name__}: {error}")
                await asyncio.sleep(RETRY_SECONDS)

    async def catch_up(self, *, progress: Callable[[Sequence[ProjectionStatus]], None] | None = None) -> None:
        """Apply everything that is in the log so far; ``progress`` is called after each page.

        A projection that starts from nothing, because it is new or has a new name, holds up no other: those ahead come
        first, and go on following the log meanwhile.

        Raises:
            StoreUnavailable and its kinds, StoreCorrupt: about the log or the file; what was applied stays.
        """
        target = await self._store.head()
        self._head = max(self._head, target)
        while any(run.position < target for run in self._healthy()):
            positions = {run.position for run in self._healthy()}
            # Those that are together read on to the target; only others have to know how far the log is meanwhile.
            head = target if len(positions) == 1 else await self._store.head()
            for position in sorted((position for position in positions if position < head), reverse=True):
                events = await self._store.read_all(after=position, limit=PAGE)
                if not events:  # it was away meanwhile, and what was read is a copy that is behind
                    raise StoreUnavailable(f"the log does not show position {position + 1} just now")
                await self._apply([run for run in self._healthy() if run.position == position], events)
                if progress is not None:
                    progress(self.status())

    async def _follow(self) -> None:
        """Apply what comes, until a projection turns out to be elsewhere than the others."""
        position = max((run.position for run in self._healthy()), default=self._head)
        if any(run.position < position for run in self._healthy()):
            return
        batches = self._store.follow(after=position)
        async with contextlib.aclosing(batches):
            async for batch in batches:
                for start in range(0, len(batch), PAGE):
                    events = batch[start : start + PAGE]
                    await self._apply(self._healthy(), events)
                    position = events[-1].position
                    if any(run.position < position for run in self._healthy()):
                        return

    async def _apply(self, runs: list[view_file.Run], events: Sequence[RecordedEvent]) -> None:
        if not events:
            return
        self._head = max(self._head, events[-1].position)
        if runs:
            await self._on_thread(lambda: view_file.apply(self._db, runs, events))
        for waiting in list(self._waiting):
            if not waiting.future.done():
                reached = self._reached(waiting.projections)
                if reached is None or waiting.position <= reached:
                    waiting.future.set_result(None)

    async def wait_for(
        self, position: int, timeout_seconds: float = 5.0, *, projections: Collection[str] | None = None
    ) -> None:
        """Return once each projection, or each of those named, has applied the event at a position; failed ones apart.

        Raises:
            TimeoutError: not within that time.
            StoreUnavailable: it cannot, because all of these have failed or the file cannot be written.
        """
        reached = self._reached(projections)
        if not self._waits:
            return
        if reached is None or reached < position:
            waiting = _Waiting(position, projections, asyncio.get_running_loop().create_future())
            self._waiting.append(waiting)
            try:
                if reached is not None:
                    async with asyncio.timeout(timeout_seconds):
                        await waiting.future
            except TimeoutError:
                if self._failure is not None:
                    raise StoreUnavailable(str(self._failure)) from self._failure
                raise
            finally:
                self._waiting.remove(waiting)
        if self._reached(projections) is None:
            raise StoreUnavailable("every projection has failed")

    @property
    def trouble(self) -> str | None:
        """Return why no projection is kept up to date just now, when the file or the log cannot be used."""
        return None if self._failure is None else str(self._failure)

    def status(self) -> list[ProjectionStatus]:
        """Return how each projection is doing; while the file or the log cannot be used, all of them say so."""
        return [
            ProjectionStatus(run.name, run.position, max(self._head - run.position, 0), run.failed or self.trouble)
            for run in self._runs
        ]

    # Asking

    async def query(self, sql: str, params: Sequence[Any] | Mapping[str, Any] = ()) -> list[sqlite3.Row]:
        """Return the rows of a SELECT.

        Raises:
            StoreClosed, StoreUnavailable and its kinds, StoreCorrupt: about the file. sqlite3.Error: about the SELECT.
        """
        if self._is_closed:
            raise StoreClosed("the views are closed")
        db = await self._idle_queries.get()
        try:
            return list(await db.execute_fetchall(sql, params))
        except sqlite3.Error as error:
            if view_file.is_of_the_file(error):
                raise view_file.explained(error, self._path) from error
            raise
        finally:
            self._idle_queries.put_nowait(db)

    async def query_one(self, sql: str, params: Sequence[Any] | Mapping[str, Any] = ()) -> sqlite3.Row | None:
        """Return the first row of a SELECT; see ``query``."""
        rows = await self.query(sql, params)
        return rows[0] if rows else None

    # Forgetting, closing

    async def scrub(self) -> None:
        """Empty the WAL, so that rows which were deleted or overwritten are in no file any more.

        Within the file itself, deleted rows are overwritten at once. For use after an erasure has been applied.

        Raises:
            StoreBusy: readers kept it from happening for too long.
        """
        await self._on_thread(lambda: files.empty_wal(self._db, self._path))

    async def close(self) -> None:
        """Let the transaction under way finish, then close; again does nothing."""
        if self._is_closed:
            return
        self._is_closed = True
        for query in self._queries:
            await query.close()
        await asyncio.to_thread(self._thread.shutdown)
        self._db.close()

    def _healthy(self) -> list[view_file.Run]:
        return [run for run in self._runs if run.failed is None]

    def _reached(self, projections: Collection[str] | None) -> int | None:
        """Return the position that each healthy one of these projections has applied; None when all have failed."""
        if not self._runs:
            return 1 << 62
        runs = [run for run in self._healthy() if projections is None or run.name in projections]
        return min((run.position for run in runs), default=None)

    async def _on_thread(self, work: Callable[[], T]) -> T:
        if self._is_closed:
            raise StoreClosed("the views are closed")
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, work)
        except sqlite3.Error as error:
            raise view_file.explained(error, self._path) from error


async def _connect_for_queries(address: str) -> aiosqlite.Connection:
    db = await aiosqlite.connect(address, uri=True, isolation_level=None)
    db.row_factory = sqlite3.Row
    await db.execute_fetchall(files.READ_CACHE)
    return db


class _Waiting:
    """A caller that waits for a position."""

    def __init__(self, position: int, projections: Collection[str] | None, future: asyncio.Future[None]) -> None:
        self.position, self.projections, self.future = position, projections, future


async def _is_of(store: EventStore, run: view_file.Run) -> bool:
    """Return whether a projection was made from this log, and not from one that was replaced since."""
    if run.position == 0:
        return True
    events = await store.read_all(after=run.position - 1, limit=1)
    return bool(events) and events[0].position == run.position and events[0].hash == run.hash
