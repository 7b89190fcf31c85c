"""The vault in a PostgreSQL database (vault.py says what a vault is).

The archives of a PostgreSQL cluster keep all that was ever in it, keys that were erased among it. So a vault is in a
cluster of its own, whose archives are not kept, or it is wrapped: its tables have each key encrypted under a wrapping
key that is in no table, and that is replaced and destroyed in time (``wrapping/``).
"""

import threading
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import UTC, datetime
from typing import Self

from eventstore.errors import EventStoreError, StoreBusy, StoreClosed, StoreReadOnly, StoreUnavailable, SubjectErased
from eventstore.postgres.away.away import Away
from eventstore.postgres.connections import Address, Connections, Rows, Session, brief, is_away
from eventstore.postgres.schema import prepare
from eventstore.postgres.wrapping.opening import CURRENT, LOCKED, Wrapper
from eventstore.postgres.wrapping.wrapping_keys import WrappingKeys
from eventstore.vault import KEPT, Key, new_key, stamp

_KNOWN_KEYS = 4_096
_TRIES = 5
_WRAPPING = "SELECT to_regclass('wrapping_keys') IS NOT NULL"
_MAY_SCRUB = (
    "SELECT bool_and(pg_has_role(relowner, 'USAGE')) FROM pg_class WHERE oid IN ('keys'::regclass, 'secrets'::regclass)"
)

_OWNS_DATABASE = "SELECT pg_has_role(datdba, 'USAGE') FROM pg_database WHERE datname = current_database()"


