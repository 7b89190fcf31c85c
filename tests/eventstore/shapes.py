"""Events of the tests' own, and stores to put them in."""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct

from eventstore import Codec, Decider, EventStore, LogBounds, NewEvent, RecordedEvent, SQLiteEventStore

PersonalText = Annotated[str, Meta(extra={"personal": "[erased]", "damaged": "[damaged]"})]


class Event(Struct, frozen=True, tag_field="type", omit_defaults=True):
    pass


class Noted(Event, frozen=True, tag="noted"):
    number: int
    text: PersonalText = ""


class Counted(Event, frozen=True, tag="counted"):
    by: int = 1


TestEvent = Noted | Counted
CODEC: Codec[TestEvent] = Codec(TestEvent)


class Refused(Exception):
    """What a decider of the tests raises."""


def decide(command: int, state: int) -> Sequence[TestEvent]:
    """Count by the command; nothing for 0, refused when negative."""
    if command < 0:
        raise Refused
    return [Counted(command)] if command else []


def evolve(state: int, event: TestEvent) -> int:
    match event:
        case Counted(by=by):
            return state + by
        case Noted():
            return state


COUNTER: Decider[int, int, TestEvent] = Decider("counter", 0, decide, evolve, CODEC)


def noted(number: int, text: str = "", *, event_id: str = "") -> NewEvent:
    new = CODEC.encode(Noted(number, text))
    return NewEvent(new.type, new.data, new.personal, new.schema_version, new.metadata, event_id)


def counted(by: int = 1) -> NewEvent:
    return CODEC.encode(Counted(by))


SHORT = LogBounds(usual=200, little=50, most=400)
"""A write-ahead log that soon starts over."""


async def opened(folder: Path, **options: object) -> SQLiteEventStore:
    return await SQLiteEventStore.open(folder / "events.db", vault_path=folder / "keys.db", **options)  # type: ignore[arg-type]


def files_with(folder: Path, text: bytes) -> list[str]:
    return [file.name for file in folder.rglob("*") if file.is_file() and text in file.read_bytes()]


async def take(store: EventStore, count: int, **where: object) -> list[RecordedEvent]:
    """Return the first events of a subscription."""
    taken: list[RecordedEvent] = []
    async with asyncio.timeout(60), aclosing(store.subscribe(**where)) as events:  # type: ignore[arg-type]
        async for event in events:
            taken.append(event)
            if len(taken) == count:
                return taken
    raise AssertionError


def numbers(events: list[RecordedEvent]) -> list[int]:
    decoded = [CODEC.decode(event) for event in events]
    return [event.number for event in decoded if isinstance(event, Noted)]
