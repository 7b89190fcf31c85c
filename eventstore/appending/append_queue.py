"""Appends on their way to the writer's thread and back, first in, first out; for the event loop of a store.

An append waits in one queue until the writer is free; then those that fit into one transaction go along. That is all of
the back-pressure: a caller waits for its own outcome, and nothing else wakes it. (A bound on the queue,
with callers waiting to enter it, was wrong: each flush woke all of them for a few places, so that 60,000 appends took
a time that grew with their square.) A caller that is cancelled while it waits empties its place with ``give_up``.

Setting an outcome makes a task runnable, and the event loop runs all that are runnable before it looks at anything
else. So the outcomes of a large batch are set a few in each turn of the loop.

An append takes 3 µs of processor time here. That stays: a future, its handle and a step of the caller's task are
asyncio's own, and each caller needs an outcome of its own.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress

from eventstore.appending.batch import Batch, Outcome
from eventstore.backend import LogWriter
from eventstore.errors import OutcomeUnknown, StoreBusy, StoreClosed, StoreUnavailable
from eventstore.events import Append, Appended
from eventstore.threads import WriterThread

MAX_BATCH = 1_024
"""Appends in one transaction."""
SET_AT_ONCE = 64
"""Outcomes in one turn of the event loop: about half a millisecond with the callers' own first steps."""
REPEAT_SECONDS = (0.05, 0.5)
"""Before each repeat of an append whose outcome is unknown."""


class AppendQueue:
    """``begin`` is called when a batch goes to the writer, and returns whether its events are wanted; ``publish`` when
    it has been stored, before its callers learn of it.
    """

    def __init__(self, log: LogWriter, *, begin: Callable[[], bool], publish: Callable[[Batch], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._begin, self._publish = begin, publish
        self._writer = WriterThread(log, self._committed)
        self._waiting: deque[Queued] = deque()
        self._in_flight: list[Queued] = []
        self._known: deque[tuple[Queued, Outcome | BaseException]] = deque()
        """Outcomes that are still to be set."""
        self.trouble: str | None = None
        """Why nothing could be stored the last time; None once something was."""
        self.trouble_of_keys: str | None = None
        """Why personal data could not be stored the last time, while all else could: the vault cannot be written."""
        self._flush_is_due = self._is_closed = False
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def is_busy(self) -> bool:
        """Return whether a caller waits for an append."""
        return bool(self._in_flight or self._waiting)

    def put(self, writes: Sequence[Append]) -> "Queued":
        """Have events stored: to be awaited. Raises StoreClosed."""
        if self._is_closed:
            raise StoreClosed("the store is closed")
        queued = Queued(loop=self._loop)
        queued.writes = writes
        self._waiting.append(queued)
        # Not while outcomes are being set: those who get theirs in the next turn would be late for this commit, and of
        # a hundred writers each second commit would have but the first SET_AT_ONCE.
        if not self._in_flight and not self._flush_is_due and not self._known:
            self._flush_soon()
        return queued

    async def repeat(self, writes: Sequence[Append], unknown: OutcomeUnknown) -> Appended:
        """Try an append again whose outcome is unknown, if each of its events has an id.

        Raises:
            OutcomeUnknown, WrongExpectedVersion, DuplicateEventId.
        """
        if not all(event.id for write in writes for event in write.events):
            raise unknown
        for seconds in REPEAT_SECONDS:
            await asyncio.sleep(seconds)
            with suppress(StoreUnavailable, StoreClosed):  # says nothing of the first try
                return await self.put(writes)
        raise unknown

    async def close(self) -> None:
        """Take no more appends, and wait for those under way."""
        self._is_closed = True
        await self._idle.wait()

    def close_file(self) -> None:
        """Wait for the writer's thread: not for an event loop to call."""
        self._writer.close()

    def _flush_soon(self) -> None:
        # Not at once: what else is appended in this turn of the event loop goes along. After a commit those are the
        # ones who waited for it, whose turns come before this; else one of them would have each second commit alone.
        self._flush_is_due = True
        self._idle.clear()
        self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        """Give the writer what waits for it."""
        self._flush_is_due = False
        while self._waiting and len(self._in_flight) < MAX_BATCH:
            queued = self._waiting.popleft()
            if not queued.done():  # else cancelled
                self._in_flight.append(queued)
        if self._in_flight:
            self._writer.commit([queued.writes for queued in self._in_flight], wants_events=self._begin())
        elif not self._known:
            self._idle.set()

    def _committed(self, result: Batch | BaseException) -> None:
        """Pass on the outcomes of a batch."""
        done, self._in_flight = self._in_flight, []
        if isinstance(result, BaseException):
            outcomes: Sequence[Outcome | BaseException] = [result] * len(done)
        else:
            outcomes = result.outcomes
            self._publish(result)
            if result.last:
                self.trouble = None
            self._note_keys(outcomes)
        refused = [result] if isinstance(result, BaseException) else () if result.last else outcomes
        for outcome in refused:
            if isinstance(outcome, StoreUnavailable) and not isinstance(outcome, StoreBusy):
                self.trouble = str(outcome)
        is_first = not self._known
        self._known.extend(zip(done, outcomes, strict=True))
        if len(self._waiting) >= MAX_BATCH:  # the next batch is full: the writer need not wait for more
            self._flush()
        if is_first:
            self._set_some()

    def _note_keys(self, outcomes: Sequence[Outcome | BaseException]) -> None:
        for outcome in outcomes:
            if isinstance(outcome, StoreUnavailable) and not isinstance(outcome, StoreBusy) and outcome.file:
                self.trouble_of_keys = str(outcome)

    def _set_some(self) -> None:
        for _ in range(min(SET_AT_ONCE, len(self._known))):
            queued, outcome = self._known.popleft()
            if queued.done():
                continue
            if isinstance(outcome, BaseException):
                queued.set_exception(outcome)
                queued.exception()  # or a caller that is cancelled just now would have it logged as unseen
            else:
                queued.set_result(outcome)
        if self._known:
            self._loop.call_soon(self._set_some)
        elif not self._in_flight and not self._flush_is_due:
            self._flush_soon()


class Queued(asyncio.Future[Appended]):
    """An append that waits for the writer, and its outcome."""

    writes: Sequence[Append]

    def give_up(self) -> None:
        """Keep no events for a caller that is gone."""
        self.writes = ()
