"""Connections to one database, for threads that may block.

asyncpg works on an event loop; the service's own must not wait for each row of a page. So its connections live on a
loop of their own thread, and the store's threads wait there for what they ask.
"""

import asyncio
import concurrent.futures
import contextlib
import re
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Self, TypeAlias, TypeVar, cast
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import asyncpg

from eventstore.errors import (
    EventStoreError,
    StoreBusy,
    StoreClosed,
    StoreCorrupt,
    StoreDiskFailed,
    StoreForeign,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
)
from eventstore.postgres.away.away import PATIENCE_SECONDS, Away

if TYPE_CHECKING:
    from asyncpg.pool import PoolConnectionProxy

T = TypeVar("T")
Session: TypeAlias = "asyncpg.Connection[asyncpg.Record] | PoolConnectionProxy[asyncpg.Record]"
Rows = Sequence[tuple[Any, ...]]
"""Records of asyncpg, which are read as tuples are."""

CONNECT_SECONDS = 5.0
STATEMENT_SECONDS = 20.0
"""A statement that takes longer is given up: the server is paused, or its disk is."""
SILENT_SECONDS = 5
"""One who says nothing for so long in a transaction that others may wait for is paused, or its machine is gone. Then
the server ends the session and with it the locks; by default that takes up to two hours."""
BRIEF = f"SET LOCAL idle_in_transaction_session_timeout = '{SILENT_SECONDS}s'"
OPEN_AT_ONCE = 6
"""Connections of a pool: one for each thread that reads, and two for those who ask about the vault."""
DEFAULT_STATEMENTS = 100

FAILURES = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError, TimeoutError)
"""Raised by asyncpg when a statement, or the connection, fails."""
LOST = (asyncpg.InterfaceError, asyncpg.InternalClientError, OSError, TimeoutError, asyncpg.OperatorInterventionError)
READ_ONLY = "25006"
LOST_STATES = ("08", "57P")
"""Beginnings of the codes (SQLSTATE) after which there is no connection any more."""

_HOSTS = re.compile(r"(?:(?:[^\[\]:,]*|\[[^\[\]]*\])(?::[0-9]*)?(?:,|$))*")
_PORT = re.compile(r":([0-9]+)(?:,|$)")
_UNREADABLE = (
    "the address of a database is not as postgresql://USER:PASSWORD@HOST:PORT/DATABASE; percent-encode / ? # @ : [ ] in"
    " its password"
)


class Address:
    """The address of a database, as ``postgresql://USER:PASSWORD@HOST:PORT/DATABASE?…``.

    Beside the parameters of libpq it takes ``statement_cache_size``: 0 behind a pooler that changes connections between
    statements, where no statement can be prepared.
    """

    def __init__(self, text: str) -> None:
        """Raises ValueError, with a text that does not show a password."""
        try:
            parts = urlsplit(text)
        except ValueError:  # its text may have a part of the password
            raise ValueError(_UNREADABLE) from None
        if parts.scheme not in {"postgresql", "postgres"}:
            raise ValueError("the address of a database begins with postgresql://")
        rest = f"{parts.path}?{parts.query}"  # with an "@" it has the end of a password with a bare "/" or "?"
        if (
            parts.fragment
            or "/" in parts.path[1:]
            or "@" in rest
            or not _HOSTS.fullmatch(hosts := parts.netloc.rpartition("@")[2])
        ):
            raise ValueError(_UNREADABLE)
        if any(int(port) > 65535 for port in _PORT.findall(hosts)):
            raise ValueError("the port of a database is a number up to 65535")
        given = dict(parse_qsl(parts.query, keep_blank_values=True))
        statements = given.pop("statement_cache_size", str(DEFAULT_STATEMENTS))
        if not statements.isdecimal():
            raise ValueError("statement_cache_size is a number")
        self.statements = int(statements)
        self.is_pooled = self.statements == 0
        """It is that of a pooler: only within a transaction two statements go to one connection of the server."""
        self.text = urlunsplit(parts._replace(query=urlencode(given)))
        self.name = f"{parts.hostname or given.get('host') or 'localhost'}/{parts.path.lstrip('/')}"
        """Names the database in errors: its host and its name, without the user and the password."""
        self.has_password = bool(parts.password or given.keys() & {"password", "sslpassword"})


