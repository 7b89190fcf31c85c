"""People: add one, give and remove roles, make a sign-in link, sign in and out."""

import hashlib
import secrets
from collections.abc import Awaitable, Callable
from datetime import timedelta

from msgspec import Struct
from msgspec.structs import replace

from eventstore import Append, EventStore, Metadata, Views, WrongExpectedVersion, execute, load, plan
from service.domain.access.credentials import ForgetCredentials
from service.domain.access.members import NOT_A_MEMBER, PERSON_NOT_FOUND, GiveRole, RemoveRole, Role
from service.domain.access.people import (
    INVITATION_LIFETIME,
    LINK_LIFETIME,
    AddPerson,
    EndSignInLink,
    MakeSignInLink,
    RenamePerson,
    SetOperator,
    SignIn,
    SignInMethod,
    SignOut,
    checked_email,
)
from service.domain.errors import Conflict, Forbidden, NotFound, Unauthorized
from service.domain.events import ERASED
from service.queries.access.people import get_person, list_members, people_by_email
from service.queries.organizations import get_organization, list_organizations
from service.runtime.system import new_id, now
from service.streams import CREDENTIALS, MEMBERS, PEOPLE
from service.views.access.people import PersonView

MAX_TRIES = 100
"""For a change of several streams that others change meanwhile."""
SECRET_BYTES = 32


class NewPerson(Struct, frozen=True):
    """Someone who is to have a role, or the operator's flag; they may be here already."""

    email: str
    name: str = ""
    """Empty: the part of the email before the ``@``."""
    organization_id: str = ""
    role: Role | None = None
    is_operator: bool = False
    by_owner: bool = False
    """An organization's owner adds them, in a browser or by the API; else the terminal does."""
    person_id: str = ""
    """The account that is meant, where the email alone does not tell; only from the terminal."""


class AddedPerson(Struct, frozen=True):
    id: str
    is_new: bool
    """They were not here before."""
    position: int
    """The position of the last event in the log; 0 when nothing had to be recorded."""
    signs_in_again: bool = False
    """Whether they need a new link: their sessions, passkeys and linked accounts have ended."""


async def add_person(store: EventStore, views: Views, new: NewPerson, metadata: Metadata) -> AddedPerson:
    """Give a role in an organization, or the operator's flag, and add the person where they are not here yet.

    An email proves nothing, so an account is opened to a further organization only from the terminal: by its email if
    the terminal added it, else by its id. An organization's owner learns nothing of other organizations' people: who is
    new there gets an account of their own. An account that is opened further, or again, begins without its earlier
    sessions, passkeys and linked accounts: the owners of its organization could have signed in to it.

    Raises Invalid, NotFound, and Conflict: ``member_exists`` (by an owner), ``email_of_others``, ``last_owner``.
    """
    email = checked_email(new.email) if new.email or not new.person_id else ""
    added = AddedPerson("", is_new=False, position=0)

    async def planned() -> list[Append]:
        nonlocal added
        members = await load(
            store, MEMBERS, new.organization_id
        )  # first: the emails are those of this version, or newer
        await views.catch_up()
        if new.role is not None and await get_organization(views, new.organization_id) is None:
            raise NotFound(f"Organization not found: {new.organization_id}. List them: docsmith organization list")
        known = await person_meant(views, new, email)
        is_opened = known is not None and _is_opened_further(known, new)
        added = AddedPerson(known.id if known else new_id(), known is None, 0, signs_in_again=is_opened)
        writes = []
        if known is None:
            home = new.organization_id if new.by_owner else ""
            person = AddPerson(email, new.name or email.partition("@")[0], now(), home, new.is_operator)
            writes.append(await plan(store, PEOPLE, added.id, person, metadata=metadata))
        else:
            change = SetOperator(known.is_operator or new.is_operator, now(), ends_sessions=is_opened)
            writes.append(await plan(store, PEOPLE, known.id, change, metadata=metadata))
            if is_opened:
                writes.append(await plan(store, CREDENTIALS, known.id, ForgetCredentials(now()), metadata=metadata))
        if new.role is not None:
            events = MEMBERS.decide(GiveRole(added.id, new.role, now()), members.state)
            encoded = tuple(MEMBERS.codec.encode(event, metadata) for event in events)
            writes.append(Append(MEMBERS.stream(new.organization_id), encoded, members.version) if encoded else None)
        return [write for write in writes if write is not None]

    position = await _append(store, planned)
    return replace(added, position=position)


