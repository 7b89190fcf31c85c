"""The end of a log as a writer knows it, of any storage."""

from collections.abc import Sequence
from datetime import UTC, datetime

from eventstore.appending.batch import Outcome
from eventstore.events import Append

KNOWN_STREAMS = 8_192
"""Streams whose versions a writer keeps."""
BEGINNING = datetime.min.replace(tzinfo=UTC)


class LookFirst(Exception):
    """The state of the log that is known may be old."""


def look_first(_append: Sequence[Append]) -> Outcome | None:
    raise LookFirst


def time_of(recorded_at: str) -> datetime:
    """Return the time of an event; the beginning where there is none yet, or the log was tampered with."""
    try:
        return datetime.fromisoformat(recorded_at).astimezone(UTC)
    except (ValueError, OverflowError):
        return BEGINNING
