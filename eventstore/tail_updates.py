"""Keeps a tail up to date with what other processes commit, for as long as someone watches it."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager

from eventstore.backend import Watch
from eventstore.errors import EventStoreError, StoreClosed, StoreCorrupt, lacks_memory
from eventstore.events import RecordedEvent
from eventstore.tail import Tail

RETRY_SECONDS = 0.025
"""After the tail could not be brought up to date."""


class TailUpdates:
    """``head`` reads the log's last position, ``page`` the next events after one, of which there are ``size`` unless
    there are no more. ``forget`` is called when a key may be gone.
    """

    def __init__(
        self,
        tail: Tail,
        watch: Watch,
        *,
        head: Callable[[], Awaitable[int]],
        page: Callable[[int], Awaitable[Sequence[RecordedEvent]]],
        size: int,
        forget: Callable[[], None],
    ) -> None:
        self._tail, self._watch = tail, watch
        self._head, self._page, self._size, self._forget = head, page, size, forget
        self.watchers = 0
        self._task: asyncio.Task[None] | None = None
        self._ended: set[asyncio.Task[None]] = set()

    @contextmanager
    def watching(self) -> Iterator[None]:
        self.watchers += 1
        if self.watchers == 1:
            self._task = asyncio.create_task(self._run(), name="eventstore-poll")
        try:
            yield
        finally:
            self.watchers -= 1
            if self.watchers == 0:
                self._end()

    def look(self) -> None:
        """As ``Watch.look``."""
        self._watch.look()

    async def close(self) -> None:
        self._end()
        if self._ended:
            await asyncio.wait(self._ended)

    def close_watch(self) -> None:
        """Wait for its thread: not for an event loop to call."""
        self._watch.close()

    def _end(self) -> None:
        if self._task is not None:
            self._watch.end()
            self._task.cancel()
            self._ended.add(self._task)
            self._task.add_done_callback(self._ended.discard)
            self._task = None

    async def _run(self) -> None:
        seen: int | None = None
        try:
            await self._begin()
            while True:
                vault = await self._watch.changed()
                if await self._is_caught_up(seen, vault):
                    seen = vault
                else:
                    await asyncio.sleep(RETRY_SECONDS)
                    self._watch.again()
        except StoreClosed:
            return

    async def _begin(self) -> None:
        while True:
            try:
                return self._watch.begin()
            except RuntimeError as error:
                if not lacks_memory(error):
                    raise
            await asyncio.sleep(RETRY_SECONDS)

    async def _is_caught_up(self, seen: int | None, vault: int) -> bool:
        """Return whether that could be done; ``seen``: the vault before, None at first. Raises StoreClosed."""
        try:
            await self._catch_up(seen, vault)
        except StoreClosed:
            raise
        except (EventStoreError, MemoryError, RuntimeError) as error:
            if not (isinstance(error, EventStoreError) or lacks_memory(error)):
                raise
            return False  # readers get the error themselves; here it is tried again
        return True

    async def _catch_up(self, seen: int | None, vault: int) -> None:
        if vault != seen:
            if seen is not None:
                self._forget()
            self._tail.clear()
        if seen is None:
            self._tail.skip_to(await self._head())
            return
        try:
            await self._publish_new()
        except StoreCorrupt:
            # An event that cannot be read. Those who wait for it shall read it and get the error.
            self._tail.skip_to(await self._head())

    async def _publish_new(self) -> None:
        is_all = False
        while not is_all:
            cleared = self._tail.cleared
            page = await self._page(self._tail.last)
            if self._tail.cleared == cleared:  # else it is read again: what may be in it was erased
                self._tail.publish([event for event in page if event.position > self._tail.last])
                is_all = len(page) < self._size
