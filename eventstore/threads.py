"""The threads of a store: one that writes, and some that read."""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from queue import SimpleQueue
from typing import TypeVar

from eventstore.appending.batch import Batch
from eventstore.backend import Backend, LogReader, LogWriter
from eventstore.errors import StoreClosed
from eventstore.events import Append

T = TypeVar("T")

READERS = 4


class WriterThread:
    """Runs commits, one at a time, and reports each on the event loop.

    Not an executor: its futures and their locks are a tenth of what a lone append costs.
    """

    def __init__(self, log: LogWriter, report: Callable[[Batch | BaseException], None]) -> None:
        self._log, self._report = log, report
        self._loop = asyncio.get_running_loop()
        self._work: SimpleQueue[tuple[Sequence[Sequence[Append]], bool] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="eventstore-writer", daemon=True)
        self._thread.start()

    def commit(self, appends: Sequence[Sequence[Append]], *, wants_events: bool) -> None:
        self._work.put((appends, wants_events))

    def close(self) -> None:
        self._work.put(None)
        self._thread.join()
        self._log.close()

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            self._commit(*work)
            del work  # here and not when the next is due: to let a batch go takes as long as to begin one
            with contextlib.suppress(Exception):  # after the next commit, then: without this thread none is made
                self._log.tidy()

    def _commit(self, appends: Sequence[Sequence[Append]], wants_events: bool) -> None:
        result: Batch | BaseException
        try:
            result = self._log.commit(appends, wants_events=wants_events)
        except BaseException as error:  # noqa: BLE001 - the appenders' edge: each of them gets it
            result = error
        with contextlib.suppress(RuntimeError):  # the event loop has ended, and with it all who would listen
            self._loop.call_soon_threadsafe(self._report, result)


class ReaderThreads:
    """Threads that read, each with its own connection."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._executor = ThreadPoolExecutor(READERS, thread_name_prefix="eventstore-reader")
        self._is_closed = False

    async def run(self, work: Callable[[LogReader], T], *, may_be_old: bool = True) -> T:
        """Call a function on one of the threads. ``may_be_old``: see ``Backend.read``.

        Raises:
            StoreClosed.
            StoreUnavailable and its kinds, StoreCorrupt: about the log.
        """
        try:
            reading = asyncio.get_running_loop().run_in_executor(
                self._executor, partial(self._backend.read, work, may_be_old=may_be_old)
            )
        except RuntimeError:
            if self._is_closed:
                raise StoreClosed("the store is closed") from None
            raise
        return await reading

    def close(self) -> None:
        """Wait for the threads: not for an event loop to call."""
        self._is_closed = True
        self._executor.shutdown()
        self._backend.close()
