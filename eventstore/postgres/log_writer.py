"""Writing a batch to a log in PostgreSQL. For a thread to call.

The row of ``head`` is where the log ends. A writer that changes it holds it until the commit, so positions are given in
the order of commits and a reader sees no gap. A lone writer knows what the row holds, and one statement compares it,
changes it, stores the events and rings the bell. Beside others, a writer reads the row first and then does the same: it
holds no lock between the two. After a miss it locks the row first (``FOR UPDATE``), for that batch and for some after
it, which queues writers fairly: comparing alone starves the slower of two (a p99 of some 700 ms was measured).
"""

import contextlib
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, cast

import asyncpg

from eventstore.appending.batch import Batch, Draft, Keys, Outcome, Row, obtain_keys, outcome_of_repeat
from eventstore.appending.known_end import BEGINNING, KNOWN_STREAMS, LookFirst, look_first, time_of
from eventstore.errors import DuplicateEventId, EventStoreError, OutcomeUnknown, StoreLost, StoreUnavailable
from eventstore.events import Append
from eventstore.log.chain import GENESIS
from eventstore.log.stored import COLUMNS
from eventstore.postgres.away.local_copy import LocalCopy
from eventstore.postgres.connections import BRIEF, FAILURES, Connections, Rows, explained, is_lost
from eventstore.postgres.log_reader import TableReader
from eventstore.vault import Vault

BELL = "docsmith_log"
"""The channel that gets the position of each batch (https://www.postgresql.org/docs/current/sql-notify.html)."""

_TYPES = ("bigint", "text", "bigint", "text", "text", "bigint", "text", "text", "text", "bytea", "bytea")
_ARRAYS = ", ".join(f"${number}::{kind}[]" for number, kind in enumerate(_TYPES, 1))
_INSERT = f"INSERT INTO events ({COLUMNS}) SELECT * FROM unnest({_ARRAYS})"  # noqa: S608 - our own text
# The three statements are our own text.
_AT_ONCE = f"""
    WITH moved AS (
        UPDATE head SET position = $12, hash = $13, recorded_at = $14
        WHERE position = $15 AND hash = $16 AND held IS NULL RETURNING 1
    ), stored AS (
        {_INSERT} WHERE EXISTS (SELECT FROM moved) RETURNING 1
    )
    SELECT count(pg_notify('{BELL}', $12::bigint::text)) FROM moved WHERE (SELECT count(*) FROM stored) > 0
"""  # noqa: S608
_VERSION = "coalesce((SELECT max(stream_version) FROM events WHERE events.stream = wanted.stream), 0)"
_HEAD = "SELECT position, hash, recorded_at, held, (SELECT hash FROM events WHERE events.position = $1) AS known"
_LOCK = f"{_HEAD} FROM head FOR UPDATE"
_LOOK = f"""
    {_HEAD}, ARRAY(
        SELECT {_VERSION} FROM unnest($2::text[]) WITH ORDINALITY AS wanted (stream, place) ORDER BY place
    ) AS versions FROM head
"""  # noqa: S608
_MOVE = f"""
    WITH moved AS (UPDATE head SET position = $1, hash = $2, recorded_at = $3 RETURNING 1)
    SELECT count(pg_notify('{BELL}', $1::bigint::text)) FROM moved
"""  # noqa: S608
HOLD = "UPDATE head SET held = $1 WHERE held IS NULL"
"""Keeps every instance from appending; ``RELEASE`` takes it back."""
RELEASE = "UPDATE head SET held = NULL WHERE held = coalesce($1, held)"
_VERSIONS = f"SELECT stream, {_VERSION} FROM unnest($1::text[]) AS wanted (stream)"  # noqa: S608

LOCKED_BATCHES = 8
"""Batches that lock the row after a miss, before comparing is tried again."""


