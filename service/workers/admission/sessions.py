"""Sessions: the browsers in which people are signed in, and until when.

A session is open while three agree: its row has the cookie's digest and was used not long ago; the log has its sign-in
and no sign-out; and no right of the person was taken since. So the end of a session is an event, whichever process
records it, and holds at once. The row is written first: a process that is killed between the two leaves a row that
opens nothing, and a link that is still good.

Rows are kept in memory. Where other instances begin and use sessions in the same table, one that is not known, or not
open by what is known here, is looked up (``recall``).
"""

import asyncio
import hashlib
import secrets
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from datetime import datetime, timedelta

import structlog
from msgspec import Struct
from msgspec.structs import replace

from eventstore import EventStore, Metadata, StoreUnavailable
from service.commands.access.people import require_link, sign_in, sign_out
from service.domain.access.people import SESSION_IDLE, SESSION_LIFETIME, SignInMethod
from service.domain.errors import Forbidden, Unavailable
from service.domain.texts.times import timestamp
from service.ports.shared.sessions import SessionTable, StoredSession
from service.queries.access.keys import Revocation
from service.queries.access.people import KnownPerson, PeopleDirectory
from service.runtime.system import new_id, now
from service.views.access.people import SessionView

log = structlog.get_logger()

MAX_SESSIONS = 50
"""Limit for one person; the one that was used longest ago ends for another."""
KEPT_EVERY_SECONDS = 60.0
"""How often it is written when sessions were last used, and looked for those whose time is over."""
SETTLED = timedelta(minutes=5)
"""After which a session that the log does not have was never begun, whatever another instance's clock says."""
MAX_REFUSED = 10_000
"""Limit for the digests that are known to open nothing, so that they are looked up once."""
SECRET_BYTES = 32
MAX_TOKEN_CHARACTERS = 100


class Device(Struct, frozen=True):
    """Where a person signs in."""

    browser: str
    address: str


class Begun(Struct, frozen=True):
    session_id: str
    token: str
    """For the cookie, this once."""


