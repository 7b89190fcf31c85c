"""Whom an account at an identity provider signs in, when anyone's address can be added by any organization's owner."""

import pytest

from eventstore import Metadata
from service.commands.access.credentials import Admits, person_of_account
from service.commands.access.people import NewPerson, add_person, make_link, sign_in
from service.commands.organizations import create_organization
from service.domain.errors import Forbidden
from service.ports.sign_in import Account
from service.queries.access.people import PeopleDirectory, get_person

METADATA = Metadata(actor="cli:test")
ADA = Account("https://login.example", "1", "Ada@Corp.example", "Ada")


@pytest.fixture
async def organizations(store, views):
    made = [(await create_organization(store, name, METADATA)).id for name in ("Corp", "Others")]
    await views.catch_up()
    return made


async def added_by_owner(store, views, organization, role="viewer"):
    new = NewPerson("ada@corp.example", organization_id=organization, role=role, by_owner=True)
    return (await add_person(store, views, new, METADATA)).id


async def signed_in(store, views, account=ADA, admits=None, present=""):
    people = PeopleDirectory(store)
    person_id = await person_of_account(store, views, people, account, admits or Admits(), METADATA, present=present)
    await views.catch_up()
    return person_id


async def test_owner_who_adds_an_address_first_does_not_decide_where_it_belongs(store, views, organizations):
    person = await added_by_owner(store, views, organizations[1], "owner")
    with pytest.raises(Forbidden, match="invitation") as error:
        await signed_in(store, views)
    assert error.value.code == "no_account"
    link = await make_link(store, person, METADATA)
    await sign_in(store, person, "session", "link", METADATA, link=link)  # the owner, who made it
    with pytest.raises(Forbidden, match="invitation"):
        await signed_in(store, views)
    assert await signed_in(store, views, present=person) == person  # who has opened the link in this browser
    assert await signed_in(store, views) == person


async def test_domain_of_an_organization_admits_to_it_whoever_else_has_added_the_address(store, views, organizations):
    corp, others = organizations
    stranger = await added_by_owner(store, views, others)
    admits = Admits(frozenset(["corp.example"]), corp)
    person = await signed_in(store, views, admits=admits)
    assert person != stranger
    assert [(one.organization_id, one.role) for one in (await get_person(views, person)).roles] == [(corp, "viewer")]
    assert await signed_in(store, views, admits=admits) == person


async def test_address_that_was_added_by_the_owner_of_its_domain_needs_no_link(store, views, organizations):
    person = await added_by_owner(store, views, organizations[0], "editor")
    assert await signed_in(store, views, admits=Admits(frozenset(["corp.example"]), organizations[0])) == person


async def test_address_that_only_looks_like_another_is_refused(store, views, organizations):
    new = NewPerson("k@corp.example", organization_id=organizations[0], role="owner")
    person = (await add_person(store, views, new, METADATA)).id
    with pytest.raises(Forbidden, match="characters"):
        await signed_in(store, views, Account(ADA.issuer, "evil", "\u212a@corp.example", "K"))
    assert await signed_in(store, views, Account(ADA.issuer, "good", "K@corp.example", "K")) == person