class TableWriter:
    """See LogWriter."""

    def __init__(
        self, connections: Connections, vault: Vault, clock: Callable[[], datetime], copy: LocalCopy | None = None
    ) -> None:
        self._connections, self._vault, self._clock, self._copy = connections, vault, clock, copy
        self._name = connections.address.name
        self._connection: asyncpg.Connection | None = None
        self._reader = TableReader(self._fetch)
        self.identity = ""
        self._position, self._hash, self._recorded_at = 0, GENESIS, BEGINNING
        self._versions: dict[str, int] = {}
        self._is_alone = self._is_known = self._is_ending = self._is_begun = False
        self._to_lock = 0
        """Batches for which the row is to be locked."""
        self._is_reconnected = True
        """The copy has not been compared with the log since this connection was made."""

    def commit(self, appends: Sequence[Sequence[Append]], *, wants_events: bool) -> Batch:
        try:
            keys = obtain_keys(self._vault, appends)
            if self._is_known and not self._is_reconnected and not self._to_lock:
                try:
                    if not self._is_alone:
                        self._look(appends)
                    return self._commit_at_once(appends, keys, wants_events)
                except (asyncpg.UniqueViolationError, LookFirst):
                    self._roll_back()
            self._to_lock = max(0, self._to_lock - 1)
            try:
                return self._commit(appends, keys, wants_events)
            except asyncpg.UniqueViolationError:
                self._roll_back()
                # An id that is stored already, which nothing looked for because it hardly happens: find out whose.
                batches = [self._commit_one(append, keys, wants_events) for append in appends]
        except FAILURES as error:
            return Batch([self._given_up(error)] * len(appends), [], 0)
        except StoreUnavailable as error:  # StoreLost, or there is no connection
            self._roll_back()
            if isinstance(error, StoreLost):
                self._hold(error)
            return Batch([error] * len(appends), [], 0)
        except BaseException:
            self._roll_back()
            raise
        return Batch.joined(batches)

    def tidy(self) -> None:
        """There is nothing to tidy: PostgreSQL does it by itself."""

    def close(self) -> None:
        self._let_go()
        self._connections.close()

    def _commit_one(self, append: Sequence[Append], keys: Keys, wants_events: bool) -> Batch:
        try:
            return self._commit([append], keys, wants_events)
        except asyncpg.UniqueViolationError:
            self._roll_back()
            error: EventStoreError = DuplicateEventId("an event with the id of one of these is stored already")
        except FAILURES as failure:
            error = self._given_up(failure)
        return Batch([error], [], 0)

    def _commit_at_once(self, appends: Sequence[Sequence[Append]], keys: Keys, wants_events: bool) -> Batch:
        """Store what is expected to fit in one statement, if no other instance has written since.

        Raises:
            asyncpg.UniqueViolationError, LookFirst: nothing was stored, for reasons to be found out.
        """
        self._look_up_versions(appends)
        draft = Draft(self._position, self._hash, self._now(), keys, wants_events, self.identity)
        before, previous = self._position, self._hash
        outcomes = [draft.add(append, self._version_of, look_first) for append in appends]
        if draft.rows:
            end = draft.position, draft.hash, draft.rows[-1][6]
            if not self._end(_AT_ONCE, *_arrays(draft.rows), *end, before, previous):
                self._to_lock = LOCKED_BATCHES
                raise LookFirst
        return self._done(draft, outcomes, before)

    def _look(self, appends: Sequence[Sequence[Append]]) -> None:
        """Read where the log ends, and the versions of the streams there.

        Raises:
            StoreLost.
            LookFirst: the connection was made again, and the copy has to be compared with the log.
        """
        streams = list({part.stream for append in appends for part in append})
        ((position, hash_, recorded_at, held, known, versions),) = self._fetch(_LOOK, self._position, streams)
        self._require_whole(position, held, known)
        if self._is_reconnected:
            raise LookFirst
        self._is_alone = (position, hash_) == (self._position, self._hash)
        self._position, self._hash, self._recorded_at = position, hash_, time_of(recorded_at)
        self._versions = dict(zip(streams, versions, strict=True))

    def _require_whole(self, head: int, held: str | None, known: bytes | None) -> None:
        """Raise StoreLost when the log is held, or does not hold the last event known here with its hash, ``known``."""
        if held is not None:
            raise StoreLost(held)
        if self._is_known and self._position and (head < self._position or known != self._hash):
            raise self._lost(self._position)

    def _commit(self, appends: Sequence[Sequence[Append]], keys: Keys, wants_events: bool) -> Batch:
        self._execute(f"BEGIN; {BRIEF}")
        self._is_begun = True
        ((position, hash_, recorded_at, held, known),) = self._fetch(_LOCK, self._position)
        self._require_whole(position, held, known)
        self._is_alone = self._is_known and (position, hash_) == (self._position, self._hash)
        if not self._is_alone:
            self._versions.clear()
        if self._is_reconnected and self._copy is not None:  # what this machine has seen, of any instance
            self._require_known_event(position, self._copy.witness.position, self._copy.witness.hash)
        self._is_reconnected = False
        self._position, self._hash, self._recorded_at = position, hash_, time_of(recorded_at)
        self._look_up_versions(appends)
        draft = Draft(position, hash_, self._now(), keys, wants_events, self.identity)
        outcomes = [self._add(append, draft) for append in appends]
        end = draft.position, draft.hash, draft.now.isoformat(timespec="microseconds")
        if draft.rows:
            self._fetch(_AT_ONCE, *_arrays(draft.rows), *end, position, hash_)
        elif draft.position > position:
            self._fetch(_MOVE, *end)
        self._end("COMMIT")
        return self._done(draft, outcomes, position)

    def _now(self) -> datetime:
        """Return the time, or that of the last event if this clock is behind: times in the log never go back."""
        return max(self._clock().astimezone(UTC), self._recorded_at)

    def _require_known_event(self, head: int, position: int, hash_: bytes) -> None:
        """Raise StoreLost when the last event that is known here is not there any more: a standby that took over may
        lack what was acknowledged.
        """
        if position:
            rows = self._fetch("SELECT hash FROM events WHERE position = $1", position)
            if head < position or [bytes(row[0]) for row in rows] != [hash_]:
                raise self._lost(position)

    def _lost(self, position: int) -> StoreLost:
        return StoreLost(f"{self._name} does not hold position {position} as it was stored")

    def _hold(self, error: StoreLost) -> None:
        """Keep the other instances from appending too: they may not have seen what is lost."""
        with contextlib.suppress(*FAILURES, StoreUnavailable):
            self._fetch(HOLD, str(error))

    def _done(self, draft: Draft, outcomes: list[Outcome], before: int) -> Batch:
        """Note what is in the log now, and return it as a batch."""
        self._position, self._hash, self._is_known = draft.position, draft.hash, True
        if draft.position > before:
            self._recorded_at = draft.now
        self._versions |= draft.versions
        if len(self._versions) > KNOWN_STREAMS:
            self._versions.clear()
        return Batch(outcomes, draft.events, draft.position if draft.position > before else 0)

    def _given_up(self, error: BaseException) -> EventStoreError:
        """Return the outcome of all that was under way when a statement failed, and begin again."""
        outcome = explained(error, self._name)
        if self._is_ending and is_lost(error):
            outcome = OutcomeUnknown(f"{outcome}; whether the events were stored is not known")
        if is_lost(error):
            self._let_go()
        self._roll_back()
        return outcome

    def _roll_back(self) -> None:
        self._is_alone = self._is_ending = self._is_begun = False
        self._versions.clear()
        connection = self._connection
        if connection is not None:
            try:
                if connection.is_closed():
                    self._let_go()
                elif connection.is_in_transaction():
                    self._execute("ROLLBACK")
            except FAILURES:
                self._let_go()

    def _let_go(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            self._connections.loop.call_soon_threadsafe(connection.terminate)

    def _look_up_versions(self, appends: Sequence[Sequence[Append]]) -> None:
        unknown = {part.stream for append in appends for part in append} - self._versions.keys()
        if unknown:
            self._versions |= dict(self._fetch(_VERSIONS, list(unknown)))

    def _version_of(self, stream: str) -> int:
        return self._versions[stream]

    def _add(self, append: Sequence[Append], draft: Draft) -> Outcome:
        def stored_already(append: Sequence[Append]) -> Outcome | None:
            self._insert(draft.rows)  # the first try may be among them: its caller gave up waiting, and asks again
            draft.rows.clear()
            return outcome_of_repeat(append, self._rows_of, self._vault)

        return draft.add(append, self._version_of, stored_already)

    def _rows_of(self, stream: str, after: int, limit: int) -> Iterable[tuple[Any, ...]]:
        return self._reader.of_stream(stream, after=after, limit=limit)

    def _insert(self, rows: list[Row]) -> None:
        if rows:
            self._execute(_INSERT, *_arrays(rows))

    def _end(self, statement: str, *values: object) -> int:
        """Run the statement that makes a transaction durable; return the number that it gives."""
        self._is_ending = True
        found = self._fetch(statement, *values)
        self._is_ending = self._is_begun = False
        if self._connections.away is not None:  # else reads would still be of the copy, without what was just written
            self._connections.away.answered()
        return sum(row[0] for row in found)

    def _fetch(self, sql: str, *values: object) -> Rows:
        return self._connections.run_plainly(self._fetched(sql, values))

    async def _fetched(self, sql: str, values: Sequence[object]) -> Rows:
        connection = await self._connected()
        if self._connections.address.is_pooled and not self._is_begun:
            async with connection.transaction():
                return cast("Rows", await connection.fetch(sql, *values))
        return cast("Rows", await connection.fetch(sql, *values))

    def _execute(self, sql: str, *values: object) -> None:
        async def executed() -> None:
            await (await self._connected()).execute(sql, *values)

        self._connections.run_plainly(executed())

    async def _connected(self) -> asyncpg.Connection:
        if self._connection is None or self._connection.is_closed():
            if self._is_ending or self._is_begun:  # the transaction went with the connection
                raise asyncpg.ConnectionDoesNotExistError("the connection was lost")
            self._connection = await self._connections.connect()
            self._is_reconnected = True
        return self._connection


def _arrays(rows: list[Row]) -> Iterable[tuple[Any, ...]]:
    return zip(*rows, strict=True)
