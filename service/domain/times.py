"""Times as text."""

from datetime import UTC, datetime


def timestamp(time: datetime) -> str:
    """Return a time as ISO 8601 in UTC with milliseconds and ``Z``, as every time in the API."""
    return time.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def timestamp_from(text: str) -> str:
    """Return a stored time, ISO 8601 with its zone, as ``timestamp`` does."""
    return timestamp(datetime.fromisoformat(text))
