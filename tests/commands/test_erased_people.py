"""The erasure of a person: their name, address and names of passkeys are gone, and so is every way in."""

import pytest

from eventstore import Metadata, Views
from service.commands.access.credentials import add_passkey
from service.commands.access.people import NewPerson, add_person, rename_person
from service.commands.erasures import erase_subject
from service.commands.organizations import create_organization
from service.domain.errors import Conflict, NotFound
from service.ports.sign_in import NewPasskey
from service.projections import all_projections
from service.queries.access.credentials import known_credentials
from service.queries.access.people import PeopleDirectory, get_person, list_members

METADATA = Metadata(actor="test")


async def test_erased_person_leaves_no_name_and_no_way_in(store, views, tmp_path):
    organization = await create_organization(store, "Acme", METADATA)
    await views.catch_up()
    people = {}
    for name in ("ada", "bob"):
        new = NewPerson(f"{name}@secret.example", "", organization.id, "owner", is_operator=name == "ada")
        people[name] = (await add_person(store, views, new, METADATA)).id
    await rename_person(store, people["ada"], "Ada Lovelace", METADATA)
    await add_passkey(store, people["ada"], NewPasskey("k", "p", 0), "Ada's telephone", METADATA)
    directory = PeopleDirectory(store)
    await directory.catch_up()
    assert directory.accounts_of("ada@secret.example") == [people["ada"]]

    erased = [await erase_subject(store, views, f"person-{people['ada']}", METADATA) for _ in range(2)]
    assert [one.again for one in erased] == [False, True]
    row = await get_person(views, people["ada"])
    assert (row.email, row.name, row.roles, row.is_operator) == ("[erased]", "[erased]", (), False)
    assert [one.email for one in await list_members(views, organization.id)] == ["bob@secret.example"]
    assert (await known_credentials(store, people["ada"])).passkeys == ()
    for known in (directory, PeopleDirectory(store)):
        await known.catch_up()
        assert known.accounts_of("ada@secret.example") == []
        assert known.find(people["ada"]).name == "[erased]"
    async with await Views.open(tmp_path / "rebuilt.db", store, all_projections()) as rebuilt:
        await rebuilt.catch_up()
        assert await get_person(rebuilt, people["ada"]) == row
    for file in ("events.db", "views.db", "rebuilt.db"):
        content = b"".join(path.read_bytes() for path in tmp_path.glob(f"{file}*"))
        assert b"Lovelace" not in content
        assert b"telephone" not in content

    with pytest.raises(Conflict, match="last owner"):
        await erase_subject(store, views, f"person-{people['bob']}", METADATA)
    assert (await get_person(views, people["bob"])).name == "bob"
    new = NewPerson("", "", organization.id, "viewer", person_id=people["ada"])
    with pytest.raises(NotFound):
        await add_person(store, views, new, METADATA)
    with pytest.raises(NotFound):
        await erase_subject(store, views, "person-unknown", METADATA)
