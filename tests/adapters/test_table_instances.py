"""Instances as rows of a table in PostgreSQL, with a clock that the tests move."""

import asyncio
import gc
import random
import threading
from contextlib import asynccontextmanager, closing, suppress

import pytest

from eventstore import StoreClosed, StoreUnavailable
from eventstore.postgres.connections import Address, Connections
from service.adapters.postgres.instances import CERTAIN_SECONDS, GAP_SECONDS, MAX_ABSENT, TableInstances
from service.adapters.postgres.tables import Tables
from service.ports.shared.instances import LEASE_SECONDS, RENEW_SECONDS, Peer
from tests.contracts.instances import InstancesContract
from tests.eventstore.backends import addresses

pytestmark = pytest.mark.slow

VERSION = "1.0"


class Seconds:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


class PausedTables(Tables):
    """As of a process that is paused within a transaction, between writing and reading, once ``pauses`` is set."""

    def __init__(self, connections):
        super().__init__(connections)
        self.pauses, self.is_paused, self.goes_on = False, threading.Event(), threading.Event()

    @asynccontextmanager
    async def pooled(self):
        async with super().pooled() as connection:
            yield PausedConnection(connection, self)


class PausedConnection:
    def __init__(self, connection, tables):
        self.transaction, self.execute, self.fetchval = connection.transaction, connection.execute, connection.fetchval
        self._fetch, self._tables = connection.fetch, tables

    async def fetch(self, *statement):
        if self._tables.pauses:
            self._tables.is_paused.set()
            self._tables.goes_on.wait()
        return await self._fetch(*statement)


class Rows:
    """See Group. In ``pass_seconds`` all look every ``RENEW_SECONDS``, except those that are held."""

    def __init__(self, address):
        self.address, self.clock = address, Seconds()
        self.all, self._tables = {}, []
        self.held = set()
        self.here = None

    async def open(self, **options):
        tables = await options.pop("kind", Tables).open(self.address, "service_log")
        self._tables.append(tables)
        options = {"name": f"instance-{len(self._tables)}"} | options
        instance = await TableInstances.open(tables, version=VERSION, renews=False, clock=self.clock, **options)
        self.all[instance.name] = instance
        return instance

    async def begin(self, **options):
        return (await self.open(**options)).name

    async def close(self, name):
        await self.all.pop(name).close()

    async def crash(self, name):
        del self.all[name]

    async def look(self):
        for name, instance in self.all.items():
            if name not in self.held:
                await instance.look()
        await asyncio.sleep(0)  # what has changed reaches those who wait

    async def pass_seconds(self, seconds):
        end = self.clock.now + seconds
        while self.clock.now < end:
            self.clock.now = min(self.clock.now + RENEW_SECONDS, end)
            await self.look()

    async def pass_lease(self):
        await self.pass_seconds(LEASE_SECONDS + 2 * RENEW_SECONDS)

    async def end(self):
        for tables in self._tables:
            await tables.close()


@pytest.fixture
async def group(tmp_path):
    rows = Rows(addresses(tmp_path)[0].text)
    rows.here = await rows.open()
    yield rows
    await rows.end()


class TestTables(InstancesContract):
    pass


async def test_others_are_found_with_their_address(group):
    other = await group.open()
    await other.serve_at("http://10.0.0.7:8080", is_home=True)
    await group.look()
    peer = Peer(other.name, "http://10.0.0.7:8080", VERSION, True)
    assert group.here.others() == [peer]
    assert group.here.find(other.name) == peer
    await other.serve_at("http://10.0.0.8:8080", is_home=False)
    await group.look()
    assert group.here.find(other.name).url == "http://10.0.0.8:8080"
    await group.crash(other.name)
    await group.pass_lease()
    assert group.here.others() == []
    assert group.here.find(other.name) is None


async def test_one_that_began_after_the_last_look_is_alive(group):
    name = await group.begin()
    assert group.here.is_alive(name)
    await group.look()
    assert group.here.is_alive(name)


async def test_crashed_ones_are_known_to_those_that_start_later(group):
    name = await group.begin()
    await group.crash(name)
    await group.pass_lease()
    later = await group.open()
    assert not later.is_alive(name)
    assert name in later.crashed


