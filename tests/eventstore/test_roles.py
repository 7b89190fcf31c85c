"""A log whose service may neither change nor delete an event, by the rights of its role."""

import asyncio
from contextlib import AsyncExitStack, closing, contextmanager
from uuid import uuid4

import pytest

from eventstore import StoreReadOnly, StoreUnavailable
from eventstore.postgres.connections import Address, Connections
from eventstore.postgres.place import TablePlace
from eventstore.postgres.postgres_store import PostgresEventStore
from eventstore.postgres.roles import roles_sql
from eventstore.postgres.schema import migrate_database, prepare
from eventstore.postgres.wrapping.rotation import Rotation
from eventstore.postgres.wrapping.wrapping_keys import WrappingKeys
from tests.eventstore.cluster import new_cluster, started_cluster
from tests.eventstore.shapes import noted

pytestmark = pytest.mark.slow

NAMES = {"owner": "app_owner", "service": "app", "reader": "app_reader", "schema": "public"}


@pytest.fixture(scope="module")
def cluster():
    cluster = started_cluster()
    yield cluster
    cluster.remove()


@pytest.fixture
def databases(cluster):
    """Return a function that gives the address of a new log and of a new vault for a role."""
    with new_databases(cluster) as databases:
        yield databases


@contextmanager
def new_databases(cluster):
    name = f"of_{uuid4().hex}"
    run(cluster.address, f"CREATE DATABASE {name}_log", f"CREATE DATABASE {name}_vault")

    def address(kind, role="docsmith"):
        return Address(cluster.address.replace("docsmith@/postgres", f"{role}@/{name}_{kind}"))

    yield address
    run(cluster.address, f"DROP DATABASE {name}_log WITH (FORCE)", f"DROP DATABASE {name}_vault WITH (FORCE)")


def run(address, *statements):
    connections = Connections.open(Address(address) if isinstance(address, str) else address)

    async def executed():
        async with connections.pooled() as connection:
            for one in statements:
                await connection.execute(one)

    try:
        connections.run(executed())
    finally:
        connections.close()


@pytest.fixture
def roles(databases):
    """Make the roles of both databases, and the tables of the log by their owner."""
    return with_roles(databases)


def with_roles(databases):
    for kind in ("log", "vault"):
        run(databases(kind), roles_sql(kind, **NAMES))
    migrate_database(databases("log", "app_owner"), "log")
    return databases


@pytest.fixture(scope="module")
def unchanged(cluster):
    """Databases with roles for tests whose statements are refused: each has one event at its end, as at its start."""
    with new_databases(cluster) as databases:
        with_roles(databases)

        async def begun():
            async with await PostgresEventStore.open(databases("log", "app"), vault=databases("vault")) as store:
                await store.append("note-1", [noted(1, "secret")], expected_version=0)
                return await store.read_all()

        yield databases, asyncio.run(begun())


@pytest.fixture
async def opened(roles):
    async with AsyncExitStack() as stack:

        async def open_another(role="app", **options):
            log, vault = roles("log", role), roles("vault")
            return await stack.enter_async_context(await PostgresEventStore.open(log, vault=vault, **options))

        yield open_another


async def test_service_role_appends_reads_and_erases(roles, opened):
    store = await PostgresEventStore.open(roles("log", "app"), vault=roles("vault", "app"))
    async with store:
        await store.append("note-1", [noted(1, "secret")], expected_version=0)
        await store.append("note-1", [noted(2, "secret")], expected_version=1)
        assert len(await store.read_stream("note-1")) == 2
        await store.keep_secret("token", "opensesame")
        await store.forget_secret("token")
        await store.erase("note-1")
        assert [event.erased for event in await store.read_stream("note-1")] == [True, True]
    place = TablePlace(roles("log", "app").text, roles("vault", "app").text)
    with place.served_alone() as another:
        assert another() is None
    assert place.verify().is_sound


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE events SET data = '{}'",
        "DELETE FROM events",
        "TRUNCATE events",
        "DROP TABLE events",
        "ALTER TABLE events DISABLE TRIGGER events_stay",
        "DROP TRIGGER events_stay ON events",
        "CREATE TRIGGER mine BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION refuse_change()",
        "CREATE OR REPLACE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'",
        "CREATE RULE mine AS ON INSERT TO events DO INSTEAD NOTHING",
        "ALTER TABLE events ADD COLUMN mine text",
        "ALTER TABLE events OWNER TO app",
        "SET ROLE app_owner",
        "SET session_replication_role = replica",
        "DELETE FROM head",
        "INSERT INTO head (one, position, hash, recorded_at) VALUES (false, 1, '', '')",
        "UPDATE log_schema SET step = 1",
        "CREATE TABLE mine (one text)",
        "CREATE SCHEMA mine",
    ],
)
@pytest.mark.parametrize("role", ["app", "app_reader"])
async def test_no_role_but_the_owner_changes_what_is_stored(unchanged, role, statement):
    databases, stored = unchanged
    with pytest.raises(StoreUnavailable, match=r"permission denied|must be owner|must be able to SET ROLE"):
        run(databases("log", role), statement)
    async with await PostgresEventStore.open(databases("log", "app"), vault=databases("vault")) as store:
        assert await store.read_all() == stored


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO events (position, stream, stream_version, id, type, schema_version, recorded_at, metadata, data,"
        " hash) VALUES (2, 'note-1', 2, 'x', 'noted', 1, '', '', '', '')",
        "UPDATE head SET position = 9",
        "SELECT FROM head FOR UPDATE",
    ],
)
def test_reader_only_reads(unchanged, statement):
    databases, _ = unchanged
    with pytest.raises(StoreReadOnly, match="permission denied"):
        run(databases("log", "app_reader"), statement)


