"""The read models as a whole: which there are, and how to wait until they show what was written."""

import asyncio

import structlog

from eventstore import EventStore, EventStoreError, Projection, Views
from service.projections import all_projections

log = structlog.get_logger()

REBUILD_SECONDS = 3600.0
"""Workers wait this long for the read models, which may be rebuilt when the service starts."""
FRESH_SECONDS = 1.0
"""The most that a request waits for what other instances have written."""
RETRY_SECONDS = 1.0
"""Between two looks whether the log can be reached again; no request waits for them."""


def read_models() -> tuple[Projection, ...]:
    """Return what ``Views.open`` takes: everything that queries read."""
    return all_projections()


async def wait_for_head(store: EventStore, views: Views) -> None:
    """Wait until reads show all that is in the log now. Raises TimeoutError, StoreUnavailable."""
    await views.wait_for(await store.head())


async def wait_for_rebuild(views: Views, position: int) -> None:
    """Wait, for a worker, until reads show the event at a position. Raises TimeoutError, StoreUnavailable."""
    await views.wait_for(position, REBUILD_SECONDS)


async def catch_up(views: Views) -> None:
    """Apply what is in the log, in a process that does not follow it. Raises StoreUnavailable."""
    await views.catch_up()


class FreshReads:
    """Reads that show what any instance has written, where several share a log.

    A client may write by one instance and read by the next. So each request first waits until the read models here show
    what the log had when the request came: one short statement, which requests that come together share. While the log
    cannot be reached, or the read models are rebuilt, requests are answered from what there is.
    """

    def __init__(self, store: EventStore, views: Views) -> None:
        self._store, self._views = store, views
        self._asking: asyncio.Task[int] | None = None
        self._next: asyncio.Task[int] | None = None
        self._returning: asyncio.Task[None] | None = None

    async def __call__(self) -> None:
        """Return once reads show what the log has now, or after ``FRESH_SECONDS``."""
        if self._returning is not None:
            return
        try:
            async with asyncio.timeout(FRESH_SECONDS):
                await self._views.wait_for(await asyncio.shield(self._head()), FRESH_SECONDS)
        except (TimeoutError, EventStoreError) as error:
            if self._returning is None:
                log.warning("reads may be behind the log", error=str(error) or "it does not answer in time")
                self._returning = asyncio.create_task(self._return(), name="fresh-reads")

    async def close(self) -> None:
        tasks = [task for task in (self._asking, self._next, self._returning) if task is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def _head(self) -> "asyncio.Task[int]":
        """Return a question for the log's end that has not been sent yet, so that its answer is new enough."""
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._store.head(), name="log-head")
            return self._asking
        if self._next is None:
            self._next = asyncio.create_task(self._after(self._asking), name="log-head")
        return self._next

    async def _after(self, asking: "asyncio.Task[int]") -> int:
        await asyncio.wait([asking])
        self._asking, self._next = self._next, None
        return await self._store.head()

    async def _return(self) -> None:
        while True:
            await asyncio.sleep(RETRY_SECONDS)
            try:
                async with asyncio.timeout(FRESH_SECONDS):
                    await self._views.wait_for(await self._store.head(), FRESH_SECONDS)
            except (TimeoutError, EventStoreError):
                continue
            self._returning = None
            return
