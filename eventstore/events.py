"""An event before and after it is recorded."""

import os
import time
from datetime import datetime

from msgspec import Struct


class Metadata(Struct, frozen=True, omit_defaults=True, gc=False):
    """The cause of an event: its actor, and the event or request that it answers."""

    actor: str = "system"
    """A key's id, ``system``, or ``cli:<user>``."""
    correlation_id: str = ""
    """The id of the request that it all began with."""
    causation: int | None = None
    """The position of the event that led to this one."""


DEFAULT_METADATA = Metadata()


def new_event_id() -> str:
    """Return a random id that sorts by time, so that an index of ids grows at its end (as UUID version 7, RFC 9562)."""
    return f"{time.time_ns() // 1_000_000:012x}{os.urandom(10).hex()}"


class NewEvent(Struct, frozen=True, gc=False):
    """A fact to be recorded."""

    type: str
    """The tag of its shape, such as ``job-requested``."""
    data: bytes
    """A JSON object, without its personal fields."""
    personal: bytes | None = None
    """A JSON object of the personal fields: stored only encrypted, under the key of the stream (its *subject*)."""
    schema_version: int = 1
    metadata: Metadata = DEFAULT_METADATA
    id: str = ""
    """Its identity for idempotent appends; made by the store when empty."""


class RecordedEvent(Struct, frozen=True, gc=False):
    """A fact in the log."""

    position: int
    """Its place in the whole store, from 1, without gaps."""
    stream: str
    stream_version: int
    """Its place in its stream, from 1."""
    type: str
    data: bytes
    personal: bytes | None
    """The personal fields in plain text; None when there are none, or when ``erased`` or ``damaged``."""
    erased: bool
    """It had personal fields, and the key of its subject is gone."""
    schema_version: int
    metadata: Metadata
    id: str
    recorded_at: datetime
    hash: bytes
    """SHA-256 over the hash before it and everything that is stored of this event."""
    damaged: bool = False
    """It has personal fields, and a key for them, which does not open them."""


class Append(Struct, frozen=True):
    """One stream's part of an append; ``expected_version`` 0 means that there is no stream yet."""

    stream: str
    events: tuple[NewEvent, ...]
    expected_version: int


class Appended(Struct, frozen=True):
    """Where an append went."""

    position: int
    """The position of its last event."""
    stream_version: int
    """The version of the (last) stream after it."""
