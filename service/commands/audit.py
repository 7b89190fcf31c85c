"""The audit of the log: record that it was read, or that a loss was accepted."""

from eventstore import EventStore, Metadata, execute
from service.domain.audit import AuditCommand
from service.runtime.system import new_id
from service.streams import AUDIT


async def record_audit(store: EventStore, command: AuditCommand, metadata: Metadata) -> int:
    """Return the position of the record in the log."""
    return (await execute(store, AUDIT, new_id(), command, metadata=metadata)).position
