"""Times as text, and times that come."""

from datetime import UTC, datetime, timedelta


def timestamp(time: datetime) -> str:
    """Return a time as ISO 8601 in UTC with milliseconds and ``Z``, as every time in the API."""
    return time.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def timestamp_from(text: str) -> str:
    """Return a stored time, ISO 8601 with its zone, as ``timestamp`` does."""
    return timestamp(datetime.fromisoformat(text))


def has_come(time: datetime, now: datetime, most: timedelta) -> bool:
    """Return whether a time has come that was at most so far ahead when it was set. One that is farther ahead was set
    by a clock that was ahead, and has come, too.
    """
    return time <= now or time > now + most


def moment(text: str) -> datetime:
    """Return a time as people write it, ISO 8601; in UTC when it does not say. Raise ValueError."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a time such as 2026-01-31 or 2026-01-31T17:00Z.") from None
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)
