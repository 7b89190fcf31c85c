"""The erasure of what one thread, job or person holds of people: its data key is deleted, and that is recorded."""

from datetime import datetime
from typing import assert_never

from msgspec import Struct

from service.domain.events import Event

CATEGORIES = ("thread", "job", "person")
"""Categories of the streams that have personal data of their own."""


class SubjectErased(Event, frozen=True, tag="subject-erased"):
    """Recorded once the key is gone; the subject is in the stream's name: ``erasure-<subject>``."""

    erased_at: datetime


ErasureEvent = SubjectErased


class EraseSubject(Struct, frozen=True):
    now: datetime


ErasureCommand = EraseSubject


class NotErased(Struct, frozen=True):
    pass


class Erased(Struct, frozen=True):
    erased_at: datetime


Erasure = NotErased | Erased


def decide(command: ErasureCommand, erasure: Erasure) -> list[ErasureEvent]:
    match erasure:
        case NotErased():
            return [SubjectErased(erased_at=command.now)]
        case Erased():
            return []
        case _:
            assert_never(erasure)


def evolve(_: Erasure, event: ErasureEvent) -> Erasure:
    return Erased(event.erased_at)
