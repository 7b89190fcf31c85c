"""Whether a data folder's log is sound: its hash chain, the signed checkpoints beside it, and what was seen of it."""

from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from eventstore import Checkpoint, EventStoreError, StoreCorrupt, Verified
from service.domain.errors import Invalid
from service.integrity.checkpoints import CHECKPOINTS, SignedCheckpoint, parse_checkpoints
from service.integrity.continuity import described, loss_in
from service.integrity.log_place import log_place

Progress = Callable[[int, int], None]
"""Called with the position that is reached and the last one."""


class CheckedLog(Struct, frozen=True):
    """The result of a check of a log."""

    position: int
    """The last position that was checked."""
    head_hash: str
    """Its hash, in hex."""
    bad_position: int
    """The first position that is not sound; 0 where it is another part of the file."""
    problem: str
    """Empty for a log that is sound."""
    checkpoints: int
    """The signed checkpoints that it holds."""


def verify_log(
    data: Path, checkpoints: Sequence[Checkpoint], *, from_position: int = 1, progress: Progress | None = None
) -> Verified:
    """Check the chain from a position on, and that nothing that was seen of the log is lost.

    Raise StoreUnavailable and StoreNewer when the file cannot be read as a log.
    """
    try:
        found = log_place(data).verify(from_position=from_position, checkpoints=checkpoints, progress=progress)
        if found.is_sound and (loss := loss_in(data)) is not None:
            found = replace(found, bad_position=loss.lost_from, problem=described(loss, data))
    except StoreCorrupt as error:
        return Verified(0, b"", 0, str(error))
    return found


def check_log(data: Path, report: Callable[[tuple[int, int]], None]) -> CheckedLog:
    """Check a log with the checkpoints of its own folder, in a child process; report position and head on the way."""
    try:
        kept = _own_checkpoints(data)
        found = verify_log(data, [one.checkpoint() for one in kept], progress=lambda *reached: report(reached))
    except (Invalid, EventStoreError) as error:
        return CheckedLog(0, "", 0, str(error), 0)
    return CheckedLog(found.position, found.hash.hex(), found.bad_position or 0, found.problem or "", len(kept))


def _own_checkpoints(data: Path) -> list[SignedCheckpoint]:
    """Raise Invalid where one cannot be read or does not fit its signature."""
    try:
        text = (data / CHECKPOINTS).read_bytes()
    except FileNotFoundError:
        return []
    kept = parse_checkpoints(text, CHECKPOINTS)
    for one in kept:
        if not one.is_signed_with(one.own_key()):
            raise Invalid(f"The checkpoint of position {one.position} in {CHECKPOINTS} does not fit its signature.")
    return kept