async def test_reader_verifies_the_log_and_reaches_no_key(roles, opened):
    store = await opened()
    await store.append("note-1", [noted(1, "secret")], expected_version=0)
    place = TablePlace(roles("log", "app_reader").text, roles("vault", "app_reader").text)
    found = await asyncio.to_thread(place.verify)
    assert (found.is_sound, found.position) == (True, 1)
    with pytest.raises(StoreUnavailable, match="permission denied for database"):
        run(roles("vault", "app_reader"), "SELECT 1")


async def test_service_role_gives_itself_no_rights(roles, opened):
    await (await opened()).append("note-1", [noted(1)], expected_version=0)
    run(roles("log", "app"), "GRANT UPDATE, DELETE ON events TO app")  # a warning, to PostgreSQL
    with pytest.raises(StoreReadOnly, match="permission denied"):
        run(roles("log", "app"), "DELETE FROM events")


async def test_owner_is_refused_by_the_trigger_too(roles, opened):
    await (await opened()).append("note-1", [noted(1)], expected_version=0)
    with pytest.raises(StoreReadOnly, match="stored for good"):
        run(roles("log", "app_owner"), "DELETE FROM events")


async def test_tables_that_another_role_made_are_taken_over(databases):
    run(databases("log"), "DROP SCHEMA public CASCADE; CREATE SCHEMA public;")
    for kind in ("log", "vault"):
        prepare_plainly(databases(kind), kind)
    async with await PostgresEventStore.open(databases("log"), vault=databases("vault")) as store:
        await store.append("note-1", [noted(1, "secret")], expected_version=0)
    for _ in range(2):  # it can be repeated
        for kind in ("log", "vault"):
            run(databases(kind), roles_sql(kind, **NAMES))
    async with await PostgresEventStore.open(databases("log", "app"), vault=databases("vault", "app")) as store:
        await store.append("note-1", [noted(2, "secret")], expected_version=1)
        await store.erase("note-1")
    for statement in ("DELETE FROM events", "UPDATE events SET data = ''", "TRUNCATE events", "DELETE FROM head"):
        with pytest.raises(StoreReadOnly, match="permission denied"):
            run(databases("log", "app"), statement)


def prepare_plainly(address, kind):
    connections = Connections.open(address)
    prepare(connections, kind, read_only=False)
    connections.close()


def test_service_without_tables_names_what_makes_them(databases):
    run(databases("log"), roles_sql("log", **NAMES))
    connections = Connections.open(databases("log", "app"))
    try:
        with pytest.raises(StoreReadOnly, match="docsmith store migrate"):
            prepare(connections, "log", read_only=False)
    finally:
        connections.close()


def test_migrating_again_changes_nothing(roles):
    again = migrate_database(roles("log", "app_owner"), "log")
    assert again.before == again.now


async def test_erasing_without_owning_the_vault_is_an_error(roles, opened):
    store = await opened()
    await store.append("note-1", [noted(1, "secret")], expected_version=0)
    run(
        roles("vault"),
        "GRANT CONNECT ON DATABASE " + roles("vault").name.rpartition("/")[2] + " TO app_reader",
        "GRANT USAGE ON SCHEMA public TO app_reader",
        "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO app_reader",
    )
    async with await PostgresEventStore.open(roles("log", "app"), vault=roles("vault", "app_reader")) as other:
        with pytest.raises(StoreReadOnly, match="own"):
            await other.erase("note-1")
    assert (await store.read_stream("note-1"))[0].erased


@pytest.mark.parametrize("name", ["App", "a-b", 'a"; DROP ROLE x; --', "", "a" * 64])
def test_a_role_with_an_unusual_name_is_refused(name):
    with pytest.raises(ValueError, match="not a name"):
        roles_sql("log", **(NAMES | {"service": name}))


def test_archives_of_an_unwrapped_vault_are_reported(cluster, databases, tmp_path):
    other = new_cluster()
    other.make(is_another=True)
    with (other.data / "postgresql.conf").open("a") as settings:
        settings.write("archive_mode = on\narchive_command = 'true'\n")
    other.start()
    try:
        vault = f"{other.address}&search_path=vault"
        run(other.address, "CREATE SCHEMA vault", "CREATE ROLE app LOGIN", "GRANT USAGE ON SCHEMA vault TO app")
        migrate_database(databases("log"), "log")
        migrate_database(Address(vault), "vault")
        place = TablePlace(databases("log").text, vault, tmp_path / "keys")

        def concerns():
            return {one.kind: one.says for one in place.concerns() if one.kind != "rights"}

        assert "archive_mode = on" in concerns()["archives"]
        run(other.address, "SELECT pg_create_physical_replication_slot('standby')")
        assert "1 replication slot," in concerns()["archives"]
        run(other.address, "ALTER SYSTEM SET archive_mode = off")
        other.kill()
        other.start()
        assert "archive_mode" not in concerns()["archives"]
        run(other.address, "SELECT pg_drop_replication_slot('standby')")
        assert concerns() == {}
        run(other.address, "GRANT SELECT ON ALL TABLES IN SCHEMA vault TO app")
        run(other.address, "REVOKE SELECT ON pg_replication_slots FROM PUBLIC")
        place = TablePlace(place.log, vault.replace("docsmith@", "app@"), tmp_path / "keys")
        assert list(concerns()) == ["archives_unknown"]
        with closing(Rotation.open(Address(vault), WrappingKeys(tmp_path / "keys"))) as rotation:
            rotation.begin()
        assert concerns() == {}
    finally:
        other.remove()
