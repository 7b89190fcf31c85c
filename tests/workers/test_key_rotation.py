"""Instances that change the wrapping key of the vault together."""

import asyncio
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest
from aiohttp.test_utils import TestServer
from aiohttp.web import Application

from eventstore import StoreUnavailable
from eventstore.postgres.postgres_store import PostgresEventStore
from eventstore.postgres.wrapping.rotation import Rotation
from eventstore.postgres.wrapping.wrapping_keys import WrappingKeys
from service.adapters.internal_http import AiohttpInternalHttp
from service.integrity.wrapping_exchange import Asking, answer_to, checked_secret, signing_key
from service.ports.shared.instances import Peer
from service.ports.shared.internal_http import InternalRequest
from service.runtime.settings.settings import VaultSection
from service.web.http.internal import InternalAccess
from service.web.http.wrapping_keys import GIVER, Giver, routes
from service.workers.key_rotation import KeyExchange, KeyRotation
from tests.eventstore.backends import addresses
from tests.eventstore.shapes import noted

SECRET = b"s" * 32
MONTH = timedelta(days=30)


class Clock:
    def __init__(self):
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self):
        return self.now


class Group:
    """Instances that know each other, of which the first one that is alive leads."""

    def __init__(self):
        self.members = {}

    def view(self, name):
        return View(self, name)


class View:
    def __init__(self, group, name):
        self._group, self.name = group, name

    def others(self):
        return [one.peer for name, one in self._group.members.items() if name != self.name]

    def leads(self):
        return next(iter(self._group.members), None) == self.name

    def is_certain(self):
        return True


class Member:
    """One instance: its folder, its server, and what looks after its keys."""

    def __init__(self, group, name, vault, folder, clock, settings):
        self.group, self.name, self.folder = group, name, folder
        self.rotation = Rotation.open(vault, WrappingKeys(folder), clock=clock)
        self.http = AiohttpInternalHttp(signing_key(SECRET))
        self.keys = KeyRotation(self.rotation, group.view(name), KeyExchange(self.http, SECRET), settings, clock=clock)
        app = Application()
        access = InternalAccess(name)
        access.key = signing_key(SECRET)
        app[GIVER] = Giver(access, self.rotation.keys, SECRET)
        app.add_routes(routes)
        self.server = TestServer(app)

    async def start(self):
        await self.server.start_server()
        self.peer = Peer(self.name, str(self.server.make_url("/")).rstrip("/"), "1", False)
        self.group.members[self.name] = self

    async def stop(self):
        self.group.members.pop(self.name, None)
        await self.server.close()
        await self.http.close()
        await asyncio.to_thread(self.rotation.close)

    def held(self):
        return set(WrappingKeys(self.folder).ids())


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
async def started(tmp_path, clock):
    """Return a function that starts an instance of the vault; the vault is wrapped by the first."""
    group, members = Group(), []
    vault = addresses(tmp_path)[1]

    async def start(name, **settings):
        member = Member(group, name, vault, tmp_path / name, clock, VaultSection(**settings))
        if not members:
            member.rotation.begin()
        members.append(member)
        await member.start()
        return member

    yield start
    for one in members:
        await one.stop()


async def written(tmp_path, folder, number):
    log, vault = addresses(tmp_path)
    async with await PostgresEventStore.open(log, vault=vault, wrapping=WrappingKeys(folder)) as store:
        for one in range(number):
            await store.append(f"note-{one}", [noted(one, "secret")], expected_version=0)


async def is_readable(tmp_path, folder):
    log, vault = addresses(tmp_path)
    async with await PostgresEventStore.open(log, vault=vault, wrapping=WrappingKeys(folder)) as store:
        return not any(event.erased for event in list(await store.read_all(limit=1_000)))


def states(member):
    return list(member.rotation.states().values())


async def looks(*members):
    for one in members:
        await one.keys.look()


