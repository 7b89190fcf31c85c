"""The contract of every event store, whichever backend it has."""

from collections.abc import AsyncGenerator, Callable, Collection, Sequence
from typing import Generic, Protocol, TypeVar

from msgspec import Struct

from eventstore.codec import Codec
from eventstore.events import Append, Appended, NewEvent, RecordedEvent

S = TypeVar("S")
E = TypeVar("E")


class Folded(Struct, Generic[S], frozen=True):
    """A state, and the last event in it."""

    state: S
    version: int
    """In its stream; when there was no event, the version that was asked for."""
    position: int
    """0 when there was no event."""
    damaged: int = 0
    """The version of the first event whose personal fields are damaged; 0 when there is none."""


class EventStore(Protocol):
    """An append-only log of events in streams.

    An event whose personal fields cannot be opened is handed on without them, marked as damaged.

    A reader never sees an event before the one at the position before it. Reading takes part in no transaction: a
    long read is made in pages, and sees what is appended meanwhile.

    Any method raises StoreClosed after ``close``; reading may raise StoreUnavailable and StoreCorrupt.
    """

    async def append(self, stream: str, events: Sequence[NewEvent], *, expected_version: int) -> Appended:
        """Record events at the end of a stream that is at the expected version; all or none, durably.

        Safe to repeat with the same event ids: if they are stored where this append would have put them, it returns
        what it returned then. A caller that is cancelled while it waits does not know whether they were stored.

        Raises:
            WrongExpectedVersion: the stream is at another version.
            DuplicateEventId: one of the ids is stored elsewhere, or there with other content.
            SubjectErased: personal data for a stream whose personal data was erased.
            OutcomeUnknown: they may be stored, or may turn out to be after the next start. Repeat with the same ids.
            StoreUnavailable: nothing was stored, and a later try may succeed. Its other kinds are StoreBusy, StoreFull
                and StoreReadOnly.
            InvalidEvent: an event without a type, one whose data is not a JSON object, a stream without a name, or a
                name that is too long. It is a ValueError, like the error for an append without events.
        """

    async def append_all(self, writes: Sequence[Append]) -> Appended:
        """Append to several streams, all or none; their events get positions in this order. Raises as ``append``."""

    @property
    def trouble(self) -> str | None:
        """Return why the last append of this process could not be stored; None when it was."""

    @property
    def away(self) -> str | None:
        """Return why the log or its vault does not answer while a copy on this machine is read; None while they do."""

    async def check_writable(self) -> None:
        """Commit a change that changes nothing: once that works, there is no trouble any more.

        Raises:
            StoreUnavailable and its kinds, StoreCorrupt.
        """

    async def read_stream(
        self, stream: str, *, after_version: int = 0, limit: int | None = None, backwards: bool = False
    ) -> list[RecordedEvent]:
        """Return a stream's events after a version, oldest first; backwards: from the newest down to that version."""

    def iterate_stream(self, stream: str, *, after_version: int = 0) -> AsyncGenerator[RecordedEvent, None]:
        """Yield what ``read_stream`` returns, holding only a page of it in memory."""

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
        """Return the state after a stream's events; those that the codec does not know are passed over.

        ``evolve`` is called away from the event loop, so that a long stream delays no one. A store may keep the state
        and begin there the next time that it is asked for the same fold: ``evolve`` must be pure, and no state changed.

        ``may_be_old``: while the log is away, its copy on this machine will do, which may lack the last moments.

        Raises:
            Undecodable, and what ``evolve`` raises.
        """

    async def read_all(
        self, *, after: int = 0, category: str | None = None, limit: int = 1000, backwards: bool = False
    ) -> list[RecordedEvent]:
        """Return the log's events after a position, oldest first; backwards: from the newest down to that position."""

    def subscribe(
        self, *, after: int = 0, category: str | None = None, stream: str | None = None
    ) -> AsyncGenerator[RecordedEvent, None]:
        """Yield the events after a position: those recorded, then each new one of any process; without end."""

    def follow(
        self, *, after: int = 0, category: str | None = None, stream: str | None = None
    ) -> AsyncGenerator[Sequence[RecordedEvent], None]:
        """Yield what ``subscribe`` does, all events that there are at a time; never an empty batch."""

    async def wait_until(self, position: int) -> None:
        """Return once the log has reached a position."""

    async def find(self, event_id: str, *, may_be_old: bool = True) -> RecordedEvent | None:
        """Return the event with an id, whichever stream it is in; None when it is not in the log.

        ``may_be_old``: see ``fold_stream``.
        """

    async def head(self) -> int:
        """Return the last position; 0 for an empty log."""

    async def size(self) -> int:
        """Return what the log takes where it is kept, with its indexes, in bytes; of its copy while it is away."""

    async def log_id(self) -> str:
        """Return the id that the first event gives the log; empty for an empty log, and for one older than ids."""

    async def log_key(self) -> str:
        """Return the public key of the checkpoints that the first event names, in base64; empty where it names none."""

    async def stream_version(self, stream: str) -> int:
        """Return the version of a stream; 0 when it has no events."""

    async def erase(self, subject: str) -> None:
        """Make the personal data of a stream unreadable for good, wherever copies of the log are; again does nothing.

        Raises:
            StoreUnavailable: try again; the data may be erased already, but not from every file.
        """

    async def erase_all(self, subjects: Collection[str]) -> int:
        """Erase those that are not erased yet, and return their number.

        From the beginning on this store opens nothing of any of them, even when their keys cannot be deleted.

        Raises:
            StoreUnavailable and its kinds: the keys are still in the file.
        """

    def hold(self, reason: str) -> None:
        """Refuse each append and each new secret from now on, with StoreLost; reading goes on."""

    @property
    def held(self) -> str | None:
        """Return why each append is refused, since the log lost events; None while none is."""

    async def close(self) -> None:
        """Let the appends under way finish, then close; again does nothing."""
