"""Entries of people. A person is known by their email, as ``docsmith person add`` knows them."""

from msgspec.structs import replace

from service.commands.access.people import (
    NewPerson,
    add_person,
    person_meant,
    remove_member,
    rename_person,
    set_operator,
)
from service.commands.apply.entries import PersonEntry
from service.commands.apply.installation import Done, Installation, Owner, Step, differences
from service.domain.access.people import checked_email
from service.domain.errors import Invalid
from service.domain.organizations import checked_name
from service.views.access.people import PersonView
from service.views.apply import ChangeView

NOWHERE = Owner("", "")


async def plan_person(installation: Installation, entry: PersonEntry) -> Step:
    email = checked_email(entry.email)
    if entry.role is None and entry.operator is None and not entry.remove:
        raise Invalid("A person needs a role, or operator = true. Give one of the two.")
    needs_owner = entry.role is not None or entry.remove or entry.organization is not None
    owner = await installation.owner(entry.organization) if needs_owner else NOWHERE
    installation.once("person", email, owner.name)
    new = NewPerson(
        email=email,
        name=checked_name(entry.name) if entry.name is not None else "",
        organization_id=owner.id,
        role=None if entry.remove else entry.role,
        is_operator=bool(entry.operator),
        person_id=entry.id,
    )
    known = await person_meant(installation.views, new, email)
    if entry.remove:
        return _removal(installation, entry, email, owner, known)
    return _change(installation, entry, new, known)


def _removal(
    installation: Installation, entry: PersonEntry, email: str, owner: Owner, known: PersonView | None
) -> Step:
    if entry.role is not None or entry.operator is not None:
        raise Invalid("An entry with remove = true takes the role. Leave role and operator out.")
    view = ChangeView(kind="person", name=email, action="none", id=known.id if known else None)
    if known is None or _role_in(known, owner) is None:
        return Step(view)

    async def act() -> Done:
        await remove_member(installation.store, owner.id, known.id, installation.metadata)
        return Done(known.id)

    return Step(ChangeView(kind="person", name=email, action="remove", id=known.id), act)


def _change(installation: Installation, entry: PersonEntry, new: NewPerson, known: PersonView | None) -> Step:
    before = {"role": _role_in(known, Owner("", new.organization_id)), "operator": False, "name": None}
    if known is not None:
        before |= {"operator": known.is_operator, "name": known.name}
    given = {"role": entry.role, "operator": entry.operator, "name": new.name or None}
    fields = differences(before, {name: value for name, value in given.items() if value is not None})
    view = ChangeView(kind="person", name=new.email, action="none", id=known.id if known else None)
    is_added = new.role is not None or new.is_operator
    if not (fields if known is not None else is_added):
        return Step(view)
    changed = {one.name for one in fields}

    async def act() -> Done:
        person_id = known.id if known else ""
        notes: tuple[str, ...] = ()
        if known is None or "role" in changed or ("operator" in changed and entry.operator):
            added = await add_person(installation.store, installation.views, new, installation.metadata)
            person_id = added.id
            if added.is_new or added.signs_in_again:
                notes = (f"For a sign-in link of {new.email}: docsmith login --person {person_id}",)
        if known is not None and "operator" in changed and not entry.operator:
            await set_operator(installation.store, person_id, installation.metadata, is_operator=False)
        if known is not None and "name" in changed:
            await rename_person(installation.store, person_id, new.name, installation.metadata)
        return Done(person_id, notes)

    if known is None:
        return Step(replace(view, action="create"), act)
    return Step(replace(view, action="change", fields=fields), act)


def _role_in(known: PersonView | None, owner: Owner) -> str | None:
    roles = known.roles if known is not None and owner.id else ()
    return next((one.role for one in roles if one.organization_id == owner.id), None)
