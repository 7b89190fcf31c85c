"""The types of fields that views share, and what the API's description says of a field beside its type."""

from typing import Annotated, Any

from msgspec import Meta


def described(text: str, **schema: Any) -> Meta:
    """A field's description, and what else its schema has. For values that are read, limits are given to ``Meta``."""
    return Meta(description=text, extra_json_schema=schema)


Timestamp = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
"""ISO 8601 in UTC, with milliseconds and ``Z``."""
NextCursor = Annotated[str | None, described("Send it back as `cursor` for the next ones; null at the end.")]
Url = Annotated[str, Meta(extra_json_schema={"format": "uri"})]
Reference = Annotated[str, Meta(extra_json_schema={"format": "uri-reference"})]
"""A URL, or the part of one after the site's own address: as the site's settings have it."""