async def test_new_instance_gets_the_wrapping_key_from_another(tmp_path, started):
    one = await started("one")
    await written(tmp_path, one.folder, 3)
    two = await started("two")
    assert await two.keys.obtain() == []
    assert two.held() == one.held()
    assert await is_readable(tmp_path, two.folder)


async def test_new_key_is_used_once_every_instance_has_it(tmp_path, started, clock):
    one, two, three = await started("one"), await started("two"), await started("three")
    await looks(one, two, three)
    await written(tmp_path, one.folder, 5)
    clock.now += MONTH - timedelta(seconds=1)
    await looks(one, two, three)
    assert states(one) == ["current"]
    clock.now += timedelta(seconds=1)
    await looks(one, two)
    assert states(one) == ["current", "next"]
    await looks(one)
    assert states(one) == ["current", "next"], "the third one does not have it yet"
    await looks(three, one)
    assert states(one) == ["retired", "current"]
    assert one.held() == two.held() == three.held()
    for member in (one, two, three):
        assert await is_readable(tmp_path, member.folder)


async def test_an_old_key_is_destroyed_everywhere_after_its_days(tmp_path, started, clock):
    one, two = await started("one", keep_days=10), await started("two", keep_days=10)
    await looks(one, two)
    before = one.held()
    await written(tmp_path, one.folder, 5)
    clock.now += MONTH
    await looks(one, two, one, two)
    clock.now += timedelta(days=10)
    await looks(one, two)
    assert before < one.held(), "it is kept for as long as the settings say"
    clock.now += timedelta(seconds=1)
    await looks(one, two)
    assert states(one) == ["destroyed", "current"]
    assert not before & (one.held() | two.held())
    assert await is_readable(tmp_path, two.folder)


async def test_an_instance_that_was_away_gets_what_it_lacks(tmp_path, started, clock):
    one, two = await started("one"), await started("two")
    await looks(one, two)
    away = two.group.members.pop("two")
    clock.now += MONTH
    await looks(one, one)
    await written(tmp_path, one.folder, 2)
    with pytest.raises(StoreUnavailable):
        await is_readable(tmp_path, two.folder)
    two.group.members["two"] = away
    await looks(two)
    assert await is_readable(tmp_path, two.folder)


async def test_another_leader_goes_on_with_a_change(tmp_path, started, clock):
    one, two = await started("one"), await started("two")
    await looks(one, two)
    await written(tmp_path, one.folder, 20)
    clock.now += MONTH
    await looks(one, two)
    following = next(key_id for key_id, state in one.rotation.states().items() if state == "next")
    one.rotation.switch(following)
    one.rotation.rewrap(batch=7)
    await one.stop()
    await looks(two)
    assert states(two) == ["retired", "current"]
    assert await is_readable(tmp_path, two.folder)


async def test_next_key_that_died_with_its_maker_is_made_again(tmp_path, started, clock):
    one, two = await started("one"), await started("two")
    await looks(one, two)
    lost = one.rotation.make_next()
    await one.stop()
    await looks(two, two)
    assert lost not in two.rotation.states()
    assert sorted(states(two)) == ["current", "retired"]


async def test_a_key_is_copied_before_it_is_used(tmp_path, started, clock):
    copies = tmp_path / "copies"
    one = await started("one", copies=str(copies))
    await looks(one)
    assert set(WrappingKeys(copies).ids()) == one.held()
    await written(tmp_path, one.folder, 2)
    clock.now += MONTH
    copies.rename(tmp_path / "elsewhere")
    copies.write_text("a file, where the folder was")
    with pytest.raises(OSError, match="copies"):
        await one.keys.look()
    assert "current" in states(one)
    assert len(states(one)) == 1
    copies.unlink()
    (tmp_path / "elsewhere").rename(copies)
    await looks(one, one)
    assert states(one) == ["retired", "current"]
    for file in one.folder.iterdir():
        file.unlink()
    again = await started("two", copies=str(copies))
    one.group.members.pop("one")
    assert await again.keys.obtain() == []
    assert await is_readable(tmp_path, again.folder)


