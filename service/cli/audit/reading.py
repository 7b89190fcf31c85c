"""Reading the log as auditors do: chosen events, on the record, from a folder in use or one that cannot be written."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import msgspec
from msgspec import Struct

from eventstore import (
    EventStore,
    Metadata,
    RecordedEvent,
    SQLiteEventStore,
    StoreBusy,
    StoreNewer,
    StoreUnavailable,
)
from service.cli.output import warning
from service.cli.parsing import Options, together
from service.commands.audit import record_audit
from service.domain.audit import RecordReading
from service.domain.errors import NotFound
from service.integrity.continuity import LogLost, require_continuous
from service.integrity.erasing import repeat_erasures, repeat_erasures_if_writable
from service.runtime.system import cli_actor, now

PAGE = 1000
HIDDEN = "[hidden]"


class Filter(Struct, frozen=True, omit_defaults=True):
    """Which events; what is None or empty does not matter."""

    stream: str | None = None
    category: str | None = None
    type: str | None = None
    actor: str | None = None
    request: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    after: int = 0

    @classmethod
    def of(cls, options: Options) -> "Filter":
        return cls(**{name: getattr(options, name) for name in cls.__struct_fields__})

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


def moment(text: str) -> datetime:
    """A time as people write it, ISO 8601; in UTC when it does not say."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a time such as 2026-01-31 or 2026-01-31T17:00Z.") from None
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)


filter_options = together(
    click.option("--stream", help="only of one stream, such as job-ID"),
    click.option("--category", help="only of one kind of stream, such as job or thread"),
    click.option("--type", help="only of one type, such as job-requested"),
    click.option("--actor", help="only what one actor caused: a key's id, system, or cli:USER"),
    click.option("--request", metavar="ID", help="only what one request caused, by its X-Request-Id"),
    click.option("--since", type=moment, metavar="TIME", help="only those recorded at this time or later"),
    click.option("--until", type=moment, metavar="TIME", help="only those recorded before this time"),
    click.option("--after", type=int, default=0, metavar="POSITION", help="only later ones"),
)


def log_of(data: Path) -> Path:
    log = data / "events.db"
    if not log.is_file():
        raise NotFound(f"{log}: there is no log here.")
    return log


@asynccontextmanager
async def reading(
    data: Path, command: str, filters: dict[str, str], *, after: int = 0
) -> AsyncIterator[tuple[EventStore, int]]:
    """The log, and the position up to which to read it, once it is on the record that it is read.

    A folder that cannot be written (a copy, a full disk) can be read all the same, with a warning that this is not
    recorded.
    """
    log, vault = log_of(data), data / "keys.db"
    store = None
    try:
        await asyncio.to_thread(require_continuous, data)
        store = await SQLiteEventStore.open(log, vault_path=vault)
        await repeat_erasures(store)
        through = await store.head()
        record = RecordReading(command, filters, after, through, now())
        await record_audit(store, record, Metadata(actor=cli_actor()))
    except (StoreUnavailable, LogLost) as error:
        if store is not None:
            await store.close()
        if isinstance(error, StoreBusy | StoreNewer):
            raise
        warning(f"the log cannot be written ({str(error).rstrip('.')}), so it is not recorded that it is read now.")
        store = await SQLiteEventStore.open(log, vault_path=vault, read_only=True)
        await repeat_erasures_if_writable(store)
        through = await store.head()
    try:
        yield store, through
    finally:
        await store.close()


async def pages(
    store: EventStore, wanted: Filter, *, through: int
) -> AsyncGenerator[tuple[Sequence[RecordedEvent], int], None]:
    """The wanted events up to a position, page by page, each with the position up to which the log has been read."""
    after, version = wanted.after, 0
    while after < through:
        if wanted.stream is not None:
            page = await store.read_stream(wanted.stream, after_version=version, limit=PAGE)
            version = page[-1].stream_version if page else version
        else:
            page = await store.read_all(after=after, category=wanted.category, limit=PAGE)
        after = max(after, page[-1].position) if len(page) == PAGE else through
        yield [event for event in page if event.position <= through and wanted.wants(event)], min(after, through)


def fields_of(event: RecordedEvent, *, personal: bool) -> dict[str, Any]:
    """An event's fields, those of people only if they are asked for."""
    fields: dict[str, Any] = msgspec.json.decode(event.data, type=dict[str, Any])
    if personal:
        fields |= personal_fields_of(event) or {}
    return fields


def personal_fields_of(event: RecordedEvent) -> dict[str, Any] | None:
    """Return the sealed fields of an event; None when there are none, or when they are erased.

    Secrets (of webhooks) are never shown: a reader of the log need not be able to sign with them.
    """
    if event.personal is None:
        return None
    fields = msgspec.json.decode(event.personal, type=dict[str, Any])
    return {name: HIDDEN if name == "secret" else value for name, value in fields.items()}


def state_of(event: RecordedEvent) -> str:
    """Return the state of its personal fields: ``none``, ``sealed``, ``erased`` or ``damaged``."""
    return "damaged" if event.damaged else "erased" if event.erased else "none" if event.personal is None else "sealed"


def one_line(text: str, limit: int) -> str:
    """Return the text for a terminal, which takes some characters for commands; a line's end becomes a space."""
    shown = text[:limit].replace("\r\n", "\n").replace("\n", " ")
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in shown)
