"""Restored copies: have one go on in place of the original."""

from eventstore import EventStore, Metadata, execute
from service.domain.copies import TakeOver
from service.streams import COPIES


async def record_take_over(store: EventStore, mark_id: str, command: TakeOver, metadata: Metadata) -> int:
    """Return the position of the record in the log; again does nothing."""
    return (await execute(store, COPIES, mark_id, command, metadata=metadata)).position
