"""A batch of appends on its way into a log: what is stored of each, hashed and sealed, and what becomes of it.

For the writer of a backend, on its thread. It opens a transaction, makes a draft that begins where the log ends, adds
the appends to it, stores the draft's rows and commits. An append that is refused does not touch its neighbours.

An event of 500 bytes takes 3 µs of processor time here, and SQLite 6 µs to store it: 1.0 for its hash, 0.7 for checks
that every reader can read it, 0.2 for its id. To seal personal fields takes 2.2 more, a third of it for a cipher that
is not kept (vault.py).
"""

import os
import struct
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any, Self

import msgspec

from eventstore.appending.validation import check_event
from eventstore.errors import DuplicateEventId, EventStoreError, WrongExpectedVersion
from eventstore.events import Append, Appended, Metadata, NewEvent, RecordedEvent
from eventstore.log.chain import event_hash, naming_log
from eventstore.log.rows import recorded_events
from eventstore.vault import Key, Vault

Outcome = Appended | Exception
Keys = dict[str, Key | EventStoreError]
"""The keys by the subjects of a batch; in place of a key, why there is none."""
Row = tuple[int, str, int, str, str, int, str, str, str, bytes | None, bytes]
"""Position, stream, stream_version, id, type, schema_version, recorded_at, metadata, data, sealed, hash."""


class Batch:
    """The result of some appends: an outcome for each, and the events of those that were stored."""

    __slots__ = ("events", "last", "outcomes")

    def __init__(self, outcomes: list[Outcome], events: list[RecordedEvent], last: int) -> None:
        self.outcomes = outcomes
        self.events = events
        """Empty when they were not wanted."""
        self.last = last
        """The position of the last event stored; 0 when there is none."""

    @classmethod
    def joined(cls, batches: "Sequence[Batch]") -> Self:
        """Return the results of batches that were stored one after the other."""
        return cls(
            [outcome for batch in batches for outcome in batch.outcomes],
            [event for batch in batches for event in batch.events],
            max(batch.last for batch in batches),
        )


def obtain_keys(vault: Vault, appends: Sequence[Sequence[Append]]) -> Keys:
    """Return the keys under which the personal fields of these appends are to be sealed."""
    subjects = {
        part.stream for append in appends for part in append for event in part.events if event.personal is not None
    }
    if not subjects:
        return {}
    try:
        return vault.obtain(subjects)
    except EventStoreError as error:
        return dict.fromkeys(subjects, error)


