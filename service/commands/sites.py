"""Sites: ask for a new index."""

from eventstore import EventStore, Metadata, execute
from service.domain.sites import RequestIndex
from service.runtime.system import now
from service.streams import SITES


async def request_index(store: EventStore, domain: str, reason: str, metadata: Metadata) -> int:
    """Ask for an index of the site's newest commit. Return the position in the log. Raises NotFound."""
    return (await execute(store, SITES, domain, RequestIndex(reason, now()), metadata=metadata)).position