async def test_one_that_is_known_to_have_ended_is_waited_for_by_no_one(group):
    first = group.here.name
    await group.crash(first)
    later = await group.open(ended=[first, "never-was"])
    assert not later.is_alive(first)
    assert list(later.crashed) == [first]
    assert later.leads()


async def test_one_that_was_alone_when_it_crashed_is_found_by_the_next(group):
    first = group.here.name
    await group.crash(first)
    later = await group.open()
    assert later.is_alive(first)
    await group.pass_lease()
    assert not later.is_alive(first)
    assert first in later.crashed
    assert later.leads()


async def test_leader_that_closes_is_followed_at_the_next_look(group):
    other = await group.open()
    await group.look()
    assert not other.leads()
    waiting = asyncio.ensure_future(other.until_leading())
    await group.close(group.here.name)
    await group.look()
    await waiting
    assert other.leads()
    assert not group.here.leads()


async def test_leader_that_steps_down_is_followed_and_stays_alive(group):
    other = await group.open()
    await group.here.step_down()
    assert not group.here.leads()
    await group.here.look()
    assert not group.here.leads()
    await group.look()
    assert other.leads()
    assert other.is_alive(group.here.name)


async def test_commands_do_not_lead(group):
    command = await group.open(may_lead=False)
    await group.close(group.here.name)
    await group.pass_lease()
    assert command.is_certain()
    assert not command.leads()


async def test_paused_leader_is_replaced_and_stays_a_follower(group):
    other = await group.open()
    group.held.add(group.here.name)
    await group.pass_seconds(CERTAIN_SECONDS)
    assert not group.here.is_certain()
    await group.here.until_not_leading()
    assert not other.leads()
    await group.pass_seconds(60)
    assert other.leads()
    assert not other.is_alive(group.here.name)
    group.held.clear()
    await group.look()
    assert not group.here.leads()
    assert not group.here.is_certain()  # another may act on its last look
    await group.pass_seconds(GAP_SECONDS)
    assert group.here.is_certain()
    assert other.is_alive(group.here.name)
    assert group.here.is_alive(other.name)
    assert [one.leads() for one in (group.here, other)] == [False, True]


async def test_no_one_has_ended_after_an_outage_of_the_database(group):
    names = [await group.begin() for _ in range(2)]
    await group.look()
    group.clock.now += 60  # no look succeeds meanwhile
    assert not group.here.leads()
    assert group.here.is_alive(names[0])
    await group.here.look()  # before the others
    assert all(group.here.is_alive(name) for name in names)
    assert group.here.leads()  # at once: none has counted it as ended
    await group.pass_seconds(GAP_SECONDS)
    assert group.here.leads()
    assert all(group.here.is_alive(name) for name in names)


async def test_one_of_two_that_claim_at_once_is_home(group):
    others = [await group.open() for _ in range(3)]
    claimed = await asyncio.gather(*(one.claim_home() for one in [group.here, *others]))
    assert claimed.count(True) == 1
    await group.look()
    home = [group.here, *others][claimed.index(True)]
    assert await home.claim_home()
    for one in [group.here, *others]:
        assert [peer.name for peer in one.others() if peer.is_home] == ([] if one is home else [home.name])
    await group.close(home.name)
    left = next(one for one in [group.here, *others] if one is not home)
    assert await left.claim_home()


async def test_leader_is_seen_by_the_others(group):
    other = await group.open()
    assert [peer.leads for peer in other.others()] == [True]
    await group.here.look()
    assert [peer.leads for peer in group.here.others()] == [False]


async def test_names_of_no_instance_are_forgotten_in_the_end(group):
    names = [f"gone-{number}" for number in range(MAX_ABSENT + 5)]
    assert all(group.here.is_alive(name) for name in names)  # each may have begun since the last look
    await group.look()
    forgotten = [name for name in names if group.here.is_alive(name)]
    assert len(forgotten) == 5
    await group.look()
    assert not any(group.here.is_alive(name) for name in forgotten)