class Sessions:
    def __init__(
        self,
        store: EventStore,
        people: PeopleDirectory,
        table: SessionTable,
        *,
        clock: Callable[[], datetime] = now,
    ) -> None:
        self._store, self._people, self._table, self._clock = store, people, table, clock
        self._rows: dict[str, StoredSession] = {}
        """By digest."""
        self._used: set[str] = set()
        self._beginning: set[str] = set()
        self._revocations: dict[str, Revocation] = {}
        self._refused: dict[str, None] = {}

    async def load(self) -> None:
        """Read the table; the directory of people is up to date by then."""
        self._rows = {row.digest: row for row in await self._table.load()}

    async def begin(
        self, person_id: str, method: SignInMethod, device: Device, metadata: Metadata, *, link: str = ""
    ) -> Begun:
        """Sign a person in, with a link or with what was checked before.

        Raises Unauthorized for a link, Forbidden ``no_role`` for a person without any right, and Unavailable.
        """
        if link:
            await require_link(self._store, person_id, link)  # first: a guess writes nothing
        await self._people.catch_up()
        person = self._people.find(person_id)
        if person is not None and not person.is_anyone() and not link:
            raise _no_role()
        token, at = secrets.token_urlsafe(SECRET_BYTES), self._clock()
        row = StoredSession(_digest(token), new_id(), person_id, method, device.browser, device.address, at, at)
        self._beginning.add(row.id)
        try:
            await self._table.add(row)
            self._rows[row.digest] = row
            await sign_in(self._store, person_id, row.id, method, metadata, link=link)
            await self._people.catch_up()
        finally:
            self._beginning.discard(row.id)
            self._people.changed.set()  # a row that was refused goes with the next look
        if person is None or self._people.session(person_id, row.id) is None:
            raise _no_role()
        await self._end_oldest(person_id, metadata)
        return Begun(row.id, token)

    async def _end_oldest(self, person_id: str, metadata: Metadata) -> None:
        await self._recall_of(person_id)
        rows = sorted(self._of(person_id), key=lambda row: row.used_at)
        for row in rows[:-MAX_SESSIONS]:
            await self.end(person_id, row.id, metadata)

    @property
    def recalls(self) -> bool:
        """Return whether ``recall`` comes before ``find``."""
        return self._table.is_shared

    async def recall(self, token: str) -> None:
        """Look up the session whose cookie this is, unless it is known to be open. Raises Unavailable."""
        digest = _digest(token)
        row = self._rows.get(digest)
        if len(token) > MAX_TOKEN_CHARACTERS or digest in self._refused:
            return
        if row is not None and self._is_open(row, self._clock()):
            return
        found = await self._table.find(digest)
        if found is None:
            self._rows.pop(digest, None)
            self._refuse(digest)
        else:
            await self._learn([found])

    async def _learn(self, found: Collection[StoredSession]) -> None:
        for one in found:
            row = self._rows.setdefault(one.digest, one)
            row.used_at = max(row.used_at, one.used_at)
        if any(self._people.session(one.person_id, one.id) is None for one in found):
            await self._people.catch_up()  # it may have begun a moment ago

    def _refuse(self, digest: str) -> None:
        """No session gets this digest any more: its secret is random, and its row is written before it is given."""
        if len(self._refused) >= MAX_REFUSED:
            self._refused.pop(next(iter(self._refused)))
        self._refused[digest] = None

    def find(self, token: str) -> StoredSession | None:
        """Return the open session whose cookie this is, and note its use. Raise StoreUnavailable."""
        if len(token) > MAX_TOKEN_CHARACTERS:
            return None
        self._people.require_complete()
        row = self._rows.get(_digest(token))
        at = self._clock()
        if row is None or not self._is_open(row, at):
            return None
        row.used_at = at
        self._used.add(row.digest)
        return row

    def person(self, row: StoredSession) -> KnownPerson:
        """Return the person of an open session."""
        person = self._people.find(row.person_id)
        assert person is not None
        return person

    def revocation(self, row: StoredSession) -> Revocation:
        """Return what is published when an open session ends: the same for all its requests."""
        return self._revocations.setdefault(row.id, Revocation())

    async def end(self, person_id: str, session_id: str, metadata: Metadata) -> None:
        """Sign out a session of a person; again does nothing. Raises NotFound, StoreUnavailable."""
        await sign_out(self._store, person_id, session_id, metadata)
        await self.settle()

    async def settle(self) -> None:
        """Let everything hold at once that was recorded by now: a sign-out, a role that was taken."""
        await self._people.catch_up()
        self._publish_ended()

    async def list(self, person_id: str, current: str) -> list[SessionView]:
        """Return a person's open sessions, the one used last first; those known here while the table is away."""
        with suppress(Unavailable):
            await self._recall_of(person_id)
        rows = sorted(self._of(person_id), key=lambda row: row.used_at, reverse=True)
        return [
            SessionView(
                id=row.id,
                browser=row.browser,
                address=row.address,
                method=row.method,
                began_at=timestamp(row.began_at),
                used_at=timestamp(row.used_at),
                is_current=row.id == current,
            )
            for row in rows
        ]

    async def run(self) -> None:
        """End the streams of sessions that have ended, and keep the table, until cancelled."""
        written = self._clock()
        while True:
            try:
                async with asyncio.timeout(KEPT_EVERY_SECONDS):
                    await self._people.changed.wait()
            except TimeoutError:
                pass
            self._people.changed.clear()
            self._publish_ended()
            if self._clock() - written >= timedelta(seconds=KEPT_EVERY_SECONDS):
                written = self._clock()
                await self.write()

    async def write(self) -> None:
        """Keep when sessions were last used, and remove those that have ended."""
        at, knows_all = self._clock(), await self._knows_all()
        unused = [row for row in self._rows.values() if self._is_unused(row, at)]
        ended = [row for row in self._rows.values() if knows_all and self._has_ended(row, at)]
        used = [self._rows[digest] for digest in self._used if digest in self._rows]
        try:
            # Another instance may use one that is unused here; one that has ended stays so, even if it was used since.
            await self._table.update(used, [*unused, *(replace(row, used_at=max(row.used_at, at)) for row in ended)])
        except Unavailable as error:
            log.warning("sessions are not kept", reason=str(error))
            return
        self._used.difference_update(row.digest for row in used)
        for row in (*unused, *ended):
            self._rows.pop(row.digest, None)

    async def _knows_all(self) -> bool:
        """Return whether a session that is not known here is in no log: while that is away, others may begin some."""
        if not self._table.is_shared:
            return True
        try:
            await self._people.catch_up()
        except StoreUnavailable:
            return False
        return self._store.away is None

    async def close(self) -> None:
        await self.write()
        await self._table.close()

    def _of(self, person_id: str) -> Iterator[StoredSession]:
        at = self._clock()
        return (row for row in self._rows.values() if row.person_id == person_id and self._is_open(row, at))

    async def _recall_of(self, person_id: str) -> None:
        """Learn of a person's sessions at other instances."""
        if self._table.is_shared:
            await self._learn(await self._table.of_person(person_id))

    def _is_open(self, row: StoredSession, at: datetime) -> bool:
        return not self._is_unused(row, at) and self._people.session(row.person_id, row.id) is not None

    def _is_unused(self, row: StoredSession, at: datetime) -> bool:
        return at - row.used_at >= SESSION_IDLE or at - row.began_at >= SESSION_LIFETIME

    def _has_ended(self, row: StoredSession, at: datetime) -> bool:
        """Return whether the log does not have it; while it begins, perhaps at another instance, it may not yet."""
        if row.id in self._beginning or self._people.session(row.person_id, row.id) is not None:
            return False
        return not self._table.is_shared or at - row.began_at >= SETTLED

    def _publish_ended(self) -> None:
        at = self._clock()
        rows = {row.id: row for row in self._rows.values()} if self._revocations else {}
        for session_id in list(self._revocations):
            row = rows.get(session_id)
            if row is None or not self._is_open(row, at):
                self._revocations.pop(session_id).publish()


def _no_role() -> Forbidden:
    return Forbidden("You have no role here any more. Ask an owner of your organization.", code="no_role")


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()
