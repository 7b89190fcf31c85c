"""Passkeys and accounts at an identity provider: add, use and remove one, and find whom an account signs in."""

from collections.abc import Collection

from msgspec import Struct

from eventstore import EventStore, Metadata, Views, execute
from service.commands.access.people import NewPerson, add_person
from service.domain.access.credentials import AddPasskey, LinkAccount, RemovePasskey, UnlinkAccount, UsePasskey
from service.domain.access.people import checked_email
from service.domain.errors import Forbidden, Invalid, NotFound
from service.domain.organizations import checked_name
from service.ports.sign_in import Account, NewPasskey
from service.queries.access.credentials import known_credentials
from service.queries.access.people import PeopleDirectory, people_by_email
from service.queries.organizations import get_organization
from service.runtime.system import now
from service.streams import CREDENTIALS


class Admits(Struct, frozen=True):
    """The people whom an identity provider's word alone makes viewers of an organization."""

    domains: Collection[str] = ()
    """Domains of email addresses, in small letters."""
    organization_id: str = ""

    def organization_of(self, email: str) -> str:
        """Return the organization that the domain of an address belongs to, by the operator's word; empty for none."""
        return self.organization_id if email.rpartition("@")[2] in self.domains else ""


async def add_passkey(store: EventStore, person_id: str, new: NewPasskey, name: str, metadata: Metadata) -> None:
    """Add a passkey of a person. Raises Invalid for the name, and Conflict: it exists, or there are too many."""
    added = AddPasskey(new.passkey_id, new.public_key, new.sign_count, name, now())
    await execute(store, CREDENTIALS, person_id, added, metadata=metadata)


async def note_use_of_passkey(
    store: EventStore, person_id: str, passkey_id: str, sign_count: int, metadata: Metadata
) -> None:
    """Record a sign-in. Raises NotFound, and Forbidden where the device's counter did not grow since the last one."""
    await execute(store, CREDENTIALS, person_id, UsePasskey(passkey_id, sign_count, now()), metadata=metadata)


async def remove_passkey(store: EventStore, person_id: str, passkey_id: str, metadata: Metadata) -> None:
    """Remove a passkey of a person. Raises NotFound."""
    await execute(store, CREDENTIALS, person_id, RemovePasskey(passkey_id, now()), metadata=metadata)


async def unlink_account(store: EventStore, person_id: str, issuer: str, metadata: Metadata) -> None:
    await execute(store, CREDENTIALS, person_id, UnlinkAccount(issuer, now()), metadata=metadata)


async def person_of_account(
    store: EventStore,
    views: Views,
    people: PeopleDirectory,
    account: Account,
    admits: Admits,
    metadata: Metadata,
    *,
    present: str = "",
) -> str:
    """Return the id of the person whom an account signs in, and link the two at the first time.

    The account's address is verified, so it counts as the person's. Someone who was removed does not come back by it.
    ``present``: who is signed in in the browser; empty for no one.
    Once linked, it signs in the same person, also where another organization adds the address.

    Raises SeveralAccounts, and Forbidden: no one here has the address, or another account of the provider is linked.
    """
    try:
        email = checked_email(account.email)
    except Invalid as error:
        raise Forbidden(str(error)) from None
    if await _is_admitted(views, email, admits):
        viewer = NewPerson(email, _name_of(account), admits.organization_id, "viewer", by_owner=True)
        await add_person(store, views, viewer, metadata)
    await people.catch_up()
    here = people.accounts_of(email)
    linked = [one for one in here if await _is_linked(store, one, account)]
    wanted = account.wanted or (present if present in here else "")
    if len(linked) == 1 and not wanted:
        person_id = linked[0]
    else:
        vouched, proven = admits.organization_of(email), (*linked, present)
        person_id = people.account_of(email, wanted, vouched_for_by=vouched, proven=proven)
    command = LinkAccount(account.issuer, account.subject, now())
    await execute(store, CREDENTIALS, person_id, command, metadata=metadata)
    return person_id


async def _is_linked(store: EventStore, person_id: str, account: Account) -> bool:
    return (await known_credentials(store, person_id)).accounts.get(account.issuer) == account.subject


async def _is_admitted(views: Views, email: str, admits: Admits) -> bool:
    """Return whether someone who was never here becomes a viewer. Raise NotFound: the settings' organization."""
    if not admits.organization_of(email):
        return False
    await views.catch_up()
    known = await people_by_email(views, email)
    if any(one.added_by in (None, admits.organization_id) for one in known):  # not who another organization has added
        return False
    if await get_organization(views, admits.organization_id) is None:
        raise NotFound(f"Organization not found: {admits.organization_id}. Correct sign_in.oidc.viewer_organization.")
    return True


def _name_of(account: Account) -> str:
    try:
        return checked_name(account.name)
    except Invalid:  # then the email's first part names them
        return ""
