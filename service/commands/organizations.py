"""Organizations: create one."""

from msgspec import Struct

from eventstore import EventStore, Metadata, WrongExpectedVersion, execute, plan
from service.domain.access.members import GiveRole
from service.domain.organizations import CreateOrganization
from service.runtime.system import new_id, now
from service.streams import MEMBERS, ORGANIZATIONS


class CreatedOrganization(Struct, frozen=True):
    id: str
    position: int


async def create_organization(store: EventStore, name: str, metadata: Metadata) -> CreatedOrganization:
    """Raises Invalid."""
    organization_id = new_id()
    done = await execute(store, ORGANIZATIONS, organization_id, CreateOrganization(name, now()), metadata=metadata)
    return CreatedOrganization(organization_id, done.position)


async def create_owned_organization(
    store: EventStore, organization_id: str, name: str, owner_id: str, metadata: Metadata
) -> CreatedOrganization:
    """Create an organization with its first owner, in one step. Raises Invalid, and Conflict where the id is taken."""
    at = now()
    created = await plan(store, ORGANIZATIONS, organization_id, CreateOrganization(name, at), metadata=metadata)
    owned = await plan(store, MEMBERS, organization_id, GiveRole(owner_id, "owner", at), metadata=metadata)
    try:
        done = await store.append_all([one for one in (created, owned) if one is not None])
    except WrongExpectedVersion:  # sent twice at once: the other one is to be said
        await plan(store, ORGANIZATIONS, organization_id, CreateOrganization(name, at), metadata=metadata)
        raise
    return CreatedOrganization(organization_id, done.position)
