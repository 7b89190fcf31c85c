"""The reading of the log, which is itself recorded: who has seen what people typed, and when."""

from datetime import datetime
from typing import assert_never

from msgspec import Struct

from service.domain.errors import Conflict
from service.domain.events import Event


class AuditRead(Event, frozen=True, tag="audit-read"):
    """Recorded before anything is shown. Who read is in the event's metadata."""

    command: str
    """``audit show``, ``audit export``, ``audit replay`` or ``backup``."""
    filters: dict[str, str]
    """The options that chose what is read, by their names."""
    after: int
    """Only events at later positions are read ..."""
    through: int
    """... up to this one."""
    read_at: datetime


AuditEvent = AuditRead


class RecordReading(Struct, frozen=True):
    command: str
    filters: dict[str, str]
    after: int
    through: int
    now: datetime


AuditCommand = RecordReading


class Unread(Struct, frozen=True):
    pass


class Read(Struct, frozen=True):
    pass


Reading = Unread | Read


def decide(command: AuditCommand, reading: Reading) -> list[AuditEvent]:
    match reading:
        case Unread():
            read = AuditRead(command.command, command.filters, command.after, command.through, read_at=command.now)
            return [read]
        case Read():
            raise Conflict("This reading is recorded already.")
        case _:
            assert_never(reading)


def evolve(_: Reading, __: AuditEvent) -> Reading:
    return Read()
