"""``docsmith audit replay``: the read models made again from the log, and compared with those in use."""

import asyncio
import os
import sqlite3
import tempfile
from contextlib import closing
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, cast

import click
from msgspec import Struct

from eventstore import EventStore, Projection, RecordedEvent, Views, position_at
from eventstore.sqlite.files import connect_offline
from service.cli.audit.reading import one_line, reading
from service.cli.output import DONE, FAILED, VERIFICATION_FAILED, WRONG_USAGE, Output
from service.cli.parsing import FILE, Options, command
from service.cli.runtime import Runtime
from service.domain.errors import Unavailable
from service.domain.texts.times import moment
from service.queries.read_models import read_models
from service.runtime.scratch import scratch_folder

PAGE = 1000
"""Rows compared at once: as long as a snapshot is held."""
STEP = 10_000
"""Events between two looks at the progress."""
MAX_TOLD = 100
MAX_TRIES = 100
RETRY_SECONDS = 0.1


class Difference(Struct, frozen=True):
    table: str
    key: tuple[Any, ...]
    live: dict[str, Any] | None
    """The fields that differ; None when the row does not exist."""
    replayed: dict[str, Any] | None


def _until(text: str) -> int | datetime:
    return int(text) if text.isdecimal() else moment(text)


class LogUntil:
    """The log as it was at some position, which may grow: as much of a store as views need to catch up."""

    def __init__(self, store: EventStore, position: int = 0) -> None:
        self._store, self.position = store, position

    async def head(self) -> int:
        return self.position

    async def read_all(self, *, after: int = 0, limit: int = 1000) -> list[RecordedEvent]:
        return await self._store.read_all(after=after, limit=max(0, min(limit, self.position - after)))


@command(
    "replay",
    does="make all read models again from the log and compare them with those in use",
    more="It exits with 3 when they differ.",
    examples=["audit replay", "audit replay --until 2026-01-31T17:00Z --output then.db"],
)
@click.option(
    "--until",
    type=_until,
    metavar="POSITION|TIME",
    help="only make them, as they were after this event or at this time; with --output",
)
@click.option("--output", type=FILE, metavar="FILE", help="keep them: a SQLite file")
async def replay(runtime: Runtime, options: Options, output: Output) -> int:
    if options.until is not None and options.output is None:
        output.failed("--until needs --output FILE, where to put what is made.", "wrong_usage")
        return WRONG_USAGE
    if options.output is not None and options.output.exists():
        output.failed(f"{options.output} is there already. Name a new file.", "conflict")
        return FAILED
    filters = {} if options.until is None else {"until": str(options.until)}
    async with reading(runtime.data, "audit replay", filters) as (store, head):
        through = head if options.until is None else await _position_of(store, options.until, head, output)
        with scratch_folder(Path(tempfile.gettempdir()), "docsmith-replay-") as folder:
            file: Path = options.output or folder / "views.db"
            os.close(os.open(file, os.O_CREAT | os.O_EXCL, 0o600))  # it has titles of jobs
            projections = read_models()
            log = LogUntil(store)
            async with await Views.open(file, cast("EventStore", log), projections) as fresh:
                await _catch_up(fresh, log, through, output)
                if options.until is not None:
                    kept = {"position": through, "output": str(options.output), "compared": False}
                    output.result(kept, f"{options.output}: the read models as they were after position {through}")
                    return DONE
                compared = _Compared(runtime, fresh, log, file)
                for projection in projections:
                    await compared.projection(projection)
    return _report(compared, options, output)


async def _position_of(store: EventStore, until: int | datetime, head: int, output: Output) -> int:
    """Return the position of the last event recorded at that time or before."""
    if isinstance(until, int):
        return min(until, head)
    return await position_at(store, until, head, progress=partial(output.progress, "looking for the time"))


async def _catch_up(fresh: Views, log: LogUntil, through: int, output: Output) -> None:
    while log.position < through:
        log.position = min(log.position + STEP, through)
        await fresh.catch_up()
        output.progress("replaying", log.position, through)
    for status in fresh.status():
        if status.failed is not None:
            raise Unavailable(f"{status.name} cannot be made from the log: {status.failed}")