async def test_closed_tables_refuse_work(group):
    tables = await Tables.open(group.address, "service_log")
    await tables.close()
    with pytest.raises(StoreClosed):
        await tables.fetch("SELECT 1")


async def test_failure_of_cancelled_work_is_no_error_of_the_loop(group):
    tables, began, errors = await Tables.open(group.address, "service_log"), threading.Event(), []
    tables.loop.set_exception_handler(lambda _, context: errors.append(context["message"]))

    async def hangs(_connection):
        began.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise TimeoutError from None

    working = asyncio.create_task(tables.run(hangs))
    await asyncio.to_thread(began.wait)
    working.cancel()
    await asyncio.wait([working])
    await tables.fetch("SELECT 1")
    await tables.close()
    gc.collect()
    assert errors == []


async def test_one_that_is_certain_is_alive_for_all_and_one_leads(group):
    chance = random.Random(20)
    for _ in range(3):
        await group.begin()
    instances = list(group.all.values())
    pauses = dict.fromkeys(instances, 0.0)
    leaders, ended = set(), 0
    for _ in range(500):
        group.clock.now += chance.choice([0.5, 1, 3, 3, 3])
        if chance.random() < 0.04:
            pauses[chance.choice(instances)] = group.clock.now + chance.choice([4, 13, 20, 60])
        if chance.random() < 0.01:
            group.clock.now += 30  # the database was away
        for one in chance.sample(instances, len(instances)):
            if pauses[one] <= group.clock.now and chance.random() < 0.9:
                await one.look()
            certain = [one for one in instances if one.is_certain()]
            assert all(looks.is_alive(one.name) for looks in instances for one in certain)
            leading = [one.name for one in instances if one.leads()]
            assert len(leading) <= 1
            leaders.update(leading)
        ended += sum(not looks.is_alive(one.name) for looks in instances for one in instances)
    assert ended
    assert len(leaders) > 1


async def test_a_leader_that_is_paused_in_a_transaction_is_followed_by_another(group):
    await group.close(group.here.name)
    paused, other = await group.open(kind=PausedTables), await group.open()
    assert paused.leads()
    tables = group._tables[1]
    tables.pauses = True
    group.held.add(paused.name)
    looking = asyncio.create_task(paused.look())
    await asyncio.to_thread(tables.is_paused.wait)
    try:
        for _ in range(3):  # its row is locked at first
            with suppress(StoreUnavailable, TimeoutError):
                await group.pass_lease()
        assert other.leads()
    finally:
        tables.goes_on.set()
    with pytest.raises(StoreUnavailable):
        await looking
    tables.pauses = False
    await paused.look()
    assert not paused.leads()


async def test_nothing_is_published_before_its_commit(tmp_path):
    """Behind a pooler all of a look is one transaction, which may fail when it ends."""
    address = addresses(tmp_path)[0].text
    rows = Rows(f"{address}&statement_cache_size=0")
    leader, here = await rows.open(), await rows.open()
    await rows.look()
    await rows.close(leader.name)
    with closing(Connections.open(Address(address))) as connections:
        connections.fetch(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'refused'; END $$"
        )
        connections.fetch(
            "CREATE CONSTRAINT TRIGGER refused AFTER UPDATE ON instances DEFERRABLE INITIALLY DEFERRED"
            " FOR EACH ROW EXECUTE FUNCTION refuse()"
        )
        rows.clock.now += CERTAIN_SECONDS
        with pytest.raises(StoreUnavailable, match="refused"):
            await here.look()
        assert not here.is_certain(), "its row was not renewed"
        assert not here.leads()
        with pytest.raises(StoreUnavailable, match="refused"):
            await here.claim_home()
        assert connections.fetch("SELECT name FROM leader")[0][0] == ""
        connections.fetch("DROP TRIGGER refused ON instances")
    await here.look()
    assert here.leads()
    await here.serve_at("http://10.0.0.7:8080", is_home=False)
    assert connections_home(address) == [False]
    await rows.end()


def connections_home(address):
    with closing(Connections.open(Address(address))) as connections:
        return [is_home for (is_home,) in connections.fetch("SELECT is_home FROM instances")]
