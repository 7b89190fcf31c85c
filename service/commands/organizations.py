"""Organizations: create one."""

from msgspec import Struct

from eventstore import EventStore, Metadata, execute
from service.domain.organizations import CreateOrganization
from service.runtime.system import new_id, now
from service.streams import ORGANIZATIONS


class CreatedOrganization(Struct, frozen=True):
    id: str
    position: int


async def create_organization(store: EventStore, name: str, metadata: Metadata) -> CreatedOrganization:
    """Raises Invalid."""
    organization_id = new_id()
    done = await execute(store, ORGANIZATIONS, organization_id, CreateOrganization(name, now()), metadata=metadata)
    return CreatedOrganization(organization_id, done.position)