class _Compared:
    """Row by row. The live views move on meanwhile, so each page of rows is compared at the position it then has."""

    def __init__(self, runtime: Runtime, fresh: Views, log: LogUntil, file: Path) -> None:
        self._runtime, self._fresh, self._log, self._file = runtime, fresh, log, file
        self.tables: dict[str, int] = {}
        self.differences: list[Difference] = []
        self.count = 0

    @property
    def position(self) -> int:
        return self._log.position

    async def projection(self, projection: Projection) -> None:
        with closing(connect_offline(self._file)) as db:
            tables = _tables_of(db, projection.name)
        for table in tables:
            self.tables[table] = 0
            after: tuple[Any, ...] | None = None
            while (last := await self._page(projection.name, table, after)) is not None:
                after = last

    async def _page(self, name: str, table: str, after: tuple[Any, ...] | None) -> tuple[Any, ...] | None:
        """Compare the rows after a key; the last key, or None when there are no more."""
        for _ in range(MAX_TRIES):
            position, live = await asyncio.to_thread(_rows, self._runtime.data / "views.db", name, table, after)
            if position >= self._log.position:
                break
            await self._runtime.views.catch_up()  # it has not come as far as the fresh ones
            await asyncio.sleep(RETRY_SECONDS)
        else:
            raise Unavailable(f"The read model {name} in use has stopped at position {position}.")
        self._log.position = position
        await self._fresh.catch_up()
        _, fresh = await asyncio.to_thread(_rows, self._file, name, table, after)
        ends = [max(rows) for rows in (live, fresh) if len(rows) == PAGE]
        last = min(ends, default=None)
        if last is not None:
            live, fresh = ({key: row for key, row in rows.items() if key <= last} for rows in (live, fresh))
        self._compare(table, live, fresh)
        self.tables[table] += len(fresh)
        return last

    def _compare(self, table: str, live: dict[tuple[Any, ...], Any], fresh: dict[tuple[Any, ...], Any]) -> None:
        for key in sorted(live.keys() | fresh.keys()):
            one, other = live.get(key), fresh.get(key)
            if one == other:
                continue
            self.count += 1
            if len(self.differences) < MAX_TOLD:
                if one is not None and other is not None:
                    columns = [name for name in one if one[name] != other[name]]
                    one, other = ({name: row[name] for name in columns} for row in (one, other))
                self.differences.append(Difference(table, key, one, other))


def _tables_of(db: sqlite3.Connection, projection: str) -> list[str]:
    rows = db.execute(
        "SELECT objects.name FROM objects JOIN sqlite_master USING (name) WHERE projection = ? AND type = 'table'"
        " ORDER BY objects.name",
        (projection,),
    )
    return [name for (name,) in rows]


def _rows(
    file: Path, projection: str, table: str, after: tuple[Any, ...] | None
) -> tuple[int, dict[tuple[Any, ...], dict[str, Any]]]:
    """A page of a table's rows by their keys, and the position that they are of."""
    with closing(connect_offline(file)) as db:
        info = db.execute(f'PRAGMA table_xinfo("{table}")').fetchall()  # with generated columns, as * has them
        key = [f'"{row[1]}"' for row in sorted(info, key=lambda row: row[5]) if row[5]] or ["rowid"]
        keys, marks = ", ".join(key), ", ".join("?" * len(key))
        db.execute("BEGIN")  # the position is of these rows
        row = db.execute("SELECT position FROM checkpoints WHERE name = ?", (projection,)).fetchone()
        found = db.execute(
            f'SELECT {keys}, * FROM "{table}" {f"WHERE ({keys}) > ({marks})" if after else ""}'  # noqa: S608 - our names
            f" ORDER BY {keys} LIMIT {PAGE}",
            after or (),
        ).fetchall()
        db.execute("COMMIT")
    names = [row[1] for row in info]
    rows = {one[: len(key)]: dict(zip(names, one[len(key) :], strict=True)) for one in found}
    return (row[0] if row else 0), rows


def _report(compared: _Compared, options: Options, output: Output) -> int:
    value = {
        "position": compared.position,
        "output": None if options.output is None else str(options.output),
        "compared": True,
        "same": compared.count == 0,
        "tables": compared.tables,
        "differingRows": compared.count,
        "differences": compared.differences,
    }
    rows = sum(compared.tables.values())
    if compared.count == 0:
        output.result(value, f"the same: {rows} rows of {len(compared.tables)} tables, at position {compared.position}")
        return DONE
    lines = [f"NOT the same: {compared.count} of {rows} rows differ, at position {compared.position}"]
    lines += [
        f"  {one.table} {'/'.join(map(str, one.key))}: in use {_text(one.live)}, replayed {_text(one.replayed)}"
        for one in compared.differences
    ]
    lines.append("views.db is derived: stop the service, delete it, and it is made again")
    output.result(value, "\n".join(lines))
    return VERIFICATION_FAILED


def _text(row: dict[str, Any] | None) -> str:
    return "missing" if row is None else one_line(", ".join(f"{name}={value!r}" for name, value in row.items()), 300)
