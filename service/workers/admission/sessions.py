"""Sessions: the browsers in which people are signed in, and until when.

A session is open while three agree: its row has the cookie's digest and was used not long ago; the log has its sign-in
and no sign-out; and no right of the person was taken since. So the end of a session is an event, whichever process
records it, and holds at once. The row is written first: a process that is killed between the two leaves a row that
opens nothing, and a link that is still good.
"""

import asyncio
import hashlib
import secrets
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta

import structlog
from msgspec import Struct

from eventstore import EventStore, Metadata
from service.commands.people import require_link, sign_in, sign_out
from service.domain.access.people import SESSION_IDLE, SESSION_LIFETIME, SignInMethod
from service.domain.errors import Forbidden, Unavailable
from service.domain.times import timestamp
from service.ports.sessions import SessionTable, StoredSession
from service.queries.keys import Revocation
from service.queries.people import KnownPerson, PeopleDirectory
from service.runtime.system import new_id, now
from service.views.people import SessionView

log = structlog.get_logger()

MAX_SESSIONS = 50
"""Limit for one person; the one that was used longest ago ends for another."""
KEPT_EVERY_SECONDS = 60.0
"""How often it is written when sessions were last used, and looked for those whose time is over."""
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
        rows = sorted(self._of(person_id), key=lambda row: row.used_at)
        for row in rows[:-MAX_SESSIONS]:
            await self.end(person_id, row.id, metadata)

    def find(self, token: str) -> StoredSession | None:
        """Return the open session whose cookie this is, and note its use."""
        if len(token) > MAX_TOKEN_CHARACTERS:
            return None
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

    def list(self, person_id: str, current: str) -> list[SessionView]:
        """Return a person's open sessions, the one used last first."""
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
        at = self._clock()
        ended = [row for row in self._rows.values() if not self._is_open(row, at) and row.id not in self._beginning]
        used = [self._rows[digest] for digest in self._used if digest in self._rows]
        try:
            await self._table.update(used, [row.id for row in ended])
        except Unavailable as error:
            log.warning("sessions are not kept", reason=str(error))
            return
        self._used.difference_update(row.digest for row in used)
        for row in ended:
            self._rows.pop(row.digest, None)

    async def close(self) -> None:
        await self.write()
        await self._table.close()

    def _of(self, person_id: str) -> Iterator[StoredSession]:
        at = self._clock()
        return (row for row in self._rows.values() if row.person_id == person_id and self._is_open(row, at))

    def _is_open(self, row: StoredSession, at: datetime) -> bool:
        if at - row.used_at >= SESSION_IDLE or at - row.began_at >= SESSION_LIFETIME:
            return False
        return self._people.session(row.person_id, row.id) is not None

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