async def test_a_vault_that_was_wrapped_in_part_is_finished(tmp_path, started):
    log, vault = addresses(tmp_path)
    async with await PostgresEventStore.open(log, vault=vault) as store:
        for number in range(4):
            await store.append(f"note-{number}", [noted(number, "secret")], expected_version=0)
    one = await started("one")
    assert one.rotation.rows()[0].living == 0
    assert not one.rotation.is_rewritten()
    await looks(one)
    assert one.rotation.rows()[0].living == 4
    assert one.rotation.is_rewritten(), "the table's files have no key any more that is not wrapped"


@pytest.mark.parametrize("target", ["/internal/wrapping-keys/{id}?for={public}", "/internal/wrapping-keys/{id}"])
@pytest.mark.parametrize("key", [b"another", signing_key(b"o" * 32)])
async def test_a_stranger_gets_no_wrapping_key(started, target, key):
    one = await started("one")
    (key_id,) = one.held()
    target = target.format(id=key_id, public=Asking(SECRET, key_id).public)
    http = AiohttpInternalHttp(key)
    async with http.send(one.peer, InternalRequest("GET", target)) as answer:
        assert answer.status == 404
    await http.close()


async def test_odd_requests_for_a_wrapping_key_find_nothing(started):
    one = await started("one")
    (key_id,) = one.held()
    public = Asking(SECRET, key_id).public
    for target in (
        f"/internal/wrapping-keys/{key_id}", f"/internal/wrapping-keys/{key_id}?for=00",
        f"/internal/wrapping-keys/{key_id}?for={'0' * 64}", f"/internal/wrapping-keys/{'0' * 32}?for={public}",
        f"/internal/wrapping-keys/..%2f{key_id}?for={public}",
    ):  # fmt: skip
        async with one.http.send(one.peer, InternalRequest("GET", target)) as answer:
            assert answer.status == 404, target
    target = f"/internal/wrapping-keys/{key_id}?for={public}"
    for method in ("HEAD", "POST", "PUT", "DELETE", "OPTIONS"):
        async with one.http.send(one.peer, InternalRequest(method, target)) as answer:
            assert answer.status == 404, method
    async with one.http.send(
        one.peer, InternalRequest("GET", f"/internal/wrapping-keys/{key_id}?for={public}")
    ) as answer:
        body = await answer.read(1_024)
    assert (answer.status, WrappingKeys(one.folder).find(key_id) in body) == (200, False)


def test_another_key_in_place_of_the_one_asked_for_is_refused(tmp_path):
    keys = WrappingKeys(tmp_path)
    wanted, other = keys.make(), keys.make()
    asking = Asking(SECRET, wanted)
    assert asking.opened(answer_to(asking.public, SECRET, wanted, keys.find(wanted))) == keys.find(wanted)
    assert asking.opened(answer_to(asking.public, SECRET, wanted, keys.find(other))) is None
    assert asking.opened(answer_to(asking.public, b"o" * 32, wanted, keys.find(wanted))) is None
    assert Asking(SECRET, wanted).opened(answer_to(asking.public, SECRET, wanted, keys.find(wanted))) is None
    assert asking.opened(b"") is None


def test_a_short_secret_is_refused():
    assert checked_secret("") is None
    assert checked_secret("x" * 32) == b"x" * 32
    with pytest.raises(Exception, match="at least 32"):
        checked_secret("x" * 31)


async def test_several_changes_at_once_end_with_one_key(tmp_path, started, clock):
    one, two, three = await started("one"), await started("two"), await started("three")
    await looks(one, two, three)
    await written(tmp_path, one.folder, 30)
    for _ in range(3):
        clock.now += MONTH
        for _ in range(3):
            await asyncio.gather(*(one_of.keys.look() for one_of in (one, two, three)))
    assert states(one)[-1] == "current"
    assert await is_readable(tmp_path, three.folder)
    with closing(Rotation.open(addresses(tmp_path)[1], WrappingKeys(one.folder))) as rotation:
        assert [row.living for row in rotation.rows() if row.state == "current"] == [30]