class VaultTables:
    """See Vault."""

    def __init__(
        self,
        connections: Connections,
        clock: Callable[[], datetime],
        *,
        read_only: bool,
        wrapping: WrappingKeys | None = None,
        outlives: bool = False,
    ) -> None:
        self._connections, self._clock, self._read_only, self._outlives = connections, clock, read_only, outlives
        self._wrapper = Wrapper(connections.address.name, wrapping)
        self._wrapped_under: str | None = None
        """The wrapping key for new keys, as it was last seen."""
        self._known_to_wrap: bool | None = None if read_only else True
        self._lock = threading.RLock()
        self._keys: dict[str, Key | None] = {}
        """Keys, and None for subjects that are erased. A subject without a key may get one at any time."""
        self._concealed: set[str] = set()
        """Subjects that are to be erased, but that the database cannot be relieved of."""
        self._generation = self._times_forgotten = 0
        self._is_closed = False

    @classmethod
    def open(
        cls,
        address: Address,
        *,
        read_only: bool = False,
        wrapping: WrappingKeys | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        away: Away | None = None,
        may_be_away: bool = False,
    ) -> Self:
        """Open the vault; create it unless it is only read. Raise StoreUnavailable or StoreCorrupt.

        ``wrapping`` are the keys that a wrapped vault is wrapped under. With ``away``, keys in memory are still used
        while the database does not answer.
        """
        connections = Connections.open(address, read_only=read_only, away=away)
        try:
            prepare(connections, "vault", read_only=read_only)
        except StoreUnavailable as error:
            if not may_be_away or not is_away(error):
                connections.close()
                raise
        except BaseException:
            connections.close()
            raise
        return cls(connections, clock, read_only=read_only, wrapping=wrapping, outlives=away is not None)

    def refresh(self) -> int:
        try:
            return self._refresh()
        except StoreUnavailable as error:
            if self._outlives and is_away(error):
                return self._generation
            raise

    def _refresh(self) -> int:
        under = CURRENT if self._can_be_wrapped() else "NULL"
        ((found, wrapped_under),) = self._fetch(f"SELECT generation, {under} FROM erasures")  # noqa: S608 - our own text
        generation = int(found)
        with self._lock:
            self._wrapped_under = wrapped_under
            if generation != self._generation:  # a restored vault begins again with a lower one
                self._forget(generation)
            return generation

    def _can_be_wrapped(self) -> bool:
        """Return whether the tables are of a program that knows of wrapping; a vault that is only read may be older."""
        if self._known_to_wrap is None:
            self._known_to_wrap = bool(self._fetch(_WRAPPING)[0][0])
        return self._known_to_wrap

    def _forget(self, generation: int) -> None:
        self._generation = generation
        self._times_forgotten += 1
        self._keys.clear()

    def find(self, subject: str) -> Key | None:
        try:
            return self._keys[subject]
        except KeyError:
            pass
        with self._lock:
            if subject in self._concealed:
                return None
            times = self._times_forgotten
        found = self._stored([subject])
        if subject not in found:
            return None
        key = found[subject]
        with self._lock:
            if subject in self._concealed:
                return None
            if times == self._times_forgotten:
                self._remember({subject: key})
        return key

    def _stored(self, subjects: list[str]) -> dict[str, Key | None]:
        """Return the keys that there are; None for those that are erased."""
        under = "wrapped_under" if self._can_be_wrapped() else "NULL"
        sql = f"SELECT subject, key_id, key, {under} FROM keys WHERE subject = ANY($1)"  # noqa: S608
        rows = self._fetch(sql, subjects)
        return {
            row[0]: None if row[2] is None else Key(bytes(row[1]), self._wrapper.opened(row[0], row[1], row[2], row[3]))
            for row in rows
        }

    def _remember(self, keys: dict[str, Key | None]) -> None:
        if len(self._keys) + len(keys) > _KNOWN_KEYS:
            self._keys.clear()
        self._keys |= keys

    def obtain(self, subjects: Iterable[str]) -> dict[str, Key | EventStoreError]:
        found: dict[str, Key | EventStoreError] = {}
        self._refresh()  # and not without an answer: nothing is sealed under a key that may be gone
        with self._lock:
            for subject in subjects:
                if subject in self._concealed:
                    found[subject] = SubjectErased(subject)
                elif (key := self._keys.get(subject)) is not None:
                    found[subject] = key
            if missing := sorted(subject for subject in subjects if subject not in found):
                found |= self._make(missing)
        return found

    def _make(self, subjects: list[str]) -> dict[str, Key | EventStoreError]:
        """Make the keys that there are not. The order of subjects is everyone's, so that none waits for another."""
        self._require_writable()
        for _ in range(_TRIES):
            made = [(subject, *new_key()) for subject in subjects]
            self._change(
                f"WITH {LOCKED} INSERT INTO keys (subject, key_id, key, created_at, wrapped_under)"  # noqa: S608
                " SELECT subject, key_id, key, $4, $5 FROM unnest($1::text[], $2::bytea[], $3::bytea[]) AS made"
                " (subject, key_id, key) WHERE (SELECT id FROM wrapping) IS NOT DISTINCT FROM $5"
                " ON CONFLICT DO NOTHING",
                subjects,
                [key_id for _, key_id, _ in made],
                [self._wrapper.stored(*one, self._wrapped_under) for one in made],
                self._now(),
                self._wrapped_under,
            )
            keys = self._stored(subjects)
            if len(keys) == len(subjects):
                self._remember(keys)
                return {subject: SubjectErased(subject) if key is None else key for subject, key in keys.items()}
            self._refresh()  # another wrapping key is the current one by now
        raise StoreBusy(f"{self._connections.address.name}: the wrapping key changes again and again")

    def erase(self, subject: str) -> None:
        self._erase([subject])

    def erase_all(self, subjects: Collection[str]) -> int:
        with self._lock:
            self._concealed.update(subjects)
            for subject in subjects:
                self._keys.pop(subject, None)
        rows = self._fetch("SELECT subject FROM keys WHERE erased_at IS NOT NULL AND subject = ANY($1)", list(subjects))
        erased = {row[0] for row in rows}
        todo = [subject for subject in subjects if subject not in erased]
        if todo:
            self._erase(todo)
        with self._lock:
            self._concealed.difference_update(subjects)
        return len(todo)

    def _erase(self, subjects: Sequence[str], secret: str | None = None) -> None:
        self._require_writable()
        now, ordered = self._now(), sorted(subjects)

        async def erased() -> int:
            async with self._connections.pooled(begins=False) as connection:
                async with brief(connection):
                    if secret is not None:
                        await connection.execute("DELETE FROM secrets WHERE name = $1", secret)
                    await connection.execute(
                        "INSERT INTO keys (subject, created_at, erased_at) SELECT subject, $2, $2"
                        " FROM unnest($1::text[]) AS gone (subject) ON CONFLICT (subject) DO UPDATE"
                        " SET key = NULL, key_id = NULL, wrapped_under = NULL, erased_at = excluded.erased_at"
                        " WHERE keys.erased_at IS NULL",
                        ordered,
                        now,
                    )
                    generation = await connection.fetchval(
                        "UPDATE erasures SET generation = generation + 1 RETURNING generation"
                    )
                await scrub_tables(connection)
                return int(generation)

        generation = self._connections.run(erased())
        with self._lock:
            self._forget(generation)  # also for those that are reading a key just now, and would remember it
            self._remember(dict.fromkeys(subjects))

    def keep_secret(self, name: str, text: str) -> None:
        subject = KEPT + name
        key = self.obtain([subject])[subject]
        if not isinstance(key, Key):
            raise key
        sealed = key.seal(text.encode(), subject.encode(), 1, b"")
        self._change("INSERT INTO secrets (name, sealed, created_at) VALUES ($1, $2, $3)", name, sealed, self._now())

    def find_secret(self, name: str) -> str | None:
        subject = KEPT + name
        self.refresh()
        key, rows = self.find(subject), self._fetch("SELECT sealed FROM secrets WHERE name = $1", name)
        if key is None or not rows:
            return None
        text = key.open(bytes(rows[0][0]), subject.encode(), 1, b"")
        return None if text is None else text.decode()

    def forget_secret(self, name: str) -> None:
        self._erase([KEPT + name], secret=name)

    def secret_names(self, *, before: datetime | None = None) -> Collection[str]:
        if before is None:
            rows = self._fetch("SELECT name FROM secrets ORDER BY name")
        else:
            rows = self._fetch("SELECT name FROM secrets WHERE created_at < $1 ORDER BY name", stamp(before))
        return [name for (name,) in rows]

    def close(self) -> None:
        self._is_closed = True
        self._keys.clear()
        self._connections.close()

    def _fetch(self, sql: str, *values: object) -> Rows:
        if self._is_closed:
            raise StoreClosed("the vault is closed")
        return self._connections.fetch(sql, *values)

    def _change(self, sql: str, *values: object) -> Rows:
        if self._is_closed:
            raise StoreClosed("the vault is closed")
        return self._connections.change(sql, *values)

    def _require_writable(self) -> None:
        if self._is_closed:
            raise StoreClosed("the vault is closed")
        if self._read_only:
            raise StoreReadOnly(f"{self._connections.address.name} was opened for reading")

    def _now(self) -> str:
        return stamp(self._clock())


