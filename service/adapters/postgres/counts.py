"""Counts and marks in tables of the log's database, for all instances of the service: one statement for all that wait.

A count must not hold up what is counted. So a statement that is not answered in time is given up, and for a moment no
other is sent: meanwhile each instance counts by itself.
"""

import asyncio
import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

import structlog

from eventstore.errors import EventStoreError
from eventstore.postgres.connections import Rows
from service.adapters.postgres.coalesced import Coalesced
from service.adapters.postgres.tables import Tables
from service.domain.errors import Unavailable
from service.ports.shared.brief_counts import BriefCount, Window, WindowUse

log = structlog.get_logger()

ANSWER_SECONDS = 1.0
"""For a statement. It takes a millisecond or two; more is a server that is paused, or away."""
AWAY_SECONDS = 1.0
"""After a statement that failed, none is sent for so long."""
CLEAR_SECONDS = 600.0
"""Between two looks for rows that are over."""

_COUNT = (
    "SELECT is_counted, used, resets FROM count_briefly($1::text[], $2::integer[], $3::bigint[], $4::integer[],"
    " $5::integer[])"
)
_CLEAR = (
    "DELETE FROM brief_counts WHERE name IN (SELECT name FROM brief_counts"
    " WHERE ends_at < extract(epoch FROM clock_timestamp()) * 1000 ORDER BY name FOR UPDATE SKIP LOCKED)",
    "DELETE FROM used_once WHERE ends_at < clock_timestamp() - interval '1 minute'",
)
_USE = (
    "INSERT INTO used_once (digest, ends_at) SELECT * FROM unnest($1::bytea[], $2::timestamptz[]) AS new (digest, ends)"
    " ORDER BY digest ON CONFLICT DO NOTHING RETURNING digest"
)
_ADD_TOKENS = (
    "INSERT INTO reader_tokens AS known (project_id, hour, count) SELECT * FROM unnest($1::text[], $2::bigint[],"
    " $3::bigint[]) AS new (project_id, hour, count) ORDER BY 1, 2"
    " ON CONFLICT (project_id, hour) DO UPDATE SET count = known.count + excluded.count"
)
_TOKENS = "SELECT project_id, hour, count FROM reader_tokens WHERE hour >= $1"
_FORGET_TOKENS = "DELETE FROM reader_tokens WHERE hour < $1"


class Circuit:
    """Sends no statement for a moment after one has failed, so that no one waits for a database that is away."""

    def __init__(self, tables: Tables, *, seconds: Callable[[], float] = time.monotonic) -> None:
        self._tables, self._seconds = tables, seconds
        self._away_until = 0.0

    async def fetch(self, sql: str, *values: object) -> Rows:
        """Return the rows of a statement. Raises Unavailable."""
        if self._seconds() < self._away_until:
            raise Unavailable("The database is away.")
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                rows = await self._tables.fetch(sql, *values)
        except (EventStoreError, TimeoutError) as error:
            if not self._away_until:
                log.warning("each instance counts by itself", reason=str(error) or type(error).__name__)
            self._away_until = self._seconds() + AWAY_SECONDS
            raise Unavailable(f"The database is away ({error}). Try again.") from error
        self._away_until = 0.0
        return rows


class TableCounts:
    """See BriefCounts."""

    def __init__(self, circuit: Circuit) -> None:
        self._circuit = circuit
        self._counting = Coalesced(self._count)

    async def count(self, windows: Sequence[Window]) -> BriefCount:
        return await self._counting.ask(windows)

    async def _count(self, wanted: Sequence[Sequence[Window]]) -> Sequence[BriefCount]:
        windows = sorted({window.name: window for each in wanted for window in each}.values(), key=_name)
        places = {window.name: place for place, window in enumerate(windows, 1)}
        ((is_counted, used, resets),) = await self._circuit.fetch(
            _COUNT,
            [window.name for window in windows],
            [window.limit for window in windows],
            [window.milliseconds for window in windows],
            [places[each[0].name] for each in wanted],
            [places[each[1].name] if len(each) > 1 else 0 for each in wanted],
        )
        uses = {name: WindowUse(used[place - 1], resets[place - 1]) for name, place in places.items()}
        return [
            BriefCount(counted, [uses[window.name] for window in each])
            for counted, each in zip(is_counted, wanted, strict=True)
        ]

    async def run(self) -> None:
        """Clear away what is over, until cancelled."""
        while True:
            await asyncio.sleep(CLEAR_SECONDS)
            for statement in _CLEAR:
                try:
                    await self._circuit.fetch(statement)
                except Unavailable as error:
                    log.warning("old counts are not cleared away", reason=str(error))

    async def close(self) -> None:
        await self._counting.close()


class TableUsedOnce:
    """See UsedOnce."""

    def __init__(self, circuit: Circuit) -> None:
        self._circuit = circuit
        self._using = Coalesced(self._use)

    async def use(self, what: bytes, ends_at: datetime) -> bool:
        return await self._using.ask((hashlib.sha256(what).digest(), ends_at))

    async def _use(self, wanted: Sequence[tuple[bytes, datetime]]) -> Sequence[bool]:
        new = dict(wanted)
        rows = await self._circuit.fetch(_USE, list(new), list(new.values()))
        first = {bytes(digest) for (digest,) in rows}
        answers = []
        for digest, _ in wanted:
            answers.append(digest in first)
            first.discard(digest)  # asked for twice at once, it is good for the first
        return answers

    async def close(self) -> None:
        await self._using.close()


class TableReaderTokens:
    """See TokenCounts."""

    def __init__(self, circuit: Circuit) -> None:
        self._circuit = circuit

    async def add(self, counts: Mapping[tuple[str, int], int], *, since_hour: int) -> Mapping[tuple[str, int], int]:
        if counts:
            await self._circuit.fetch(
                _ADD_TOKENS,
                [project_id for project_id, _ in counts],
                [hour for _, hour in counts],
                list(counts.values()),
            )
        rows = await self._circuit.fetch(_TOKENS, since_hour)
        return {(project_id, hour): count for project_id, hour, count in rows}

    async def forget(self, *, before_hour: int) -> None:
        await self._circuit.fetch(_FORGET_TOKENS, before_hour)


def _name(window: Window) -> str:
    return window.name
