"""Sessions: when they end, and what a crash between their steps leaves."""

import asyncio
from datetime import timedelta

import pytest

from eventstore import Metadata, SQLiteEventStore, Views
from service.adapters.sessions import SqliteSessions
from service.commands.access.credentials import Admits, add_passkey, person_of_account
from service.commands.access.people import (
    NewPerson,
    add_first_operator,
    add_person,
    change_role,
    make_link,
    make_members_link,
    person_of_link,
    remove_member,
    remove_person,
    set_operator,
)
from service.commands.organizations import create_organization
from service.domain.access.credentials import Credentials
from service.domain.errors import Conflict, Forbidden, Unauthorized, Unavailable
from service.domain.events import ERASED
from service.ports.sign_in import Account, NewPasskey
from service.projections import all_projections
from service.queries.access.credentials import known_credentials
from service.queries.access.people import PeopleDirectory, get_person, list_members, list_people
from service.runtime.system import now
from service.workers.admission.sessions import MAX_SESSIONS, Device, Sessions

ACTOR = Metadata("cli:tests")
DEVICE = Device("Firefox on Linux", "192.0.2.1")


class Clock:
    def __init__(self):
        self.now = now()

    def __call__(self):
        return self.now


class Installation:
    """A store with people, and sessions over it."""

    def __init__(self, store, views, table, organization_id, clock=None):
        self.store, self.views, self.table, self.organization_id = store, views, table, organization_id
        self.clock, self.people = clock or Clock(), PeopleDirectory(store)
        self.sessions = Sessions(store, self.people, table, clock=self.clock)

    async def person(self, role="editor", email="ada@example.com", **more):
        new = NewPerson(email, "Ada", self.organization_id, role, **more)
        return (await add_person(self.store, self.views, new, ACTOR)).id

    async def link(self, person_id):
        return await make_link(self.store, person_id, ACTOR)

    async def signed_in(self, person_id):
        return await self.exchange(await self.link(person_id))

    async def exchange(self, link):
        return await self.sessions.begin(person_of_link(link), "link", DEVICE, ACTOR, link=link)

    async def restarted(self):
        """What another process finds after this one was killed."""
        other = Installation(self.store, self.views, self.table, self.organization_id)
        await other.people.catch_up()
        await other.sessions.load()
        return other


@pytest.fixture
async def store(tmp_path):
    async with await SQLiteEventStore.open(tmp_path / "events.db", vault_path=tmp_path / "keys.db") as store:
        yield store


@pytest.fixture
async def here(store, tmp_path):
    async with await Views.open(tmp_path / "views.db", store, all_projections()) as views:
        made = await create_organization(store, "Acme", ACTOR)
        here = Installation(store, views, SqliteSessions(tmp_path / "sessions.db"), made.id)
        await here.person("owner", "owner@example.com")
        yield here
        await here.table.close()


async def test_session_survives_a_restart(here):
    begun = await here.signed_in(await here.person())
    assert here.sessions.find(begun.token) is not None
    other = await here.restarted()
    assert other.sessions.find(begun.token).browser == DEVICE.browser
    assert other.sessions.find(begun.token + "x") is None


async def test_only_a_digest_of_the_session_is_kept(here, tmp_path):
    begun = await here.signed_in(await here.person())
    assert all(begun.token.encode() not in file.read_bytes() for file in tmp_path.iterdir())


async def test_one_of_many_exchanges_signs_in(here):
    link = await here.link(await here.person())
    tries = await asyncio.gather(*(here.exchange(link) for _ in range(20)), return_exceptions=True)
    assert sum(not isinstance(one, Exception) for one in tries) == 1
    assert {one.code for one in tries if isinstance(one, Exception)} == {"link_not_valid"}