class Draft:
    """The rows of a batch as it is being put together, and where they leave the log."""

    def __init__(
        self,
        position: int,
        hash: bytes,  # noqa: A002
        now: datetime,
        keys: Keys,
        wants_events: bool,
        identity: str = "",
    ) -> None:
        """``identity``: the key of the checkpoints, for the first event of a log."""
        self._identity = identity
        self.position, self.hash, self.versions = position, hash, dict[str, int]()
        self.rows: list[Row] = []
        self.events: list[RecordedEvent] = []
        self._keys, self._wants_events = keys, wants_events
        self.now, self._recorded_at = now, now.isoformat(timespec="microseconds")
        self._recorded_at_bytes = self._recorded_at.encode()
        self._random = self._milliseconds = ""
        self._metadata: tuple[Metadata | None, bytes, str] = (None, b"", "")

    def add(
        self,
        append: Sequence[Append],
        version_of: Callable[[str], int],
        stored_already: Callable[[Sequence[Append]], Outcome | None],
    ) -> Outcome:
        """Add one append, whole, or leave the draft as it was.

        ``version_of`` returns the stored version of a stream; ``stored_already`` is called for an append that does not
        fit, and returns its outcome when it is a repeat. What either raises that is not ours goes to the caller.
        """
        before = self.position, self.hash, len(self.rows), len(self.events)
        versions: dict[str, int] = {}
        try:
            for part in append:
                stream = part.stream
                actual = versions.get(stream)
                if actual is None:
                    actual = self.versions.get(stream)
                if actual is None:
                    actual = version_of(stream)
                if actual != part.expected_version:
                    self._restore(*before)
                    already = stored_already(append)
                    return already or WrongExpectedVersion(stream, part.expected_version, actual)
                versions[stream] = actual + len(part.events)
                self._add_part(part)
        except (ValueError, TypeError, struct.error, EventStoreError) as error:
            self._restore(*before)
            return error
        self.versions |= versions
        return Appended(self.position, versions[append[-1].stream])

    def _restore(self, position: int, hash: bytes, rows: int, events: int) -> None:  # noqa: A002
        self.position, self.hash = position, hash
        del self.rows[rows:], self.events[events:]

    def _new_id(self) -> str:
        """Return an id as ``new_event_id`` makes it, with one call for random bytes for several."""
        if not self._random:
            self._random = os.urandom(100).hex()
            self._milliseconds = f"{time.time_ns() // 1_000_000:012x}"
        random, self._random = self._random[:20], self._random[20:]
        return self._milliseconds + random

    def _add_part(self, part: Append) -> None:
        stream, stream_bytes = part.stream, part.stream.encode()
        version, position, previous = part.expected_version, self.position, self.hash
        for event in part.events:
            version += 1
            position += 1
            check_event(event, stream)
            id_ = event.id or self._new_id()
            id_bytes, data = id_.encode(), event.data
            known, metadata_bytes, metadata = self._metadata
            if event.metadata is not known:
                metadata_bytes = _encode_metadata(event.metadata)
                metadata = metadata_bytes.decode()
                self._metadata = (event.metadata, metadata_bytes, metadata)
            if position == 1:  # the metadata alone: an event of its own would need a stream that no one else writes
                metadata_bytes = naming_log(metadata_bytes, os.urandom(16).hex(), self._identity)
                metadata, self._metadata = metadata_bytes.decode(), (None, b"", "")
            sealed = None
            if event.personal is not None:
                key = self._keys[stream]
                if isinstance(key, EventStoreError):
                    raise key
                sealed = key.seal(event.personal, stream_bytes, version, id_bytes)
            previous = event_hash(
                previous, position, stream_bytes, version, id_bytes, event.type.encode(), event.schema_version,
                self._recorded_at_bytes, metadata_bytes, data, sealed,
            )  # fmt: skip
            self.rows.append(
                (
                    position, stream, version, id_, event.type, event.schema_version, self._recorded_at, metadata,
                    data.decode(), sealed, previous,
                )
            )  # fmt: skip
            if self._wants_events:
                self.events.append(
                    RecordedEvent(
                        position, stream, version, event.type, data, event.personal, False, event.schema_version,
                        event.metadata, id_, self.now, previous,
                    )
                )  # fmt: skip
        self.position, self.hash = position, previous


def outcome_of_repeat(
    append: Sequence[Append], rows_of: Callable[[str, int, int], Iterable[tuple[Any, ...]]], vault: Vault
) -> Outcome | None:
    """Return where these very events went before, when this append repeats one that was stored; an error when it has
    only their ids.

    ``rows_of`` returns a stream's rows (see ``recorded_events``) after a version, up to a number of them.
    """
    if not all(event.id for part in append for event in part.events):
        return None
    appended = None
    for part in append:
        rows = list(rows_of(part.stream, part.expected_version, len(part.events)))
        if [row[3] for row in rows] != [event.id for event in part.events]:
            return None
        for stored, event in zip(recorded_events(rows, vault), part.events, strict=True):
            if not _is_same(stored, event):
                return DuplicateEventId(f"event {event.id} is stored already, at {stored.position}, and differs")
        appended = Appended(rows[-1][0], rows[-1][2])
    return appended


def _is_same(stored: RecordedEvent, event: NewEvent) -> bool:
    """Return whether an event is the stored one of its id; of personal fields that are gone, that cannot be asked any
    more.
    """
    return (stored.type, stored.data, stored.schema_version, stored.metadata) == (
        event.type,
        event.data,
        event.schema_version,
        event.metadata,
    ) and (stored.personal == event.personal or ((stored.erased or stored.damaged) and event.personal is not None))


_encode_metadata = msgspec.json.Encoder().encode
