"""The base of every stored event, and the types of personal text."""

from typing import Annotated

from msgspec import Meta, Struct

ERASED = "[erased]"
"""The replacement for personal text whose key is gone."""

DAMAGED = "[damaged]"
"""The replacement for personal text that its key does not decrypt."""

GONE = frozenset({ERASED, DAMAGED})

PersonalText = Annotated[str, Meta(extra={"personal": ERASED, "damaged": DAMAGED})]
"""Text that people typed, or that was derived from it: stored encrypted under the key of its stream, erasable.

The codec takes the replacement for an erased value from ``extra["personal"]``, that for a damaged one from
``extra["damaged"]`` or, without it, the same; any field type may carry them.
"""


class Event(Struct, frozen=True, tag_field="type", omit_defaults=True):
    """Stored for good: a new field gets a default; a tag is never renamed or reused."""
