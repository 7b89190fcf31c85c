"""The read models as a whole: which there are, and how to wait until they show what was written."""

from eventstore import EventStore, Projection, Views
from service.projections import all_projections

REBUILD_SECONDS = 3600.0
"""Workers wait this long for the read models, which may be rebuilt when the service starts."""


def read_models() -> tuple[Projection, ...]:
    """Return what ``Views.open`` takes: everything that queries read."""
    return all_projections()


async def wait_for_head(store: EventStore, views: Views) -> None:
    """Wait until reads show all that is in the log now. Raises TimeoutError, StoreUnavailable."""
    await views.wait_for(await store.head())


async def wait_for_rebuild(views: Views, position: int) -> None:
    """Wait, for a worker, until reads show the event at a position. Raises TimeoutError, StoreUnavailable."""
    await views.wait_for(position, REBUILD_SECONDS)


async def catch_up(views: Views) -> None:
    """Apply what is in the log, in a process that does not follow it. Raises StoreUnavailable."""
    await views.catch_up()