async def scrub_tables(connection: Session) -> None:
    """Take deleted keys out of the tables' pages: until then an erased key is still in the file as a dead row.

    Its bytes can be in the free space of a page, and in the write-ahead log, until PostgreSQL uses them again: those of
    a vault that is not wrapped are gone for good from its tables only. A row that an older transaction may still see,
    as that of a dump that runs or of a replication slot that is behind, stays until the next time after its end. The
    server says that to no ordinary role, so it is in the manual (postgresql.md).

    Raises StoreReadOnly for a role that may not: to PostgreSQL that is a warning.
    """
    await _require_owner(connection)
    for table in ("keys", "secrets"):
        await connection.execute(f"VACUUM {table}")


async def rewrite_tables(connection: Session, *, seconds: float) -> None:
    """Rewrite the table of keys, into another file, so that no file has anything but the rows there are. Others wait
    for it meanwhile. Raise TimeoutError once ``seconds`` have passed: then the table is as it was, and StoreReadOnly.
    """
    await _require_owner(connection)
    await connection.execute("VACUUM FULL keys", timeout=seconds)


async def rewrite_statistics(connection: Session, *, seconds: float) -> bool:
    """Do the same with the samples of values that the server keeps, which had keys among them before ``keys.key`` was
    left out. Return False for a role that may not, which the owner of the database may. Raise TimeoutError.
    """
    if not await connection.fetchval(_OWNS_DATABASE):
        return False
    await connection.execute("VACUUM FULL pg_statistic", timeout=seconds)
    return True


async def _require_owner(connection: Session) -> None:
    if not await connection.fetchval(_MAY_SCRUB):
        raise StoreReadOnly(
            "the role that uses the vault does not own its tables, so that what was erased stays in their pages",
            remedy="give it the tables (docsmith store roles vault)",
        )
