"""The event store on top of a backend: all that does not depend on what the events are kept in.

Theory of operation. One thread holds the connection that writes. Appends wait in a queue (append_queue.py); whenever
that thread is free it gets those that wait, stores them in one transaction (batch.py) and reports an outcome to each:
an append that comes while a commit is in flight goes with the next. The queue and the thread belong to the store, so a
caller that is cancelled takes nothing with it and leaves no transaction open: its append is stored or, if the thread
has not got it yet, dropped. Reading goes through other threads, each with a connection of its own (threads.py).
Committed events go straight from memory to this process's subscribers (tail.py); what other processes commit is noticed
by the backend's watch while a subscriber waits for events. backend.py says what a backend has to do.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Collection, Coroutine, Sequence
from datetime import datetime
from types import TracebackType
from typing import Any, Self, TypeVar

from eventstore.appending.append_queue import AppendQueue
from eventstore.appending.batch import Batch
from eventstore.appending.validation import check_stream
from eventstore.backend import Backend, LogReader, Rows
from eventstore.codec import Codec
from eventstore.errors import (
    OutcomeUnknown,
    StoreClosed,
    StoreLost,
    StoreReadOnly,
    StoreUnavailable,
)
from eventstore.events import Append, Appended, NewEvent, RecordedEvent
from eventstore.log.chain import log_id_in, log_key_in
from eventstore.log.rows import fold_rows, recorded_events
from eventstore.snapshots import Snapshot, Snapshots
from eventstore.store import Folded
from eventstore.tail import ALL, Key, Tail, category_of
from eventstore.tail_updates import TailUpdates
from eventstore.threads import ReaderThreads

T = TypeVar("T")
S = TypeVar("S")
E = TypeVar("E")

PAGE = 500
"""Events in one read."""
FOLLOW_TRIES, FOLLOW_SECONDS = 8, 0.25
"""Reads of a follower, and the pause between two, before it raises that the log is unavailable."""
FOLDED_PAGE = 2_000
"""Events folded at once: a few milliseconds of a reading thread."""
UNKNOWN = b"?"
"""In place of a key's id."""


