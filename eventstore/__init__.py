"""An event store: an append-only, hash-chained log, with codecs, deciders, subscriptions and projections.

It knows nothing of what its events mean.
"""

from eventstore.codec import Codec, Upcaster
from eventstore.decider import CommandId, Decider, Executed, Loaded, execute, load, plan
from eventstore.errors import (
    DuplicateEventId,
    EventStoreError,
    InvalidEvent,
    OutcomeUnknown,
    StoreBusy,
    StoreClosed,
    StoreCorrupt,
    StoreDiskFailed,
    StoreForeign,
    StoreFull,
    StoreLost,
    StoreNewer,
    StoreReadOnly,
    StoreUnavailable,
    SubjectErased,
    Undecodable,
    UnknownEventType,
    WrongExpectedVersion,
    lacks_memory,
)
from eventstore.events import DEFAULT_METADATA, Append, Appended, Metadata, NewEvent, RecordedEvent, new_event_id
from eventstore.log.chain import (
    GENESIS,
    Checkpoint,
    Verified,
    event_hash,
    log_id_in,
    sign_checkpoint,
    verify_checkpoint,
)
from eventstore.log.stored import StoredEvent
from eventstore.log.times import position_at
from eventstore.log.witnesses import Loss, Witness
from eventstore.place import FilePlace, LogPlace
from eventstore.projections import ProjectionStatus, Views
from eventstore.sqlite.continuity import find_loss, not_held, witnesses_in_copy, witnesses_in_views
from eventstore.sqlite.missing_keys import damaged_texts, subjects_without_keys
from eventstore.sqlite.sqlite_store import SQLiteEventStore
from eventstore.sqlite.stored import log_id_of, stored_events
from eventstore.sqlite.verification import verify
from eventstore.sqlite.view_file import Projection, damage_mark
from eventstore.sqlite.wal_size import LogBounds
from eventstore.store import EventStore, Folded
from eventstore.vault import Secrets, Vault

__all__ = [
    "DEFAULT_METADATA",
    "GENESIS",
    "Append",
    "Appended",
    "Checkpoint",
    "Codec",
    "CommandId",
    "Decider",
    "DuplicateEventId",
    "EventStore",
    "EventStoreError",
    "Executed",
    "FilePlace",
    "Folded",
    "InvalidEvent",
    "Loaded",
    "LogBounds",
    "LogPlace",
    "Loss",
    "Metadata",
    "NewEvent",
    "OutcomeUnknown",
    "Projection",
    "ProjectionStatus",
    "RecordedEvent",
    "SQLiteEventStore",
    "Secrets",
    "StoreBusy",
    "StoreClosed",
    "StoreCorrupt",
    "StoreDiskFailed",
    "StoreForeign",
    "StoreFull",
    "StoreLost",
    "StoreNewer",
    "StoreReadOnly",
    "StoreUnavailable",
    "StoredEvent",
    "SubjectErased",
    "Undecodable",
    "UnknownEventType",
    "Upcaster",
    "Vault",
    "Verified",
    "Views",
    "Witness",
    "WrongExpectedVersion",
    "damage_mark",
    "damaged_texts",
    "event_hash",
    "execute",
    "find_loss",
    "lacks_memory",
    "load",
    "log_id_in",
    "log_id_of",
    "new_event_id",
    "not_held",
    "plan",
    "position_at",
    "sign_checkpoint",
    "stored_events",
    "subjects_without_keys",
    "verify",
    "verify_checkpoint",
    "witnesses_in_copy",
    "witnesses_in_views",
]
