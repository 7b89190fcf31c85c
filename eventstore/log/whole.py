"""A log and its vault as they are stored, and their copying from one storage to another: the same rows, so the same
hashes and the same head.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from eventstore.errors import StoreCorrupt, StoreLost
from eventstore.log.chain import GENESIS, event_hash

PAGE = 2_000

StoredRow = tuple[Any, ...]
"""Position, stream, stream_version, id, type, schema_version, recorded_at, metadata, data, sealed and hash."""
KeyRow = tuple[str, bytes | None, bytes | None, str, str | None]
"""Subject, key_id, key, created_at and erased_at."""
SecretRow = tuple[str, bytes, str]
"""Name, sealed and created_at."""


class End(NamedTuple):
    """The last event of a log."""

    position: int
    hash: bytes


BEGINNING = End(0, GENESIS)


class WholeStore(Protocol):
    """A log and a vault, to be read or written row by row. Its methods block.

    Any of them raises StoreUnavailable and its kinds, or StoreCorrupt.
    """

    @property
    def name(self) -> str: ...

    def end(self) -> End: ...

    def hash_at(self, position: int) -> bytes | None: ...

    def rows(self, after: int, limit: int) -> Sequence[StoredRow]: ...

    def add(self, rows: Sequence[StoredRow], before: End) -> None:
        """Store rows durably, all of them, after the event that the log ends with. Raise StoreLost if it does not."""

    def keys(self, after: str, limit: int) -> Sequence[KeyRow]:
        """Return the keys and tombstones of subjects after one, in the order of their names' bytes."""

    def add_keys(self, rows: Sequence[KeyRow]) -> None:
        """Store keys durably; where one is there, only that it was erased changes it."""

    def secrets(self) -> Sequence[SecretRow]: ...

    def keep_secrets(self, rows: Sequence[SecretRow]) -> None:
        """Store these secrets, and delete all others."""

    def scrub(self) -> None:
        """Take what was erased out of the storage's pages."""

    def close(self) -> None: ...


class Copied(NamedTuple):
    """The result of a copy."""

    end: End
    added: int
    """Events that were not there before."""


def copy_store(source: WholeStore, target: WholeStore, progress: Callable[[int, int], None]) -> Copied:
    """Copy a log and its vault, or what a copy lacks of them; ``progress`` gets the position reached and the last one.

    Keys come before the events that need them, and once more afterwards, with what was erased meanwhile. Interrupted,
    it goes on where it was; while the source is in use it ends at a moment of it, and can be called again.

    Raises:
        StoreLost: the copy has events that the source has not.
        StoreCorrupt: an event of the source does not have the hash that its chain asks for.
        StoreUnavailable and its kinds.
    """
    begin, goal = target.end(), source.end()
    if begin.position > goal.position or (begin.position and source.hash_at(begin.position) != begin.hash):
        raise StoreLost(f"{target.name} has events up to {begin.position} that {source.name} has not")
    _copy_keys(source, target)
    at = begin
    while at.position < goal.position:
        rows = source.rows(at.position, min(PAGE, goal.position - at.position))
        end = _checked(rows, at, source.name)
        target.add(rows, at)
        at = end
        progress(at.position, goal.position)
    _copy_keys(source, target)
    target.keep_secrets(source.secrets())
    target.scrub()
    return Copied(at, at.position - begin.position)


def _copy_keys(source: WholeStore, target: WholeStore) -> None:
    after = ""
    while rows := source.keys(after, PAGE):
        target.add_keys(rows)
        after = rows[-1][0]


def _checked(rows: Sequence[StoredRow], before: End, name: str) -> End:
    """Return where rows end that follow an event. Raise StoreCorrupt where one does not."""
    last = before
    for position, stream, version, id_, type_, schema_version, recorded_at, metadata, data, sealed, hash_ in rows:
        found = event_hash(
            last.hash, position, stream.encode(), version, id_.encode(), type_.encode(), schema_version,
            recorded_at.encode(), metadata.encode(), data.encode(), sealed,
        )  # fmt: skip
        if position != last.position + 1 or found != hash_:
            raise StoreCorrupt(f"{name}: the event at position {last.position + 1} is not sound")
        last = End(position, found)
    if last == before:
        raise StoreCorrupt(f"{name}: the event at position {before.position + 1} is missing")
    return last
