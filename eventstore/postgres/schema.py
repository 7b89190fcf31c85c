"""The tables of a log and of a vault, made and brought up to date; those of a program beside them, too.

A step of a schema first adds what the new program needs (expand); a later step takes away what only old ones read
(contract). So each step says the oldest program that can go on beside it, and instances can be replaced one by one.
"""

import re
from collections.abc import Sequence
from importlib import resources
from typing import NamedTuple

import asyncpg

from eventstore.errors import StoreForeign, StoreNewer, StoreReadOnly
from eventstore.postgres.connections import Address, Connections, Session

_LOCK = 0x45764C67
"""'EvLg': the advisory lock of the one that changes a schema."""
_NAME = re.compile(r"(\d{4})_\w+\.sql")
_OLDEST = re.compile(r"^-- oldest: (\d+)$", re.MULTILINE)

OWN_MIGRATIONS = "eventstore.postgres.migrations"
"""The package of the migrations of a log and a vault; it has a folder for each kind of schema."""

_TABLE = (
    "CREATE TABLE IF NOT EXISTS {kind}_schema (one boolean PRIMARY KEY DEFAULT true CHECK (one),"
    " step bigint NOT NULL, oldest bigint NOT NULL)"
)


class Step(NamedTuple):
    number: int
    sql: str
    oldest: int
    """The number of the last step that the oldest program knows which can work with this one."""


def steps_of(kind: str, migrations: str = OWN_MIGRATIONS) -> list[Step]:
    """Return the steps of a schema, such as ``log`` or ``vault``, in their order.

    ``migrations`` is a package with a folder for each kind. A kind is a word that is part of the name of a table, so no
    two packages have the same.
    """
    steps = []
    for file in resources.files(migrations).joinpath(kind).iterdir():
        if named := _NAME.fullmatch(file.name):
            number, sql = int(named[1]), file.read_text()
            oldest = _OLDEST.search(sql)
            steps.append(Step(number, sql, int(oldest[1]) if oldest else number))
    numbers = [step.number for step in steps]
    assert len(set(numbers)) == len(numbers), f"two migrations of {kind} have one number"
    return sorted(steps)


class Migrated(NamedTuple):
    """The tables of one kind in a database, and their last step before and now."""

    name: str
    kind: str
    before: int
    now: int


async def migrate(connection: Session, kind: str, name: str, migrations: str = OWN_MIGRATIONS) -> Migrated:
    """Make the tables, or bring them up to date; of several instances one does it.

    Raises:
        StoreNewer: a newer program has made them, which this one cannot work beside.
        StoreReadOnly: the role may not.
    """
    steps = steps_of(kind, migrations)
    before = await _found(connection, kind, steps, name)
    if before < steps[-1].number:
        try:
            await _make(connection, kind, name, steps)
        except asyncpg.InsufficientPrivilegeError as error:
            raise StoreReadOnly(
                f"{name}: the tables of the {kind} have to be {'updated' if before else 'made'}, and this role may not",
                remedy="run docsmith store migrate with the address of their owner",
            ) from error
    return Migrated(name, kind, before, steps[-1].number)


async def _make(connection: Session, kind: str, name: str, steps: Sequence[Step]) -> None:
    async with connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock($1)", _LOCK)
        await connection.execute(_TABLE.format(kind=kind))
        at = await _found(connection, kind, steps, name)
        for step in steps:
            if step.number > at:
                await connection.execute(step.sql)
                await connection.execute(
                    f"INSERT INTO {kind}_schema (step, oldest) VALUES ($1, $2)"  # noqa: S608 - a word of our own
                    " ON CONFLICT (one) DO UPDATE SET step = excluded.step,"
                    f" oldest = greatest({kind}_schema.oldest, excluded.oldest)",  # a later step undoes no contraction
                    step.number,
                    step.oldest,
                )


async def check(connection: Session, kind: str, name: str, migrations: str = OWN_MIGRATIONS) -> None:
    """Raise StoreForeign when there are no tables of this kind, and StoreNewer when this program cannot read them."""
    if not await _found(connection, kind, steps_of(kind, migrations), name):
        raise StoreForeign(f"{name} has no {kind}")


async def _found(connection: Session, kind: str, steps: Sequence[Step], name: str) -> int:
    """Return the last step that was made; 0 for none."""
    if await connection.fetchval("SELECT to_regclass($1)", f"{kind}_schema") is None:
        return 0
    row = await connection.fetchrow(f"SELECT step, oldest FROM {kind}_schema")  # noqa: S608 - a word of our own
    if row is None:
        return 0
    if row["oldest"] > steps[-1].number:
        raise StoreNewer(f"{name}: a newer program made the {kind}; update this one")
    return min(int(row["step"]), steps[-1].number)


def prepare(connections: Connections, kind: str, *, read_only: bool, migrations: str = OWN_MIGRATIONS) -> None:
    """Make the tables or, for one who only reads, look at them. Raise StoreUnavailable and its kinds, StoreCorrupt."""

    async def prepared() -> None:
        async with connections.pooled() as connection:
            await (check if read_only else migrate)(connection, kind, connections.address.name, migrations)

    connections.run(prepared())


def migrate_database(address: Address, kind: str, migrations: str = OWN_MIGRATIONS) -> Migrated:
    """Make the tables of one kind in a database, or bring them up to date.

    Raises:
        StoreUnavailable and its kinds, StoreCorrupt.
    """
    connections = Connections.open(address)

    async def migrated() -> Migrated:
        async with connections.pooled() as connection:
            return await migrate(connection, kind, address.name, migrations)

    try:
        return connections.run(migrated())
    finally:
        connections.close()
