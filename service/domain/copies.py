"""A data folder that was restored from a backup, and the decision to go on from it in place of the original."""

from datetime import datetime
from typing import assert_never

from msgspec import Struct

from service.domain.events import Event


class CopyTakenOver(Event, frozen=True, tag="copy-taken-over"):
    """From here on the restored log is the service's own. Who took over is in the event's metadata."""

    restored_at: datetime
    position: int
    """The last event of the backup; what follows it was recorded in the copy."""
    head: str
    """The hash of that event, in hex."""
    taken_over_at: datetime


CopyEvent = CopyTakenOver


class TakeOver(Struct, frozen=True):
    restored_at: datetime
    position: int
    head: str
    now: datetime


CopyCommand = TakeOver


class Marked(Struct, frozen=True):
    pass


class TakenOver(Struct, frozen=True):
    pass


CopyState = Marked | TakenOver


def decide(command: CopyCommand, state: CopyState) -> list[CopyEvent]:
    match state:
        case Marked():
            return [CopyTakenOver(command.restored_at, command.position, command.head, taken_over_at=command.now)]
        case TakenOver():
            return []  # it was recorded, and the process died before it removed the mark
        case _:
            assert_never(state)


def evolve(_: CopyState, __: CopyEvent) -> CopyState:
    return TakenOver()
