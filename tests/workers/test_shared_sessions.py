"""Sessions of several instances: begun at one, used at others, ended anywhere."""

from datetime import timedelta

import pytest

from eventstore import SQLiteEventStore, Views
from service.adapters.postgres.sessions import TableSessions
from service.adapters.postgres.tables import Tables
from service.commands.organizations import create_organization
from service.domain.errors import Unavailable
from service.projections import all_projections
from service.queries.access.people import PeopleDirectory
from service.workers.admission.sessions import SETTLED, Sessions
from tests.eventstore.backends import addresses
from tests.workers.test_sessions import ACTOR, DEVICE, Clock, Installation


@pytest.fixture
async def tables(tmp_path):
    tables = await Tables.open(addresses(tmp_path)[1].text, "service_vault")
    yield tables
    await tables.close()


@pytest.fixture
async def instances(tmp_path, tables):
    """Two of one log, each with its own directory of people; the first has an owner."""
    async with (
        await SQLiteEventStore.open(tmp_path / "events.db", vault_path=tmp_path / "keys.db") as store,
        await Views.open(tmp_path / "views.db", store, all_projections()) as views,
    ):
        made = await create_organization(store, "Acme", ACTOR)
        clock = Clock()
        one, two = (Installation(store, views, TableSessions(tables), made.id, clock) for _ in range(2))
        await one.person("owner", "owner@example.com")
        for each in (one, two):
            await each.people.catch_up()
            await each.sessions.load()
        yield one, two


async def found(instance, token):
    await instance.sessions.recall(token)
    return instance.sessions.find(token)


async def test_session_begun_at_one_is_open_at_another(instances):
    one, two = instances
    begun = await one.signed_in(await one.person())
    row = await found(two, begun.token)
    assert (row.id, two.sessions.person(row).email) == (begun.session_id, "ada@example.com")
    assert await found(two, begun.token + "x") is None


async def test_session_ended_at_one_is_ended_at_another(instances):
    one, two = instances
    person_id = await one.person()
    begun = await one.signed_in(person_id)
    assert await found(two, begun.token) is not None
    await two.sessions.end(person_id, begun.session_id, ACTOR)
    await one.sessions.settle()
    assert await found(one, begun.token) is None


async def test_session_in_use_elsewhere_stays_open(instances):
    one, two = instances
    begun = await one.signed_in(await one.person())
    for _ in range(4):
        one.clock.now += timedelta(hours=11)
        assert await found(two, begun.token) is not None
        await two.sessions.write()
        await one.sessions.write()  # by what it has seen the session is not in use any more
    assert await found(one, begun.token) is not None


async def test_session_used_nowhere_ends_everywhere(instances):
    one, two = instances
    begun = await one.signed_in(await one.person())
    assert await found(two, begun.token) is not None
    for each in instances:
        await each.sessions.write()
    one.clock.now += timedelta(hours=12)
    for each in instances:
        assert await found(each, begun.token) is None
        await each.sessions.write()
    assert await one.table.load() == []


async def test_sessions_of_all_instances_are_listed(instances):
    one, two = instances
    person_id = await one.person()
    first, second = await one.signed_in(person_id), await two.signed_in(person_id)
    for each in instances:
        listed = await each.sessions.list(person_id, first.session_id)
        assert {view.id for view in listed} == {first.session_id, second.session_id}


async def test_row_of_a_session_that_begins_elsewhere_is_not_removed(instances):
    one, two = instances
    person_id = await one.person()

    class Paused(BaseException):
        pass

    class StoreOfAPaused:
        """The process is paused where it would record the sign-in."""

        def __getattr__(self, name):
            return getattr(one.store, name)

        async def append(self, *_, **__):
            raise Paused

    paused = Sessions(StoreOfAPaused(), one.people, one.table, clock=one.clock)
    with pytest.raises(Paused):
        await paused.begin(person_id, "passkey", DEVICE, ACTOR)
    await two.sessions.load()
    await two.sessions.write()
    assert len(await two.table.load()) == 1
    one.clock.now += SETTLED
    await two.sessions.write()
    assert await two.table.load() == []


async def test_cookie_that_opens_nothing_is_looked_up_once(instances, tables):
    _, two = instances
    assert await found(two, "guessed") is None
    await tables.close()
    assert await found(two, "guessed") is None


async def test_no_session_is_removed_while_the_log_is_away(instances):
    one, two = instances
    begun = await one.signed_in(await one.person())

    class StoreOfOneCutOff:
        """Its copy of the log has none of it."""

        away = "it does not answer"

        def __getattr__(self, name):
            return getattr(one.store, name)

        async def read_all(self, **_):
            return []

    store = StoreOfOneCutOff()
    cut_off = Sessions(store, PeopleDirectory(store), two.table, clock=one.clock)
    await cut_off.load()
    one.clock.now += SETTLED
    await cut_off.write()
    assert await found(two, begun.token) is not None


async def test_service_that_only_reads_knows_sessions(instances, tables):
    one, two = instances
    begun = await one.signed_in(await one.person())
    reading = Sessions(two.store, two.people, TableSessions(tables, reads_only=True), clock=one.clock)
    await reading.recall(begun.token)
    assert reading.find(begun.token).id == begun.session_id
    one.clock.now += timedelta(hours=12)
    await reading.write()
    assert len(await one.table.load()) == 1


async def test_no_session_begins_where_only_reading_is_served(instances, tables):
    one, two = instances
    person_id = await one.person()
    link = await one.link(person_id)
    reading = Sessions(two.store, two.people, TableSessions(tables, reads_only=True), clock=one.clock)
    with pytest.raises(Unavailable):
        await reading.begin(person_id, "link", DEVICE, ACTOR, link=link)
    assert await one.table.load() == []
    assert (await one.exchange(link)).token
