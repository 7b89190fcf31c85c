"""Times, durations, sizes and counts as people read them."""

from datetime import UTC, datetime, timedelta

from service.runtime.system import now

_UNITS = ((60, "second"), (60, "minute"), (24, "hour"))
MAX_ELAPSED = timedelta(days=28)
"""Longer ago than this, the date says more."""


def moment_of(at: datetime | str) -> datetime:
    """Return the time of a view, which may be written as ISO 8601."""
    return datetime.fromisoformat(at) if isinstance(at, str) else at


def readable_time(at: datetime | str) -> str:
    moment = moment_of(at).astimezone(UTC)
    return f"{moment.day} {moment:%B %Y, %H:%M} UTC"


def elapsed(at: datetime | str) -> str:
    """Return the time from or until now in one unit: ``3 hours ago``, ``in 2 days``; a date where it is far."""
    moment = moment_of(at).astimezone(UTC)
    passed = now() - moment
    if abs(passed) > MAX_ELAPSED:
        return f"{moment.day} {moment:%b %Y}"
    seconds = round(passed.total_seconds())
    if abs(seconds) < 5:
        return "just now"
    count, noun = _in_one_unit(abs(seconds))
    return f"{counted(count, noun)} ago" if seconds > 0 else f"in {counted(count, noun)}"


def duration(seconds: float) -> str:
    """Return a length of time: ``0.4 s``, ``12 s``, ``3 min 20 s``, ``2 h 5 min``, ``4 d 3 h``."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    for unit, smaller, length in (("d", "h", 86_400), ("h", "min", 3_600), ("min", "s", 60)):
        if whole >= length:
            count, rest = divmod(whole, length)
            rest //= {"h": 3_600, "min": 60, "s": 1}[smaller]
            return f"{count} {unit} {rest} {smaller}" if rest else f"{count} {unit}"
    return f"{whole} s"


def readable_size(count: float) -> str:
    """Return a number of bytes: ``512 B``, ``1.4 kB``, ``27 MB``; a kB is 1,000 bytes."""
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if count < 1_000 or unit == "TB":
            break
        count /= 1_000
    return f"{count:,.0f} {unit}" if unit == "B" or count >= 10 else f"{count:.1f} {unit}"


def counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _in_one_unit(seconds: int) -> tuple[int, str]:
    count = seconds
    for length, noun in _UNITS:
        if count < length:
            return count, noun
        count //= length
    return count, "day"
