"""Sites: ask for a new index, and change who may ask without a key."""

from eventstore import EventStore, Metadata, execute
from service.domain.sites import ChangeSiteAccess, RequestIndex
from service.runtime.system import now
from service.streams import SITES


async def request_index(store: EventStore, domain: str, reason: str, metadata: Metadata) -> int:
    """Ask for an index of the site's newest commit. Return the position in the log. Raises NotFound."""
    return (await execute(store, SITES, domain, RequestIndex(reason, now()), metadata=metadata)).position


async def change_site_access(store: EventStore, domain: str, change: ChangeSiteAccess, metadata: Metadata) -> None:
    """Open a site to callers without a key, or close it. Raises NotFound, and Invalid for an origin."""
    await execute(store, SITES, domain, change, metadata=metadata)