class Connections:
    """A loop on a thread of its own, and a pool of connections on it. Its methods are for other threads."""

    def __init__(self, address: Address, *, read_only: bool = False, away: Away | None = None) -> None:
        self.address, self._read_only, self.away = address, read_only, away
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="eventstore-postgres", daemon=True)
        self._pool: asyncpg.Pool | None = None
        self._lock = threading.Lock()
        self._is_closed = False

    @classmethod
    def open(cls, address: Address, *, read_only: bool = False, away: Away | None = None) -> Self:
        """Connect when the first statement is to be run. With ``away``, reads are given up soon while the database does
        not answer. Raise StoreUnavailable and its kinds.
        """
        connections = cls(address, read_only=read_only, away=away)
        connections._thread.start()
        try:
            connections.run(connections._open_pool())
        except BaseException:
            connections.close()
            raise
        return connections

    async def _open_pool(self) -> None:
        self._pool = await asyncpg.create_pool(
            self.address.text,
            min_size=0,
            max_size=OPEN_AT_ONCE,
            command_timeout=STATEMENT_SECONDS,
            reset=_nothing_changed,
            **self._options(),
        )

    def _options(self) -> dict[str, Any]:
        return {
            "timeout": CONNECT_SECONDS,
            "statement_cache_size": self.address.statements,
            "server_settings": {"application_name": "docsmith"}
            | ({"default_transaction_read_only": "on"} if self._read_only and not self.address.is_pooled else {}),
        }

    async def connect(self) -> asyncpg.Connection:
        """Return a connection that is not of the pool. For the loop of this object."""
        return await asyncpg.connect(self.address.text, command_timeout=STATEMENT_SECONDS, **self._options())

    @asynccontextmanager
    async def pooled(self, *, begins: bool = True) -> AsyncIterator[Session]:
        """Lend a connection of the pool. For the loop of this object.

        Behind a pooler all that is done with it is one transaction, since even one statement with values takes two
        messages; unless ``begins`` is false, for those that see to their transactions themselves.
        """
        if self._pool is None:
            raise StoreClosed("the store is closed")
        async with self._pool.acquire(timeout=STATEMENT_SECONDS) as connection:
            if begins and self.address.is_pooled:
                async with connection.transaction(readonly=self._read_only):
                    yield connection
            else:
                yield connection

    def run(self, work: Coroutine[Any, Any, T], *, seconds: float | None = None) -> T:
        """Do something on the loop of this object, and wait for it, as ``run_plainly``.

        Raises:
            StoreUnavailable and its kinds, StoreCorrupt: in place of asyncpg's errors.
        """
        try:
            return self.run_plainly(work, seconds=seconds)
        except FAILURES as error:
            raise explained(error, self.address.name) from error

    def run_plainly(self, work: Coroutine[Any, Any, T], *, seconds: float | None = None) -> T:
        """Do something on the loop of this object, and wait for it. Raise what it raises, or StoreClosed; TimeoutError
        once ``seconds`` have passed, while it goes on to its own end.
        """
        with self._lock:  # what is begun before the end is ended by it
            if self._is_closed:
                work.close()
                raise StoreClosed("the store is closed")
            doing = asyncio.run_coroutine_threadsafe(work, self.loop)
        try:
            return doing.result(seconds)
        except concurrent.futures.CancelledError:
            raise StoreClosed("the store was closed meanwhile") from None

    def fetch(self, sql: str, *values: object) -> Rows:
        """Return the rows of one statement on a connection of the pool."""
        away = self.away
        if away is None:
            return self.change(sql, *values)
        away.require_turn()
        try:
            rows = self.run(self._fetch(sql, values), seconds=PATIENCE_SECONDS)
        except StoreUnavailable as error:
            if is_away(error):
                away.failed(str(error))
            raise
        away.answered()
        return rows

    def change(self, sql: str, *values: object) -> Rows:
        """Run a statement as ``fetch``, and wait for it also where reads are given up soon."""
        return self.run(self._fetch(sql, values))

    async def _fetch(self, sql: str, values: Sequence[object]) -> Rows:
        async with self.pooled() as connection:
            return cast("Rows", await connection.fetch(sql, *values))

    def close(self) -> None:
        """Close the pool and end the thread; again does nothing."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
        with contextlib.suppress(*FAILURES):
            asyncio.run_coroutine_threadsafe(self._end(), self.loop).result()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()

    async def _end(self) -> None:
        """Cancel what runs on the loop, and close the pool."""
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        pool, self._pool = self._pool, None
        if pool is not None:
            try:
                async with asyncio.timeout(CONNECT_SECONDS):
                    await pool.close()
            except TimeoutError:
                pool.terminate()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()


@asynccontextmanager
async def brief(connection: Session) -> AsyncIterator[None]:
    """Begin a transaction that the server gives up when nothing is heard for ``SILENT_SECONDS``."""
    async with connection.transaction():
        await connection.execute(BRIEF)
        yield


async def _nothing_changed(_: object) -> None:
    """Spare the question that asyncpg else asks before each use of a connection: no session's settings are changed."""


def is_lost(error: BaseException) -> bool:
    """Return whether the connection is gone, so that it is not known how a statement under way ended."""
    return isinstance(error, LOST) or str(getattr(error, "sqlstate", "")).startswith(LOST_STATES)


def is_away(error: StoreUnavailable) -> bool:
    """Return whether the database did not answer. One that says no, for want of a right say, is not away."""
    return type(error) is StoreUnavailable and (error.__cause__ is None or is_lost(error.__cause__))


def explained(error: BaseException, name: str) -> EventStoreError:
    """Return the error to raise in place of one of asyncpg's."""
    state = str(getattr(error, "sqlstate", None) or "")
    if isinstance(error, OSError) and not state:  # TimeoutError is one
        why = "it took too long" if isinstance(error, TimeoutError) else error.strerror or str(error)
        return StoreUnavailable(f"PostgreSQL does not answer at {name}: {why}")
    if state == READ_ONLY:
        return StoreReadOnly(
            f"{name} can be read, and not written: it is a standby of PostgreSQL, or its settings say so",
            remedy="promote it, or name the server that can be written",
        )
    says = f"{name}: {str(error) or type(error).__name__}"
    for begins, make in _KINDS:
        if state.startswith(begins):
            return make(says)
    return StoreUnavailable(says)


_KINDS: tuple[tuple[tuple[str, ...], Callable[[str], EventStoreError]], ...] = (
    (("53100",), StoreFull),
    (("42501",), StoreReadOnly),
    (("55P03", "40P01", "40001", "57014"), StoreBusy),
    (("58030",), StoreDiskFailed),
    (("XX001", "XX002"), StoreCorrupt),
    (("42P01", "42703"), StoreForeign),
)
"""By the codes of https://www.postgresql.org/docs/current/errcodes-appendix.html."""
