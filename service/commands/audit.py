"""The audit of the log: record that it was read, or that a loss was accepted."""

from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256

import msgspec

from eventstore import EventStore, Metadata, execute
from service.domain.audit import AuditCommand, RecordReading
from service.domain.errors import Conflict
from service.runtime.system import new_id, now
from service.streams import AUDIT

MAX_FILTER_CHARACTERS = 300
"""Recorded of a filter, whose value the address of a page may name."""


async def record_audit(store: EventStore, command: AuditCommand, metadata: Metadata) -> int:
    """Return the position of the record in the log."""
    return (await execute(store, AUDIT, new_id(), command, metadata=metadata)).position


async def record_page_read(
    store: EventStore, session_id: str, page: str, filters: Mapping[str, str], metadata: Metadata
) -> None:
    """Record that a person looks at text that others typed: once for a session, page and filter.

    To be called before anything of it is shown. ``filters`` holds the organization too, and is free of secrets and of
    what people typed. Raises StoreUnavailable.
    """
    await _record_once(store, (session_id, page), f"page {page}", filters, metadata)


async def record_tool_read(
    store: EventStore, key_id: str, tool: str, filters: Mapping[str, str], metadata: Metadata
) -> None:
    """Record that an agent reads text that others typed, by a tool: once for a key, day of UTC, tool and filter.

    Otherwise as ``record_page_read``.
    """
    await _record_once(store, (key_id, now().date().isoformat(), tool), f"tool {tool}", filters, metadata)


async def _record_once(
    store: EventStore, reader: tuple[str, ...], command: str, filters: Mapping[str, str], metadata: Metadata
) -> None:
    """Record a reading, unless there is one with the same ``reader`` and filters."""
    chosen = sorted((name, value[:MAX_FILTER_CHARACTERS]) for name, value in filters.items() if value)
    reading_id = sha256(msgspec.json.encode((*reader, chosen))).hexdigest()
    if await store.stream_version(AUDIT.stream(reading_id)):
        return
    reading = RecordReading(command, dict(chosen), after=0, through=await store.head(), now=now())
    with suppress(Conflict):  # a second request of the same reader recorded it meanwhile
        await execute(store, AUDIT, reading_id, reading, metadata=metadata)
