"""The interface of a backend, of which core.py makes a store: plain functions that may block, for threads to call.

A writer and its connection belong to one thread; a reader belongs to one thread at a time. None of these functions is
called on the event loop, except where a docstring says so.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, TypeVar

from eventstore.appending.batch import Batch
from eventstore.events import Append
from eventstore.vault import Vault

T = TypeVar("T")

Rows = Iterable[tuple[Any, ...]]
"""Rows of one statement, which sees the log as it was when it began. They are read once, from first to last."""


class LogReader(Protocol):
    """A connection that reads."""

    def head(self) -> int:
        """Return the last position; 0 for an empty log."""

    def size(self) -> int:
        """Return what the log takes where it is kept, with its indexes, in bytes."""

    def first_metadata(self) -> bytes:
        """Return the metadata of the log's first event as stored; empty for an empty log."""

    def stream_version(self, stream: str) -> int:
        """Return the version of a stream; 0 when it has no events."""

    def position_of(self, stream: str, version: int) -> int:
        """Return the position of an event that exists."""

    def of_id(self, event_id: str) -> Rows:
        """Return the row of the event with an id, as ``recorded_events`` takes it; or none."""

    def of_stream(
        self, stream: str, *, after: int, before: int | None = None, limit: int, backwards: bool = False
    ) -> Rows:
        """Return the rows of a stream between two versions, neither of them included, as ``recorded_events`` takes
        them.
        """

    def of_log(
        self,
        *,
        after: int,
        before: int | None = None,
        category: str | None = None,
        stream: str | None = None,
        limit: int,
        backwards: bool = False,
    ) -> Rows:
        """Return the rows between two positions, neither of them included, as ``recorded_events`` takes them."""

    def folded(self, stream: str, *, after: int, limit: int) -> Rows:
        """Return what a fold needs of a stream's rows after a version, as ``fold_rows`` takes them."""


class LogWriter(Protocol):
    """The one connection of this process that writes."""

    identity: str
    """The public key of the checkpoints, which the first event of a log names; empty for none."""

    def commit(self, appends: Sequence[Sequence[Append]], *, wants_events: bool) -> Batch:
        """Store each append, whole or not at all, and all that can be stored in one transaction.

        An append that is refused does not touch its neighbours. What cannot be said of one append (the disk is full,
        the database is away) is every append's outcome.
        """

    def tidy(self) -> None:
        """Do what can wait until the outcomes of a commit have been reported."""

    def close(self) -> None: ...


class Watch(Protocol):
    """Notices what other processes commit to the log and the vault. For the event loop, except ``close``."""

    def begin(self) -> None:
        """Begin to watch: report a change at once, and then whenever there is one."""

    def end(self) -> None:
        """Stop looking, until the next ``begin``."""

    def look(self) -> None:
        """Look now, and not only when it is time again: the log has events that were not reported."""

    def again(self) -> None:
        """Report a change although there may be none: of the last one nothing could be made."""

    async def changed(self) -> int:
        """Wait for a change; several may be reported as one. Return a number that grows when the vault changed."""

    def close(self) -> None:
        """Wait for its thread: not for an event loop to call."""


class Backend(Protocol):
    """A log and its vault in one kind of storage."""

    @property
    def name(self) -> str:
        """The name of the log in errors."""

    @property
    def vault(self) -> Vault: ...

    @property
    def writer(self) -> LogWriter | None:
        """None in a log that was opened for reading."""

    @property
    def away(self) -> str | None:
        """Why the storage does not answer, while a copy of it is read; None while it does, and where there is none."""

    def read(self, work: Callable[[LogReader], T], *, may_be_old: bool = True) -> T:
        """Call a function with the calling thread's own reader.

        ``may_be_old``: of a copy, while the storage does not answer.

        Raises:
            StoreUnavailable and its kinds, StoreCorrupt: in place of the errors of the storage.
        """

    def check_writable(self) -> None:
        """Commit a change that changes nothing.

        Raises:
            StoreUnavailable and its kinds, StoreCorrupt.
        """

    def watch(self, known: Callable[[], int]) -> Watch:
        """Return what notices changes after the position that ``known`` returns. For the event loop."""

    def close(self) -> None:
        """Close what reads; no thread is reading any more. The writer and the vault are closed by themselves."""
