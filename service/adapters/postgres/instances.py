"""The instances of a log in PostgreSQL: rows that each renews, and one row that names their leader.

The clocks of two machines are never compared. Each instance looks at the rows as often as it renews its own, and counts
another as ended when its counter stood still for ``LEASE_SECONDS`` of its own looks. A gap between two looks (the
database was away, or this process was paused) begins the observation again, so that after an outage none is counted as
ended that only could not renew. The first that finds one ended marks its row, for the others to see at once. The mark
and the leader's row are written under the condition that the counter still stands there.

One that was paused goes on under its name. Where its row was marked, others may act for some seconds on what they saw
before it renewed its row, so for that long it is not certain of its work. None acts before the mark is there. So one
whose row was not marked is certain at once, as all are after an outage of the database.
"""

import asyncio
import time
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from contextlib import suppress
from typing import Self

import asyncpg
import structlog
from msgspec import Struct
from msgspec.structs import replace

from eventstore.errors import EventStoreError
from eventstore.postgres.connections import FAILURES, Session, brief
from service.adapters.postgres.tables import Tables
from service.ports.shared.instances import LEASE_SECONDS, RENEW_SECONDS, Peer

log = structlog.get_logger()

CERTAIN_SECONDS = LEASE_SECONDS - RENEW_SECONDS
"""After its last renewal one is certain for so long: sooner than any other can count it as ended."""
GAP_SECONDS = 2 * RENEW_SECONDS
"""Two looks further apart than this are no continuous observation, and what was seen before that is out of date."""
LOOK_SECONDS = 5.0
"""For one look; then it has failed."""
RETRY_SECONDS = 1.0
END_SECONDS = 2.0
"""For the end of one that closes to reach the others; else they notice it after its lease."""
MAX_ABSENT = 10_000
"""Names that are remembered as those of no instance. One that is forgotten is looked for again when it is asked for."""
KEPT_DAYS = 1
"""How long the row of one that was found to have ended is kept, for those that start later."""

_WAS_MARKED = "SELECT ended_at IS NOT NULL FROM instances WHERE name = $1 FOR UPDATE"
_RENEW = """
INSERT INTO instances AS mine (name, url, version, is_home, renewals) VALUES ($1, $2, $3, $4, 1)
ON CONFLICT (name) DO UPDATE SET
    url = excluded.url, version = excluded.version, is_home = excluded.is_home,
    renewals = mine.renewals + 1, ended_at = NULL
"""
_LOOK = """
SELECT name, url, version, is_home, renewals, ended_at IS NOT NULL AS is_marked, (SELECT name FROM leader) AS leader
FROM instances
"""
_MARK = "UPDATE instances SET ended_at = now() WHERE name = $1 AND renewals = $2 AND ended_at IS NULL RETURNING true"
_MARK_ALL = "UPDATE instances SET ended_at = now() WHERE name = ANY($1) AND ended_at IS NULL"
_FORGET = f"DELETE FROM instances WHERE ended_at < now() - interval '{KEPT_DAYS} days'"  # noqa: S608 - a number
_LEAD = """
UPDATE leader SET name = $1 WHERE name = $2
AND NOT EXISTS (SELECT FROM instances WHERE name = $2 AND renewals <> $3) RETURNING name
"""
_RESIGN = "UPDATE leader SET name = '' WHERE name = $1"
_LOCK = "SELECT FROM leader FOR UPDATE"
_CLAIM_HOME = """
UPDATE instances SET is_home = true WHERE name = $1
AND NOT EXISTS (SELECT FROM instances WHERE is_home AND name <> $1 AND ended_at IS NULL) RETURNING true
"""
_LEAVE = "DELETE FROM instances WHERE name = $1"