async def add_first_operator(store: EventStore, views: Views, email: str, metadata: Metadata) -> AddedPerson:
    """Add the operator of an installation without people, as owner of each organization. Raises Invalid."""
    added = await add_person(store, views, NewPerson(email, is_operator=True), metadata)
    for organization in await list_organizations(views):
        owner = NewPerson(email, "", organization.id, "owner", person_id=added.id)
        await add_person(store, views, owner, metadata)
    return added


def _is_opened_further(person: PersonView, new: NewPerson) -> bool:
    """Return whether someone gets their only rights, or rights beyond the one organization that they are in."""
    is_elsewhere = new.role is not None and all(one.organization_id != new.organization_id for one in person.roles)
    if is_of_one(person):
        return new.is_operator or is_elsewhere
    return not person.roles and not person.is_operator


async def person_meant(views: Views, new: NewPerson, email: str) -> PersonView | None:
    """Return the person who is meant; None for someone new. Raises Conflict, NotFound."""
    if new.person_id:
        if (named := await get_person(views, new.person_id)) is None or named.email == ERASED:
            raise _not_found(new.person_id)
        return named
    here = [one.id for one in await list_members(views, new.organization_id) if one.email == email]
    if here and new.by_owner:
        raise Conflict(f"{email} has a role in this organization already. Change it there.", code="member_exists")
    if here and not new.is_operator:
        return await get_person(views, here[0])
    found = [] if new.by_owner else await people_by_email(views, email)
    if found and found[0].added_by is not None:
        raise Conflict(
            f"{email} was added by the owner of an organization, who may have a sign-in link to that account. If "
            f"this account is meant, name it: --id {found[0].id}",
            code="email_of_others",
        )
    return found[0] if found else None


async def change_role(store: EventStore, organization_id: str, person_id: str, role: Role, metadata: Metadata) -> int:
    """Give someone of an organization another role. Raises NotFound, and Conflict ``last_owner``."""
    change = GiveRole(person_id, role, now(), is_member=True)
    return (await execute(store, MEMBERS, organization_id, change, metadata=metadata)).position


async def remove_member(store: EventStore, organization_id: str, person_id: str, metadata: Metadata) -> int:
    """Take a person's role in an organization. Raises NotFound, and Conflict ``last_owner``."""
    return (await execute(store, MEMBERS, organization_id, RemoveRole(person_id, now()), metadata=metadata)).position


async def remove_person(store: EventStore, views: Views, person_id: str, metadata: Metadata) -> int:
    """Take all of a person's roles, and the operator's flag. Raises NotFound, and Conflict ``last_owner``."""

    async def planned() -> list[Append]:
        await views.catch_up()
        person = await get_person(views, person_id)
        if person is None:
            raise _not_found(person_id)
        writes = [await plan(store, PEOPLE, person_id, SetOperator(False, now()), metadata=metadata)]
        for one in person.roles:
            removal = RemoveRole(person_id, now())
            writes.append(await plan(store, MEMBERS, one.organization_id, removal, metadata=metadata))
        return [write for write in writes if write is not None]

    return await _append(store, planned)


async def set_operator(store: EventStore, person_id: str, metadata: Metadata, *, is_operator: bool) -> int:
    """Give or take the operator's flag; only the terminal does. Raises NotFound."""
    return (await execute(store, PEOPLE, person_id, SetOperator(is_operator, now()), metadata=metadata)).position


async def rename_person(store: EventStore, person_id: str, name: str, metadata: Metadata) -> int:
    """Change a person's name. Raises Invalid, NotFound."""
    return (await execute(store, PEOPLE, person_id, RenamePerson(name, now()), metadata=metadata)).position