async def test_session_ends_when_it_is_idle(here):
    begun = await here.signed_in(await here.person())
    for _ in range(3):
        here.clock.now += timedelta(hours=11, minutes=59)
        assert here.sessions.find(begun.token) is not None
    await here.sessions.write()  # its last use is kept
    other = await here.restarted()
    other.clock.now = here.clock.now + timedelta(hours=12)
    assert other.sessions.find(begun.token) is None


async def test_session_ends_after_thirty_days(here):
    begun = await here.signed_in(await here.person())
    for _ in range(60):
        here.clock.now += timedelta(hours=11, minutes=50)
        if here.sessions.find(begun.token) is None:
            break
    assert timedelta(days=29) < here.clock.now - now() <= timedelta(days=30, hours=1)


async def lowered(here, person_id):
    await change_role(here.store, here.organization_id, person_id, "viewer", ACTOR)


async def removed(here, person_id):
    await remove_member(here.store, here.organization_id, person_id, ACTOR)


async def removed_everywhere(here, person_id):
    await remove_person(here.store, here.views, person_id, ACTOR)


@pytest.mark.parametrize("less", [lowered, removed, removed_everywhere])
async def test_session_ends_with_a_right_that_is_taken(here, less):
    person_id = await here.person()
    begun = await here.signed_in(person_id)
    revocation = here.sessions.revocation(here.sessions.find(begun.token))
    following = [asyncio.create_task(one.run()) for one in (here.people, here.sessions)]
    ended = asyncio.Event()
    revocation.watch(ended.set)
    await less(here, person_id)  # as another process would: nothing tells this one but the log
    async with asyncio.timeout(60):
        await ended.wait()
    assert here.sessions.find(begun.token) is None
    assert (await here.restarted()).sessions.find(begun.token) is None
    for task in following:
        task.cancel()
    await asyncio.gather(*following, return_exceptions=True)


async def test_session_stays_with_a_higher_role(here):
    person_id = await here.person()
    begun = await here.signed_in(person_id)
    await change_role(here.store, here.organization_id, person_id, "owner", ACTOR)
    await here.sessions.settle()
    assert here.sessions.find(begun.token) is not None


async def test_operator_without_the_flag_is_signed_out(here):
    person_id = (await add_person(here.store, here.views, NewPerson("op@example.com", is_operator=True), ACTOR)).id
    begun = await here.signed_in(person_id)
    await set_operator(here.store, person_id, ACTOR, is_operator=False)
    await here.sessions.settle()
    assert here.sessions.find(begun.token) is None


async def test_removed_person_cannot_sign_in(here):
    person_id = await here.person()
    link = await here.link(person_id)
    await removed(here, person_id)
    with pytest.raises(Forbidden) as refused:
        await here.exchange(link)
    assert refused.value.code == "no_role"
    with pytest.raises(Forbidden):
        await here.sessions.begin(person_id, "passkey", DEVICE, ACTOR)


async def test_link_is_good_after_a_crash_before_its_event(here):
    class Killed(BaseException):
        pass

    class StoreOfAKilled:
        """The process dies where it would record the sign-in."""

        def __getattr__(self, name):
            return getattr(here.store, name)

        async def append(self, *_, **__):
            raise Killed

    link = await here.link(await here.person())
    here.sessions = Sessions(StoreOfAKilled(), here.people, here.table, clock=here.clock)
    with pytest.raises(Killed):
        await here.exchange(link)
    other = await here.restarted()
    assert [row.person_id for row in await here.table.load()] == [person_of_link(link)]  # it opens nothing
    assert await other.sessions.list(person_of_link(link), "") == []
    await other.exchange(link)
    await other.sessions.write()
    assert len(await here.table.load()) == 1


async def test_guessed_link_writes_nothing(here):
    person_id = await here.person()
    before = await here.store.head()
    for link in (f"{person_id}.guess", "0123456789abcdef0123456789abcdef.guess"):
        with pytest.raises(Unauthorized):
            await here.exchange(link)
    assert await here.table.load() == []
    assert await here.store.head() == before


