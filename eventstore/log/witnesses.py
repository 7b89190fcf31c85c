"""Whether a log still holds what it held before: its tail may have been cut off, or another one put in its place.

The chain cannot show that: what is left of a shortened log is sound (chain.py). But those that follow a log note how
far they are, with the hash of the event there: each view in the file of the views, each signed checkpoint. What they do
not show is the loss of events that no view had applied yet: service/manual/log-format.md says how long that is.

Read the witnesses before the log: it grows meanwhile, and must not seem to be behind.
"""

from collections.abc import Collection, Sequence

from msgspec import Struct


class Witness(Struct, frozen=True):
    """The state of the log at a position, as something outside of the log has noted it."""

    name: str
    """As in a sentence: ``the view jobs-1``."""
    position: int
    hash: bytes


class Loss(Struct, frozen=True):
    """A log is not what it was."""

    witness: Witness | None
    """The one that is furthest ahead of those that differ; None when only the WAL shows it."""
    position: int
    """The log's head as it is now; 0 for an empty log."""
    hash: bytes
    lost_from: int
    """The first position whose event may be lost, or another one now."""

    @property
    def is_behind(self) -> bool:
        """The log ends too early; else it holds another event at the position of the witness."""
        return self.witness is None or self.position < self.witness.position


def loss_of(position: int, hash: bytes, witnesses: Sequence[Witness], differ: Collection[Witness]) -> Loss:  # noqa: A002 - the column's name
    """Return what a log that ends with this event has lost, by the witnesses that it does not agree with."""
    furthest = max(differ, key=lambda one: one.position, default=None)
    agreed = max((one.position for one in witnesses if one not in differ), default=0)
    is_forked = any(one.position <= position for one in differ)
    return Loss(furthest, position, hash, agreed + 1 if is_forked else position + 1)
