"""A tail is kept up to date through what may pass: too little memory, too many threads."""

import asyncio
from datetime import UTC, datetime

from eventstore.errors import StoreCorrupt, StoreUnavailable
from eventstore.events import Metadata, RecordedEvent
from eventstore.tail import ALL, Tail
from eventstore.tail_updates import TailUpdates

EVENT = RecordedEvent(
    1, "note-1", 1, "noted", b"{}", None, False, 1, Metadata(), "1", datetime(2026, 3, 14, tzinfo=UTC), b""
)  # fmt: skip


class FakeWatch:
    def __init__(self, *errors):
        self.errors = list(errors)
        """Of the beginning."""
        self._changed = asyncio.Event()

    def begin(self):
        if self.errors:
            raise self.errors.pop()
        self._changed.set()

    def end(self): ...

    def look(self):
        self._changed.set()

    again = look

    async def changed(self):
        await self._changed.wait()
        self._changed.clear()
        return 1


async def published(watch, *errors):
    """Return where the tail is once it has the log's end; ``errors``: of the reads before."""
    tail, failing, log = Tail(0, lambda: False), list(errors), []

    async def head():
        return len(log)

    async def page(after):
        if failing:
            raise failing.pop()
        return log[after:]

    updates = TailUpdates(tail, watch, head=head, page=page, size=10, forget=lambda: None)
    with updates.watching():
        waiting = asyncio.create_task(tail.wait(ALL))
        while tail.last or watch.errors:  # noqa: ASYNC110  (nothing tells that it has begun)
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        log.append(EVENT)
        watch.look()
        async with asyncio.timeout(60):
            await waiting
    await updates.close()
    return tail.last


async def test_watch_begins_once_a_thread_can_be_started():
    assert await published(FakeWatch(RuntimeError("can't start new thread"))) == 1


async def test_new_events_are_read_once_that_can_be_done():
    errors = (MemoryError(), StoreUnavailable("away"), RuntimeError("can't start new thread"))
    assert await published(FakeWatch(), *errors) == 1


async def test_event_that_cannot_be_read_is_left_to_those_who_wait_for_it():
    assert await published(FakeWatch(), StoreCorrupt("damaged")) == 1