async def test_full_disk_leaves_the_link(here):
    class FullTable:
        is_shared = False

        async def load(self):
            return []

        async def add(self, _):
            raise Unavailable("full")

    link = await here.link(await here.person())
    here.sessions = Sessions(here.store, here.people, FullTable(), clock=here.clock)
    with pytest.raises(Unavailable):
        await here.exchange(link)
    assert (await (await here.restarted()).exchange(link)).token


async def test_damaged_table_signs_people_out(here, tmp_path):
    begun = await here.signed_in(await here.person())
    await here.table.close()
    (tmp_path / "sessions.db").write_bytes(b"no database" * 500)
    for left in tmp_path.glob("sessions.db-*"):
        left.unlink()
    other = await here.restarted()
    assert other.sessions.find(begun.token) is None
    assert (await other.signed_in(person_of_link(await here.link(await here.person())))).token


async def test_oldest_session_ends_past_the_limit(here):
    person_id = await here.person()
    first = await here.signed_in(person_id)
    for _ in range(MAX_SESSIONS):
        here.clock.now += timedelta(seconds=1)
        last = await here.sessions.begin(person_id, "passkey", DEVICE, ACTOR)
    assert here.sessions.find(first.token) is None
    assert here.sessions.find(last.token) is not None
    assert len(await here.sessions.list(person_id, last.session_id)) == MAX_SESSIONS


async def test_owners_link_opens_no_other_organization(here):
    """Who adds an email first must not have an account to which another organization gives a role."""
    beta = await create_organization(here.store, "Beta", ACTOR)
    mallory = await here.person(by_owner=True)  # an owner of Acme, who has a link to the account
    theirs = NewPerson("ada@example.com", "Ada", beta.id, "owner", by_owner=True)
    ada = await add_person(here.store, here.views, theirs, ACTOR)
    assert ada.is_new
    assert ada.id != mallory
    with pytest.raises(Conflict) as refused:
        await add_person(here.store, here.views, NewPerson("ada@example.com", is_operator=True), ACTOR)
    assert refused.value.code == "email_of_others"


async def test_owners_account_becomes_no_operator_by_its_email(here):
    await here.person(by_owner=True)  # an owner of Acme may be signed in to it
    with pytest.raises(Conflict) as refused:
        await here.person(is_operator=True)
    assert refused.value.code == "email_of_others"


@pytest.mark.parametrize("gains", ["operator", "organization", "again"])
async def test_account_that_is_opened_further_signs_in_again(here, gains):
    """An owner of the organization could have made a link to it, and added a passkey."""
    person_id = await here.person()
    begun = await here.signed_in(person_id)
    owners_link = await make_members_link(here.store, here.views, here.organization_id, person_id, ACTOR)
    passkey = NewPasskey("one", "key", 0)
    await add_passkey(here.store, person_id, passkey, "Key", ACTOR)
    beta = await create_organization(here.store, "Beta", ACTOR)
    promoted = NewPerson("ada@example.com", "", here.organization_id, "owner")
    assert not (await add_person(here.store, here.views, promoted, ACTOR)).signs_in_again
    new = NewPerson("ada@example.com", is_operator=True)
    if gains == "organization":
        new = NewPerson("ada@example.com", "", beta.id, "viewer")
    elif gains == "again":
        await remove_member(here.store, here.organization_id, person_id, ACTOR)
    added = await add_person(here.store, here.views, new, ACTOR)
    assert (added.id, added.signs_in_again) == (person_id, True)
    await here.sessions.settle()
    assert here.sessions.find(begun.token) is None
    assert await known_credentials(here.store, person_id) == Credentials()
    with pytest.raises(Unauthorized) as refused:
        await here.exchange(owners_link)
    assert refused.value.code == "link_not_valid"
    more = NewPerson("ada@example.com", "", here.organization_id, "editor", is_operator=True)
    await add_passkey(here.store, person_id, passkey, "Key", ACTOR)
    assert not (await add_person(here.store, here.views, more, ACTOR)).signs_in_again


