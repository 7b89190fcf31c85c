"""The log as auditors read it: chosen events, newest first, and each as one JSON object."""

from collections.abc import AsyncGenerator, Sequence
from datetime import datetime
from typing import Any

import msgspec
from msgspec import Struct

from eventstore import Decider, EventStore, RecordedEvent
from service import streams
from service.domain.errors import NotFound
from service.views.audit import EventView

HIDDEN = "[hidden]"
_HIDDEN = ("secret", "memory")
CATEGORIES = tuple(sorted(one.category for one in vars(streams).values() if isinstance(one, Decider)))
PAGE = 1000
WINDOW = 500
"""Positions that are read at once, after a few windows that are smaller: without a filter, the first has the page."""
MAX_READ, MAX_WINDOWS = 2_000, 40
"""Events, and windows, that are read for one page: a filter that few events fit goes on with the next page."""


class Filter(Struct, frozen=True, omit_defaults=True):
    """Filter of events; what is None or empty does not matter."""

    stream: str | None = None
    category: str | None = None
    type: str | None = None
    actor: str | None = None
    request: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    after: int = 0

    def as_texts(self) -> dict[str, str]:
        return {name: str(value) for name, value in msgspec.to_builtins(self).items()}

    def wants(self, event: RecordedEvent) -> bool:
        return (
            (self.stream is None or event.stream == self.stream)
            and (self.category is None or event.stream.startswith(f"{self.category}-"))
            and (self.type is None or event.type == self.type)
            and (self.actor is None or event.metadata.actor == self.actor)
            and (self.request is None or event.metadata.correlation_id == self.request)
            and (self.since is None or event.recorded_at >= self.since)
            and (self.until is None or event.recorded_at < self.until)
            and event.position > self.after
        )


class EventPage(Struct, frozen=True):
    events: tuple[EventView, ...]
    before: int | None
    """The position to go on from, towards older events; None at the beginning of the log."""


def fields_of(event: RecordedEvent, *, personal: bool) -> dict[str, Any]:
    """Return an event's fields; those that people typed only with ``personal``."""
    fields: dict[str, Any] = msgspec.json.decode(event.data, type=dict[str, Any])
    if personal:
        fields |= personal_fields_of(event) or {}
    return fields


def personal_fields_of(event: RecordedEvent) -> dict[str, Any] | None:
    """Return the sealed fields of an event; None when there are none, or when they are erased.

    Secrets (of webhooks) are never shown: a reader of the log need not be able to sign with them. Nor is what goes back
    to a model alone.
    """
    if event.personal is None:
        return None
    fields = msgspec.json.decode(event.personal, type=dict[str, Any])
    return {name: HIDDEN if name in _HIDDEN else value for name, value in fields.items()}


def state_of(event: RecordedEvent) -> str:
    """Return the state of its personal fields: ``none``, ``sealed``, ``erased`` or ``damaged``."""
    return "damaged" if event.damaged else "erased" if event.erased else "none" if event.personal is None else "sealed"


def shown(event: RecordedEvent) -> EventView:
    """Return an event with its personal fields, as far as they are not erased."""
    return EventView(
        event.position, event.stream, event.stream_version, event.type, event.recorded_at.isoformat(),
        event.metadata.actor, event.metadata.correlation_id, event.metadata.causation,
        msgspec.Raw(msgspec.json.encode(fields_of(event, personal=True))), event.erased, event.hash.hex(),
        event.damaged,
    )  # fmt: skip


async def event_at(store: EventStore, position: int) -> EventView:
    """Return the event at a position. Raise NotFound where there is none."""
    found = await store.read_all(after=position - 1, limit=1)
    if not found or found[0].position != position:
        raise NotFound(f"Event not found: {position}. The log ends at position {await store.head()}.")
    return shown(found[0])


async def event_page(store: EventStore, wanted: Filter, *, before: int | None, limit: int) -> EventPage:
    """Return the newest of the wanted events that are before a position, newest first.

    With ``until``, times are taken not to go back, as in every log of this release.
    """
    stream = wanted.stream
    end = await (store.stream_version(stream) if stream is not None else store.head()) + 1
    if before is not None:
        end = min(end, before)
    elif wanted.until is not None and stream is None:
        end = min(end, await _first_at(store, wanted.until, end))
    found: list[RecordedEvent] = []
    read, windows, window = 0, 0, min(limit, WINDOW)
    while end > 1 and len(found) < limit and read < MAX_READ and windows < MAX_WINDOWS:
        start, window = max(end - window, 1), min(2 * window, WINDOW)
        if stream is not None:
            page = await store.read_stream(stream, after_version=start - 1, limit=end - start)
        else:
            page = await store.read_all(after=start - 1, category=wanted.category, limit=end - start)
            page = [event for event in page if event.position < end]
        read, windows = read + len(page), windows + 1
        fits = [event for event in reversed(page) if wanted.wants(event)][: limit - len(found)]
        found += fits
        last = found[-1] if len(found) == limit else None
        end = start if last is None else last.stream_version if stream is not None else last.position
        if page and wanted.since is not None and page[0].recorded_at < wanted.since and last is None:
            end = 1
    return EventPage(tuple(map(shown, found)), end if end > 1 else None)


async def pages(
    store: EventStore, wanted: Filter, *, through: int
) -> AsyncGenerator[tuple[Sequence[RecordedEvent], int], None]:
    """Yield the wanted events up to a position, page by page, each with the position that was read up to."""
    after, version = wanted.after, 0
    while after < through:
        if wanted.stream is not None:
            page = await store.read_stream(wanted.stream, after_version=version, limit=PAGE)
            version = page[-1].stream_version if page else version
        else:
            page = await store.read_all(after=after, category=wanted.category, limit=PAGE)
        after = max(after, page[-1].position) if len(page) == PAGE else through
        yield [event for event in page if event.position <= through and wanted.wants(event)], min(after, through)


async def _first_at(store: EventStore, time: datetime, end: int) -> int:
    """Return the first position before ``end`` whose event was recorded at a time or later."""
    low, high = 1, end
    while low < high:
        middle = (low + high) // 2
        event = (await store.read_all(after=middle - 1, limit=1))[0]
        low, high = (middle + 1, high) if event.recorded_at < time else (low, middle)
    return low
