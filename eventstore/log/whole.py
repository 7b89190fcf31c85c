"""A log and its vault as they are stored, and their copying from one storage to another: the same rows, so the same
hashes and the same head.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
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
FIND_DAMAGE = "find the damage with docsmith audit verify"


class LogRows(Protocol):
    """The events of a log, to be read or written row by row. Its methods block.

    Any of them raises StoreUnavailable and its kinds, or StoreCorrupt.
    """

    @property
    def name(self) -> str: ...

    def end(self) -> End: ...

    def hash_at(self, position: int) -> bytes | None: ...

    def rows(self, after: int, limit: int) -> Sequence[StoredRow]: ...

    def add(self, rows: Sequence[StoredRow], before: End) -> None:
        """Store rows durably, all of them, after the event that the log ends with. Raise StoreLost if it does not."""

    def close(self) -> None: ...


class VaultRows(Protocol):
    """The keys and the sealed secrets of a vault, as ``LogRows`` has the events of a log."""

    def version(self) -> Hashable:
        """Return what is another value once keys or secrets have changed, as long as this is open."""

    def is_empty(self) -> bool:
        """Return whether it has neither keys nor secrets, and nothing to wrap keys under."""

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


class WholeStore(NamedTuple):
    """A log and its vault."""

    log: LogRows
    vault: VaultRows

    def close(self) -> None:
        self.log.close()
        self.vault.close()


class Copied(NamedTuple):
    """The result of a copy."""

    end: End
    added: int
    """Events that were not there before."""


Progress = Callable[[int, int], None]
"""Gets the position reached, and the last one."""


def copy_store(source: WholeStore, target: WholeStore, progress: Progress) -> Copied:
    """Copy a log and its vault, or what a copy lacks of them.

    Keys come before the events that need them, and once more afterwards, with what was erased meanwhile. Interrupted,
    it goes on where it was; while the source is in use it ends at a moment of it, and can be called again.

    Raises:
        StoreLost: the copy has events that the source has not.
        StoreCorrupt: an event of the source does not have the hash that its chain asks for.
        StoreUnavailable and its kinds.
    """
    through = source.log.end().position
    _require_same(source.log, target.log, through)
    copy_vault(source.vault, target.vault)
    copied = copy_log(source.log, target.log, through, progress)
    copy_vault(source.vault, target.vault)
    target.vault.scrub()
    return copied


def copy_log(source: LogRows, target: LogRows, through: int, progress: Progress) -> Copied:
    """Copy the events up to a position, or those of them that a copy lacks. Raise as ``copy_store``."""
    begin = at = _require_same(source, target, through)
    for rows, end in _checked_pages(source, begin, through):
        target.add(rows, at)
        at = end
        progress(at.position, through)
    return Copied(at, at.position - begin.position)


def copy_vault(source: VaultRows, target: VaultRows) -> None:
    """Copy what is known of all subjects, and the secrets: as they are now, or were a moment ago.

    Secrets are read first: each is sealed under a key that was there before it.
    """
    secrets, after = source.secrets(), ""
    while rows := source.keys(after, PAGE):
        target.add_keys(rows)
        after = rows[-1][0]
    target.keep_secrets(secrets)


def _require_same(source: LogRows, target: LogRows, through: int) -> End:
    """Return where a copy ends. Raise StoreLost where the log does not have that event."""
    end = target.end()
    if end.position > through or (end.position and source.hash_at(end.position) != end.hash):
        raise StoreLost(f"{target.name} has events up to {end.position} that {source.name} has not")
    return end


def _checked_pages(source: LogRows, after: End, through: int) -> Iterator[tuple[Sequence[StoredRow], End]]:
    """Yield the rows between two positions, a page at a time, each with where it ends. Raise StoreCorrupt."""
    while after.position < through:
        rows = source.rows(after.position, min(PAGE, through - after.position))
        after = _checked(rows, after, source.name)
        yield rows, after


def _checked(rows: Sequence[StoredRow], before: End, name: str) -> End:
    """Return where rows end that follow an event. Raise StoreCorrupt where one does not."""
    last = before
    for position, stream, version, id_, type_, schema_version, recorded_at, metadata, data, sealed, hash_ in rows:
        found = event_hash(
            last.hash, position, stream.encode(), version, id_.encode(), type_.encode(), schema_version,
            recorded_at.encode(), metadata.encode(), data.encode(), sealed,
        )  # fmt: skip
        if position != last.position + 1 or found != hash_:
            raise StoreCorrupt(f"{name} is not sound at position {last.position + 1}", remedy=FIND_DAMAGE)
        last = End(position, found)
    if last == before:
        raise StoreCorrupt(f"{name}: the event at position {before.position + 1} is missing", remedy=FIND_DAMAGE)
    return last