class CoreEventStore:
    """See EventStore. Use it on the event loop that made it, from a backend that is open and the log's head."""

    def __init__(self, backend: Backend, head: int) -> None:
        self._backend, self._vault = backend, backend.vault
        self._readers = ReaderThreads(backend)
        writer = backend.writer
        self._appends = None if writer is None else AppendQueue(writer, begin=self._begin_batch, publish=self._publish)
        self._tail = Tail(head, lambda: self._appends is not None and self._appends.is_busy)
        self._snapshots = Snapshots()
        self._updates = TailUpdates(
            self._tail, backend.watch(lambda: self._tail.last), head=self.head,
            page=lambda after: self.read_all(after=after, limit=PAGE), size=PAGE, forget=self._snapshots.clear,
        )  # fmt: skip
        self._cleared_before = 0
        """How often the tail had been cleared when what is in flight began."""
        self._held: str | None = None
        self._is_closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    # Writing

    def append(
        self, stream: str, events: Sequence[NewEvent], *, expected_version: int
    ) -> Coroutine[Any, Any, Appended]:
        # No coroutine of its own: of many appends at once, each object is one more for the garbage collector to visit.
        return self.append_all((Append(stream, tuple(events), expected_version),))

    async def append_all(self, writes: Sequence[Append]) -> Appended:
        if not writes:
            raise ValueError("an append needs events")
        for write in writes:
            if not write.events:
                raise ValueError("an append needs events")
            check_stream(write.stream)  # here and not in the midst of a batch, which looks for its key and its version
        appends = self._writable()
        self._check_kept()
        queued = appends.put(writes)
        try:
            return await queued
        except asyncio.CancelledError:
            queued.give_up()
            raise
        except OutcomeUnknown as error:
            unknown = error
        return await appends.repeat(writes, unknown)

    @property
    def trouble(self) -> str | None:
        return None if self._appends is None else self._appends.trouble or self._appends.trouble_of_keys

    @property
    def away(self) -> str | None:
        return self._backend.away

    async def check_writable(self) -> None:
        appends = self._writable()
        await asyncio.to_thread(self._backend.check_writable)
        appends.trouble = appends.trouble_of_keys = None

    def _writable(self) -> AppendQueue:
        self._check_open()
        if self._appends is None:
            raise StoreReadOnly(f"{self._backend.name} was opened for reading")
        return self._appends

    def _begin_batch(self) -> bool:
        self._cleared_before = self._tail.cleared
        return self._updates.watchers > 0

    def _publish(self, batch: Batch) -> None:
        if not self._updates.watchers or not batch.last:
            return  # the tail is behind: the next to watch brings it up to date
        fresh = [event for event in batch.events if event.position > self._tail.last]
        was_cleared = self._tail.cleared != self._cleared_before  # what is personal in them may have been erased since
        if fresh and fresh[0].position == self._tail.last + 1 and not was_cleared:
            self._tail.publish(fresh)
        elif batch.last > self._tail.last:  # or another process's events come first, or these were not asked for
            self._updates.look()

    def identify(self, public_key: str) -> None:
        """Have the first event, of a log that has none yet, name the key of its checkpoints: base64 of 32 bytes."""
        if self._backend.writer is not None:
            self._backend.writer.identity = public_key

    def hold(self, reason: str) -> None:
        self._held = reason

    @property
    def held(self) -> str | None:
        return self._held

    async def erase(self, subject: str) -> None:
        self._check_open()
        try:
            await self._readers.run(lambda _: self._vault.erase(subject))
        finally:
            self._tail.clear()
            self._snapshots.drop(subject)

    async def erase_all(self, subjects: Collection[str]) -> int:
        self._check_open()
        try:
            return await self._readers.run(lambda _: self._vault.erase_all(subjects))
        finally:
            self._tail.clear()
            for subject in subjects:
                self._snapshots.drop(subject)

    # Secrets

    async def keep_secret(self, name: str, text: str) -> None:
        self._check_kept()
        await self._readers.run(lambda _: self._vault.keep_secret(name, text))

    async def find_secret(self, name: str) -> str | None:
        self._check_open()
        return await self._readers.run(lambda _: self._vault.find_secret(name))

    async def forget_secret(self, name: str) -> None:
        self._check_open()
        await self._readers.run(lambda _: self._vault.forget_secret(name))

    async def secret_names(self, *, before: datetime | None = None) -> Collection[str]:
        self._check_open()
        return await self._readers.run(lambda _: self._vault.secret_names(before=before))

    # Reading

    async def read_stream(
        self, stream: str, *, after_version: int = 0, limit: int | None = None, backwards: bool = False
    ) -> list[RecordedEvent]:
        events: list[RecordedEvent] = []
        async for page in self._stream_pages(stream, after_version, limit, backwards):
            if events:
                events += page
            else:
                events = page
        return events

    async def iterate_stream(self, stream: str, *, after_version: int = 0) -> AsyncGenerator[RecordedEvent, None]:
        async for page in self._stream_pages(stream, after_version, None, backwards=False):
            for event in page:
                yield event

    async def _stream_pages(
        self, stream: str, after_version: int, limit: int | None, backwards: bool
    ) -> AsyncGenerator[list[RecordedEvent], None]:
        self._check_open()
        left = limit
        low, high = after_version, None

        def choose(reader: LogReader) -> Rows:
            return reader.of_stream(stream, after=low, before=high, limit=size, backwards=backwards)

        while left is None or left > 0:
            size = PAGE if left is None else min(PAGE, left)
            page = await self._read(choose)
            if page:
                yield page
            if len(page) < size:
                return
            if backwards:
                high = page[-1].stream_version
            else:
                low = page[-1].stream_version
            left = None if left is None else left - size

    async def fold_stream(
        self,
        stream: str,
        codec: Codec[E],
        evolve: Callable[[S, E], S],
        initial: S,
        *,
        after_version: int = 0,
        may_be_old: bool = True,
    ) -> Folded[S]:
        self._check_open()
        folded, is_all = Folded(initial, after_version, 0), False
        key_id: bytes | None = None
        where, dropped = (stream, codec, evolve), self._snapshots.dropped
        kept = self._snapshots.get(where, initial) if after_version == 0 else None

        def fold(reader: LogReader) -> tuple[Folded[S], bool, bytes | None]:
            before = folded
            self._vault.refresh()
            key_id, _ = self._key_id(stream)
            if kept is not None and before.version == 0 and kept.key_id == key_id:
                before = Folded(kept.state, kept.version, kept.position, kept.damaged)
            rows = reader.folded(stream, after=before.version, limit=FOLDED_PAGE)
            self._vault.refresh()  # after the rows are chosen: a key is older than the events it is for
            state, version, damaged = fold_rows(rows, stream, before.version, self._vault, codec, evolve, before.state)
            key_id, is_certain = self._key_id(stream)
            position = before.position if version == before.version else 0
            is_all = version < before.version + FOLDED_PAGE
            if is_all and position == 0 and version > after_version:
                position = reader.position_of(stream, version)
            return (
                Folded(state, version, position, before.damaged or damaged),
                is_all,
                key_id if is_certain else UNKNOWN,
            )

        while not is_all:
            folded, is_all, key_id = await self._readers.run(fold, may_be_old=may_be_old)
        if after_version == 0 and key_id != UNKNOWN:
            snapshot = Snapshot(initial, folded.state, folded.version, folded.position, key_id, folded.damaged)
            self._snapshots.put(where, snapshot, dropped=dropped)
        return folded

    def _key_id(self, stream: str) -> tuple[bytes | None, bool]:
        """Return the id of a stream's key, if it has one; and whether that is certain: a vault may be away, and who
        folds a stream without sealed texts need not wait for it.
        """
        try:
            key = self._vault.find(stream)
        except StoreUnavailable:
            return None, False
        return None if key is None else key.id, True

    async def read_all(
        self, *, after: int = 0, category: str | None = None, limit: int = 1000, backwards: bool = False
    ) -> list[RecordedEvent]:
        self._check_open()
        events: list[RecordedEvent] = []
        low, high = after, None

        def choose(reader: LogReader) -> Rows:
            return reader.of_log(after=low, before=high, category=category, limit=size, backwards=backwards)

        while (size := min(PAGE * 2, limit - len(events))) > 0:
            page = await self._read(choose)
            if events:
                events += page
            else:
                events = page
            if len(page) < size:
                break
            if backwards:
                high = page[-1].position
            else:
                low = page[-1].position
        return events

    async def find(self, event_id: str, *, may_be_old: bool = True) -> RecordedEvent | None:
        self._check_open()
        found = await self._read(lambda reader: reader.of_id(event_id), may_be_old=may_be_old)
        return found[0] if found else None

    async def head(self) -> int:
        self._check_open()
        head = await self._readers.run(lambda reader: reader.head())
        if self._updates.watchers and head > self._tail.last:
            self._updates.look()  # who asks wants to see what is there, and followers may rest
        return head

    async def size(self) -> int:
        self._check_open()
        return await self._readers.run(lambda reader: reader.size())

    async def log_id(self) -> str:
        self._check_open()
        return log_id_in(await self._readers.run(lambda reader: reader.first_metadata()))

    async def log_key(self) -> str:
        self._check_open()
        return log_key_in(await self._readers.run(lambda reader: reader.first_metadata()))

    async def stream_version(self, stream: str) -> int:
        self._check_open()
        return await self._readers.run(lambda reader: reader.stream_version(stream))

    async def _read(self, choose: Callable[[LogReader], Rows], *, may_be_old: bool = True) -> list[RecordedEvent]:
        def read(reader: LogReader) -> list[RecordedEvent]:
            rows = choose(reader)
            self._vault.refresh()  # after the rows are chosen: a key is older than the events it is for
            return recorded_events(rows, self._vault)

        return await self._readers.run(read, may_be_old=may_be_old)

    # Following

    async def subscribe(
        self, *, after: int = 0, category: str | None = None, stream: str | None = None
    ) -> AsyncGenerator[RecordedEvent, None]:
        batches = self.follow(after=after, category=category, stream=stream)
        async with contextlib.aclosing(batches):
            async for batch in batches:
                for event in batch:
                    yield event

    async def follow(
        self, *, after: int = 0, category: str | None = None, stream: str | None = None
    ) -> AsyncGenerator[Sequence[RecordedEvent], None]:
        self._check_open()
        key: Key = ALL
        if stream is not None:
            key = ("stream", stream)
        elif category is not None:
            key = ("category", category)
        position = after
        with self._updates.watching():
            reads_file, tries = True, FOLLOW_TRIES
            while True:
                recent = None if reads_file else self._tail.after(position, key)
                if recent is None:
                    try:
                        page, position = await self._page_after(position, category, stream)
                    except StoreUnavailable:  # there is no free descriptor, say
                        tries -= self.away is None  # else a copy is read, and what it lacks is waited for
                        if not tries:
                            raise
                        await asyncio.sleep(FOLLOW_SECONDS)
                        self._check_open()
                        continue
                    tries = FOLLOW_TRIES
                    reads_file = len(page) == PAGE
                    if page:
                        yield page
                    continue
                events, reached = recent
                if events and key is not ALL and category is not None and stream is not None:
                    events = [event for event in events if category_of(event.stream) == category]
                if events:
                    position = reached
                    yield events
                else:
                    position = max(reached, await self._tail.wait(key))

    async def _page_after(
        self, position: int, category: str | None, stream: str | None
    ) -> tuple[list[RecordedEvent], int]:
        """Return the next events of a kind, and the position up to which there are no others."""

        def read(reader: LogReader) -> tuple[list[RecordedEvent], int]:
            head = reader.head()  # first: what is committed between the two statements is for the next page
            rows = reader.of_log(after=position, category=category, stream=stream, limit=PAGE)
            self._vault.refresh()
            events = recorded_events(rows, self._vault)
            if len(events) == PAGE:
                return events, events[-1].position
            return events, max(position, head, events[-1].position if events else 0)

        return await self._readers.run(read)

    async def wait_until(self, position: int) -> None:
        self._check_open()
        with self._updates.watching():
            while True:
                if self._tail.last >= position or await self.head() >= position:
                    return
                if self._tail.last < position:
                    await self._tail.wait(ALL)

    # Closing

    async def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._tail.close()
        if self._appends is not None:
            await self._appends.close()
        await self._updates.close()
        await asyncio.to_thread(self._close_files)

    def _close_files(self) -> None:
        self._readers.close()
        self._updates.close_watch()
        if self._appends is not None:
            self._appends.close_file()  # last, so that it takes the WAL along
        self._vault.close()

    def _check_kept(self) -> None:
        """Raise StoreLost where nothing may be written any more."""
        self._check_open()
        if self._held is not None:
            raise StoreLost(self._held)

    def _check_open(self) -> None:
        if self._is_closed:
            raise StoreClosed("the store is closed")
