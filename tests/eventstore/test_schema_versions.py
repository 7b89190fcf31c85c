"""Two versions of the program beside one log in PostgreSQL: a schema first expands, and contracts later."""

import shutil
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

import eventstore.postgres.migrations
from eventstore import StoreNewer
from eventstore.postgres.connections import Connections
from eventstore.postgres.postgres_store import PostgresEventStore
from eventstore.postgres.schema import migrate_database, prepare, steps_of
from tests.eventstore.backends import addresses
from tests.eventstore.shapes import noted

EXPAND = (
    "-- oldest: {oldest}\nALTER TABLE events ADD COLUMN note text COLLATE \"C\" NOT NULL DEFAULT '';\n"
    "CREATE TABLE later (one bigint);\n"
)
CONTRACT = "DROP TABLE later;\nALTER TABLE events DROP COLUMN note;\n"


@pytest.fixture
def newer(tmp_path, monkeypatch):
    """Return a function that makes the package of the migrations of a newer program, with more steps of the log."""
    monkeypatch.syspath_prepend(tmp_path)

    def made(name, *more):
        package = tmp_path / name
        shutil.copytree(Path(eventstore.postgres.migrations.__file__).parent, package)
        for number, sql in enumerate(more, known() + 1):
            (package / "log" / f"{number:04}_more.sql").write_text(sql.format(oldest=known()))
        return name

    return made


def known():
    """Return the last step that this program knows."""
    return steps_of("log")[-1].number


@pytest.fixture
async def opened(tmp_path):
    log, vault = addresses(tmp_path)
    async with AsyncExitStack() as stack:

        async def open_another():
            return await stack.enter_async_context(await PostgresEventStore.open(log, vault=vault))

        yield open_another


async def test_both_versions_append_while_a_schema_expands(tmp_path, newer, opened):
    log, _ = addresses(tmp_path)
    older = await opened()
    await older.append("note-1", [noted(1, "secret")], expected_version=0)
    found = migrate_database(log, "log", newer("newer", EXPAND))
    assert (found.before, found.now) == (known(), known() + 1)
    await older.append("note-1", [noted(2, "secret")], expected_version=1)
    restarted = await opened()  # one of the older ones may still be started
    await restarted.append("note-1", [noted(3, "secret")], expected_version=2)
    await older.append("note-1", [noted(4, "secret")], expected_version=3)
    assert [event.position for event in await older.read_all()] == [1, 2, 3, 4]
    again = migrate_database(log, "log", "newer")
    assert again.before == again.now


async def test_an_older_version_is_refused_once_a_schema_has_contracted(tmp_path, newer, opened):
    log, _ = addresses(tmp_path)
    await opened()
    migrate_database(log, "log", newer("expanded", EXPAND))
    await opened()
    migrate_database(log, "log", newer("contracted", EXPAND, CONTRACT))
    with pytest.raises(StoreNewer, match="update this one"):
        await opened()


async def test_a_later_expansion_undoes_no_contraction(tmp_path, newer, opened):
    log, _ = addresses(tmp_path)
    await opened()
    migrate_database(log, "log", newer("newest", EXPAND, CONTRACT, "-- oldest: 1\nCREATE TABLE more (one bigint);"))
    with pytest.raises(StoreNewer):
        await opened()


async def test_a_new_program_takes_over_a_log_of_the_first(tmp_path, newer):
    log, vault = addresses(tmp_path)
    package = newer("first")
    for kind in ("log", "vault"):
        for file in sorted((tmp_path / package / kind).glob("*.sql"))[1:]:
            file.unlink()
    for address, kind in ((log, "log"), (vault, "vault")):
        assert migrate_database(address, kind, package).now == 1
    async with await PostgresEventStore.open(log, vault=vault) as store:
        await store.append("note-1", [noted(1, "secret")], expected_version=0)
    for address, kind in ((log, "log"), (vault, "vault")):  # the first may still be started beside it
        assert migrate_database(address, kind, package).now == 1


def test_of_many_that_start_at_once_one_makes_the_tables(tmp_path):
    log, _ = addresses(tmp_path)
    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(lambda _: migrate_database(log, "log"), range(12)))
    assert {one.now for one in found} == {known()}
    connections = Connections.open(log)
    try:
        prepare(connections, "log", read_only=True)
        assert connections.fetch("SELECT count(*) FROM head")[0][0] == 1
    finally:
        connections.close()


def test_a_step_that_fails_changes_nothing(tmp_path, newer):
    log, _ = addresses(tmp_path)
    migrate_database(log, "log")
    with pytest.raises(Exception, match="no_such"):
        migrate_database(log, "log", newer("broken", EXPAND + "DROP TABLE no_such;"))
    assert migrate_database(log, "log", newer("mended", EXPAND)).before == known()