async def test_linked_account_stays_when_others_add_its_email(here):
    account = Account("https://a.example", "1", "ada@example.com", "Ada")

    async def found(present=""):
        return await person_of_account(here.store, here.views, here.people, account, Admits(), ACTOR, present=present)

    ada = await here.person(by_owner=True)
    assert await found(present=ada) == ada  # who has opened the link of the invitation in the same browser
    beta = await create_organization(here.store, "Beta", ACTOR)
    theirs = NewPerson("ada@example.com", "Ada", beta.id, "viewer", by_owner=True)
    assert (await add_person(here.store, here.views, theirs, ACTOR)).is_new
    assert await found() == ada


async def test_owner_gets_no_link_of_whom_has_more_rights(here):
    person_id = await here.person()
    await add_person(here.store, here.views, NewPerson("ada@example.com", is_operator=True), ACTOR)
    with pytest.raises(Forbidden) as refused:
        await make_members_link(here.store, here.views, here.organization_id, person_id, ACTOR)
    assert refused.value.code == "person_of_others"


class OpenedMeanwhile:
    """A store in which the terminal gives a person more rights just before their next link is recorded."""

    def __init__(self, here, person_id):
        self._here, self._person_id = here, person_id

    def __getattr__(self, name):
        return getattr(self._here.store, name)

    async def append(self, stream, events, *, expected_version):
        if self._person_id and events[0].type == "sign-in-link-made":
            self._person_id = ""
            await add_person(self._here.store, self._here.views, NewPerson("ada@example.com", is_operator=True), ACTOR)
        return await self._here.store.append(stream, events, expected_version=expected_version)


async def test_owner_gets_no_link_of_whom_gains_rights_meanwhile(here):
    person_id = await here.person()
    store = OpenedMeanwhile(here, person_id)
    with pytest.raises(Forbidden) as refused:
        await make_members_link(store, here.views, here.organization_id, person_id, ACTOR)
    assert refused.value.code == "person_of_others"
    made = [event.type for event in await here.store.read_stream(f"person-{person_id}")]
    assert made.count("sign-in-link-made") == 2  # the second one ends the first


async def test_email_is_added_once_to_an_organization(here):
    tries = [here.person(email="eve@example.com", by_owner=True) for _ in range(8)]
    done = await asyncio.gather(*tries, return_exceptions=True)
    assert sum(isinstance(one, str) for one in done) == 1
    assert {one.code for one in done if isinstance(one, Conflict)} == {"member_exists"}
    await here.views.catch_up()
    assert [one.email for one in await list_members(here.views, here.organization_id)].count("eve@example.com") == 1


async def test_one_owner_is_left_of_two_who_remove_each_other(here):
    other = await here.person("owner", "second@example.com")
    await here.views.catch_up()
    owners = [one.id for one in await list_members(here.views, here.organization_id)]
    done = await asyncio.gather(*(removed(here, one) for one in owners), return_exceptions=True)
    assert other in owners
    assert [type(one) for one in done if one is not None] == [Conflict]


async def test_first_operator_owns_what_no_one_does(store, tmp_path):
    async with await Views.open(tmp_path / "views.db", store, all_projections()) as views:
        made = await create_organization(store, "Acme", ACTOR)
        added = await add_first_operator(store, views, "root@localhost", ACTOR)
        await views.catch_up()
        (row,) = await list_people(views)
        assert row == await get_person(views, added.id)
        assert row.is_operator
        assert [(one.organization_id, one.role) for one in row.roles] == [(made.id, "owner")]
        assert row.email != ERASED


async def test_link_without_a_form_of_one_is_refused():
    for text in ("", "abc", "é.x", "../x.y", "a" * 40 + "." + "b" * 4000):
        with pytest.raises(Unauthorized):
            person_of_link(text)