async def make_link(
    store: EventStore, person_id: str, metadata: Metadata, *, lifetime: timedelta = LINK_LIFETIME
) -> str:
    """Return the secret of a sign-in link, shown this once; earlier links of the person end. Raises NotFound."""
    secret = secrets.token_urlsafe(SECRET_BYTES)
    await execute(store, PEOPLE, person_id, MakeSignInLink(_digest(secret), now(), lifetime), metadata=metadata)
    return f"{person_id}.{secret}"


async def make_members_link(
    store: EventStore, views: Views, organization_id: str, person_id: str, metadata: Metadata
) -> str:
    """Return the secret of a sign-in link that an organization's owner hands on.

    It opens everything that the person may do. So an owner gets none for someone who has rights elsewhere, also where
    they were given while the link was made.

    Raises NotFound, and Forbidden ``person_of_others``.
    """
    await _require_of_one(views, organization_id, person_id)
    link = await make_link(store, person_id, metadata, lifetime=INVITATION_LIFETIME)
    try:
        await _require_of_one(views, organization_id, person_id)
    except (NotFound, Forbidden):
        await execute(store, PEOPLE, person_id, EndSignInLink(now()), metadata=metadata)
        raise
    return link


async def _require_of_one(views: Views, organization_id: str, person_id: str) -> None:
    """Raise NotFound, or Forbidden ``person_of_others``."""
    await views.catch_up()
    person = await get_person(views, person_id)
    if person is None or all(one.organization_id != organization_id for one in person.roles):
        raise NotFound(NOT_A_MEMBER, code=PERSON_NOT_FOUND)
    if not is_of_one(person):
        raise Forbidden(
            "This person also has rights outside of this organization, so only the operator can make a sign-in link: "
            f"docsmith login --person {person.email}",
            code="person_of_others",
        )


def is_of_one(person: PersonView) -> bool:
    """Return whether one organization is all that a person has rights in."""
    return len(person.roles) == 1 and not person.is_operator


def person_of_link(link: str) -> str:
    """Return the id of the person whom a link's secret is for. Raises Unauthorized: it has not the form of one."""
    person_id, dot, secret = link.partition(".")
    if not dot or not person_id.isalnum() or not person_id.isascii() or len(secret) > 4 * SECRET_BYTES:
        raise Unauthorized("This is not a sign-in link. Copy the whole link, or ask for a new one.", code="not_a_link")
    return person_id


async def require_link(store: EventStore, person_id: str, link: str) -> None:
    """Raise Unauthorized unless a link can be used now; nothing is recorded."""
    wanted = SignIn("", "link", now(), _digest(link.partition(".")[2]))
    PEOPLE.decide(wanted, (await load(store, PEOPLE, person_id)).state)


async def sign_in(
    store: EventStore, person_id: str, session_id: str, method: SignInMethod, metadata: Metadata, *, link: str = ""
) -> int:
    """Open a session of a person; a link is used up by it. Raises NotFound, and Unauthorized for a link."""
    digest = _digest(link.partition(".")[2]) if link else ""
    wanted = SignIn(session_id, method, now(), digest)
    return (await execute(store, PEOPLE, person_id, wanted, metadata=metadata)).position


async def sign_out(store: EventStore, person_id: str, session_id: str, metadata: Metadata) -> int:
    """End a session; again does nothing. Raises NotFound."""
    return (await execute(store, PEOPLE, person_id, SignOut(session_id, now()), metadata=metadata)).position


async def _append(store: EventStore, planned: Callable[[], Awaitable[list[Append]]]) -> int:
    """Record what is planned, planned again where another was faster; return the last position, 0 for nothing."""
    for _ in range(MAX_TRIES):
        writes = await planned()
        if not writes:
            return 0
        try:
            return (await store.append_all(writes)).position
        except WrongExpectedVersion as error:
            faster = error
    raise faster


def _not_found(person_id: str) -> NotFound:
    return NotFound(f"Person not found: {person_id}. List them: docsmith person list", code=PERSON_NOT_FOUND)


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()
