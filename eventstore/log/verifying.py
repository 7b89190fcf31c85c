"""A check of a log's chain and of its checkpoints, page by page, over any storage of the log."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from eventstore.log.chain import GENESIS, NOT_SIGNED, ChainCheck, Checkpoint, Verified, log_id_in


class LogSource(Protocol):
    """A log as it is stored. Its texts are bytes: they are what is hashed."""

    def first(self) -> int | None:
        """Return the lowest position; None for an empty log."""

    def head(self) -> int:
        """Return the last position, of a log that is not empty."""

    def first_metadata(self) -> bytes:
        """Return the metadata of the first event; empty for an empty log."""

    def hash_at(self, position: int) -> bytes | None: ...

    def position_of(self, stream: bytes, version: int) -> int | None: ...

    def page(self, after: int) -> tuple[list[tuple[Any, ...]], str | None]:
        """Return the next rows, as ``ChainCheck.check`` takes them; where the storage is damaged, those before the
        damage, and what is wrong.
        """


class Verification:
    """See ``verify``; ``progress`` is called after each page with the position reached and the last one."""

    def __init__(
        self, source: LogSource, checkpoints: Sequence[Checkpoint], progress: Callable[[int, int], None] | None
    ) -> None:
        self._source, self._progress = source, progress
        self._checkpoints_of_logs = [one for one in checkpoints if one.log]
        self._checkpoints: dict[int, set[bytes]] = {}
        for one in checkpoints:
            self._checkpoints.setdefault(one.position, set()).add(one.hash)
        self._chain = ChainCheck(self._checkpoints, self._version_before)

    def run(self, from_position: int) -> Verified:
        last, last_hash = max(from_position, 1) - 1, GENESIS
        if other_log := self._other_log():
            return Verified(0, GENESIS, 1, other_log)
        if last == 0:
            first = self._source.first()
            if first is not None and first < 1:
                return Verified(0, GENESIS, first, "there are no positions before 1")
        else:
            known = self._source.hash_at(last)
            if known is None:
                return Verified(0, GENESIS, last, "the event is missing")
            last_hash = known
            if (other := self._other_before(from_position)) is not None:
                return Verified(0, GENESIS, other, NOT_SIGNED)
        start = last
        while True:
            rows, damage = self._source.page(last)
            last, last_hash, problem = self._chain.check(rows, last, last_hash)
            if problem := problem or damage:
                return Verified(last, last_hash, last + 1, problem)
            if not rows:
                break
            if self._progress is not None:
                self._progress(last, max(last, self._source.head()))
        missing = [position for position in self._checkpoints if position > max(start, last)]
        if missing:
            return Verified(last, last_hash, last + 1, f"the log ends before its checkpoint at {min(missing)}")
        return Verified(last, last_hash)

    def _other_log(self) -> str | None:
        """Return what is wrong with a checkpoint that names a log; one without a name may be of any."""
        ids = {one.log for one in self._checkpoints_of_logs}
        if not ids:
            return None
        own = log_id_in(self._source.first_metadata())
        others = sorted(ids - {own})
        return f"a checkpoint is of the log {others[0]}, and this is {own or 'one without an id'}" if others else None

    def _other_before(self, from_position: int) -> int | None:
        """Return the first position, of those not looked at otherwise, whose event is not the one that was signed."""
        for position, signed in sorted(self._checkpoints.items()):
            if position < from_position and signed != {self._source.hash_at(position)}:
                return position
        return None

    def _version_before(self, stream: bytes, position: int, version: int) -> int:
        if version == 1:
            return 0
        before = self._source.position_of(stream, version - 1)
        return version - 1 if before is not None and before < position else 0
