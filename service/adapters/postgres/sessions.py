"""Sessions in a table of the vault's database, for all instances of the service."""

from collections.abc import Awaitable, Iterable, Sequence

import structlog

from eventstore.errors import EventStoreError
from eventstore.postgres.connections import Rows
from service.adapters.postgres.coalesced import Coalesced
from service.adapters.postgres.tables import Tables
from service.domain.errors import Unavailable
from service.ports.shared.sessions import StoredSession

log = structlog.get_logger()

_COLUMNS = "digest, id, person_id, method, browser, address, began_at, used_at"
_THEIR_ROWS = (
    "WITH theirs AS (SELECT id, given.used_at FROM sessions JOIN unnest($1::text[], $2::timestamptz[])"
    " AS given (id, used_at) USING (id) ORDER BY id FOR UPDATE OF sessions)"
)
"""Locks rows in one order, so that no two instances wait for each other."""
_LATER = (
    f"{_THEIR_ROWS} UPDATE sessions SET used_at = greatest(sessions.used_at, theirs.used_at) FROM theirs"  # noqa: S608 - our own
    " WHERE sessions.id = theirs.id"
)
_GONE = (
    f"{_THEIR_ROWS} DELETE FROM sessions USING theirs WHERE sessions.id = theirs.id"  # noqa: S608 - our own
    " AND sessions.used_at <= theirs.used_at"
)


class TableSessions:
    """See SessionTable. ``close`` leaves the tables open.

    ``reads_only``: it is for a service that cannot write its log, so that none begins and no last use is kept.
    """

    is_shared = True

    def __init__(self, tables: Tables, *, reads_only: bool = False) -> None:
        self._tables, self._reads_only = tables, reads_only
        self._lookups = Coalesced(self._find)

    async def load(self) -> list[StoredSession]:
        try:
            return await self._read("")
        except Unavailable as error:
            log.warning("sessions are looked up one by one", reason=str(error))
            return []

    async def find(self, digest: str) -> StoredSession | None:
        return await self._lookups.ask(digest)

    async def _find(self, digests: Sequence[str]) -> Sequence[StoredSession | None]:
        found = {one.digest: one for one in await self._read("WHERE digest = ANY($1)", digests)}
        return [found.get(digest) for digest in digests]

    async def of_person(self, person_id: str) -> list[StoredSession]:
        return await self._read("WHERE person_id = $1", person_id)

    async def add(self, session: StoredSession) -> None:
        if self._reads_only:
            raise Unavailable("No session can begin while only reading is served. Try again.")
        await _kept(
            self._tables.fetch(
                f"INSERT INTO sessions ({_COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",  # noqa: S608 - our own text
                session.digest, session.id, session.person_id, session.method, session.browser, session.address,
                session.began_at, session.used_at,
            )
        )  # fmt: skip

    async def update(self, used: Iterable[StoredSession], removed: Iterable[StoredSession]) -> None:
        if self._reads_only:
            return
        if rows := _ordered(used):
            await _kept(self._tables.fetch(_LATER, *rows))
        if rows := _ordered(removed):
            await _kept(self._tables.fetch(_GONE, *rows))

    async def close(self) -> None:
        await self._lookups.close()

    async def _read(self, where: str, *values: object) -> list[StoredSession]:
        rows = await _kept(self._tables.fetch(f"SELECT {_COLUMNS} FROM sessions {where}", *values))  # noqa: S608 - our own text
        return [StoredSession(*row) for row in rows]


def _ordered(sessions: Iterable[StoredSession]) -> list[tuple[object, ...]]:
    """Return their ids and when they were last used."""
    return list(zip(*sorted((one.id, one.used_at) for one in sessions), strict=True))


async def _kept(work: Awaitable[Rows]) -> Rows:
    try:
        return await work
    except EventStoreError as error:
        raise Unavailable(f"Sessions cannot be read or kept just now ({error}). Try again.") from error
