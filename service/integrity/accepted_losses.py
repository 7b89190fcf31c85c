"""Whether what a data folder has seen of its log, and the log lacks, was accepted as lost with another folder.

Several instances share a log in PostgreSQL, each with witnesses of its own: its views, its copy of the log, its signed
checkpoints. When the log has lost its end, an operator accepts that with the folder of one of them, which records the
lost range as an event. The others have seen the same end, or more of it: that is no other loss.

The copy shows best that it is the same one: where it parts from the log is in the lost range, and not after the event.
A folder that has seen the event, and later ones that are gone now, parts after it: that is another loss.
"""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import structlog
from msgspec import Struct

from eventstore import EventStore, LogPlace, Witness, witnesses_in_copy
from service.domain.audit import LossAccepted
from service.integrity.checkpoints import CHECKPOINTS, set_apart
from service.integrity.continuity import witnesses_of
from service.integrity.log_place import forget_copy
from service.runtime.data_folder import LOG_COPY
from service.streams import AUDIT, decoded

PROBES = 64
"""Positions of the copy that are compared with the log at once."""
PAGE = 1_000

log = structlog.get_logger()


class _Seen(Struct, frozen=True):
    """The witnesses of a folder, compared with a log that is not what it was."""

    gone: Sequence[Witness]
    """The witnesses whose event the log does not hold."""
    agreed: int
    """The last position of those whose event it holds."""
    parts_at: int | None
    """The first position at which the copy has another event than the log; None where it does not show that."""


async def settle_accepted_loss(data: Path, place: LogPlace) -> bool:
    """Let a folder follow a log whose loss was accepted with another one: set checkpoints apart, and remove the views
    and the copy, which are made again. Return False where the log has no event that explains what is missing.

    No other process may use the folder. Raises EventStoreError, OSError.
    """
    if place.is_local:  # one folder, one log: it was accepted here or nowhere
        return False
    seen = await asyncio.to_thread(_look, data, place)
    if not seen.gone:
        return False
    async with await place.open(read_only=True) as store:
        position = await _explained_at(seen, store)
    if position is None:
        return False
    apart = await asyncio.to_thread(_forget, data, place)
    log.warning(
        "events that this folder had seen are lost, as an operator has accepted",
        accepted_at=position,
        seen_up_to=max(one.position for one in seen.gone),
        checkpoints_set_apart=apart,
    )
    return True


def _look(data: Path, place: LogPlace) -> _Seen:
    witnesses = witnesses_of(data, place, tail_bytes=None)
    gone = place.not_held(witnesses)
    agreed = max((one.position for one in witnesses if one not in gone), default=0)
    return _Seen(gone, agreed, _parting(data / LOG_COPY, place))


def _parting(copy: Path, place: LogPlace) -> int | None:
    """Return the first position at which a copy has another event than the log. Each of the two is a chain: up to there
    they are the same, and never again after it.
    """
    last = witnesses_in_copy(copy)
    if not last or not place.not_held(last):
        return None
    held, differs = 0, last[0].position
    while differs - held > 1:
        step = max((differs - held) // PROBES, 1)
        probes = witnesses_in_copy(copy, range(held + step, differs, step))
        gone = {one.position for one in place.not_held(probes)}
        before = (held, differs)
        differs = min(gone, default=differs)
        held = max((one.position for one in probes if one.position < differs), default=held)
        if (held, differs) == before:
            return None  # the copy lacks rows
    return differs


async def _explained_at(seen: _Seen, store: EventStore) -> int | None:
    """Return the position of an event that accepts what is missing."""
    after = seen.agreed
    while page := await store.read_all(after=after, category=AUDIT.category, limit=PAGE):
        for recorded in page:
            for _, event in decoded(AUDIT, [recorded]):
                if isinstance(event, LossAccepted) and _explains(event, recorded.position, seen):
                    return recorded.position
        after = page[-1].position
    return None


def _explains(event: LossAccepted, position: int, seen: _Seen) -> bool:
    first, last = min(one.position for one in seen.gone), max(one.position for one in seen.gone)
    if first < event.lost_from:
        return False
    if seen.parts_at is not None:
        return event.lost_from <= seen.parts_at <= min(first, position)
    # Without the copy, only the very event that the other folder had seen last shows that it is the same end.
    known = {(one.position, one.hash.hex()) for one in seen.gone}
    return last <= event.expected_position and (event.expected_position, event.expected_hash) in known


def _forget(data: Path, place: LogPlace) -> int:
    """Repeatable until all is done: the copy, which shows the most, goes last."""
    apart = set_apart(data / CHECKPOINTS, place)
    for file in data.glob("views.db*"):
        file.unlink(missing_ok=True)
    forget_copy(data)
    return apart