def seconds_since_boot() -> float:
    """Return a time that goes on while this machine sleeps, where the system has one."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if clock is None else time.clock_gettime(clock)


class _Seen(Struct, frozen=True):
    """Another instance, as the last look found it."""

    peer: Peer
    renewals: int
    since: float
    """When its counter was first seen there, or when the observation began."""
    is_marked: bool
    """One has found that it had ended, and it has not renewed its row since."""
    has_ended: bool


class _Look(Struct, frozen=True):
    """The result of one look at the rows."""

    began: float
    """When this instance renewed its row, at the earliest."""
    now: float
    found: Mapping[str, _Seen]
    """The others."""
    leader: str


class TableInstances:
    """See Instances. It renews and looks on the thread of its connections, so that a busy event loop loses no lease."""

    def __init__(self, tables: Tables, me: Peer, *, may_lead: bool, clock: Callable[[], float]) -> None:
        self._tables, self._me, self._may_lead, self._clock = tables, me, may_lead, clock
        self._event_loop = asyncio.get_running_loop()
        self._others: Mapping[str, _Seen] = {}
        self._asked: set[str] = set()
        """Names that no look has found or missed yet: their processes may have begun since the last one."""
        self._absent: Mapping[str, None] = {}
        """Names that a look did not find, the last one at the end. No process gets one of them again."""
        self._looked_at: float | None = None
        self._renewed_at: float | None = None
        self._certain_from = 0.0
        self._was_marked = False
        """Its row was marked when it was renewed last, as far as is known: not each renewal that failed has failed."""
        self._is_leader = self._is_closed = False
        self._changed = asyncio.Event()
        """Set at the next look, and then replaced. Of the event loop; the other two are of the tables' loop."""
        self._wake, self._looking = asyncio.Event(), asyncio.Lock()
        self._running: asyncio.Future[None] | None = None

    @classmethod
    async def open(
        cls,
        tables: Tables,
        *,
        name: str,
        version: str,
        ended: Collection[str] = (),
        may_lead: bool = True,
        renews: bool = True,
        clock: Callable[[], float] = seconds_since_boot,
    ) -> Self:
        """Begin to be an instance, under a name that none had before. ``ended`` are names whose processes are known to
        have ended. ``may_lead``: it serves, and is no command. ``renews``: it looks by itself, else only when ``look``
        is called. Raise StoreUnavailable and its kinds.
        """
        instances = cls(tables, Peer(name, "", version, False), may_lead=may_lead, clock=clock)
        if ended:
            await tables.fetch(_MARK_ALL, list(ended))
        await instances.look()
        if renews:
            instances._running = asyncio.wrap_future(asyncio.run_coroutine_threadsafe(instances._run(), tables.loop))
        return instances

    async def close(self) -> None:
        """End at once for all others; the tables stay open."""
        self._is_closed = True
        self._on_change()
        if self._running is not None:
            self._running.cancel()
        await self._at_last(self._leave)

    async def serve_at(self, url: str, *, is_home: bool) -> None:
        """Publish the address of this instance, and whether it is home. Raise StoreUnavailable and its kinds."""
        self._me = replace(self._me, url=url, is_home=is_home)
        await self.look()

    async def look(self) -> None:
        """Renew the lease, and see who else is there. Raise StoreUnavailable and its kinds."""
        await self._tables.on_loop(self._look())

    @property
    def name(self) -> str:
        return self._me.name

    @property
    def crashed(self) -> Collection[str]:
        return [name for name, other in self._others.items() if other.has_ended]

    def is_alive(self, name: str) -> bool:
        if name == self.name:
            return not self._is_closed
        if self._looked_at is None or self._clock() - self._looked_at >= GAP_SECONDS:
            return True  # what was seen is out of date
        other = self._others.get(name)
        return self._may_be_new(name) if other is None else not other.has_ended

    def is_certain(self) -> bool:
        return self._certain_seconds() > 0

    def others(self) -> Sequence[Peer]:
        return [other.peer for other in self._others.values() if not other.has_ended]

    def find(self, name: str) -> Peer | None:
        other = self._others.get(name)
        if other is None:
            self._may_be_new(name)
            return None
        return None if other.has_ended else other.peer

    def leads(self) -> bool:
        return self._is_leader and self.is_certain()

    async def until_leading(self) -> None:
        while not self.leads():
            await self._until_changed(RETRY_SECONDS if self._is_leader else None)

    async def until_not_leading(self) -> None:
        while self.leads():
            await self._until_changed(self._certain_seconds())

    async def claim_home(self) -> bool:
        await self._tables.on_loop(self._claim_home())
        return self._me.is_home

    async def step_down(self) -> None:
        self._may_lead = self._is_leader = False
        self._on_change()
        await self._at_last(self._resign)

    async def _until_changed(self, seconds: float | None) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._changed.wait()

    def _on_change(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    def _certain_seconds(self) -> float:
        """Return for how much longer no other counts this one as ended; 0 when one may have done so."""
        now, renewed_at = self._clock(), self._renewed_at
        if renewed_at is None or self._is_closed or now < self._certain_from:
            return 0.0
        return max(renewed_at + CERTAIN_SECONDS - now, 0.0)

    def _may_be_new(self, name: str) -> bool:
        """Return whether an instance with an unknown name may have begun since the last look. If so, look soon."""
        if name in {"", self.name} or name in self._absent:
            return False
        self._asked.add(name)
        with suppress(RuntimeError):  # the loop has ended
            self._tables.loop.call_soon_threadsafe(self._wake.set)
        return True

    async def _run(self) -> None:
        """Look again and again, until cancelled. On the loop of the tables, as all below."""
        seconds = RENEW_SECONDS
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._wake.wait()
            self._wake.clear()
            try:
                await self._look()
                seconds = RENEW_SECONDS
            except (EventStoreError, *FAILURES) as error:
                if seconds != RETRY_SECONDS:
                    log.warning("the lease is not renewed", reason=str(error) or type(error).__name__)
                seconds = RETRY_SECONDS

    async def _look(self) -> None:
        async with asyncio.timeout(LOOK_SECONDS), self._looking:
            async with self._tables.pooled() as connection:
                if self._is_closed:
                    return
                asked, began = frozenset(self._asked), self._clock()
                async with brief(connection):
                    is_marked = await connection.fetchval(_WAS_MARKED, self.name)
                    self._was_marked |= self._renewed_at is not None if is_marked is None else is_marked
                    await connection.execute(_RENEW, self.name, self._me.url, self._me.version, self._me.is_home)
                    rows = await connection.fetch(_LOOK)
                now = self._clock()
                is_continuous = self._looked_at is not None and now - self._looked_at <= GAP_SECONDS
                before = self._others if is_continuous else {}
                found = {row["name"]: _seen(row, before.get(row["name"]), now) for row in rows}
                del found[self.name]
                for other in [one for one in found.values() if one.has_ended and not one.is_marked]:
                    found[other.peer.name] = replace(other, has_ended=await self._mark(connection, other))
                leader = await self._settle(connection, found, rows[0]["leader"])
            # Behind a pooler all of it is one transaction, which has ended only now: nothing is published before.
            self._publish(_Look(began, now, found, leader), asked)
        with suppress(RuntimeError):  # the event loop has ended
            self._event_loop.call_soon_threadsafe(self._on_change)

    def _publish(self, look: _Look, asked: Collection[str]) -> None:
        """Let others of this process see what a look found. ``asked``: the names that it has answered."""
        if self._was_marked:
            self._certain_from = look.now + GAP_SECONDS  # until then others may act on what they saw before
            self._was_marked = False
        if gone := (self._others.keys() | asked) - look.found.keys():
            names = [*(name for name in self._absent if name not in gone), *gone]
            self._absent = dict.fromkeys(names[-MAX_ABSENT:])
        self._asked.difference_update(asked)
        self._renewed_at, self._looked_at, self._others = look.began, look.now, look.found
        if self._is_leader != (look.leader == self.name):
            log.info("this instance leads" if look.leader == self.name else "another instance leads")
        self._is_leader = look.leader == self.name and self._may_lead

    async def _claim_home(self) -> None:
        async with self._looking:
            async with self._tables.pooled() as connection, brief(connection):
                await connection.execute(_LOCK)  # of two that claim at once, the second sees the first
                is_mine = await connection.fetchval(_CLAIM_HOME, self.name)
            self._me = replace(self._me, is_home=is_mine is not None)

    async def _mark(self, connection: Session, other: _Seen) -> bool:
        """Mark another instance as ended. Return False where it has renewed its row meanwhile, or is marked already:
        then the next look sees that.
        """
        if await connection.fetchval(_MARK, other.peer.name, other.renewals) is None:
            return False
        log.warning("an instance has ended without closing", instance=other.peer.name, url=other.peer.url)
        await connection.execute(_FORGET)
        return True

    async def _settle(self, connection: Session, found: Mapping[str, _Seen], leader: str) -> str:
        """Lead where no one does; return who leads."""
        holder = found.get(leader)
        is_vacant = leader != self.name and (holder is None or holder.has_ended)
        if is_vacant and self._may_lead:
            renewals = -1 if holder is None else holder.renewals
            took = await connection.fetchval(_LEAD, self.name, leader, renewals)
            return leader if took is None else str(took)
        return leader

    async def _at_last(self, work: Callable[[], Coroutine[None, None, None]]) -> None:
        """Write what the others would find out by themselves, only later; a failure is no error."""
        with suppress(EventStoreError, TimeoutError):
            async with asyncio.timeout(END_SECONDS):
                await self._tables.on_loop(work())

    async def _resign(self) -> None:
        async with self._looking, self._tables.pooled() as connection:  # a look that was under way ends before
            await connection.execute(_RESIGN, self.name)

    async def _leave(self) -> None:
        await self._resign()
        async with self._tables.pooled() as connection:
            await connection.execute(_LEAVE, self.name)


def _seen(row: asyncpg.Record, before: _Seen | None, now: float) -> _Seen:
    """Return another instance as a look now found it; ``before``: as the last look of this observation did."""
    stands = before is not None and before.renewals == row["renewals"]
    since = before.since if before is not None and stands else now
    peer = Peer(row["name"], row["url"], row["version"], row["is_home"], leads=row["leader"] == row["name"])
    return _Seen(peer, row["renewals"], since, row["is_marked"], row["is_marked"] or now - since >= LEASE_SECONDS)
