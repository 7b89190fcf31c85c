"""Errors of an event store: what it refuses, and what may go wrong beneath it."""


class EventStoreError(Exception):
    """Base of every error that this package raises on purpose.

    ``says`` and ``remedy`` are the two parts of its message: what is wrong and, where it is known here, what to do.
    ``file`` is the name of the file that it is about, empty where there is none.
    """

    def __init__(self, says: str = "", *, remedy: str = "", file: str = "") -> None:
        super().__init__(f"{says}; {remedy}" if remedy else says)
        self.says, self.remedy, self.file = says, remedy, file


def lacks_memory(error: BaseException) -> bool:
    """Return whether memory is short, or the process has too many threads: both may pass."""
    if isinstance(error, RuntimeError):
        return str(error) == "can't start new thread"  # CPython's words for both
    return isinstance(error, MemoryError)


class WrongExpectedVersion(EventStoreError):
    """The stream moved on since the writer read it; nothing of the append was stored."""

    def __init__(self, stream: str, expected: int, actual: int) -> None:
        super().__init__(f"stream {stream} is at version {actual}, the writer expected {expected}")
        self.stream, self.expected, self.actual = stream, expected, actual


class UnknownEventType(EventStoreError):
    """The codec has no shape for a stored event's type: written by a newer program, kept and passed over."""


class Undecodable(EventStoreError):
    """A stored event's data does not fit the shape of its type."""


class InvalidEvent(EventStoreError, ValueError):
    """An event, or a name of a stream, that readers could not read: nothing of the append was stored."""


class DuplicateEventId(EventStoreError):
    """An event with this id is stored already: elsewhere than where the writer expected it, or with other content."""


class SubjectErased(EventStoreError):
    """Personal data for a subject whose key was deleted: nothing of the append was stored."""

    def __init__(self, subject: str) -> None:
        super().__init__(f"the personal data of {subject} has been erased; no more can be recorded for it")
        self.subject = subject


class StoreUnavailable(EventStoreError):
    """The append was not stored, unless it is OutcomeUnknown; the store still serves reads, and a later append may
    succeed.
    """


class OutcomeUnknown(StoreUnavailable):
    """The append failed at a moment after which it may be in the log, now or after the next start, or may not.

    Repeat it with the same event ids: what is stored is found, what is not is stored.
    """


class StoreBusy(StoreUnavailable):
    """Another process held the write lock for too long."""


class StoreFull(StoreUnavailable):
    """The disk has no room left."""


class StoreDiskFailed(StoreUnavailable):
    """Reading or writing the file failed; a disk that SQLite uses for something else may be full."""


class StoreReadOnly(StoreUnavailable):
    """The file or its folder cannot be written."""


class StoreLost(StoreUnavailable):
    """The log is not what it was: its tail is gone, or another one is in its place. Nothing is appended to it."""


class StoreNewer(StoreUnavailable):
    """A newer program made the file; this one neither reads nor writes it."""


class StoreCorrupt(EventStoreError):
    """The file is not a sound event log."""


class StoreForeign(StoreCorrupt):
    """The file belongs to another program."""


class WrappingKeyMissing(StoreUnavailable):
    """A key of the vault is wrapped under a wrapping key that is not here."""


class StoreClosed(EventStoreError):
    """Used after close."""
