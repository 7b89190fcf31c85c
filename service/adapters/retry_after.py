"""The time that a server asks to stay away, from the headers of its answer (RFC 9110, section 10.2.3)."""

from collections.abc import Mapping
from email.utils import parsedate_to_datetime

LONGEST_SECONDS = 1e9


def retry_after_seconds(headers: Mapping[str, str], *, now: float | None = None) -> float | None:
    """Return ``Retry-After`` in seconds, or ``retry-after-ms`` (OpenAI, Azure); None if neither can be read.

    Of the form with a date, the seconds count from the answer's own ``Date``, so no clock of ours matters; where it has
    none, from ``now``, in seconds since 1970.
    """
    fields = {name.lower(): value.strip() for name, value in headers.items()}
    try:
        if "retry-after-ms" in fields:
            return _bounded(float(fields["retry-after-ms"]) / 1000)
        value = fields.get("retry-after", "")
        if value.isascii() and value.replace(".", "", 1).isdigit():
            return _bounded(float(value))
        began = parsedate_to_datetime(fields["date"]).timestamp() if "date" in fields else now
        return None if began is None or not value else _bounded(parsedate_to_datetime(value).timestamp() - began)
    except (ValueError, TypeError, OverflowError):
        return None


def _bounded(seconds: float) -> float:
    return min(max(0.0, seconds), LONGEST_SECONDS)
