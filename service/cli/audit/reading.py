"""Reading the log as auditors do: chosen events, on the record, from a folder in use or one that cannot be written."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import click

from eventstore import (
    EventStore,
    LogPlace,
    Metadata,
    StoreBusy,
    StoreNewer,
    StoreUnavailable,
)
from eventstore.core import CoreEventStore
from service.cli.output import warning
from service.cli.parsing import Options, together
from service.commands.audit import record_audit
from service.domain.audit import RecordReading
from service.domain.errors import NotFound
from service.domain.texts.times import moment
from service.integrity.continuity import LogLost, require_continuous
from service.integrity.erasing import repeat_erasures, repeat_erasures_if_writable
from service.integrity.log_place import log_place
from service.queries.audit import Filter
from service.runtime.system import cli_actor, now


def filter_of(options: Options) -> Filter:
    return Filter(**{name: getattr(options, name) for name in Filter.__struct_fields__})


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


def log_of(data: Path) -> LogPlace:
    """Return the place of a log that is there. It may block. Raise NotFound."""
    log = log_place(data)
    if not log.exists():
        raise NotFound(f"{log.name}: there is no log here.")
    return log


@asynccontextmanager
async def reading(
    data: Path, command: str, filters: dict[str, str], *, after: int = 0
) -> AsyncIterator[tuple[EventStore, int]]:
    """The log, and the position up to which to read it, once it is on the record that it is read.

    A folder that cannot be written (a copy, a full disk) can be read all the same, with a warning that this is not
    recorded.
    """
    log = await asyncio.to_thread(log_of, data)
    store: CoreEventStore | None = None
    try:
        await asyncio.to_thread(require_continuous, data)
        store = await log.open()
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
        store = await log.open(read_only=True)
        await repeat_erasures_if_writable(store)
        through = await store.head()
    try:
        yield store, through
    finally:
        await store.close()


def one_line(text: str, limit: int) -> str:
    """Return the text for a terminal, which takes some characters for commands; a line's end becomes a space."""
    shown = text[:limit].replace("\r\n", "\n").replace("\n", " ")
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in shown)
