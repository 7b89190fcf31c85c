"""The states of long streams, kept in memory: the next fold begins where the last one ended.

Kept in memory and not in a file, for three reasons. A state holds personal text, so a file of states would need each
of them sealed under its subject's key, and erased with it; it would need a version for each state's shape, which
changes more often than events do; and it would save little. Measured on a chat thread (8 events a turn, encrypted, 1 KB
of text each turn), recording one more message takes

    of 10 turns      cold    3 ms      warm   0.6 ms
    of 1,000 turns   cold   60 ms      warm   0.5 ms

and cold is the first message to a thread since the process began, or since 200,000 other events were folded.

A state is only used while the key of its subject is the one it was read with. Erasing here drops it at once; an
erasure by another process is noticed when the stream is folded again, and at the next look at the vault (which a store
takes every 25 ms while it is followed).
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from eventstore.codec import Codec

MIN_EVENTS = 50
"""Shorter streams are folded as fast as they are found."""
MAX_STREAMS = 1_000
MAX_EVENTS = 200_000
"""In all states together: a bound for their memory."""

Key = tuple[str, Codec[Any], Callable[[Any, Any], Any]]
"""A stream, and what folds it."""


class Snapshot(Struct, frozen=True):
    initial: object
    """The state that it was folded from."""
    state: Any
    version: int
    position: int
    key_id: bytes | None
    """The id of the key that opened its personal data; None when there was none."""
    damaged: int = 0
    """See Folded."""


class Snapshots:
    """Used on the event loop only."""

    def __init__(
        self, *, min_events: int = MIN_EVENTS, max_streams: int = MAX_STREAMS, max_events: int = MAX_EVENTS
    ) -> None:
        self._min_events, self._max_streams, self._max_events = min_events, max_streams, max_events
        self._kept: OrderedDict[Key, Snapshot] = OrderedDict()
        self.events = 0
        """In all states that are kept."""
        self.dropped = 0
        """How often states were dropped: one whose fold began before is not for keeping."""

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: Key, initial: object) -> Snapshot | None:
        snapshot = self._kept.get(key)
        if snapshot is None or snapshot.initial is not initial:
            return None
        self._kept.move_to_end(key)
        return snapshot

    def put(self, key: Key, snapshot: Snapshot, *, dropped: int) -> None:
        """Keep a state whose fold began when ``dropped`` was this."""
        if dropped != self.dropped or not self._min_events <= snapshot.version <= self._max_events:
            return
        self._forget(key)
        self._kept[key] = snapshot
        self.events += snapshot.version
        while len(self._kept) > self._max_streams or self.events > self._max_events:
            self._forget(next(iter(self._kept)))

    def drop(self, stream: str) -> None:
        self.dropped += 1
        for key in [key for key in self._kept if key[0] == stream]:
            self._forget(key)

    def clear(self) -> None:
        self.dropped += 1
        self._kept.clear()
        self.events = 0

    def _forget(self, key: Key) -> None:
        snapshot = self._kept.pop(key, None)
        if snapshot is not None:
            self.events -= snapshot.version
